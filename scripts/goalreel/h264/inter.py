"""Slices of P macroblocks that show patches over a reference picture.

Every macroblock is skipped or predicted with a zero motion vector, plus a residual; so a slice's
samples depend on the reference's samples under it and on nothing else, and any slice fits any
picture that refers to that reference. Source: Rec. ITU-T H.264, 7.3.4, 7.3.5.
"""

from collections.abc import Sequence

import numpy as np

from goalreel.h264.bits import ue_codewords
from goalreel.h264.cavlc import Codewords, block_codewords, join_codewords, no_codewords
from goalreel.h264.cavlc_tables import PATTERN_CODES
from goalreel.h264.macroblocks import OUTSIDE, Macroblocks, Patch, Planes, Region, chunks, cut
from goalreel.h264.prediction import Levels, quantized

# 6.4.3: the raster place of the luma blocks of a macroblock, in coding order.
_ORDER = np.array([0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15])
_ROWS = 1 + 16 + 2 + 8  # of codewords: a macroblock's header, luma, chroma DC, chroma AC
_COLUMNS = 2 + 16 + 16
# Table 7-13: mb_type, its codeword, and the quarters whose references it names. P_8x8 goes on with
# four sub_mb_type of 8x8, one bit each (Table 7-17).
_PARTITIONS = (
    ((1, 1), (0,)),
    ((0b010, 3), (0, 2)),
    ((0b011, 3), (0, 1)),
    ((0b00100_1111, 9), (0, 1, 2, 3)),
)


def code_patches(
    reference: Planes,
    background: Planes,
    patches: Sequence[Patch],
    region: Region,
    qp: int,
    colors: Sequence[tuple] = (),
    captions: int = 0,
) -> list[np.ndarray]:
    """Return for each patch the data of a slice that shows it: (bits,) uint8 of 0 and 1.

    Args:
        reference: the planes Y, U, V that a decoder holds, whole macroblocks in size.
        background: what they stand for, the planes that the patches are pasted into.
        patches: parts of one that are outside of `region` are left out.
        region: the macroblocks of the slices.
        qp: the quantizer.
        colors: weights of further references, see prediction.
        captions: rows of macroblocks at the picture's top in which the reference may hold more
            than is known here, so that no color may cover it.
    """
    data: list[np.ndarray] = []
    for chunk in chunks(patches):
        found = cut(reference, background, chunk, region)
        clear = found.address // region.width + region.top >= captions
        levels = quantized(found, colors, clear, qp)
        data += _coded(found, levels, len(chunk), region, len(colors))
    return data


def _coded(
    found: Macroblocks, levels: Levels, pictures: int, region: Region, colors: int
) -> list[np.ndarray]:
    """Return the slice data of each picture."""
    patterns = _patterns(levels)
    coded = np.flatnonzero((patterns > 0) | levels.references.any(axis=1))
    picture, address = found.picture[coded], found.address[coded]
    codewords = no_codewords(len(coded), _ROWS, _COLUMNS)
    values, lengths = codewords.values, codewords.lengths
    _put_headers(values, lengths, picture, address, levels.references[coded], colors)
    _put_pattern(values, lengths, patterns[coded])
    _put_blocks(values, lengths, found, levels, patterns, coded)
    firsts = np.searchsorted(picture, np.arange(pictures + 1))
    rows = Codewords(values.reshape(-1, _COLUMNS), lengths.reshape(-1, _COLUMNS))
    data = join_codewords(rows, firsts * _ROWS)
    last = np.full(pictures, -1)
    some = firsts[1:] > firsts[:-1]
    last[some] = address[firsts[1:][some] - 1]
    skipped = (region.size - 1 - last).tolist()
    return [np.concatenate([bits, skip_run(run)]) for bits, run in zip(data, skipped, strict=True)]


def skip_run(macroblocks: int) -> np.ndarray:
    """Return the data of a slice's end of skipped macroblocks, nothing for none: bits as uint8."""
    text = format(macroblocks + 1, "b") if macroblocks else ""
    return np.array([0] * (len(text) - 1) + [int(bit) for bit in text], np.uint8)


def _patterns(levels: Levels) -> np.ndarray:
    """Return coded_block_pattern of each macroblock (7.4.5)."""
    eighths = levels.luma[:, _ORDER].any(axis=2).reshape(-1, 4, 4).any(axis=2)
    ac = np.logical_or(*(ac.any(axis=(1, 2)) for _, ac in levels.chroma))
    dc = np.logical_or(*(dc.any(axis=1) for dc, _ in levels.chroma))
    return (eighths << np.arange(4)).sum(axis=1) + 16 * np.where(ac, 2, dc.astype(np.int64))


