"""Means, shares and paired differences with their 95% confidence intervals."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np

_Z = NormalDist().inv_cdf(0.975)  # for a two-sided 95% interval
_Z_POWER = NormalDist().inv_cdf(0.8)  # for a power of 80%
_LEVEL = "95%: "  # before the bounds in a sentence
_RESAMPLES = 10_000  # the error of a bound is then about 2% of the interval's half width
_FEW = 20  # fewer values have wider intervals
_MAX_RESAMPLED = 500  # values; the weights of more would take over 40 MB
_SKEWED = 0.03  # acceleration from which the limit of many values is not reached
_LEAST_UNEQUAL = 6  # of which all must agree for a sign test to show a difference


@dataclass(frozen=True)
class Interval:
    """An estimate and the bounds of its 95% interval, NaN if there is none."""

    value: float
    low: float
    high: float

    def __neg__(self) -> "Interval":
        return Interval(-self.value, -self.high, -self.low)

    @property
    def decimals(self) -> int:
        """The decimals that show two digits of the half width, or at most two without a width."""
        width = (self.high - self.low) / 2
        if width > 0:
            return max(1 - math.floor(math.log10(width)), 0)
        return 0 if self.value % 1 == 0 else 2

    def text(self, level: str = "") -> str:
        """Return "12.3 (8.1 to 16.4)", without the bounds if they are equal or NaN."""
        numbers = self.value, self.low, self.high
        value, low, high = (format_decimals(number, self.decimals) for number in numbers)
        return f"{value} ({level}{low} to {high})" if self.low < self.high else value


@dataclass(frozen=True)
class PairedDifference:
    """The difference B - A of the returns of the same seeds."""

    mean: Interval
    wins: int  # seeds where B is greater
    ties: int
    losses: int
    detectable: float  # the least true difference that such a comparison shows with 80% power

    @property
    def pairs(self) -> int:
        """The number of seeds."""
        return self.wins + self.ties + self.losses

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes zero."""
        return self.mean.low > 0 or self.mean.high < 0

    def sentence(self, a: str, b: str) -> str:
        """Return the result in words, for the names of both sides."""
        if self.pairs == 1:
            return f"one seed, {b} − {a}: {self.mean.text()}"
        if not self.wins and not self.losses:
            return "equal returns"
        if not self.is_shown:
            bounds = self.mean.low, self.mean.high
            low, high = (format_decimals(bound, self.mean.decimals) for bound in bounds)
            return f"no difference shown ({_LEVEL}{low} to {high})"
        better, mean = (b, self.mean) if self.mean.value > 0 else (a, -self.mean)
        return f"{better} is better by {mean.text(_LEVEL)}"


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean and its bias-corrected and accelerated (BCa) bootstrap interval.

    Above 500 values, the interval is the limit of BCa for a mean to second order, with the
    skewness, which needs no resamples, unless the values are skewed and few are different. Below
    20, resamples vary too little, and the interval also covers Student's. The seed is fixed, and
    the bounds have six digits.
    Source: B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987); for the limit
    P. Hall, "Theoretical comparison of bootstrap confidence intervals", Ann. Statist. 16 (1988).
    """
    x = np.sort(np.asarray(values, np.float64))
    n = len(x)
    if n == 1 or not np.isfinite(x).all():
        return Interval(float(sum(x)) / n, math.nan, math.nan)
    mean = math.fsum(x) / n
    if mean < 0:  # A - B gets the bounds of B - A
        return -mean_interval(-x)
    deviations = x - mean
    std = deviations.std()
    if np.ptp(x) == 0:
        return Interval(mean, mean, mean)
    acceleration = np.mean((deviations / std) ** 3) / (6 * math.sqrt(n))
    is_skewed = abs(acceleration) > _SKEWED and len(np.unique(x)) < _MAX_RESAMPLED
    if n > _MAX_RESAMPLED and not is_skewed:
        scale = std / math.sqrt(n - 1)
        bounds = [mean + scale * (z + acceleration * (2 * z * z + 1)) for z in (-_Z, _Z)]
    else:
        normal, sums = NormalDist(), _resampled_sums(x)
        is_equal = np.isclose(sums, x.sum(), rtol=1e-12, atol=0)
        below = np.mean((sums < x.sum()) & ~is_equal) + np.mean(is_equal) / 2
        bias = normal.inv_cdf(below)
        shifted = (bias + z for z in (-_Z, _Z))
        levels = [normal.cdf(bias + z / (1 - acceleration * z)) for z in shifted]
        bounds = np.quantile(sums, levels) / n
    if n < _FEW:
        half = student_quantile(n - 1) * std / math.sqrt(n - 1)
        bounds = min(bounds[0], mean - half), max(bounds[1], mean + half)
    return _rounded(mean, bounds)


def _rounded(mean: float, bounds: Iterable[float]) -> Interval:
    """Return an interval with six digits of its bounds, as processors differ in the last ones."""
    return Interval(mean, *(float(f"{bound:.6g}") for bound in bounds))


def _resampled_sums(x: np.ndarray) -> np.ndarray:
    """Return the sum of each resample, (resamples,) float64."""
    if len(x) <= _MAX_RESAMPLED:
        return _weights(len(x)) @ x
    (values, counts), rng, part = np.unique(x, return_counts=True), np.random.default_rng(0), 100
    parts = (rng.multinomial(len(x), counts / len(x), part) for _ in range(_RESAMPLES // part))
    return np.concatenate([drawn @ values for drawn in parts])


@lru_cache(2)
def _weights(n: int) -> np.ndarray:
    """Return how often each resample has each of n values, (resamples, n) float64."""
    drawn = np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))
    cells = (drawn + np.arange(_RESAMPLES)[:, None] * n).ravel()
    counts = np.bincount(cells, minlength=_RESAMPLES * n)
    return counts.reshape(_RESAMPLES, n).astype(np.float64)


def share_interval(count: int, total: int) -> Interval:
    """Return a proportion and Wilson's 95% score interval, without continuity correction.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    JASA 22 (1927). Unlike the normal approximation, it stays within [0, 1].
    """
    share, z2 = count / total, _Z * _Z
    center = share + z2 / (2 * total)
    spread = _Z * math.sqrt(share * (1 - share) / total + z2 / (4 * total * total))
    scale = 1 + z2 / total
    low = 0.0 if count == 0 else (center - spread) / scale
    high = 1.0 if count == total else (center + spread) / scale
    return Interval(share, low, high)


def paired_difference(a: Sequence[float], b: Sequence[float]) -> PairedDifference:
    """Return the difference B - A, of returns of the same seeds in the same order.

    If less than six seeds differ among others, no sign test shows it, and the interval covers 0.
    """
    # Rounding drops the errors of sums of rewards.
    differences = (np.asarray(b, np.float64) - np.asarray(a, np.float64)).round(9)
    n, wins, losses = len(differences), (differences > 0).sum(), (differences < 0).sum()
    detectable = (_Z + _Z_POWER) * differences.std(ddof=1) / math.sqrt(n) if n > 1 else math.nan
    counts = int(wins), int(n - wins - losses), int(losses)
    mean = mean_interval(differences)
    if 0 < wins + losses < min(_LEAST_UNEQUAL, n):
        mean = Interval(mean.value, min(mean.low, 0.0), max(mean.high, 0.0))
    return PairedDifference(mean, *counts, float(detectable))


def trainings_interval(means: Sequence[float]) -> Interval:
    """Return the mean over independent trainings and Student's t interval, NaN for one training."""
    mean, n = math.fsum(means) / len(means), len(means)
    if n == 1:
        return Interval(mean, math.nan, math.nan)
    half = student_quantile(n - 1) * np.std(means, ddof=1).item() / math.sqrt(n)
    return _rounded(mean, (mean - half, mean + half))


