"""From a shard's drawn pictures to the samples of its segment, by the macroblock.

An episode begins with an IDR picture, a slice for each row of macroblocks. All others refer to the
one before: macroblocks that changed are coded alone, each at the start of a slice of its own that
goes on with skipped ones up to the next. So no prediction, motion vector or context looks beyond a
macroblock: its code is the same wherever and whenever its content is shown, and each content is
coded once. Where many of a row changed, the row is one slice, of which the same holds.
"""

from typing import IO, NamedTuple

import numpy as np

from goalreel.encoding.assembling.block_contents import ContentBatch, FilmContents
from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.yuv import block_planes
from goalreel.environments.drawing.block_store import BlockStore
from goalreel.h264.bits import BitStrings, escape, join_rows, put_numbers, ue_codewords
from goalreel.h264.nal import IDR, SLICE
from goalreel.h264.parameter_sets import FRAME_NUM_BITS
from goalreel.h264.slices import SliceHeader, header_bits
from goalreel.rendering.frame_cache import FrameCache

_REF_IDC = 2  # nal_ref_idc of all pictures
_INTRA = 5  # what mb_type of an intra macroblock is more in a P slice than in an I slice, 7.4.5
_PCM = 25  # mb_type of samples as they are, in an I slice
_MAX_SLICES = 1 << 18  # that are remembered, some 50 MB
_SLICES_AT_ONCE = 1 << 12  # that are made
_WORD = 64  # bits
# Kinds of strips: a block that changes, a row that does, a row of an episode's first picture; and
# the number of the strip that shows nothing new.
_ALONE, _ROW, _CARD = range(3)
_NOTHING = 0


def write_block_samples(
    stream: IO[bytes], cache: FrameCache, qp: int, card_qp: int, length_bytes: int
) -> np.ndarray:
    """Write the samples of a shard's frames to a file; return their sizes, (frames,) int64.

    Args:
        stream: the file, binary.
        cache: the frames, of what Gymnasium draws, with captions above and the HUD below them.
        qp: the quantizer of macroblocks that change.
        card_qp: that of each episode's first picture.
        length_bytes: that a slice's length takes.

    Raises:
        GoalreelError: ffmpeg fails, or something lies over the pictures.
    """
    film, sizes = FilmContents(cache), []
    slices = _Slices(film.columns, film.macroblocks, (qp, qp, card_qp), length_bytes)
    for batch in film.batches(cache.offsets):
        samples, lengths = slices.samples(batch)
        stream.write(samples)
        sizes.append(lengths)
    return np.concatenate(sizes)


class _Table(NamedTuple):
    """What is known of each strip, by its number."""

    kinds: np.ndarray
    leading_bits: np.ndarray  # the code's first bits, which are not x264's, as a number
    leading_lengths: np.ndarray
    starts: np.ndarray  # of the others, in the codes
    lengths: np.ndarray


