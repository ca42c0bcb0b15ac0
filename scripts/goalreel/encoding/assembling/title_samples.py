"""Code the title cards of an assembled film.

A card begins with an IDR picture of one slice per macroblock row, whose common rows are coded once.
The pictures after it skip all macroblocks. A card refers to nothing else, and nothing refers to it.
"""

from collections.abc import Iterable
from typing import IO

import numpy as np

from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.yuv import Yuv420p, cut_rows, pad_planes, planar, planes
from goalreel.h264.bits import length_prefixed
from goalreel.h264.inter import skip_run
from goalreel.h264.macroblocks import SIDE, SIDES, Planes
from goalreel.h264.parameter_sets import FRAME_NUM_BITS, StreamParameters
from goalreel.h264.slices import SliceHeader, slice_nal
from goalreel.rendering.frame_cache import FrameCache

_IDR_PIC_ID = 3  # no other IDR picture has it: adjacent ones must differ in it (7.4.3)
_REF_IDC = 2
_QP = 36  # legible, as the paper of cards has no residual


def write_title_samples(file: IO[bytes], titles: FrameCache, stream: StreamParameters) -> list:
    """Write the samples of all title cards, and return the sizes of those of each, in bytes."""
    columns, rows = stream.macroblocks
    boxes = np.concatenate([n.patches.boxes for n in titles.layers] or [np.zeros((1, 4), int)])
    first, end = boxes[:, 0].min() // SIDE, -(-boxes[:, [0, 2]].sum(axis=1).max() // SIDE)
    pictures, frames = Yuv420p(titles), int(titles.offsets[1])
    # The rows of the first card, and those in which the cards differ.
    parts = [
        [plane.copy() for plane in cut_rows(planes(picture), SIDE * first, SIDE * end)]
        for picture in pictures.frames(range(0, len(titles), frames))
    ]
    varying = _rows(map(np.stack, zip(*parts, strict=True)))
    strips = map(np.concatenate, zip(_rows(planes(planar(titles[0]))), varying, strict=True))
    coded = iter(code_strips(tuple(strips), _QP).unpack())
    poc = None if stream.chained else 0

    def unit(header: SliceHeader, data: np.ndarray) -> bytes:
        return length_prefixed(slice_nal(header, data), stream.length_bytes)

    def code_row(row: int) -> bytes:
        header = SliceHeader("I", row * columns, _IDR_PIC_ID, poc, _REF_IDC, _QP)
        return unit(header, next(coded))

    def repeat(order: int) -> bytes:
        header = SliceHeader("P", 0, poc_lsb=2 * order)
        if stream.chained:
            number = order % (1 << FRAME_NUM_BITS)
            header = SliceHeader("P", 0, poc_lsb=None, ref_idc=_REF_IDC, frame_num=number)
        return unit(header, skip_run(columns * rows))

    common, rest = [*map(code_row, range(rows))], [*map(repeat, range(1, frames))]
    sizes = []
    for _ in parts:
        samples = [b"".join([*common[:first], *map(code_row, range(first, end)), *common[end:]])]
        samples += rest
        file.writelines(samples)
        sizes.append(np.array([*map(len, samples)]))
    return sizes


def _rows(pictures: Iterable[np.ndarray]) -> Planes:
    """Return the macroblock rows of pictures, whose planes are (..., h, w), as strips."""
    padded = zip(pad_planes(tuple(pictures)), SIDES, strict=True)
    return tuple(plane.reshape(-1, side, plane.shape[-1]) for plane, side in padded)
