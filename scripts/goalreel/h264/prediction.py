"""Predict inter macroblocks from the reference picture or from one of a few plain colors.

A plain color is the same reference picture listed again with explicit weights that turn the
background color into that color. Areas of one color then cost almost no bits, without depending on
neighbors. Each 8x8 quarter of a macroblock picks the cheapest reference.
Source: Rec. ITU-T H.264, 8.4.2.3 (weighted sample prediction).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.h264 import transform
from goalreel.h264.macroblocks import Macroblocks, Planes

LOG2_DENOMINATOR = 5  # luma_log2_weight_denom and chroma_log2_weight_denom
_ROUNDING = 1 << (LOG2_DENOMINATOR - 1)
_LARGEST = 127  # maximum weight and offset
# Estimated bits of a level by magnitude, to compare references.
_COSTS = np.minimum(np.where(np.arange(64) > 0, 3.0 + 2 * np.arange(64), 0.0), 30)
_DEFAULT = (1 << LOG2_DENOMINATOR, 0)  # weight and offset that keep samples unchanged
_BLOCKS = np.array([[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]])  # by quarter
_QUARTER_COST = 3  # estimated extra bits of a ref_idx_l0 other than 0

Weight = tuple[int, int]  # (weight, offset): sample s becomes (s * weight + 16 >> 5) + offset


@dataclass(frozen=True)
class Levels:
    """The transform coefficient levels and references of macroblocks."""

    luma: np.ndarray  # (n, 16, 16) int32: blocks in raster order, levels in zigzag order
    # For U and V: DC levels (n, 4) and AC levels (n, 4, 15).
    chroma: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    references: np.ndarray  # (n, 4) ref_idx_l0 of each quarter


def plain_color(color: Sequence[int], under: Sequence[int]) -> tuple[Weight, Weight, Weight]:
    """Return the weights that turn the color `under` into `color`, both (Y, U, V) from 0 to 255."""
    return tuple(_weight(c, u) for c, u in zip(color, under, strict=True))


def _weight(sample: int, under: int) -> Weight:
    if sample == under:
        return _DEFAULT
    # The offset adds at most 127; the weight keeps enough of the sample for the remainder.
    weight = max(-(-((sample - _LARGEST) << LOG2_DENOMINATOR) // max(under, 1)), 0)
    weight = min(weight, _LARGEST)
    return weight, min(sample - ((under * weight + _ROUNDING) >> LOG2_DENOMINATOR), _LARGEST)


def weight_samples(samples: np.ndarray, weight: Weight) -> np.ndarray:
    """Return the weighted prediction from samples as int16 (8.4.2.3.2)."""
    # int16 suffices: 255 * 127 + 16 is below 2**15.
    scaled = (samples.astype(np.int16) * np.int16(weight[0]) + _ROUNDING) >> LOG2_DENOMINATOR
    return np.clip(scaled + np.int16(weight[1]), 0, 255)


def quantize(mbs: Macroblocks, colors: Sequence[tuple], clear: np.ndarray, qp: int) -> Levels:
    """Quantize macroblocks, each quarter predicted from its cheapest reference.

    colors: weights of each plain-color reference, from `plain_color`; clear: (n,) bool, True for
    macroblocks that may use a plain color.
    """
    chosen, costs = _luma(mbs.source[0], mbs.reference[0], _DEFAULT, qp)
    references = np.zeros(costs.shape, np.int64)
    # A quarter without levels cannot get cheaper.
    candidates = np.flatnonzero(clear & costs.any(axis=1))
    source, reference = mbs.source[0][candidates], mbs.reference[0][candidates]
    least = costs[candidates]
    for number, weights in enumerate(colors, start=1):
        levels, costs = _luma(source, reference, weights[0], qp)
        costs += _QUARTER_COST
        which, quarter = np.nonzero(costs < least)
        least[which, quarter] = costs[which, quarter]
        references[candidates[which], quarter] = number
        blocks = _BLOCKS[quarter]
        chosen[candidates[which, None], blocks] = levels[which[:, None], blocks]
    chroma = tuple(
        transform.chroma_levels(_blocks(mbs.source[p] - predicted), qp)
        for p, predicted in ((p, _chroma(mbs.reference, p, colors, references)) for p in (1, 2))
    )
    return Levels(chosen, chroma, references)


def _luma(
    source: np.ndarray, reference: np.ndarray, weight: Weight, qp: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the luma levels (n, 16, 16) and the estimated bits of each quarter (n, 4)."""
    levels = transform.luma_levels(_blocks(source - weight_samples(reference, weight)), qp)
    magnitudes = np.minimum(np.abs(levels), len(_COSTS) - 1)
    costs = _COSTS[magnitudes].sum(axis=2).reshape(-1, 2, 2, 2, 2).sum(axis=(2, 4))
    return levels, costs.reshape(-1, 4)


def _chroma(reference: Planes, plane: int, colors: Sequence, references: np.ndarray) -> np.ndarray:
    """Return the prediction of a chroma plane, from the reference of each quarter."""
    predicted = reference[plane].astype(np.int16)
    quarters = predicted.reshape(-1, 2, 4, 2, 4)
    for number, weights in enumerate(colors, start=1):
        which, quarter = np.nonzero(references == number)
        chosen = which, quarter // 2, slice(None), quarter % 2
        quarters[chosen] = weight_samples(quarters[chosen], weights[plane])
    return predicted


def _blocks(plane: np.ndarray) -> np.ndarray:
    """Return (n, s, s) macroblocks as (n, s * s / 16, 4, 4) blocks in raster order."""
    count, side = plane.shape[:2]
    blocks = plane.reshape(count, side // 4, 4, side // 4, 4).swapaxes(2, 3)
    return blocks.reshape(count, side * side // 16, 4, 4)