class _Slices:
    """The codes of strips, a block alone or those of a whole row, and slices of them."""

    def __init__(
        self, columns: int, macroblocks: int, quantizers: tuple[int, int, int], length_bytes: int
    ):
        """Begin without a code; quantizers: by the kind of strip."""
        self._columns, self._macroblocks = columns, macroblocks
        self._quantizers, self._length_bytes = quantizers, length_bytes
        self._store: BlockStore | None = None

    def _forget(self, store: BlockStore) -> None:
        self._store, self._codes = store, np.zeros(0, np.uint8)
        nothing = np.zeros(_NOTHING + 1, np.int64)
        self._table = _Table(nothing + _ALONE, *[nothing] * 4)
        self._numbers: tuple[dict, ...] = ({}, {}, {})  # of strips by kind and blocks
        self._parts: dict[int, bytes] = {}  # slices, by strip, place and end

    def _strips(self, kind: int, rows: np.ndarray) -> np.ndarray:
        """Return the numbers of strips, (n, blocks); code those that are new."""
        known, first = self._numbers[kind], len(self._table.kinds)
        keys = rows.ravel().tolist() if kind == _ALONE else [row.tobytes() for row in rows]
        new = {key: place for place, key in enumerate(keys) if key not in known}
        if new:
            self._code(kind, rows[list(new.values())])
            known.update(zip(new, range(first, first + len(new)), strict=True))
        return np.fromiter(map(known.__getitem__, keys), np.int64, len(keys))

    def _code(self, kind: int, rows: np.ndarray) -> None:
        """Code strips, (n, blocks)."""
        blocks, inverse = np.unique(rows, return_inverse=True)
        inverse, count = inverse.reshape(rows.shape), len(rows)
        strips = tuple(
            plane[inverse].swapaxes(1, 2).reshape(count, plane.shape[1], -1)
            for plane in block_planes(self._store.pixels(blocks))
        )
        coded = code_strips(strips, self._quantizers[kind])
        leading_bits, leading_lengths, starts, lengths = np.zeros((4, count), np.int64)
        if kind == _ALONE:
            leading_bits, leading_lengths, read = _in_p_slice(coded)
            starts, lengths = starts + read, lengths - read
        more = (
            np.full(count, kind), leading_bits, leading_lengths,
            8 * len(self._codes) + coded.starts + starts, coded.lengths + lengths,
        )  # fmt: skip
        self._codes = np.concatenate([self._codes, coded.data])
        self._table = _Table(*map(np.append, self._table, more))

    def samples(self, batch: ContentBatch) -> tuple[bytearray, np.ndarray]:
        """Return the samples of frames, end to end, and the size of each."""
        if batch.store is not self._store:
            self._forget(batch.store)
        frames, places, ends, strips = self._covering(batch)
        most = self._macroblocks + 1
        keys, which = np.unique((strips * most + places) * most + ends, return_inverse=True)
        numbers, parts = keys.tolist(), self._parts
        missing = np.array([n for n, key in enumerate(numbers) if key not in parts], np.int64)
        for first in range(0, len(missing), _SLICES_AT_ONCE):
            some = keys[missing[first : first + _SLICES_AT_ONCE]]
            parts.update(zip(some.tolist(), self._made(some), strict=True))
        found = [parts[key] for key in numbers]
        if len(parts) > _MAX_SLICES:
            parts.clear()
        data = bytearray().join(map(found.__getitem__, which.tolist()))
        sizes = np.fromiter(map(len, found), np.int64, len(found))[which]
        *_, orders = self._headers(self._table.kinds[strips], places)
        # No bits of a header can make a start code, whatever the frame_num: at most ten bits of 0
        # follow each other.
        places = 8 * (np.cumsum(sizes) - sizes) + orders
        put_numbers(data, places, batch.since[frames], FRAME_NUM_BITS)
        return data, np.add.reduceat(sizes, np.searchsorted(frames, np.arange(len(batch.since))))

    def _covering(self, batch: ContentBatch) -> tuple[np.ndarray, ...]:
        """Return the slices of frames in raster order: frames, places, ends and strips, (n,) each.

        A slice of one macroblock goes on with skipped ones, one of a row is an I slice, which has
        none.
        """
        most, (frames, places, _) = self._macroblocks, batch.rows
        strips = np.zeros(len(frames), np.int64)
        for kind, which in ((_ROW, batch.since[frames] > 0), (_CARD, batch.since[frames] == 0)):
            strips[which] = self._strips(kind, batch.rows.blocks[which])
        frames = np.append(batch.alone.frames, frames)
        places = np.append(batch.alone.places, places)
        strips = np.append(self._strips(_ALONE, batch.alone.blocks), strips)
        order = np.argsort(frames * most + places)
        frames, places, strips = frames[order], places[order], strips[order]
        following = np.append(places[1:], most)
        last = np.append(frames[1:] != frames[:-1], True)[: len(frames)]
        following = np.where(last, most, following[: len(frames)])
        alone = self._table.kinds[strips] == _ALONE
        ends = np.where(alone, following, places + self._columns)
        skipped = ends < following
        # What is skipped before a frame's first strip.
        first = np.full(len(batch.since), most)
        np.minimum.at(first, frames, places)
        firsts = np.flatnonzero(first)
        nothing = np.full(skipped.sum() + len(firsts), _NOTHING)
        frames = np.concatenate([frames, frames[skipped], firsts])
        at = np.concatenate([places, ends[skipped], np.zeros_like(firsts)])
        ends = np.concatenate([ends, following[skipped], first[firsts]])
        strips = np.concatenate([strips, nothing])
        order = np.argsort(frames * most + at)
        return frames[order], at[order], ends[order], strips[order]

    def _headers(
        self, kinds: np.ndarray, places: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what slices begin with, as numbers, how many bits that is, and frame_num's bit.

        That is the NAL unit's first byte and the header; a sample's bits begin with the length.
        """
        rest, lengths, orders = np.zeros((3, 3), np.int64)
        for kind, qp in enumerate(self._quantizers):
            type_, idr = ("P" if kind == _ALONE else "I"), (0 if kind == _CARD else None)
            header = SliceHeader(type_, 0, idr, poc_lsb=None, ref_idc=_REF_IDC, qp=qp)
            bits, frame_num, _ = header_bits(header)
            # The first bit is first_mb_in_slice.
            rest[kind], lengths[kind] = int("".join(map(str, bits[1:])), 2), len(bits) - 1
            orders[kind] = 8 * (self._length_bytes + 1) + frame_num - 1
        addresses, widths = ue_codewords(places)
        units = _REF_IDC << 5 | np.where(kinds == _CARD, IDR, SLICE)
        values = (units << widths | addresses) << lengths[kinds] | rest[kinds]
        return values, 8 + widths + lengths[kinds], orders[kinds] + widths

    def _made(self, keys: np.ndarray) -> list[bytes]:
        """Return slices, each with its length before it."""
        most, table = self._macroblocks + 1, self._table
        rest, ends = np.divmod(keys, most)
        strips, places = np.divmod(rest, most)
        kinds = table.kinds[strips]
        covered = np.where(strips == _NOTHING, 0, np.where(kinds == _ALONE, 1, ends - places))
        skipped = ends - places - covered
        headers, lengths, _ = self._headers(kinds, places)
        more = table.leading_lengths[strips]
        # Before x264's bits, and after them: skipped macroblocks, then rbsp_stop_one_bit.
        before = headers << more | table.leading_bits[strips], lengths + more
        run, length = ue_codewords(skipped)
        some = skipped > 0
        after = np.where(some, run << 1 | 1, 1), np.where(some, length + 1, 1)
        words = [
            (value << (_WORD - length)).astype(">i8").view(np.uint8)
            for value, length in (before, after)
        ]
        starts = 8 * len(self._codes) + _WORD * np.arange(2 * len(keys)).reshape(2, -1)
        strings = BitStrings(
            np.concatenate([self._codes, *words]),
            np.stack([starts[0], table.starts[strips], starts[1]], axis=1),
            np.stack([before[1], table.lengths[strips], after[1]], axis=1),
        )
        units, bounds = join_rows(strings)
        zero = units == 0
        escaped = np.flatnonzero(zero[:-2] & zero[1:-1] & (units[2:] <= 3))
        # No unit ends in a zero byte, so that none looks into the next.
        escaped = set(np.searchsorted(bounds, escaped, "right").tolist())
        data, made = units.tobytes(), []
        bounds = bounds.tolist()
        for number, (first, end) in enumerate(zip(bounds, bounds[1:], strict=False), start=1):
            unit = escape(data[first:end]) if number in escaped else data[first:end]
            made.append(len(unit).to_bytes(self._length_bytes, "big") + unit)
        return made


def _in_p_slice(macroblocks: BitStrings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how macroblocks of I slices begin in a P slice (7.3.4), instead of how many bits.

    Returns numbers, how many bits of each are meant, and how many bits they replace, (n,) each.
    """
    byte, bit = np.divmod(macroblocks.starts, 8)
    window = np.zeros(len(byte), np.int64)
    for number in range(3):
        window = (
            window << 8 | macroblocks.data[np.minimum(byte + number, len(macroblocks.data) - 1)]
        )
    window = window >> (8 - bit) & 0xFFFF
    zeros = 15 - np.floor(np.log2(window)).astype(np.int64)
    read = 2 * zeros + 1  # mb_type, ue(v)
    kinds = (window >> (16 - read)) - 1
    assert (kinds != _PCM).all(), "x264 coded samples as they are, which fit no other place"
    values, lengths = ue_codewords(kinds + _INTRA)
    # mb_skip_run is 0, ue(v) of one bit, then mb_type.
    return 1 << lengths | values, 1 + lengths, read
