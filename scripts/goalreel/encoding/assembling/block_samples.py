"""From a shard's drawn pictures to the samples of its segment, by the macroblock.

An episode begins with an IDR picture, a slice for each row of macroblocks. All others refer to the
one before: macroblocks that changed are coded alone, each at the start of a slice of its own that
goes on with skipped ones up to the next. So no prediction, motion vector or context looks beyond a
macroblock: its code is the same wherever and whenever its content is shown, and each content is
coded once. Where many of a row changed, the row is one slice, of which the same holds.
"""

from collections.abc import Iterator
from typing import IO, NamedTuple

import numpy as np

from goalreel.encoding.assembling.block_contents import Change, Contents, FilmContents
from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.yuv import square_planes
from goalreel.errors import GoalreelError
from goalreel.h264.bits import Bits
from goalreel.h264.nal import IDR, SLICE, length_prefixed, pack
from goalreel.h264.parameter_sets import FRAME_NUM_BITS
from goalreel.h264.slices import SliceHeader, frame_num_position, header_bits
from goalreel.pictures.frame_cache import FrameCache

_REF_IDC = 2  # nal_ref_idc of all pictures
_INTRA = 5  # what mb_type of an intra macroblock is more in a P slice than in an I slice, 7.4.5
_PCM = 25  # mb_type of samples as they are, in an I slice
_SLICES = 1 << 18  # that are remembered at most, some 50 MB


class _Sample(NamedTuple):
    data: bytes
    orders: list[int]  # the bits where frame_num begins
    frame_num: int


def write_block_samples(
    stream: IO[bytes], cache: FrameCache, qp: int, card_qp: int, length_bytes: int
) -> np.ndarray:
    """Write the samples of a shard's frames to a file; return their sizes, (frames,) int64.

    Args:
        stream: the file, binary.
        cache: the frames, of what Gymnasium draws, with captions above and the HUD below them.
        qp: the quantiser of macroblocks that change.
        card_qp: that of each episode's first picture.
        length_bytes: that a slice's length takes.

    Raises:
        GoalreelError: ffmpeg fails, or something lies over the pictures.
    """
    film, sizes = FilmContents(cache), []
    slices = {cards: _Slices((qp, card_qp)[cards], length_bytes, cards) for cards in (True, False)}
    for changes in film.batches(cache.offsets.tolist()):
        for of_cards, wanted in film.wanted().items():
            slices[of_cards].code(wanted, film.squares(wanted))
        samples = [slices[not change.since].sample(change, film.macroblocks) for change in changes]
        sizes += [len(sample.data) for sample in samples]
        stream.write(_joined(samples))
    return np.array(sizes, np.int64)


def _joined(samples: list[_Sample]) -> bytearray:
    """Return samples, joined, with each slice's frame_num.

    No bits of a header can make a start code, whatever the number: ten bits of 0 follow each other
    at most.
    """
    joined = bytearray().join(sample.data for sample in samples)
    buffer = np.frombuffer(joined, np.uint8)
    counts = [len(sample.orders) for sample in samples]
    lengths = np.array([len(sample.data) for sample in samples])
    bits = np.array([bit for sample in samples for bit in sample.orders], np.int64)
    byte, bit = np.repeat(np.cumsum(lengths) - lengths, counts) + bits // 8, bits % 8
    numbers = np.repeat([sample.frame_num for sample in samples], counts)
    window = numbers << (16 - FRAME_NUM_BITS - bit)
    for shift in (8, 0):  # each byte is of one slice alone
        buffer[byte] |= (window >> shift & 0xFF).astype(np.uint8)
        byte = byte + 1
    return joined


