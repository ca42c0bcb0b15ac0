"""Assemble the samples of a segment from a frame cache and a coded atlas.

An episode begins with an IDR picture, the empty track, with the caption in its own slice. All other
pictures refer to the track. They consist of a slice of the coded atlas, in which skipped
macroblocks keep the caption, and of HUD slices below.
"""

from collections.abc import Sequence
from typing import IO

import numpy as np

from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.hud_slices import hud_slices
from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.assembling.sample_parts import MOST_PICTURES, PartStore, order_position
from goalreel.encoding.yuv import cut_rows, patch_planes, whole_planes
from goalreel.errors import GoalreelError
from goalreel.h264.bits import length_prefixed
from goalreel.h264.inter import skip_run
from goalreel.h264.macroblocks import SIDE, Region
from goalreel.h264.slices import SliceHeader, slice_nal
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import NOTHING, Layer

_PICTURE, _CAPTION = "car", "caption"  # layer names; all others belong to the HUD
_IDR_PIC_IDS = (1, 2)  # alternating, and with ue(v) codes of one length


def write_samples(stream: IO[bytes], cache: FrameCache, coded_atlas: CodedAtlas) -> np.ndarray:
    """Write the samples of a shard, overlay included, and return their sizes, (frames,) int64.

    The first frame of each episode must be the empty track, with the caption and the HUD of the
    reset state. Raises GoalreelError if an episode, which may come from a recording, has too many
    frames, or if the coded atlas lacks a picture.
    """
    layers = {layer.name: layer for layer in cache.layers}
    picture, caption = layers.pop(_PICTURE), layers.pop(_CAPTION, None)
    hud = list(layers.values())
    starts, lengths, store = cache.offsets[:-1], np.diff(cache.offsets), PartStore()
    if (longest := lengths.max()) > MOST_PICTURES:
        raise GoalreelError(
            f"encode.encoder: An assembled episode has up to {MOST_PICTURES:,} frames, but one has "
            f"{longest:,}. Use x264."
        )
    on_card = [NOTHING, *(layer.index[starts[0]] for layer in hud)]
    changed = np.logical_or.reduce(
        [layer.index != there for layer, there in zip((picture, *hud), on_card, strict=True)]
    )
    slices = [coded_atlas.slices.get(digest) for digest in picture.patches.digests()]
    if None in slices:
        raise GoalreelError(
            "coded atlas: A picture of the frames is missing. Delete the coded atlas and the "
            "frames, or set encode.encoder to x264."
        )
    columns = [_pictures(picture, slices, coded_atlas, store)]
    columns += hud_slices(hud, cache.background, coded_atlas, store)
    rows = np.stack(columns, axis=1)
    rows[~changed] = 0
    height, width = (length // SIDE for length in coded_atlas.planes[0].shape)
    rows[~changed, 0] = _skipped(Region(0, 0, height, width, width), store)
    rows[starts, 0] = _idr_pictures(caption, cache, coded_atlas, store)
    return store.write(stream, rows, np.arange(len(cache)) - np.repeat(starts, lengths))


def _pictures(
    picture: Layer, slices: Sequence[bytes], coded_atlas: CodedAtlas, store: PartStore
) -> np.ndarray:
    """Return the part number of the picture of each frame, (frames,) int64."""
    order = order_position(coded_atlas.header)
    numbers = [store.add(part, order) for part in slices]
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
    under = cut_rows(whole_planes(cache.background), 0, SIDE * coded_atlas.rows[0])
    strips = tuple(plane[None].repeat(len(caption.patches), axis=0) for plane in under)
    for number, patch in enumerate(patch_planes(caption.patches)):
        for plane, (place, samples) in zip(strips, patch, strict=True):
            plane[number][place] = samples
    return code_strips(strips, coded_atlas.quantizers[1]).unpack()
