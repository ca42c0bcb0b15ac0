"""Assembled segments: from a shard's frame cache and the coded atlas to the samples of its film.

An episode begins with an IDR picture, its title card: the track with the caption, which has a slice
of its own. All other pictures refer to it: the coded atlas's, with the caption under their skipped
macroblocks, and in slices below them the HUD, told in strips. How samples are joined from these
parts is told in assembly.
"""

from collections.abc import Sequence

import numpy as np

from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.hud_slices import strips
from goalreel.encoding.assembling.intra_slices import code_intra, joined, pad16, planes
from goalreel.encoding.assembling.long_episodes import restarted
from goalreel.encoding.assembling.sample_parts import Samples, Store
from goalreel.encoding.yuv import patch_planes, planar
from goalreel.errors import GoalreelError
from goalreel.h264.inter import skip_run
from goalreel.h264.macroblocks import SIDE, Region
from goalreel.h264.nal import length_prefixed
from goalreel.h264.slices import SliceHeader, slice_nal
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import NOTHING, Layer
from goalreel.simulation.trajectories import Trajectories

PICTURE, CAPTION = "car", "caption"  # layers; all others are the HUD's
_IDR_PIC_IDS = (1, 2)  # in turn, codes of the same length


def samples_of(cache: FrameCache, coded_atlas: CodedAtlas, trajectories: Trajectories) -> Samples:
    """Return the samples of a shard's frames, overlay included.

    Each episode's first frame must show its card: the track, the caption, the HUD as at the reset.
    Raises GoalreelError if it does not, or a picture is not in the coded atlas.
    """
    picture, caption, hud = layers_of(cache)
    starts, store = cache.offsets[:-1], Store()
    on_card = [NOTHING, *(layer.index[starts[0]] for layer in hud)]
    shown = np.logical_or.reduce(
        [layer.index != there for layer, there in zip((picture, *hud), on_card, strict=True)]
    )
    if shown[starts].any():
        raise GoalreelError("an assembled episode begins with a title card; this one has none")
    slices = [coded_atlas.slices.get(digest) for digest in picture.patches.digests()]
    check_pictures(slices, picture, cache, trajectories)
    columns = [_pictures(picture, slices, coded_atlas, store)]
    columns += strips(hud, cache.background, coded_atlas, store)
    rows = np.stack(columns, axis=1)
    rows[~shown] = 0
    rows[~shown, 0] = _skipped(_whole(coded_atlas), store)
    rows[starts, 0] = _idr_pictures(caption, cache, coded_atlas, store)
    counts = np.arange(len(cache)) - np.repeat(starts, np.diff(cache.offsets))
    return restarted(rows, counts, store)


def layers_of(cache: FrameCache) -> tuple[Layer, Layer | None, list[Layer]]:
    """Return the pictures, the caption if there is one, and the HUD's layers.

    Raises GoalreelError if the cache has no pictures.
    """
    layers = {layer.name: layer for layer in cache.layers}
    if PICTURE not in layers:
        raise GoalreelError(
            f"a frame cache of the layers {', '.join(layers) or 'none'}: only one with "
            f"{PICTURE!r}, of a Mountain Car, can be assembled"
        )
    return layers.pop(PICTURE), layers.pop(CAPTION, None), list(layers.values())


def check_pictures(
    coded: Sequence[bytes | None], picture: Layer, cache: FrameCache, trajectories: Trajectories
) -> None:
    """Raise GoalreelError that names the first state whose picture a coded atlas lacks.

    coded: of each of the layer's patches what the coded atlas has, None for nothing.
    """
    missing = [part is None for part in coded]
    if not any(missing):
        return
    wrong = np.flatnonzero(np.append(missing, False)[picture.index])
    if not len(wrong):
        return
    episode = int(np.searchsorted(cache.offsets, wrong[0], "right")) - 1
    # From the end: a title card stands before the reset state.
    state = trajectories.offsets[episode + 1] - (cache.offsets[episode + 1] - wrong[0])
    position, velocity = trajectories.states[state].tolist()
    row = trajectories.episodes.row(episode)
    step = state - trajectories.offsets[episode]
    raise GoalreelError(
        f"the coded atlas has no picture of step {step} of reach {row['reach']} (seed "
        f"{row['seed']}: position {position!r}, velocity {velocity!r}); make the coded atlas and "
        f"the frames anew, or choose encode.encoder: x264"
    )


def _pictures(
    picture: Layer, slices: Sequence[bytes | None], coded_atlas: CodedAtlas, store: Store
) -> np.ndarray:
    """Return the part of each frame's picture, (frames,) int64."""
    header = coded_atlas.header
    numbers = [store.add_made(header, part) if part else 0 for part in slices]
    # The index of no picture, -1, finds the last.
    return np.array([*numbers, _skipped(coded_atlas.region, store)])[picture.index]


def _skipped(region: Region, store: Store) -> int:
    """Return the part that leaves a region as it is in the IDR picture."""
    return store.add(SliceHeader("P", region.first, 1), skip_run(region.size))


def _whole(coded_atlas: CodedAtlas) -> Region:
    rows, columns = (length // SIDE for length in coded_atlas.planes[0].shape)
    return Region(0, 0, rows, columns, columns)


def _idr_pictures(
    caption: Layer | None, cache: FrameCache, coded_atlas: CodedAtlas, store: Store
) -> np.ndarray:
    """Return the part of each episode's IDR picture, (episodes,) int64."""
    top, rest = coded_atlas.card
    starts, columns = cache.offsets[:-1], coded_atlas.region.columns
    index = np.full(len(starts), NOTHING) if caption is None else caption.index[starts]
    tops = [top] if caption is None else [*_captions(caption, cache, coded_atlas), top]
    below = coded_atlas.rows[0] * columns

    def units(first: int, data: np.ndarray) -> list[bytes]:
        headers = (
            SliceHeader("I", first, idr_pic_id=number, ref_idc=3, qp=coded_atlas.quantisers[1])
            for number in _IDR_PIC_IDS
        )
        return [length_prefixed([slice_nal(header, data)]) for header in headers]

    rests = units(below, rest)
    cards = [[a + b for a, b in zip(units(0, data), rests, strict=True)] for data in tops]
    turns = enumerate(index.tolist())
    return np.array([store.add_whole(cards[card][episode % 2]) for episode, card in turns])


def _captions(caption: Layer, cache: FrameCache, coded_atlas: CodedAtlas) -> list[np.ndarray]:
    """Return the data of an I slice for each caption.

    Raises GoalreelError if a caption reaches below the captions' rows.
    """
    boxes, height = caption.patches.boxes, SIDE * coded_atlas.rows[0]
    if (boxes[:, 0] + boxes[:, 2]).max(initial=0) > height:
        raise GoalreelError(f"a caption reaches below row {height}, its slice's last")
    luma, blue, red = planes(pad16(planar(cache.background)))
    under = luma[:height], blue[: height // 2], red[: height // 2]

    def pictures():
        for patch in patch_planes(caption.patches):
            shown = tuple(plane.copy() for plane in under)
            for plane, (place, samples) in zip(shown, patch, strict=True):
                plane[place] = samples
            yield joined(*shown)

    size = luma.shape[1], height
    return [part.data for part in code_intra(pictures(), size, coded_atlas.quantisers[1])]
