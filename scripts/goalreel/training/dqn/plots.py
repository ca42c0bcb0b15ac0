"""Learning curves of a comparison of trainings, with confidence bands.

The band is a stratified bootstrap, which R. Agarwal et al., "Deep Reinforcement Learning at the
Edge of the Statistical Precipice" (2021), section 4.1, recommend for few runs. It draws as many
whole runs of a variant as there are, with replacement, and takes percentiles of the means.
"""

import os
import statistics
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from goalreel.files.svg_plot import MARK, Caption, plot_style, save
from goalreel.training.dqn.comparison import TITLES
from goalreel.training.dqn.metrics import SOLVED, Metrics

# M. Okabe and K. Ito, "Color Universal Design" (2008): distinct for color-blind readers.
_COLORS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#8C7A00")
DRAWS, LEVEL = 2_000, 0.95  # samples and confidence level of the bootstrap


def plot_curves(path: str | os.PathLike, trainings: Sequence[Metrics], spec: str) -> None:
    """Plot the mean return against decisions and seconds of training, with bootstrap bands.

    A training that has ended keeps its last mean return. The median rate of a variant gives the
    seconds.
    """
    with plot_style():
        figure, ends = Figure((9, 4.9)), []
        left, right = figure.subplots(1, 2, sharey=True)
        groups: dict[str, list[Metrics]] = {}
        for metrics in trainings:
            groups.setdefault(metrics.variant, []).append(metrics)
        for (variant, group), color in zip(groups.items(), _COLORS, strict=False):
            decisions = np.array(max((run.checkpoints for run in group), key=len))
            means = np.stack([_padded(run.means, len(decisions)) for run in group])
            seconds = decisions / statistics.median(run.rate for run in group)
            mean, (low, high) = means.mean(axis=0), band(means)
            left.plot(decisions / 1000, mean, lw=1.6, label=TITLES[variant], color=color)
            right.plot(seconds, mean, lw=1.6, color=color)
            for axes, across in ((left, decisions / 1000), (right, seconds)):
                axes.fill_between(across, low, high, color=color, alpha=0.12, lw=0)
                axes.axhline(SOLVED, color=MARK, linestyle=":", lw=1.2)
            ends.append(f"{TITLES[variant]} {mean[-1]:.1f} ({low[-1]:.1f} to {high[-1]:.1f})")
        left.set(xlabel="thousands of decisions", ylabel="mean return of 100 episodes")
        right.set(xlabel="seconds of training", xscale="log")  # they differ by a factor of ten
        right.xaxis.set_major_formatter("{x:g}")
        right.xaxis.set_minor_formatter(NullFormatter())
        figure.legend(loc="outside lower center", ncols=min(len(ends), 3), frameon=False)
        description = (
            f"Mean return over {len(group)} seed{'s' * (len(group) > 1)} with a {LEVEL:.0%} band, "
            f"a bootstrap's over the seeds of each variant. At the end: {', '.join(ends)}. The "
            f"dotted line is {SOLVED:.0f}, at which the environment counts as solved."
        )
        save(figure, path, Caption("Learning curves", description, spec))


def _padded(means: Sequence[float], length: int) -> np.ndarray:
    return np.pad(np.array(means), (0, length - len(means)), "edge")


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper end of the bootstrap band of the mean over the runs.

    values: (runs, evaluations) float64; the same values give the same band
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(values), size=(DRAWS, len(values)))
    means = values[drawn].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high
