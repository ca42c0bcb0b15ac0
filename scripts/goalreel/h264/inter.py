"""Code P slices that show patches over a reference picture.

Every macroblock is skipped, or predicted with a zero motion vector plus a residual. A slice
therefore depends only on the reference samples at its own place, and fits every picture that
refers to the same reference.
Source: Rec. ITU-T H.264, 7.3.4 (slice data), 7.3.5 (macroblock layer).
"""

from collections.abc import Sequence

import numpy as np

from goalreel.h264.bits import BitWriter, ue_codewords
from goalreel.h264.cavlc import Codewords, block_codewords, join_codewords, no_codewords
from goalreel.h264.cavlc_tables import PATTERN_CODES
from goalreel.h264.macroblocks import OUTSIDE, Macroblocks, Patch, Planes, Region, cut, split
from goalreel.h264.prediction import Levels, quantize

# 6.4.3: raster indices of the 4x4 luma blocks of a macroblock, in coding order.
_ORDER = np.array([0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15])
_ROWS = 1 + 16 + 2 + 8  # codeword rows of a macroblock: header, luma, chroma DC, chroma AC
_COLUMNS = 2 + 16 + 16  # codewords of a block, as in cavlc.block_codewords
# Table 7-13: the mb_type codeword (value, length) and the quarters that get a ref_idx_l0. P_8x8 is
# followed by four sub_mb_type of P_L0_8x8, one bit each (Table 7-17).
_PARTITIONS = ((1, 1), (0,)), ((0b010, 3), (0, 2)), ((0b011, 3), (0, 1))
_PARTITIONS += (((0b00100_1111, 9), (0, 1, 2, 3)),)


def code_patches(
    reference: Planes,
    background: Planes,
    patches: Sequence[Patch],
    region: Region,
    qp: int,
    colors: Sequence[tuple] = (),
    captions: int = 0,
) -> list[np.ndarray]:
    """Return one P slice per patch, as slice data: (bits,) uint8, one bit per element.

    The planes are padded to whole macroblocks. `reference` is the decoded reference picture, and
    `background` its source, into which the patches are pasted. Parts outside `region`, the
    macroblocks of each slice, are ignored. `colors` are weights from prediction.plain_color. In the
    macroblock rows of `captions` at the top, samples can differ from `reference`, so that plain
    colors are not used there.
    """
    data: list[np.ndarray] = []
    for chunk in split(patches):
        macroblocks = cut(reference, background, chunk, region)
        clear = macroblocks.address // region.width + region.top >= captions
        levels = quantize(macroblocks, colors, clear, qp)
        data += _coded(macroblocks, levels, len(chunk), region, len(colors))
    return data


def _coded(
    macroblocks: Macroblocks, levels: Levels, pictures: int, region: Region, colors: int
) -> list[np.ndarray]:
    """Return the slice data of each picture from its quantized macroblocks."""
    patterns = _patterns(levels)
    coded = np.flatnonzero((patterns > 0) | levels.references.any(axis=1))
    picture, address = macroblocks.picture[coded], macroblocks.address[coded]
    codewords = no_codewords(len(coded), _ROWS, _COLUMNS)
    values, lengths = codewords.values, codewords.lengths
    _put_headers(values, lengths, picture, address, levels.references[coded], colors)
    # coded_block_pattern and, if it is not 0, an mb_qp_delta of 0.
    values[:, 0, 7], lengths[:, 0, 7] = ue_codewords(PATTERN_CODES[patterns[coded]])
    values[:, 0, 8] = lengths[:, 0, 8] = patterns[coded] > 0
    _put_blocks(values, lengths, macroblocks, levels, patterns, coded)
    firsts = np.searchsorted(picture, np.arange(pictures + 1))
    rows = Codewords(values.reshape(-1, _COLUMNS), lengths.reshape(-1, _COLUMNS))
    data = join_codewords(rows, firsts * _ROWS)
    last = np.full(pictures, -1)
    some = firsts[1:] > firsts[:-1]
    last[some] = address[firsts[1:][some] - 1]
    skipped = (region.size - 1 - last).tolist()
    return [np.concatenate([bits, skip_run(run)]) for bits, run in zip(data, skipped, strict=True)]


