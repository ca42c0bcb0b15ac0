"""What inter macroblocks are predicted from: the reference picture, or one of a few plain colours.

A colour is the same reference picture once more in the list, weighted by nothing (explicit weighted
prediction, Rec. ITU-T H.264, 8.4.2.3): the inside of a car costs next to no bits then, and still
nothing depends on a neighbour. It is chosen for each 8x8 quarter of a macroblock. What the weights
look like in a slice header is told in slices.
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
_QUARTER_COST = 3  # bits that another reference than the first costs

Weight = tuple[int, int]  # a sample s becomes (s * weight + 16 >> 5) + offset


@dataclass(frozen=True)
class Levels:
    """Quantised macroblocks.

    luma: (n, 16, 16) int32, blocks in raster order, levels in zigzag order; chroma: for U and V
    the levels of DC, (n, 4), and AC, (n, 4, 15); references: (n, 4), ref_idx_l0 of each quarter
    """

    luma: np.ndarray
    chroma: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    references: np.ndarray


def plain(colour: Sequence[int], under: Sequence[int]) -> tuple[Weight, Weight, Weight]:
    """Return the weights that make a colour of samples that are `under`: both Y, U, V, 0 to 255."""
    return tuple(_weight(c, u) for c, u in zip(colour, under, strict=True))


def _weight(sample: int, under: int) -> Weight:
    if sample == under:
        return 1 << LOG2_DENOMINATOR, 0
    # An offset alone reaches 127; what lies above takes a part of what is under it.
    weight = max(-(-((sample - _LARGEST) << LOG2_DENOMINATOR) // max(under, 1)), 0)
    weight = min(weight, _LARGEST)
    return weight, min(sample - ((under * weight + _ROUNDING) >> LOG2_DENOMINATOR), _LARGEST)


def weighted(samples: np.ndarray, weight: Weight) -> np.ndarray:
    """Return the prediction from samples (8.4.2.3.2), int16."""
    scaled = (samples.astype(np.int32) * weight[0] + _ROUNDING) >> LOG2_DENOMINATOR
    return np.clip(scaled + weight[1], 0, 255).astype(np.int16)


def quantised(found: Macroblocks, colours: Sequence[tuple], qp: int) -> Levels:
    """Return the levels of macroblocks, each quarter predicted as costs least.

    colours: of each further reference, the weights that `plain` gives.
    """
    choices = [[(1 << LOG2_DENOMINATOR, 0)] * 3, *colours]
    luma, costs = [], []
    for number, weights in enumerate(choices):
        residual = found.wanted[0] - weighted(found.reference[0], weights[0])
        levels = transform.luma_levels(_blocks(residual), qp)
        luma.append(levels)
        magnitudes = np.minimum(np.abs(levels), len(_COSTS) - 1)
        cost = _COSTS[magnitudes].sum(axis=2).reshape(-1, 2, 2, 2, 2).sum(axis=(2, 4))
        costs.append(cost.reshape(-1, 4) + _QUARTER_COST * (number > 0))
    references = np.argmin(costs, axis=0)
    of_blocks = references.reshape(-1, 2, 2).repeat(2, axis=1).repeat(2, axis=2).reshape(-1, 16)
    chosen = np.choose(of_blocks[:, :, None], luma)
    chroma = tuple(
        transform.chroma_levels(_blocks(found.wanted[p] - shown), transform.chroma_qp(qp))
        for p, shown in ((p, _chroma(found.reference, p, choices, references)) for p in (1, 2))
    )
    return Levels(chosen, chroma, references)


def _chroma(reference: Planes, plane: int, choices: Sequence, references: np.ndarray) -> np.ndarray:
    """Return the prediction of a chroma plane, each 4x4 block by its quarter's reference."""
    shown = np.stack([weighted(reference[plane], weights[plane]) for weights in choices])
    of_samples = references.reshape(-1, 2, 2).repeat(4, axis=1).repeat(4, axis=2)
    return np.take_along_axis(shown, of_samples[None], axis=0)[0]


def _blocks(plane: np.ndarray) -> np.ndarray:
    """Return (n, s, s) macroblocks as (n, s * s / 16, 4, 4) blocks in raster order."""
    count, side = plane.shape[:2]
    blocks = plane.reshape(count, side // 4, 4, side // 4, 4).swapaxes(2, 3)
    return blocks.reshape(count, (side // 4) ** 2, 4, 4)
