"""Learning curves: the mean return over the seeds of a variant, age by age, and how sure it is.

The band is a stratified bootstrap's, as R. Agarwal et al., "Deep Reinforcement Learning at the Edge
of the Statistical Precipice" (2021), section 4.1, recommend for few runs: of each stratum, here a
variant, as many runs are drawn with replacement as it has, a whole run at a time, and the means of
the draws give percentiles.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from goalreel.training.dqn.metrics import Metrics

DRAWS, LEVEL = 2_000, 0.95


@dataclass(frozen=True)
class Curve:
    """Of a variant, with `seeds` trainings: (ages,) arrays.

    frames: of training at each age; minutes: of the clock, the median; mean: of the mean returns;
    low, high: the 95% band around it
    """

    variant: str
    seeds: int
    frames: np.ndarray
    minutes: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def curves_of(trainings: Iterable[Metrics]) -> list[Curve]:
    """Return each variant's curve, in the order in which they come first."""
    groups: dict[str, list[Metrics]] = {}
    for metrics in trainings:
        groups.setdefault(metrics.variant, []).append(metrics)
    return [_curve(variant, group) for variant, group in groups.items()]


def _curve(variant: str, group: list[Metrics]) -> Curve:
    ages = min(len(metrics.ages) for metrics in group)
    frames, clock, means = (
        np.array([getattr(metrics, name)[:ages] for metrics in group])
        for name in ("ages", "clock", "means")
    )
    return Curve(
        *(variant, len(group), frames.mean(axis=0), np.median(clock, axis=0) / 60),
        *(means.mean(axis=0), *band(means)),
    )


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the low and high end of the bootstrap's band for the mean over the first axis.

    values: (runs, ages) float64. The same values give the same band.
    """
    generator = np.random.default_rng(0)
    drawn = generator.integers(len(values), size=(DRAWS, len(values)))
    means = values[drawn].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high
