"""Draw the plots of a run.

Each function in PLOTS returns a figure, its title and a description, or None if the plot does not
apply to the run. Timings have no plot, since they differ between runs.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from goalreel.arrays import spread
from goalreel.errors import pluralize
from goalreel.files.svg_plot import FILL, MARK, Caption, mark_x, plot_style, save
from goalreel.report.episode_table import read_table
from goalreel.report.page_rows import outcomes
from goalreel.report.plot_style import format_number, integer_ticks, panels
from goalreel.report.trajectory_plots import Sample, plot_actions, plot_states

Plot = tuple[Figure, str, str]  # with its title and description

_MAX_POINTS, _MAX_RETURNS = 2000, 20_000  # the most episodes in a plot
_MAX_BARS = 60
_MARKERS = {"terminated": "o", "truncated": "^", "stopped": "s"}
_MIN_SMOOTHED = 20  # a running mean needs at least so many episodes
_HOLLOW = {"markerfacecolor": "none", "markeredgecolor": FILL, "markeredgewidth": 0.8}


@dataclass(frozen=True)
class PlottedRun:
    """The data of a run that plots show."""

    unit: str  # "reach" or "episode"
    episodes: pd.DataFrame  # the result of `read_episodes`
    sample: Sample
    env: str = ""  # the environment that names states and actions, "" if it has wrappers

    @property
    def counted(self) -> pd.DataFrame:
        """All episodes or, in a run of reaches, those that reached the goal."""
        return self.episodes[self.episodes["reached"]] if self.unit == "reach" else self.episodes

    @property
    def reward(self) -> float | None:
        """The reward of every step if it is constant, so that the steps determine the return."""
        returns, steps = self.episodes["return"], self.episodes["steps"]
        reward = returns.iloc[0] / steps.iloc[0] if steps.iloc[0] else 0
        return reward if reward and np.allclose(returns, reward * steps) else None


def read_episodes(table: str | os.PathLike, unit: str) -> pd.DataFrame:
    """Read the columns that plots need from a table. Raises GoalreelError like `read_table`."""
    more = ("initial_position", "reached") if unit == "reach" else ()
    return read_table(table, ("steps", "return", "terminated", "truncated", *more))


def draw_plots(folder: Path, run: PlottedRun, spec: str) -> list[Path]:
    """Draw the plots that apply to a run, and return their paths in order."""
    made = []
    for name, plot in PLOTS.items():
        with plot_style():
            if drawn := plot(run):
                figure, title, text = drawn
                made.append(folder / f"{name}.svg")
                save(figure, made[-1], Caption(title, text, spec))
    return made


def plot_returns(run: PlottedRun) -> Plot | None:
    """Draw a histogram of the returns with their mean."""
    returns = run.episodes["return"]
    # With a constant reward per step, the histogram of steps shows the same.
    if _is_constant(returns) or (run.reward is not None and not _is_constant(run.counted["steps"])):
        return None
    low, high, mean = map(format_number, (returns.min(), returns.max(), returns.mean()))
    figure = _histogram(returns, returns.mean(), f"mean {mean}", "return", run.unit)
    shown = pluralize(len(returns), run.unit)
    text = f"The returns of {shown} range from {low} to {high}. The mean is {mean}."
    return figure, "Returns", text


def plot_steps(run: PlottedRun) -> Plot | None:
    """Draw a histogram of the steps with their median."""
    steps, returns, reaches = run.counted["steps"], run.episodes["return"], run.unit == "reach"
    if _is_constant(steps):
        return None
    low, high, median = steps.min(), steps.max(), f"{steps.median():g}"
    goal = "goal" if reaches else "end"
    labels = f"median {median}", f"steps from reset to {goal}", run.unit
    figure = _histogram(steps, steps.median(), *labels)
    text = f"{pluralize(len(steps), run.unit)} took {low:,} to {high:,} steps. The median is "
    text += f"{median}."
    if _is_constant(returns):
        text += f" Every return is {format_number(returns.min())}."
    elif run.reward is not None:
        text += f" Every step's reward is {format_number(run.reward)}, which determines the return."
    return figure, "Steps to the goal" if reaches else "Steps", text


def _histogram(values: pd.Series, mark: float, label: str, xlabel: str, unit: str) -> Figure:
    """Return a histogram with one value marked. Whole numbers get bars of equal width."""
    figure, (axes,) = panels(1, 1)
    low, high = values.min(), values.max()
    bars = min(_MAX_BARS, max(int(2 * len(values) ** 0.5), 12))
    edges = np.linspace(low, high, bars + 1)
    if (values == values.round()).all():
        width = -(-(high - low + 1) // bars)
        edges = np.arange(low, high + width + 1, width) - 0.5
        axes.xaxis.set_major_locator(integer_ticks())
    axes.hist(values, edges, color=FILL, rwidth=0.92)
    axes.yaxis.set_major_locator(integer_ticks())
    mark_x(axes, mark, label)
    axes.set(xlabel=xlabel, ylabel=pluralize(2, unit).split()[1])
    return figure


def plot_return_by_episode(run: PlottedRun) -> Plot | None:
    """Draw the returns in film order and, for many episodes, their running mean."""
    if _is_constant(run.episodes["return"]):
        return None
    figure, (axes,) = panels(1, 1)
    rows = run.episodes.iloc[spread(range(len(run.episodes)), _MAX_RETURNS)]
    values, count, ended = rows["return"], len(rows), outcomes(rows, "episode")
    size = 4 if count <= 500 else 2
    for number, (kind, marker) in enumerate(_MARKERS.items()):
        if (ended == number).any():
            of_kind = values[ended == number]
            label = kind if len(of_kind) < count else f"one {run.unit}"
            axes.plot(of_kind.index, of_kind, marker, markersize=size, label=label, **_HOLLOW)
    shown = _count_text(count, len(run.episodes), run.unit).removesuffix(",")
    text = f"The return of {shown}, in film order"
    if count >= _MIN_SMOOTHED:
        window = max(min(count // 10, 100), 5)
        means, label = values.rolling(window).mean(), f"mean of the last {window}"
        axes.plot(means.index, means, color=MARK, lw=1.8, label=label)
        text += f". The line is the mean of the last {window}"
        text += " shown" if count < len(run.episodes) else ""
    if len(axes.lines) > 1:
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
    axes.xaxis.set_major_locator(integer_ticks())
    axes.set(xlabel=run.unit, ylabel="return")
    return figure, f"Return by {run.unit}", f"{text}."


def plot_initial_position(run: PlottedRun) -> Plot | None:
    """Draw the steps to the goal by initial position, if the environment has one."""
    if run.unit != "reach":
        return None
    rows = run.counted.dropna(subset="initial_position")
    if len(rows) < 2:
        return None
    rows = rows.iloc[spread(range(len(rows)), _MAX_POINTS)]
    figure, (axes,) = panels(1, 1)
    # Hollow circles show how many overlap.
    axes.plot(rows["initial_position"], rows["steps"], "o", markersize=4, **_HOLLOW)
    axes.yaxis.set_major_locator(integer_ticks())
    shown = _count_text(len(rows), len(run.counted), run.unit)
    axes.set(xlabel="initial position", ylabel="steps from reset to goal")
    text = f"Steps to the goal of {shown} by initial position."
    return figure, "Steps by initial position", text


PLOTS = {
    "returns": plot_returns,
    "steps": plot_steps,
    "return_by_episode": plot_return_by_episode,
    "initial_position": plot_initial_position,
    "states": lambda run: plot_states(run.sample, run.unit, len(run.counted), run.env),
    "actions": lambda run: plot_actions(run.sample.actions, run.env),
}


def _is_constant(values: pd.Series) -> bool:
    return values.nunique() < 2


def _count_text(shown: int, total: int, unit: str) -> str:
    """Return the number of episodes shown, in words."""
    words = pluralize(total, unit)
    return words if shown == total else f"{shown:,} of {words}, evenly sampled,"