def _put_headers(values, lengths, picture, address, references, colors: int) -> None:
    """Write mb_skip_run, mb_type, the references and motion vectors of 0, in columns 0 to 6."""
    same = np.concatenate([[False], picture[1:] == picture[:-1]])
    before = np.where(same, np.concatenate([[0], address[:-1]]), -1)
    values[:, 0, 0], lengths[:, 0, 0] = ue_codewords(address - before - 1)
    rows = (references[:, :2] == references[:, 2:]).all(axis=1)
    columns = (references[:, ::2] == references[:, 1::2]).all(axis=1)
    kinds = np.where(columns, np.where(rows, 0, 1), np.where(rows, 2, 3))
    for kind, ((value, length), quarters) in enumerate(_PARTITIONS):
        which = np.flatnonzero(kinds == kind)
        values[which, 0, 1], lengths[which, 0, 1] = value, length
        for column, quarter in enumerate(quarters, start=2):
            chosen = _reference(references[which, quarter], colors)
            values[which, 0, column], lengths[which, 0, column] = chosen
        values[which, 0, 6] = (1 << 2 * len(quarters)) - 1  # mvd_l0: se(v) of 0, twice each
        lengths[which, 0, 6] = 2 * len(quarters)


def _reference(numbers: np.ndarray, colors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the codewords of ref_idx_l0, te(v) (9.1)."""
    if colors == 0:
        return numbers, np.zeros_like(numbers)
    return (1 - numbers, np.ones_like(numbers)) if colors == 1 else ue_codewords(numbers)


def _put_pattern(values, lengths, patterns: np.ndarray) -> None:
    """Write coded_block_pattern and, where it is not 0, mb_qp_delta of 0."""
    values[:, 0, 7], lengths[:, 0, 7] = ue_codewords(PATTERN_CODES[patterns])
    values[:, 0, 8] = lengths[:, 0, 8] = patterns > 0


def _put_blocks(values, lengths, found, levels: Levels, patterns, coded) -> None:
    """Write the blocks of luma, chroma DC and chroma AC, where the pattern has them."""
    pattern = patterns[coded]

    def put(which: np.ndarray, rows: slice, blocks: np.ndarray, contexts: np.ndarray) -> None:
        done = block_codewords(blocks[which], contexts[which])
        width = done.values.shape[1]
        values[:, rows, :width][which], lengths[:, rows, :width][which] = done.values, done.lengths

    contexts = _contexts(found, (levels.luma != 0).sum(axis=2))[coded][:, _ORDER]
    which = np.repeat((pattern[:, None] >> np.arange(4)) & 1, 4, axis=1).astype(bool)
    put(which, slice(1, 17), levels.luma[coded][:, _ORDER], contexts)
    for number, (dc, ac) in enumerate(levels.chroma):
        some, row = (pattern >= 16)[:, None], 17 + number
        put(some, slice(row, row + 1), dc[coded][:, None], np.zeros((len(coded), 1)))
        contexts = _contexts(found, (ac != 0).sum(axis=2))[coded]
        some, row = np.repeat((pattern >= 32)[:, None], 4, axis=1), 19 + 4 * number
        put(some, slice(row, row + 4), ac[coded], contexts)


def _contexts(found: Macroblocks, totals: np.ndarray) -> np.ndarray:
    """Return nC (9.2.1) of (n, blocks) blocks, given the number of their coefficients."""
    side = int(totals.shape[1] ** 0.5)
    grid = totals.reshape(-1, side, side)
    # Neighbours that are skipped, or outside, find a macroblock without coefficients at the end.
    ended = np.concatenate([grid, np.zeros((2, side, side), grid.dtype)])
    beside = np.concatenate([ended[found.left, :, -1:], grid[:, :, :-1]], axis=2)
    over = np.concatenate([ended[found.above, -1:], grid[:, :-1]], axis=1)
    has_left, has_above = np.ones((2, *grid.shape), bool)
    has_left[found.left == OUTSIDE, :, 0] = False
    has_above[found.above == OUTSIDE, 0] = False
    mean = (beside + over + 1) >> 1
    return np.where(has_left & has_above, mean, beside + over).reshape(totals.shape)
