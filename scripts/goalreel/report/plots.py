"""The plots of a run: those that its episodes fill, and no other.

Timings are not among them, since they differ from run to run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.ticker import PercentFormatter

from goalreel.errors import counted
from goalreel.files.svg_plot import FILL, GRID, INK, MARK, Caption, mark_x, save, styled
from goalreel.report.plot_data import MOST_NUMBERS, Returns, Sample, Steps
from goalreel.report.plot_style import axes_of, numbered, whole
from goalreel.report.reach_rate import ReachRate
from goalreel.report.trajectory_plots import plot_actions, plot_phase, plot_states

_BARS = 60
_MARKERS = {"terminated": "o", "truncated": "^", "stopped": "s"}
_SMOOTH = 20  # episodes from which on a running mean is drawn


@dataclass(frozen=True)
class Run:
    """What a run's plots are drawn of."""

    unit: str  # "reach" or "episode", what was asked for
    steps: Steps
    returns: Returns
    sample: Sample
    goal: float | None  # the position of a Mountain Car's goal
    rate: ReachRate | None  # of reaches


def draw_plots(folder: Path, run: Run, spec: str) -> list[Path]:
    """Draw the plots that apply to a run into a folder and return their files in a page's order."""
    steps, returns, sample = run.steps, run.returns, run.sample
    varied = steps.episodes and steps.least() < steps.most()
    plots: dict[str, tuple[bool, Callable[[Path], None]]] = {
        # Where each step has the same reward, the steps say it all.
        "returns": (
            returns.least < returns.most and (returns.reward is None or not varied),
            lambda path: plot_returns(path, returns, run.unit, spec),
        ),
        "steps": (varied, lambda path: plot_steps(path, steps, returns, run.unit, spec)),
        "return_by_episode": (
            returns.least < returns.most,
            lambda path: plot_return_by_episode(path, returns, run.unit, spec),
        ),
        "initial_position": (
            len(steps.positions) > 1,
            lambda path: plot_initial_position(path, steps, spec),
        ),
        "phase": (
            run.goal is not None and len(sample.states) > 0,
            lambda path: plot_phase(path, sample, run.goal, run.unit, spec),
        ),
        "states": (
            run.goal is None
            and len(sample.states) > 0
            and 0 < sample.states[0].shape[1] <= MOST_NUMBERS,
            lambda path: plot_states(path, sample, run.unit, spec),
        ),
        "actions": (True, lambda path: plot_actions(path, sample.actions, spec)),
        "reach_rate": (
            run.rate is not None,
            lambda path: plot_reach_rate(path, [run.rate], spec),
        ),
    }
    made = []
    for name, (applies, draw) in plots.items():
        if applies:
            made.append(folder / f"{name}.svg")
            draw(made[-1])
    return made


def plot_returns(path: Path, returns: Returns, unit: str, spec: str) -> None:
    """Draw the histogram of returns, their mean marked."""
    with styled():
        figure, axes = axes_of(5.5, 3.8)
        axes.hist(returns.values, _edges(returns.values), color=FILL, edgecolor="white", lw=0.5)
        mark_x(axes, returns.mean, f"mean {numbered(returns.mean)}")
        axes.yaxis.set_major_locator(whole())
        axes.set(xlabel="return", ylabel=_plural(unit))
        text = f"The returns of {_chosen(returns, unit)} are {numbered(returns.least)} to "
        text += f"{numbered(returns.most)}; the mean is {numbered(returns.mean)}."
        save(figure, path, Caption("Returns", text, spec))


