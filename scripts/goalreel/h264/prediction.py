"""What inter macroblocks are predicted from: the reference picture, or one of a few plain colors.

A color is the same reference picture once more in the list, weighted by nothing (explicit weighted
prediction, Rec. ITU-T H.264, 8.4.2.3): the inside of a car costs next to no bits then, and still
nothing depends on a neighbour. It is chosen for each 8x8 quarter of a macroblock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.h264 import transform
from goalreel.h264.macroblocks import Macroblocks, Planes

LOG2_DENOMINATOR = 5  # of all weights
_ROUNDING = 1 << (LOG2_DENOMINATOR - 1)
_LARGEST = 127  # of an offset, and of a weight
# Estimated bits of a coefficient by its magnitude, to choose among predictions.
_COSTS = np.minimum(np.where(np.arange(64) > 0, 3.0 + 2 * np.arange(64), 0.0), 30)
_DEFAULT = (1 << LOG2_DENOMINATOR, 0)  # the weight that changes nothing
_BLOCKS = np.array([[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]])  # of quarters
_QUARTER_COST = 3  # bits that another reference than the first costs

Weight = tuple[int, int]  # a sample s becomes (s * weight + 16 >> 5) + offset


@dataclass(frozen=True)
class Levels:
    """Quantized macroblocks."""

    luma: np.ndarray  # (n, 16, 16) int32, blocks in raster order, levels in zigzag order
    # For U and V the levels of DC, (n, 4), and AC, (n, 4, 15).
    chroma: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    references: np.ndarray  # (n, 4), ref_idx_l0 of each quarter


def plain(color: Sequence[int], under: Sequence[int]) -> tuple[Weight, Weight, Weight]:
    """Return the weights that make a color of samples that are `under`: both Y, U, V, 0 to 255."""
    return tuple(_weight(c, u) for c, u in zip(color, under, strict=True))


def _weight(sample: int, under: int) -> Weight:
    if sample == under:
        return 1 << LOG2_DENOMINATOR, 0
    # An offset alone reaches 127; what lies above takes a part of what is under it.
    weight = max(-(-((sample - _LARGEST) << LOG2_DENOMINATOR) // max(under, 1)), 0)
    weight = min(weight, _LARGEST)
    return weight, min(sample - ((under * weight + _ROUNDING) >> LOG2_DENOMINATOR), _LARGEST)


def weighted(samples: np.ndarray, weight: Weight) -> np.ndarray:
    """Return the prediction from samples (8.4.2.3.2), int16."""
    if weight == _DEFAULT:
        return samples.astype(np.int16)
    # 255 * 127 + 16, the largest number, is below 2**15.
    scaled = (samples.astype(np.int16) * np.int16(weight[0]) + _ROUNDING) >> LOG2_DENOMINATOR
    return np.clip(scaled + np.int16(weight[1]), 0, 255)


def quantized(found: Macroblocks, colors: Sequence[tuple], clear: np.ndarray, qp: int) -> Levels:
    """Return the levels of macroblocks, each quarter predicted as costs least.

    colors: of each further reference, the weights that `plain` gives; clear: (n,) bool, which
    macroblocks may be predicted from one.
    """
    chosen, costs = _luma(found.wanted[0], found.reference[0], _DEFAULT, qp)
    references = np.zeros(costs.shape, np.int64)
    # Where the first reference leaves no level, none costs less.
    busy = np.flatnonzero(clear & costs.any(axis=1))
    wanted, reference, least = found.wanted[0][busy], found.reference[0][busy], costs[busy]
    for number, weights in enumerate(colors, start=1):
        levels, costs = _luma(wanted, reference, weights[0], qp)
        costs += _QUARTER_COST
        which, quarter = np.nonzero(costs < least)
        least[which, quarter] = costs[which, quarter]
        references[busy[which], quarter] = number
        blocks = _BLOCKS[quarter]
        chosen[busy[which, None], blocks] = levels[which[:, None], blocks]
    chroma = tuple(
        transform.chroma_levels(_blocks(found.wanted[p] - shown), transform.chroma_qp(qp))
        for p, shown in ((p, _chroma(found.reference, p, colors, references)) for p in (1, 2))
    )
    return Levels(chosen, chroma, references)


def _luma(
    wanted: np.ndarray, reference: np.ndarray, weight: Weight, qp: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels of luma, (n, 16, 16), and each quarter's cost, (n, 4)."""
    levels = transform.luma_levels(_blocks(wanted - weighted(reference, weight)), qp)
    magnitudes = np.minimum(np.abs(levels), len(_COSTS) - 1)
    costs = _COSTS[magnitudes].sum(axis=2).reshape(-1, 2, 2, 2, 2).sum(axis=(2, 4))
    return levels, costs.reshape(-1, 4)


def _chroma(reference: Planes, plane: int, colors: Sequence, references: np.ndarray) -> np.ndarray:
    """Return the prediction of a chroma plane, each 4x4 block by its quarter's reference."""
    shown = reference[plane].astype(np.int16)
    quarters = shown.reshape(-1, 2, 4, 2, 4)
    for number, weights in enumerate(colors, start=1):
        which, quarter = np.nonzero(references == number)
        chosen = which, quarter // 2, slice(None), quarter % 2
        quarters[chosen] = weighted(quarters[chosen], weights[plane])
    return shown


def _blocks(plane: np.ndarray) -> np.ndarray:
    """Return (n, s, s) macroblocks as (n, s * s / 16, 4, 4) blocks in raster order."""
    count, side = plane.shape[:2]
    blocks = plane.reshape(count, side // 4, 4, side // 4, 4).swapaxes(2, 3)
    return blocks.reshape(count, side * side // 16, 4, 4)
