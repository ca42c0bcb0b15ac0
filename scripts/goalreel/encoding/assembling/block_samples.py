"""From a shard's drawn pictures to the samples of its segment, by the macroblock.

An episode begins with an IDR picture, a slice for each row of macroblocks. All others refer to the
one before: macroblocks that changed are coded alone, each at the start of a slice of its own that
goes on with skipped ones up to the next. So no prediction, motion vector or context looks beyond a
macroblock: its code is the same wherever and whenever its content is shown, and each content is
coded once. Where many of a row changed, the row is one slice, of which the same holds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, NamedTuple

import numpy as np

from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.yuv import square_planes
from goalreel.errors import GoalreelError
from goalreel.h264.nal import IDR, SLICE, length_prefixed, pack
from goalreel.h264.parameter_sets import FRAME_NUM_BITS
from goalreel.h264.slices import SliceHeader, frame_num_position, header_bits
from goalreel.pictures.blocks import SIDE, Drawn, grid
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import Layer

_REF_IDC = 2  # nal_ref_idc of all pictures
_INTRA = 5  # what mb_type of an intra macroblock is more in a P slice than in an I slice, 7.4.5
_PCM = 25  # mb_type of samples as they are, in an I slice
_BEFORE = 8 * (4 + 1)  # bits of a NAL unit's length and its first byte
# FFmpeg's decoder warns of more than 32 slices that begin within four rows of macroblocks.
_MOST_OF_A_ROW = 7
# Contents that are coded at a time, frames that are joined at a time; what is remembered at most of
# contents and of slices, some 50 MB each.
_NEW, _FRAMES, _CONTENTS, _SLICES = 1 << 13, 1 << 12, 1 << 16, 1 << 18


class _Bits(NamedTuple):
    value: int
    length: int

    def __add__(self, other: "_Bits") -> "_Bits":
        return _Bits(self.value << other.length | other.value, self.length + other.length)


def _bits(array: np.ndarray) -> _Bits:
    """Return an array of bits, (n,) uint8 of 0 and 1."""
    packed = int.from_bytes(np.packbits(array).tobytes(), "big")
    return _Bits(packed >> (-len(array) % 8), len(array))


def _ue(number: int) -> _Bits:
    return _Bits(number + 1, 2 * (number + 1).bit_length() - 1)


# What a slice shows: contents of neighbours in a row, by their numbers, none for what was there.
_Contents = tuple[int, ...]


class _Change(NamedTuple):
    """A frame, and the contents that are new in it, with their first places, in raster order."""

    since: int  # frames since the episode's first, of which all rows are told
    shown: list[tuple[int, _Contents]]


class _Sample(NamedTuple):
    data: bytes
    orders: list[int]  # the bits where frame_num begins
    frame_num: int


def write_block_samples(stream: IO[bytes], cache: FrameCache, qp: int, card_qp: int) -> np.ndarray:
    """Write the samples of a shard's frames to a file; return their sizes, (frames,) int64.

    Args:
        stream: the file, binary.
        cache: the frames, of what Gymnasium draws, with captions above and the HUD below them.
        qp: the quantiser of macroblocks that change.
        card_qp: that of each episode's first picture.

    Raises:
        GoalreelError: ffmpeg fails, or something lies over the pictures.
    """
    film, sizes = _Film(cache), []
    slices = {True: _Slices(card_qp, of_cards=True), False: _Slices(qp)}
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


@dataclass
class _Band:
    """Rows of macroblocks above or below the pictures."""

    rows: range
    layers: list[Layer]
    seen: list[int] | None = None  # the patches that are shown


class _Film:
    """The frames as changes from one to the next, in macroblocks of the film."""

    def __init__(self, cache: FrameCache):
        """Begin before the first frame. Raises GoalreelError if layers lie over the pictures."""
        drawn, *layers = cache.layers
        height, width = cache.background.shape[:2]
        self._rows, self._columns = -(-height // SIDE), -(-width // SIDE)
        self.macroblocks = self._rows * self._columns
        self._drawn: Drawn = drawn
        self._places = self._places_of_blocks()
        # A canvas of whole macroblocks, for what is above and below the pictures.
        more = (0, self._rows * SIDE - height), (0, self._columns * SIDE - width), (0, 0)
        self._paper = np.pad(cache.background, more, "edge")
        self._canvas = self._paper.copy()
        self._bands = self._bands_of(layers, height)
        # The pictures' own contents, where a band begins within a macroblock.
        self._picture = np.full(self.macroblocks + 1, -1)
        # What is shown; the last one is beyond the frame's border.
        self._shown = np.full(self.macroblocks + 1, -1)
        self._group = -1  # the number of the group that is open
        self._count = 0  # of all contents
        self._forget()

    def _bands_of(self, layers: Sequence[Layer], height: int) -> list["_Band"]:
        """Return the bands above and below the pictures, each with its layers."""
        top, bottom = self._drawn.place[0].start, self._drawn.place[0].stop
        above = [n for n in layers if (n.patches.boxes[:, [0, 2]].sum(axis=1) <= top).all()]
        below = [n for n in layers if (n.patches.boxes[:, 0] >= bottom).all()]
        for layer in layers:
            if layer not in (*above, *below):
                raise GoalreelError(
                    f"the layer {layer.name!r} lies over the pictures; set encode.encoder: x264"
                )
        bands = [_Band(range(top // SIDE), above)]
        if bottom < height:
            bands.append(_Band(range(bottom // SIDE, self._rows), below))
        return [band for band in bands if band.rows]

    def _forget(self) -> None:
        for band in self._bands:
            band.seen = None
        self._numbers: dict[bytes, int] = {}
        self._squares: dict[int, bytes] = {}
        # By whether they are of an episode's first frame: contents whose code was asked for, and
        # those whose code is asked for next.
        self._asked: dict[bool, set[_Contents]] = {True: set(), False: set()}
        self._wanted: dict[bool, list[_Contents]] = {True: [], False: []}

    def _places_of_blocks(self) -> np.ndarray:
        """Return the macroblocks, (blocks, scale * scale), of each place of a picture."""
        scale = self._drawn.scale
        rows, columns = grid(self._drawn.size)
        row = self._drawn.top // SIDE + np.arange(rows * scale).reshape(rows, 1, scale, 1)
        column = np.arange(columns * scale).reshape(1, columns, 1, scale)
        inside = (row < self._rows) & (column < self._columns)
        place = np.where(inside, row * self._columns + column, self.macroblocks)
        return place.reshape(rows * columns, -1)

    def batches(self, offsets: list[int]) -> Iterator[list[_Change]]:
        """Yield the changes of all frames, many at a time."""
        changes: list[_Change] = []
        for first, end in zip(offsets, offsets[1:], strict=False):
            for frame in range(first, end):
                if len(changes) >= _FRAMES or sum(map(len, self._wanted.values())) >= _NEW:
                    yield changes
                    changes = []
                    if frame == first and len(self._numbers) > _CONTENTS:
                        self._forget()  # all of the picture is told anew
                places = self._changed(frame)
                shown = self._slices_of(places) if frame > first else self._rows_of_all()
                new = {contents for _, contents in shown} - self._asked[frame == first]
                self._asked[frame == first] |= new
                self._wanted[frame == first] += sorted(new)
                changes.append(_Change(frame - first, shown))
        yield changes

    def wanted(self) -> dict[bool, list[_Contents]]:
        """Return the contents whose code is needed: of episodes' first frames, and of others."""
        wanted, self._wanted = self._wanted, {True: [], False: []}
        return wanted

    def squares(self, contents: list[_Contents]) -> dict[int, np.ndarray]:
        """Return what contents are made of, (16, 16, 3) uint8, by their numbers."""
        numbers = sorted({number for each in contents for number in each})
        data = (np.frombuffer(self._squares[number], np.uint8) for number in numbers)
        return {n: d.reshape(SIDE, SIDE, 3) for n, d in zip(numbers, data, strict=True)}

    def _written(self, band: "_Band", frame: int, drawn: np.ndarray) -> np.ndarray:
        """Show a band, and return its places that change; drawn: those where the picture does."""
        first, end = band.rows.start * self._columns, band.rows.stop * self._columns
        seen = [int(layer.index[frame]) for layer in band.layers]
        if seen == band.seen and not ((drawn >= first) & (drawn < end)).any():
            return drawn[:0]
        band.seen = seen
        rows = slice(band.rows.start * SIDE, band.rows.stop * SIDE)
        self._canvas[rows] = self._paper[rows]
        bottom = self._drawn.place[0].stop
        if rows.start < bottom < rows.stop:  # within a macroblock
            numbers = self._picture[first : first + self._columns].tolist()
            squares = [self._squares[number] for number in numbers]
            part = np.frombuffer(b"".join(squares), np.uint8).reshape(-1, SIDE, SIDE, 3)
            part = part.swapaxes(0, 1).reshape(SIDE, -1, 3)
            self._canvas[rows.start : bottom] = part[: bottom - rows.start]
        for layer in band.layers:
            layer.paste(self._canvas, frame)
        shape = len(band.rows), SIDE, self._columns, SIDE, 3
        numbers = self._numbers_of(self._canvas[rows].reshape(shape).swapaxes(1, 2))
        changed = first + np.flatnonzero(self._shown[first:end] != numbers)
        self._shown[first:end] = numbers
        return changed

    def _rows_of_all(self) -> list[tuple[int, _Contents]]:
        shown = self._shown[:-1].reshape(self._rows, self._columns).tolist()
        return [(self._columns * row, tuple(contents)) for row, contents in enumerate(shown)]

    def _slices_of(self, places: np.ndarray) -> list[tuple[int, _Contents]]:
        """Return what changes at places, in raster order: macroblocks, or whole rows of them."""
        rows, shown, width = places // self._columns, self._shown, self._columns
        full = np.flatnonzero(np.bincount(rows, minlength=1) > _MOST_OF_A_ROW)
        alone = places[~np.isin(rows, full)] if len(full) else places
        numbers = zip(alone.tolist(), shown[alone].tolist(), strict=True)
        found = [(place, (number,)) for place, number in numbers]
        for first in (full * width).tolist():
            found.append((first, tuple(shown[first : first + width].tolist())))
        return sorted(found) if len(full) else found

    def _changed(self, frame: int) -> np.ndarray:
        """Return the places that change with a frame, (n,), in order."""
        number, picture = self._drawn.find(frame)
        if number != self._group:
            group = self._drawn.group(number)
            self._group, self._done, self._up_to = number, 0, group.up_to
            self._changes, self._contents = group.changes, self._contents_of(group.blocks)
        end = self._up_to(picture)
        _, blocks, contents = self._changes[:, self._done : end]
        self._done = end
        places, contents = self._places[blocks].ravel(), self._contents[contents].ravel()
        before = self._picture[places]
        self._picture[places] = contents  # of several changes of a place the last stays
        places = np.unique(places[self._picture[places] != before])
        places = places[places < self.macroblocks]
        told = [self._written(band, frame, places) for band in self._bands]
        for band in self._bands:
            first, end = band.rows.start * self._columns, band.rows.stop * self._columns
            places = places[(places < first) | (places >= end)]
        self._shown[places] = self._picture[places]
        return np.sort(np.concatenate([places, *told])) if any(map(len, told)) else places

    def _contents_of(self, blocks: np.ndarray) -> np.ndarray:
        """Return the numbers, (blocks, scale * scale), of what enlarged blocks show."""
        scale = self._drawn.scale
        large = blocks.repeat(scale, 2).repeat(scale, 1)
        squares = large.reshape(-1, scale, SIDE, scale, SIDE, 3).swapaxes(2, 3)
        return self._numbers_of(squares).reshape(len(blocks), scale * scale)

    def _numbers_of(self, squares: np.ndarray) -> np.ndarray:
        """Return the numbers of contents, (..., 16, 16, 3) uint8: (n,) int64."""
        data, size = squares.tobytes(), SIDE * SIDE * 3
        return np.array([self._number(data[i : i + size]) for i in range(0, len(data), size)])

    def _number(self, content: bytes) -> int:
        number = self._numbers.get(content)
        if number is None:
            number = self._numbers[content] = self._count
            self._squares[number] = content
            self._count += 1
        return number