def plot_steps(path: Path, steps: Steps, returns: Returns, unit: str, spec: str) -> None:
    """Draw the histogram of steps, its median marked."""
    reaches = unit == "reach"
    with styled():
        figure, axes = axes_of(5.5, 3.8)
        low, high, median = steps.least(), steps.most(), steps.median()
        width = -(-(high - low + 1) // _bars(steps.episodes))
        edges = np.arange(low, high + width + 1, width) - 0.5
        values = np.arange(len(steps.counts))
        axes.hist(values, edges, weights=steps.counts, color=FILL, edgecolor="white", lw=0.5)
        mark_x(axes, median, f"median {median:g}")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(whole())
        text = f"{counted(steps.episodes, unit)} took {low:,} to {high:,} steps; the median is "
        text += f"{median:g}."
        if returns.least == returns.most:
            text += f" Every return is {numbered(returns.least)}."
        elif returns.reward is not None:
            text += f" Each step's reward is {numbered(returns.reward)}: returns are spread as the "
            text += "steps."
        axes.set(xlabel=f"steps from reset to {'goal' if reaches else 'end'}", ylabel=_plural(unit))
        title = "Steps to the goal" if reaches else "Steps"
        save(figure, path, Caption(title, text, spec))


def plot_return_by_episode(path: Path, returns: Returns, unit: str, spec: str) -> None:
    """Draw the returns in film order and, of many, their running mean."""
    with styled():
        figure, axes = axes_of(5.5, 3.8)
        kinds = [
            (label, returns.outcomes == number, marker)
            for number, (label, marker) in enumerate(_MARKERS.items())
            if (returns.outcomes == number).any()
        ]
        if len(kinds) == 1:
            kinds = [(f"one {unit}", *kinds[0][1:])]
        size = 4 if len(returns.values) <= 500 else 2
        for label, which, marker in kinds:
            axes.plot(
                *(returns.numbers[which], returns.values[which], marker),
                **{"markersize": size, "markerfacecolor": "none", "markeredgecolor": FILL},
                **{"markeredgewidth": 0.8, "label": label},
            )
        text = f"The return of {_chosen(returns, unit)}, in film order"
        count = len(returns.values)
        if count >= _SMOOTH:
            window = max(min(count // 10, 100), 5)
            sums = np.concatenate([[0], np.cumsum(returns.values)])
            means = (sums[window:] - sums[:-window]) / window
            label = f"mean of the last {window}"
            axes.plot(returns.numbers[window - 1 :], means, color=MARK, lw=1.8, label=label)
            text += f"; the line is the mean of the last {window}"
            text += " that are shown" if count < returns.episodes else ""
        if len(kinds) > 1 or count >= _SMOOTH:
            figure.legend(loc="outside lower center", ncols=3, frameon=False)
        axes.xaxis.set_major_locator(whole())
        axes.set(xlabel=unit, ylabel="return")
        save(figure, path, Caption(f"Return by {unit}", f"{text}.", spec))


def plot_initial_position(path: Path, steps: Steps, spec: str) -> None:
    """Draw the steps to the goal against the initial position."""
    with styled():
        figure, axes = axes_of(5.5, 3.8)
        # Hollow circles: where many overlap, they grow dark.
        axes.plot(
            *(steps.positions, steps.steps, "o"),
            **{"markersize": 4, "markerfacecolor": "none"},
            **{"markeredgecolor": FILL, "markeredgewidth": 0.8},
        )
        axes.yaxis.set_major_locator(whole())
        counted = f"{len(steps.positions):,} reaches"
        if len(steps.positions) < steps.episodes:
            counted += f" of {steps.episodes:,}, evenly chosen,"
        text = f"Steps to the goal of {counted} by the position that they started from."
        axes.set(xlabel="initial position", ylabel="steps from reset to goal")
        save(figure, path, Caption("Steps by initial position", text, spec))


def plot_reach_rate(path: Path, rates: list[ReachRate], spec: str) -> None:
    """Draw the share of attempts that reached the goal, with its 95% interval, per policy."""
    with styled():
        figure, axes = axes_of(5.5, 1.5 + 0.6 * len(rates))
        for row, rate in enumerate(rates):
            spread = [[rate.rate - rate.low], [rate.high - rate.rate]]
            axes.errorbar(rate.rate, row, xerr=spread, fmt="o", color=INK, capsize=6, lw=1.8)
            label = f"{rate.policy}: {rate.reached:,} of {rate.attempts:,} reached"
            axes.text(0, row - 0.25, label, va="bottom")
        axes.set(xlim=(-0.02, 1.02), ylim=(len(rates) - 0.5, -0.7), yticks=[])
        axes.set(xlabel="attempts that reached the goal, with 95% interval")
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        axes.grid(axis="x", color=GRID, lw=0.8)
        axes.set_axisbelow(True)
        text = " ".join(
            f"{rate.policy}: {rate.reached:,} of {rate.attempts:,} attempts reached the goal, "
            f"{rate.rate:.1%} (95% interval {rate.low:.1%} to {rate.high:.1%})."
            for rate in rates
        )
        save(figure, path, Caption("Reach rate", text, spec))


def _edges(values: np.ndarray) -> np.ndarray:
    """Return a histogram's edges: whole numbers, where there are few of them, have a bar each."""
    low, high = values.min(), values.max()
    if (values == np.round(values)).all() and high - low < _BARS:
        return np.arange(low, high + 2) - 0.5
    return np.linspace(low, high, _bars(len(values)) + 1)


def _bars(episodes: int) -> int:
    """Return how many bars a histogram of so many episodes has at most."""
    return min(_BARS, max(int(2 * episodes**0.5), 12))


def _plural(unit: str) -> str:
    return counted(2, unit).split()[1]


def _chosen(returns: Returns, unit: str) -> str:
    """Return how many episodes are shown, in words."""
    words = counted(len(returns.values), unit)
    all_shown = len(returns.values) == returns.episodes
    return words if all_shown else f"{words} of {returns.episodes:,}, evenly chosen,"