class _Slices:
    """The codes of contents, and slices of them."""

    def __init__(self, qp: int, length_bytes: int, of_cards: bool):
        """Begin without a code; of_cards: whether they are of IDR pictures, in whole rows."""
        self._qp, self._length_bytes, self._of_cards = qp, length_bytes, of_cards
        self._codes: dict[Contents, Bits] = {(): Bits(0, 0)}
        # By type and place: a header, and where frame_num begins.
        self._heads: dict[tuple[str, int], tuple[Bits, int]] = {}
        self._parts: dict[tuple, bytes] = {}  # by contents, place and the skipped ones after it

    def code(self, wanted: list[Contents], squares: dict[int, np.ndarray]) -> None:
        """Code contents, given what they are made of, (16, 16, 3) uint8."""
        if not wanted:
            return
        planes = square_planes(np.stack(list(squares.values())))
        place = {number: place for place, number in enumerate(squares)}
        for count in sorted({len(contents) for contents in wanted}):
            chosen = [contents for contents in wanted if len(contents) == count]
            places = np.array([[place[number] for number in contents] for contents in chosen])
            strips = tuple(
                plane[places].swapaxes(1, 2).reshape(len(chosen), plane.shape[1], -1)
                for plane in planes
            )
            for contents, data in zip(chosen, code_strips(strips, self._qp), strict=True):
                alone = count == 1 and not self._of_cards
                self._codes[contents] = _in_p_slice(data) if alone else data

    def sample(self, change: Change, macroblocks: int) -> _Sample:
        """Return a frame's slices, frame_num 0 in all of them."""
        parts, orders, size = [], [], 0
        for contents, place, end in _covering(change.shown, macroblocks):
            rows = len(contents) > 1 or self._of_cards
            head, order = self._head("I" if rows else "P", place)
            part = self._parts.get((contents, place, end))
            if part is None:
                part = self._part(head, contents, end - place - len(contents))
                self._parts[contents, place, end] = part
            parts.append(part)
            orders.append(8 * size + order)
            size += len(part)
        if len(self._parts) > _SLICES:
            self._parts.clear()
        return _Sample(b"".join(parts), orders, change.since % (1 << FRAME_NUM_BITS))

    def _head(self, kind: str, place: int) -> tuple[Bits, int]:
        found = self._heads.get((kind, place))
        if found is None:
            idr = 0 if self._of_cards else None
            header = SliceHeader(kind, place, 0, idr, None, _REF_IDC, self._qp)
            order = 8 * (self._length_bytes + 1) + frame_num_position(header)
            found = self._heads[kind, place] = Bits.of(header_bits(header)), order
        return found

    def _part(self, head: Bits, contents: Contents, skipped: int) -> bytes:
        """Return a slice of contents, and of skipped macroblocks after them."""
        value, length = head
        code, more = self._codes[contents]
        value, length = value << more | code, length + more
        if skipped:
            more = 2 * (skipped + 1).bit_length() - 1  # ue(v)
            value, length = value << more | skipped + 1, length + more
        empty = -(length + 1) % 8  # after rbsp_stop_one_bit
        rbsp = ((value << 1 | 1) << empty).to_bytes((length + 1 + empty) // 8, "big")
        unit = pack(_REF_IDC, IDR if self._of_cards else SLICE, rbsp)
        return length_prefixed([unit], self._length_bytes)


def _covering(
    shown: list[tuple[int, Contents]], macroblocks: int
) -> Iterator[tuple[Contents, int, int]]:
    """Yield a picture's slices: contents, the first macroblock, and the one behind the last.

    A slice of one content goes on with skipped macroblocks, one of a row is an I slice, which has
    none.
    """
    covered = 0
    ends = [*(place for place, _ in shown[1:]), macroblocks]
    for (place, contents), end in zip(shown, ends, strict=False):
        if place > covered:
            yield (), covered, place
        covered = end if len(contents) == 1 else place + len(contents)
        yield contents, place, covered
    if covered < macroblocks:
        yield (), covered, macroblocks


def _in_p_slice(data: Bits) -> Bits:
    """Return a macroblock of an I slice as a P slice has it (7.3.4).

    Raises GoalreelError if it is samples as they are, which begin at a whole byte.
    """
    value, length = data
    rest = 2 * value.bit_length() - length - 1  # bits after mb_type, ue(v) with its zeros first
    kind = (value >> rest) - 1
    if kind == _PCM:
        raise GoalreelError("x264 coded samples as they are, which fit no other place")
    code = kind + _INTRA + 1
    more = 2 * code.bit_length() - 1
    begun = 1 << more | code  # mb_skip_run is 0, ue(v) of one bit, then mb_type
    return Bits(begun << rest | value & (1 << rest) - 1, 1 + more + rest)
