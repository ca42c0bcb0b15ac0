"""Write the samples of a segment from rendered frames, coding each distinct macroblock once.

An episode begins with an IDR picture, one slice per macroblock row. Every other picture refers to
the one before. Each changed macroblock starts its own slice, which continues with skipped
macroblocks up to the next change. Prediction, motion vectors and contexts therefore never cross a
macroblock, and its code can be reused at any address and in any frame. If many macroblocks of a row
change, the whole row is one I slice, which is reused likewise.
"""

from typing import IO, NamedTuple

import numpy as np

from goalreel.encoding.assembling.block_contents import ContentBatch, FilmContents
from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.yuv import block_planes
from goalreel.environments.drawing.block_store import BlockStore
from goalreel.h264 import bits
from goalreel.h264.parameter_sets import FRAME_NUM_BITS
from goalreel.h264.slices import SliceHeader, header_bits
from goalreel.rendering.frame_cache import FrameCache

_REF_IDC = 2  # nal_ref_idc of all pictures
_INTRA = 5  # offset of intra mb_type in P slices (7.4.5)
_PCM = 25  # mb_type I_PCM in an I slice (Table 7-11)
_MAX_SLICES = 1 << 18  # slices kept in memory, about 50 MB
_SLICES_PER_STEP = 1 << 12
_WORD = 64  # bits
# Kinds of strips: a changed block, a changed row, a row of the first picture of an episode.
_SINGLE, _ROW, _CARD = range(3)
_NOTHING = 0  # the strip number of skipped macroblocks


def write_block_samples(
    stream: IO[bytes], cache: FrameCache, qp: int, card_qp: int, length_bytes: int
) -> np.ndarray:
    """Write the samples of a shard and return their sizes in bytes, (frames,) int64.

    `qp` is that of changed macroblocks, `card_qp` that of the first picture of each episode, and
    `length_bytes` the size of the length before each NAL unit. Raises GoalreelError if ffmpeg
    fails.
    """
    film, sizes = FilmContents(cache), []
    slices = _Slices(film.columns, film.macroblocks, (qp, qp, card_qp), length_bytes)
    for batch in film.batches(cache.offsets):
        samples, lengths = slices.samples(batch)
        stream.write(samples)
        sizes.append(lengths)
    return np.concatenate(sizes)


class _Table(NamedTuple):
    """The properties of each strip, by its number."""

    kinds: np.ndarray
    leading_bits: np.ndarray  # the first bits, which replace those of x264, as a number
    leading_lengths: np.ndarray
    starts: np.ndarray  # position of the other bits in the codes
    lengths: np.ndarray  # number of the other bits