def skip_run(macroblocks: int) -> np.ndarray:
    """Return the mb_skip_run that ends a slice as bits, (n,) uint8. A run of 0 has no bits."""
    return BitWriter().ue(macroblocks).to_array() if macroblocks else np.zeros(0, np.uint8)


def _patterns(levels: Levels) -> np.ndarray:
    """Return coded_block_pattern of each macroblock (7.4.5)."""
    eighths = levels.luma[:, _ORDER].any(axis=2).reshape(-1, 4, 4).any(axis=2)
    ac = np.logical_or(*(ac.any(axis=(1, 2)) for _, ac in levels.chroma))
    dc = np.logical_or(*(dc.any(axis=1) for dc, _ in levels.chroma))
    return (eighths << np.arange(4)).sum(axis=1) + 16 * np.where(ac, 2, dc.astype(np.int64))


def _put_headers(values, lengths, picture, address, references, colors: int) -> None:
    """Write mb_skip_run, mb_type, ref_idx_l0 and mvd_l0 into columns 0 to 6."""
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
        values[which, 0, 6] = (1 << 2 * len(quarters)) - 1  # mvd_l0: se(v) of 0 is a bit of 1
        lengths[which, 0, 6] = 2 * len(quarters)


def _reference(numbers: np.ndarray, colors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the codewords of ref_idx_l0, te(v) (9.1)."""
    if colors == 0:
        return numbers, np.zeros_like(numbers)
    return (1 - numbers, np.ones_like(numbers)) if colors == 1 else ue_codewords(numbers)


def _put_blocks(values, lengths, macroblocks, levels: Levels, patterns, coded) -> None:
    """Write the luma, chroma DC and chroma AC blocks that coded_block_pattern includes."""
    pattern = patterns[coded]

    def put(which: np.ndarray, rows: slice, blocks: np.ndarray, contexts: np.ndarray) -> None:
        codes = block_codewords(blocks[which], contexts[which])
        width = codes.values.shape[1]
        values[:, rows, :width][which] = codes.values
        lengths[:, rows, :width][which] = codes.lengths

    contexts = _contexts(macroblocks, (levels.luma != 0).sum(axis=2))[coded][:, _ORDER]
    which = np.repeat((pattern[:, None] >> np.arange(4)) & 1, 4, axis=1).astype(bool)
    put(which, slice(1, 17), levels.luma[coded][:, _ORDER], contexts)
    for number, (dc, ac) in enumerate(levels.chroma):
        some, row = (pattern >= 16)[:, None], 17 + number
        put(some, slice(row, row + 1), dc[coded][:, None], np.zeros((len(coded), 1)))
        contexts = _contexts(macroblocks, (ac != 0).sum(axis=2))[coded]
        some, row = np.repeat((pattern >= 32)[:, None], 4, axis=1), 19 + 4 * number
        put(some, slice(row, row + 4), ac[coded], contexts)


def _contexts(macroblocks: Macroblocks, totals: np.ndarray) -> np.ndarray:
    """Return nC of (n, blocks) blocks from their total_coeff (9.2.1)."""
    side = int(totals.shape[1] ** 0.5)
    grid = totals.reshape(-1, side, side)
    # SKIPPED and OUTSIDE are negative indices: they find two macroblocks without coefficients.
    padded = np.concatenate([grid, np.zeros((2, side, side), grid.dtype)])
    left = np.concatenate([padded[macroblocks.left, :, -1:], grid[:, :, :-1]], axis=2)
    above = np.concatenate([padded[macroblocks.above, -1:], grid[:, :-1]], axis=1)
    has_left, has_above = np.ones((2, *grid.shape), bool)
    has_left[macroblocks.left == OUTSIDE, :, 0] = False
    has_above[macroblocks.above == OUTSIDE, 0] = False
    mean = (left + above + 1) >> 1
    return np.where(has_left & has_above, mean, left + above).reshape(totals.shape)
