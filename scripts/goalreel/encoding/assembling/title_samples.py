"""Code the title cards of an assembled film.

A card begins with an IDR picture of one slice per macroblock row, whose common rows are coded once.
The pictures after it skip all macroblocks. A card refers to nothing else, and nothing refers to it.
"""

import numpy as np

from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.yuv import Yuv420p, pad_planes, planes
from goalreel.h264.bits import put_numbers
from goalreel.h264.inter import skip_run
from goalreel.h264.macroblocks import SIDE
from goalreel.h264.parameter_sets import FRAME_NUM_BITS, StreamParameters
from goalreel.h264.slices import SliceHeader, header_bits, slice_nal
from goalreel.rendering.frame_cache import FrameCache

_IDR_PIC_ID = 3  # no other IDR picture has it: adjacent ones must differ in it (7.4.3)
_REF_IDC = 2


def title_samples(titles: FrameCache, stream: StreamParameters, qp: int) -> list[list[bytes]]:
    """Return the samples of each card.

    Args:
        titles: the cards, from rendering.title_cards.
        stream: the parameters of the film.
        qp: the quantization parameter.
    """
    columns, rows = stream.macroblocks
    boxes = np.concatenate([n.patches.boxes for n in titles.layers] or [np.zeros((1, 4), int)])
    varying = slice(boxes[:, 0].min() // SIDE, -(-boxes[:, [0, 2]].sum(axis=1).max() // SIDE))
    pictures, strips = Yuv420p(titles), []
    for card, start in enumerate(titles.offsets[:-1].tolist()):
        whole = pad_planes(planes(pictures[start]))
        some = varying if card else slice(rows)
        strips.append([plane.reshape(rows, -1, plane.shape[1])[some] for plane in whole])
    coded = code_strips(tuple(map(np.concatenate, zip(*strips, strict=True))), qp).unpack()
    poc, current, cards = None if stream.chained else 0, {}, []

    def prefixed(unit: bytes) -> bytes:
        return len(unit).to_bytes(stream.length_bytes, "big") + unit

    def skipped(order: int) -> bytes:
        if not stream.chained:
            header = SliceHeader("P", 0, poc_lsb=2 * order)
            return prefixed(slice_nal(header, skip_run(columns * rows)))
        header = SliceHeader("P", 0, poc_lsb=None, ref_idc=_REF_IDC)
        unit = bytearray(slice_nal(header, skip_run(columns * rows)))
        put_numbers(unit, np.array([8 + header_bits(header).frame_num]), order, FRAME_NUM_BITS)
        return prefixed(unit)

    rest = [skipped(order) for order in range(1, int(titles.offsets[1]))]
    data = iter(coded)
    for card in range(len(strips)):
        for row in range(rows)[varying if card else slice(rows)]:
            header = SliceHeader("I", row * columns, _IDR_PIC_ID, poc, _REF_IDC, qp)
            current[row] = prefixed(slice_nal(header, next(data)))
        cards.append([b"".join(current.values()), *rest])
    return cards
