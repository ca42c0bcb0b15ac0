"""Code transform coefficient levels with CAVLC, many blocks in one call.

A codeword is a value and a length in bits. Each block is a row of codewords in stream order. A
length of 0 marks an absent codeword.
Source: Rec. ITU-T H.264, 7.3.5.3.2 (syntax) and 9.2 (parsing, applied in reverse).
"""

from dataclasses import dataclass

import numpy as np

from goalreel.h264 import cavlc_tables as tables

_DC_TABLE = 4  # row of TOKEN_LENGTHS for chroma DC
_ESCAPE_BITS = 12  # of level_suffix after level_prefix 15, the highest below the High profiles


@dataclass(frozen=True)
class Codewords:
    """A table of codewords in small types, because most entries are absent."""

    values: np.ndarray  # (rows, codewords) int32
    lengths: np.ndarray  # (rows, codewords) uint8, in bits; 0: absent


def no_codewords(*shape: int) -> Codewords:
    """Return a table of this shape with all codewords absent."""
    return Codewords(np.zeros(shape, np.int32), np.zeros(shape, np.uint8))


def block_codewords(levels: np.ndarray, contexts: np.ndarray) -> Codewords:
    """Return the residual_block_cavlc codewords of blocks, one row per block.

    `levels` are (blocks, n) int32 in zigzag order; n is 16 for a 4x4 block, 15 for one without its
    DC coefficient, and 4 for chroma DC. `contexts` are nC (9.2.1), ignored for chroma DC.
    """
    blocks, size = levels.shape
    total = (levels != 0).sum(axis=1)
    found = no_codewords(blocks, 2 + size + size)
    values, lengths = found.values, found.lengths
    ranked, places = _ranked(levels)
    ones = np.cumprod(np.abs(ranked[:, :3]) == 1, axis=1).sum(axis=1)  # trailing_ones
    table = np.full(blocks, _DC_TABLE) if size == 4 else np.searchsorted([1.5, 3.5, 7.5], contexts)
    lengths[:, 0] = tables.TOKEN_LENGTHS[table, total, ones]
    values[:, 0] = tables.TOKEN_VALUES[table, total, ones]
    for k in range(3):  # trailing_ones_sign_flag, all in one codeword
        values[:, 1] = np.where(k < ones, 2 * values[:, 1] + (ranked[:, k] < 0), values[:, 1])
    lengths[:, 1] = ones
    _put_levels(values, lengths, ranked, total, ones)
    _put_zeros(values, lengths, places, total, size)
    return found


def _ranked(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nonzero levels, highest frequency first, and their scan positions."""
    size = levels.shape[1]
    block, back = np.nonzero(levels[:, ::-1])
    rank = np.arange(len(block)) - np.searchsorted(block, block)
    ranked, places = np.zeros((2, *levels.shape), np.int64)
    ranked[block, rank] = levels[block, size - 1 - back]
    places[block, rank] = size - 1 - back
    return ranked, places


def _put_levels(values, lengths, ranked, total, ones) -> None:
    """Write level_prefix and level_suffix, one codeword per level, from column 2 (9.2.2.1)."""
    suffix = ((total > 10) & (ones < 3)).astype(np.int64)
    for k in range(ranked.shape[1]):
        coded = np.flatnonzero((k >= ones) & (k < total))
        if not len(coded):
            continue
        level, width = ranked[coded, k], suffix[coded]
        magnitude = np.abs(level)
        code = 2 * magnitude - 2 + (level < 0)
        code -= 2 * ((k == ones[coded]) & (ones[coded] < 3))
        level_prefix, level_suffix, bits = _split_level(code, width)
        values[coded, 2 + k] = (1 << bits) + level_suffix
        lengths[coded, 2 + k] = level_prefix + 1 + bits
        width = np.maximum(width, 1)
        suffix[coded] = width + ((magnitude > (3 << (width - 1))) & (width < 6))


def _split_level(code: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split levelCode into level_prefix, level_suffix and the suffix length in bits (9.2.2.1)."""
    level_prefix, bits, base = code >> width, width.copy(), (code >> width) << width
    middle = (width == 0) & (code >= 14) & (code < 30)
    level_prefix[middle], bits[middle], base[middle] = 14, 4, 14
    start = np.where(width == 0, 30, 15 << width)
    escaped = code >= start
    level_prefix[escaped], bits[escaped], base[escaped] = 15, _ESCAPE_BITS, start[escaped]
    level_suffix = code - base
    assert not (level_suffix >> _ESCAPE_BITS).any(), "a qp below 4 needs a level_prefix of 16"
    return level_prefix, level_suffix, bits


def _put_zeros(values, lengths, places, total, size: int) -> None:
    """Write total_zeros and run_before after the columns of the levels (9.2.3)."""
    zero_lengths, zero_values = tables.ZEROS_LENGTHS, tables.ZEROS_VALUES
    if size == 4:
        zero_lengths, zero_values = tables.DC_ZEROS_LENGTHS, tables.DC_ZEROS_VALUES
    partial = np.flatnonzero((total > 0) & (total < size))
    left = np.zeros(len(total), np.int64)
    left[partial] = places[partial, 0] + 1 - total[partial]
    lengths[partial, 2 + size] = zero_lengths[total[partial] - 1, left[partial]]
    values[partial, 2 + size] = zero_values[total[partial] - 1, left[partial]]
    for k in range(size - 1):
        coded = np.flatnonzero((k < total - 1) & (left > 0))
        if not len(coded):
            break
        run = places[coded, k] - places[coded, k + 1] - 1
        row = np.minimum(left[coded], 7) - 1
        lengths[coded, 3 + size + k] = tables.RUN_LENGTHS[row, run]
        values[coded, 3 + size + k] = tables.RUN_VALUES[row, run]
        left[coded] -= run


def join_codewords(codewords: Codewords, rows: np.ndarray) -> list[np.ndarray]:
    """Return the bits, (n,) uint8, of each run of rows, given the (runs + 1,) row offsets."""
    present = codewords.lengths > 0
    lengths, values = codewords.lengths[present], codewords.values[present]
    ends = np.cumsum(lengths, dtype=np.int32)  # int32 suffices: a chunk has a few million bits
    shifts = np.repeat(ends, lengths)
    shifts -= np.arange(1, len(shifts) + 1, dtype=np.int32)
    bits = ((np.repeat(values, lengths) >> shifts) & 1).astype(np.uint8)
    per_row = np.concatenate([[0], np.cumsum(codewords.lengths.sum(axis=1, dtype=np.int64))])
    return [bits[start:end] for start, end in zip(per_row[rows], per_row[rows[1:]], strict=False)]