def trainings_difference(a: Sequence[float], b: Sequence[float]) -> PairedDifference:
    """Return the difference B - A of the means of at least two trainings each.

    The interval is Welch's. Wins, ties and losses count pairs of a training of B and one of A.
    Source: B. L. Welch, "The generalization of Student's problem when several different population
    variances are involved", Biometrika 34 (1947).
    """
    parts = [(np.var(x, ddof=1) / len(x), len(x) - 1) for x in (a, b)]
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / n for part, n in parts) if variance else 1
    quantile, error = student_quantile(freedom), math.sqrt(variance)
    mean = float(np.mean(b) - np.mean(a))
    wins, losses = ((sign * np.subtract.outer(b, a) > 0).sum().item() for sign in (1, -1))
    counts = wins, len(a) * len(b) - wins - losses, losses
    interval = _rounded(mean, (mean - quantile * error, mean + quantile * error))
    return PairedDifference(interval, *counts, float(f"{(quantile + _Z_POWER) * error:.6g}"))


@cache
def student_quantile(freedom: float) -> float:
    """Return the 97.5% quantile of Student's t distribution with at least one degree of freedom.

    The angle whose tangent is t / sqrt(freedom) has a density proportional to
    cos(angle)**(freedom - 1), which the trapezoidal rule integrates.
    """
    angles = np.linspace(0, math.pi / 2, 200_001)
    density = np.cos(angles) ** (freedom - 1)
    below = np.cumsum(density[1:] + density[:-1])
    return math.sqrt(freedom) * math.tan(np.interp(0.95 * below[-1], below, angles[1:]))


def format_decimals(value: float, decimals: int) -> str:
    """Return a number with thousands separators and a minus sign, never "−0"."""
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "−" if text.strip("-0.,") else "")