class _Slices:
    """A cache of coded strips (a single block or a whole row) and of slices made of them."""

    def __init__(
        self, columns: int, macroblocks: int, quantizers: tuple[int, int, int], length_bytes: int
    ):
        """Start empty; quantizers: QP by kind of strip."""
        self._columns, self._macroblocks = columns, macroblocks
        self._quantizers, self._length_bytes = quantizers, length_bytes
        self._store: BlockStore | None = None

    def _reset(self, store: BlockStore) -> None:
        """Drop all strips and slices, since block numbers refer to a new store."""
        self._store, self._codes = store, np.zeros(0, np.uint8)
        nothing = np.zeros(_NOTHING + 1, np.int64)
        self._table = _Table(nothing + _SINGLE, *[nothing] * 4)
        self._numbers: tuple[dict, ...] = ({}, {}, {})  # strip numbers by kind and blocks
        self._parts: dict[int, bytes] = {}  # NAL units by strip, place and end

    def _strips(self, kind: int, rows: np.ndarray) -> np.ndarray:
        """Return the numbers of strips, given as (n, blocks), and code new ones."""
        known, first = self._numbers[kind], len(self._table.kinds)
        keys = rows.ravel().tolist() if kind == _SINGLE else [row.tobytes() for row in rows]
        new = {key: place for place, key in enumerate(keys) if key not in known}
        if new:
            self._code(kind, rows[list(new.values())])
            known.update(zip(new, range(first, first + len(new)), strict=True))
        return np.fromiter(map(known.__getitem__, keys), np.int64, len(keys))

    def _code(self, kind: int, rows: np.ndarray) -> None:
        """Code strips, given as (n, blocks), and append them to the table."""
        blocks, inverse = np.unique(rows, return_inverse=True)
        inverse, count = inverse.reshape(rows.shape), len(rows)
        strips = tuple(
            plane[inverse].swapaxes(1, 2).reshape(count, plane.shape[1], -1)
            for plane in block_planes(self._store.pixels(blocks))
        )
        coded = code_strips(strips, self._quantizers[kind])
        leading_bits, leading_lengths, starts, lengths = np.zeros((4, count), np.int64)
        if kind == _SINGLE:
            leading_bits, leading_lengths, read = _p_slice_prefix(coded)
            starts, lengths = starts + read, lengths - read
        starts += 8 * len(self._codes) + coded.starts
        rows = np.full(count, kind), leading_bits, leading_lengths, starts, coded.lengths + lengths
        self._codes = np.concatenate([self._codes, coded.data])
        self._table = _Table(*map(np.append, self._table, rows))

    def samples(self, batch: ContentBatch) -> tuple[bytearray, np.ndarray]:
        """Return the samples of a batch, concatenated, and the size of each."""
        if batch.store is not self._store:
            self._reset(batch.store)
        frames, places, ends, strips = self._cover(batch)
        most = self._macroblocks + 1
        keys, which = np.unique((strips * most + places) * most + ends, return_inverse=True)
        numbers, parts = keys.tolist(), self._parts
        missing = np.array([n for n, key in enumerate(numbers) if key not in parts], np.int64)
        for first in range(0, len(missing), _SLICES_PER_STEP):
            some = keys[missing[first : first + _SLICES_PER_STEP]]
            parts.update(zip(some.tolist(), self._build(some), strict=True))
        found = [parts[key] for key in numbers]
        if len(parts) > _MAX_SLICES:
            parts.clear()
        data = bytearray().join(map(found.__getitem__, which.tolist()))
        sizes = np.fromiter(map(len, found), np.int64, len(found))[which]
        *_, orders = self._headers(self._table.kinds[strips], places)
        # No frame_num makes a header look like a start code: at most ten bits of 0 are adjacent.
        places = 8 * (np.cumsum(sizes) - sizes) + orders
        bits.put_numbers(data, places, batch.ordinals[frames], FRAME_NUM_BITS)
        return data, np.add.reduceat(sizes, np.searchsorted(frames, np.arange(len(batch.ordinals))))

    def _cover(self, batch: ContentBatch) -> tuple[np.ndarray, ...]:
        """Return a batch's slices in raster order: frames, places, ends, strips, (n,) each."""
        # A block's slice continues with skipped macroblocks. A row is an I slice and cannot.
        most, (frames, places, _) = self._macroblocks, batch.rows
        strips = np.zeros(len(frames), np.int64)
        is_first = batch.ordinals[frames] == 0
        for kind, which in ((_ROW, ~is_first), (_CARD, is_first)):
            strips[which] = self._strips(kind, batch.rows.blocks[which])
        frames = np.append(batch.single.frames, frames)
        places = np.append(batch.single.places, places)
        strips = np.append(self._strips(_SINGLE, batch.single.blocks), strips)
        order = np.argsort(frames * most + places)
        frames, places, strips = frames[order], places[order], strips[order]
        following = np.append(places[1:], most)
        last = np.append(frames[1:] != frames[:-1], True)[: len(frames)]
        following = np.where(last, most, following[: len(frames)])
        is_single = self._table.kinds[strips] == _SINGLE
        ends = np.where(is_single, following, places + self._columns)
        skipped = ends < following
        # Skipped macroblocks before the first strip of a frame.
        first = np.full(len(batch.ordinals), most)
        np.minimum.at(first, frames, places)
        firsts = np.flatnonzero(first)
        nothing = np.full(skipped.sum() + len(firsts), _NOTHING)
        frames = np.concatenate([frames, frames[skipped], firsts])
        at = np.concatenate([places, ends[skipped], np.zeros_like(firsts)])
        ends = np.concatenate([ends, following[skipped], first[firsts]])
        strips = np.concatenate([strips, nothing])
        order = np.argsort(frames * most + at)
        return frames[order], at[order], ends[order], strips[order]

    def _headers(self, kinds: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return NAL unit headers with slice headers: values, bit lengths, frame_num positions."""
        # The positions count from the length field before the NAL unit.
        fields, lengths, orders = np.zeros((3, 3), np.int64)
        for kind, qp in enumerate(self._quantizers):
            type_, idr = ("P" if kind == _SINGLE else "I"), (0 if kind == _CARD else None)
            header = SliceHeader(type_, 0, idr, poc_lsb=None, ref_idc=_REF_IDC, qp=qp)
            code, frame_num, _ = header_bits(header)
            # Leave out first_mb_in_slice, here a single bit.
            fields[kind], lengths[kind] = int("".join(map(str, code[1:])), 2), len(code) - 1
            orders[kind] = 8 * (self._length_bytes + 1) + frame_num - 1
        addresses, widths = bits.ue_codewords(places)
        units = _REF_IDC << 5 | np.where(kinds == _CARD, bits.IDR, bits.SLICE)
        values = (units << widths | addresses) << lengths[kinds] | fields[kinds]
        return values, 8 + widths + lengths[kinds], orders[kinds] + widths

    def _build(self, keys: np.ndarray) -> list[bytes]:
        """Return slices as NAL units after their lengths."""
        most, table = self._macroblocks + 1, self._table
        rest, ends = np.divmod(keys, most)
        strips, places = np.divmod(rest, most)
        kinds = table.kinds[strips]
        covered = np.where(strips == _NOTHING, 0, np.where(kinds == _SINGLE, 1, ends - places))
        skipped = ends - places - covered
        headers, lengths, _ = self._headers(kinds, places)
        leading = table.leading_lengths[strips]
        # Bits before those of x264, and after them: mb_skip_run and rbsp_stop_one_bit.
        before = headers << leading | table.leading_bits[strips], lengths + leading
        run, length = bits.ue_codewords(skipped)
        has_run = skipped > 0
        after = np.where(has_run, run << 1 | 1, 1), np.where(has_run, length + 1, 1)
        shifted = [value << (_WORD - length) for value, length in (before, after)]
        words = np.concatenate(shifted).astype(">i8").view(np.uint8)
        starts = 8 * len(self._codes) + _WORD * np.arange(2 * len(keys)).reshape(2, -1)
        strings = bits.BitStrings(
            np.concatenate([self._codes, words]),
            np.stack([starts[0], table.starts[strips], starts[1]], axis=1),
            np.stack([before[1], table.lengths[strips], after[1]], axis=1),
        )
        units, bounds = bits.join_rows(strings)
        zero = units == 0
        escaped = np.flatnonzero(zero[:-2] & zero[1:-1] & (units[2:] <= 3))
        # No unit ends in a zero byte, so no match spans two units.
        escaped = set(np.searchsorted(bounds, escaped, "right").tolist())
        data, made = units.tobytes(), []
        bounds = bounds.tolist()
        for number, (first, end) in enumerate(zip(bounds, bounds[1:], strict=False), start=1):
            unit = bits.escape(data[first:end]) if number in escaped else data[first:end]
            made.append(bits.length_prefixed(unit, self._length_bytes))
        return made


def _p_slice_prefix(macroblocks: bits.BitStrings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what turns I-slice macroblocks into P (7.3.4): values, bit lengths, bits replaced."""
    byte, bit = np.divmod(macroblocks.starts, 8)
    data = np.append(macroblocks.data, np.zeros(2, np.uint8))
    first, second, third = (data[byte + number].astype(np.int64) for number in range(3))
    window = (first << 16 | second << 8 | third) >> (8 - bit) & 0xFFFF
    zeros = 15 - np.floor(np.log2(window)).astype(np.int64)
    read = 2 * zeros + 1  # mb_type, ue(v)
    kinds = (window >> (16 - read)) - 1
    assert (kinds != _PCM).all(), "x264 coded an I_PCM macroblock, which cannot be moved"
    values, lengths = bits.ue_codewords(kinds + _INTRA)
    # mb_skip_run of 0, a single bit, then mb_type.
    return 1 << lengths | values, 1 + lengths, read