class _Slices:
    """The codes of contents, and slices of them."""

    def __init__(self, qp: int, of_cards: bool = False):
        """Begin without a code; of_cards: whether they are of IDR pictures, in whole rows."""
        self._qp, self._of_cards = qp, of_cards
        self._codes: dict[_Contents, _Bits] = {(): _Bits(0, 0)}
        # By type and place: a header, and where frame_num begins.
        self._heads: dict[tuple[str, int], tuple[_Bits, int]] = {}
        self._parts: dict[tuple, bytes] = {}  # by contents, place and the skipped ones after it

    def code(self, wanted: list[_Contents], squares: dict[int, np.ndarray]) -> None:
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
                self._codes[contents] = _in_p_slice(data) if alone else _bits(data)

    def sample(self, change: _Change, macroblocks: int) -> _Sample:
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

    def _head(self, kind: str, place: int) -> tuple[_Bits, int]:
        found = self._heads.get((kind, place))
        if found is None:
            idr = 0 if self._of_cards else None
            header = SliceHeader(kind, place, 0, idr, None, _REF_IDC, self._qp)
            order = _BEFORE + frame_num_position(header)
            found = self._heads[kind, place] = _bits(header_bits(header)), order
        return found

    def _part(self, head: _Bits, contents: _Contents, skipped: int) -> bytes:
        """Return a slice of contents, and of skipped macroblocks after them."""
        bits = head + self._codes[contents]
        bits += _ue(skipped) if skipped else _Bits(0, 0)
        bits += _Bits(1, 1)  # rbsp_stop_one_bit
        bits += _Bits(0, -bits.length % 8)
        rbsp = bits.value.to_bytes(bits.length // 8, "big")
        return length_prefixed([pack(_REF_IDC, IDR if self._of_cards else SLICE, rbsp)])


def _covering(
    shown: list[tuple[int, _Contents]], macroblocks: int
) -> Iterator[tuple[_Contents, int, int]]:
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


def _in_p_slice(data: np.ndarray) -> _Bits:
    """Return a macroblock of an I slice, (n,) uint8 of 0 and 1, as a P slice has it (7.3.4).

    Raises GoalreelError if it is samples as they are, which begin at a whole byte.
    """
    zeros = int(data.argmax())  # of mb_type, ue(v)
    kind = _bits(data[: 2 * zeros + 1]).value - 1
    if kind == _PCM:
        raise GoalreelError("x264 coded samples as they are, which fit no other place")
    return _ue(0) + _ue(kind + _INTRA) + _bits(data[2 * zeros + 1 :])
