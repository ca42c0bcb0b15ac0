"""Assemble the samples of a segment from a frame cache and a coded atlas.

An episode begins with an IDR picture, the empty track, with the caption in its own slice. All other
pictures refer to the track. They consist of a slice of the coded atlas, in which skipped
macroblocks keep the caption, and of HUD slices below.
"""

from collections.abc import Sequence

import numpy as np

from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.hud_slices import hud_slices
from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.assembling.sample_parts import (
    MOST_PICTURES,
    PartStore,
    Samples,
    order_position,
)
from goalreel.encoding.yuv import cut_rows, patch_planes, whole_planes
from goalreel.errors import GoalreelError
from goalreel.h264.inter import skip_run
from goalreel.h264.macroblocks import SIDE, Region
from goalreel.h264.nal import length_prefixed
from goalreel.h264.slices import SliceHeader, slice_nal
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import NOTHING, Layer
from goalreel.simulation.trajectories import Trajectories

_PICTURE, _CAPTION = "car", "caption"  # layer names; all others belong to the HUD
_IDR_PIC_IDS = (1, 2)  # alternating; their ue(v) codes have the same length


def samples_of(cache: FrameCache, coded_atlas: CodedAtlas, trajectories: Trajectories) -> Samples:
    """Return the samples of a shard, overlay included.

    The first frame of each episode must be the empty track, with the caption and the HUD of the
    reset state. Raises GoalreelError, which names an episode of the trajectories, if it has too
    many frames or the coded atlas lacks a picture.
    """
    layers = {layer.name: layer for layer in cache.layers}
    picture, caption = layers.pop(_PICTURE), layers.pop(_CAPTION, None)
    hud = list(layers.values())
    starts, lengths, store = cache.offsets[:-1], np.diff(cache.offsets), PartStore()
    _check_lengths(lengths, trajectories)
    on_card = [NOTHING, *(layer.index[starts[0]] for layer in hud)]
    changed = np.logical_or.reduce(
        [layer.index != there for layer, there in zip((picture, *hud), on_card, strict=True)]
    )
    assert not changed[starts].any(), "an assembled episode must start with the track"
    slices = [coded_atlas.slices.get(digest) for digest in picture.patches.digests()]
    _check_pictures(slices, picture, cache, trajectories)
    columns = [_pictures(picture, slices, coded_atlas, store)]
    columns += hud_slices(hud, cache.background, coded_atlas, store)
    rows = np.stack(columns, axis=1)
    rows[~changed] = 0
    height, width = (length // SIDE for length in coded_atlas.planes[0].shape)
    rows[~changed, 0] = _skipped(Region(0, 0, height, width, width), store)
    rows[starts, 0] = _idr_pictures(caption, cache, coded_atlas, store)
    return store.samples(rows, np.arange(len(cache)) - np.repeat(starts, lengths))


def _check_lengths(lengths: np.ndarray, trajectories: Trajectories) -> None:
    for episode in np.flatnonzero(lengths > MOST_PICTURES)[:1].tolist():
        raise GoalreelError(
            f"reach {trajectories.episodes.row(episode)['reach']}: An assembled episode has up to "
            f"{MOST_PICTURES:,} frames, this one {lengths[episode]:,}. Set encode.encoder to x264."
        )


def _check_pictures(
    slices: Sequence[bytes | None], picture: Layer, cache: FrameCache, trajectories: Trajectories
) -> None:
    """Raise GoalreelError for the first state whose picture has no slice."""
    missing = np.array([*(part is None for part in slices), False])  # the index -1 is no picture
    for frame in np.flatnonzero(missing[picture.index])[:1]:
        episode = int(np.searchsorted(cache.offsets, frame, "right")) - 1
        row, first, end = trajectories.episodes.row(episode), *trajectories.offsets[episode:][:2]
        # Counted from the end, since the empty track comes before the reset state.
        step = end - first - (cache.offsets[episode + 1] - frame)
        raise GoalreelError(
            f"coded atlas: No picture of step {step} of reach {row['reach']} (seed {row['seed']}). "
            f"Delete the coded atlas and the frames, or set encode.encoder to x264."
        )


def _pictures(
    picture: Layer, slices: Sequence[bytes | None], coded_atlas: CodedAtlas, store: PartStore
) -> np.ndarray:
    """Return the part number of the picture of each frame, (frames,) int64."""
    order = order_position(coded_atlas.header)
    numbers = [store.add(part, order) if part else 0 for part in slices]
    # The index -1, no picture, finds the last entry.
    return np.array([*numbers, _skipped(coded_atlas.region, store)])[picture.index]


def _skipped(region: Region, store: PartStore) -> int:
    """Return the number of a part that copies a region from the IDR picture."""
    return store.add_slice(SliceHeader("P", region.first), skip_run(region.size))


def _idr_pictures(
    caption: Layer | None, cache: FrameCache, coded_atlas: CodedAtlas, store: PartStore
) -> np.ndarray:
    """Return the part number of the IDR picture of each episode, (episodes,) int64."""
    top, bottom = coded_atlas.card
    starts, columns = cache.offsets[:-1], coded_atlas.region.columns
    index = np.full(len(starts), NOTHING) if caption is None else caption.index[starts]
    tops = [top] if caption is None else [*_captions(caption, cache, coded_atlas), top]
    below = coded_atlas.rows[0] * columns

    def units(first: int, data: np.ndarray) -> list[bytes]:
        headers = (
            SliceHeader("I", first, idr_pic_id=number, ref_idc=3, qp=coded_atlas.quantizers[1])
            for number in _IDR_PIC_IDS
        )
        return [length_prefixed(slice_nal(header, data)) for header in headers]

    bottoms = units(below, bottom)
    cards = [[a + b for a, b in zip(units(0, data), bottoms, strict=True)] for data in tops]
    turns = enumerate(index.tolist())
    return np.array([store.add(cards[card][episode % 2]) for episode, card in turns])


def _captions(caption: Layer, cache: FrameCache, coded_atlas: CodedAtlas) -> list[np.ndarray]:
    """Return the slice data of one I slice per caption."""
    boxes, height = caption.patches.boxes, SIDE * coded_atlas.rows[0]
    assert (boxes[:, 0] + boxes[:, 2]).max(initial=0) <= height, "a caption is too tall"
    under = cut_rows(whole_planes(cache.background), 0, height)
    strips = tuple(plane[None].repeat(len(boxes), axis=0) for plane in under)
    for number, patch in enumerate(patch_planes(caption.patches)):
        for plane, (place, samples) in zip(strips, patch, strict=True):
            plane[number][place] = samples
    return code_strips(strips, coded_atlas.quantizers[1]).unpack()
