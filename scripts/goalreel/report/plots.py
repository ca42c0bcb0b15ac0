"""Draw the plots of a run.

Each function in PLOTS returns a figure, its title and a description, or None if the plot does not
apply to the run. The same run gives the same plots: samples are evenly spaced, without randomness,
and timings have no plot.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from goalreel.arrays import spread
from goalreel.environments.dimension_names import action_names, state_names
from goalreel.errors import pluralize
from goalreel.files.svg_plot import FILL, MARK, Caption, mark_x, plot_style, save
from goalreel.report.episode_table import read_table
from goalreel.report.page_rows import outcomes
from goalreel.report.statistics import format_decimals
from goalreel.simulation.trajectories import read_trajectories

Plot = tuple[Figure, str, str]  # with its title and description

_MAX_POINTS, _MAX_RETURNS = 2000, 20_000  # the most episodes in a plot
_MAX_BARS = 60  # of a histogram of episodes
_MARKERS = {"terminated": "o", "truncated": "^", "stopped": "s"}
_MIN_SMOOTHED = 20  # a running mean needs at least so many episodes
_HOLLOW = {"markerfacecolor": "none", "markeredgecolor": FILL, "markeredgewidth": 0.8}
_MAX_SHARDS, _MAX_EPISODES, _MAX_ACTIONS = 24, 120, 100_000  # the limits of a sample
_MAX_CURVES = 40  # episodes whose states are shown
_CURVE_POINTS = 200  # points per curve
# Readable on light and dark pages, for color-blind readers, and in gray.
_RETURNS = LinearSegmentedColormap.from_list("returns", ["#3a78f2", "#a76aae", "#ee9428"])
_MAX_NUMBERS = 8  # dimensions of a state; larger states are not plotted
_MAX_PANELS = 6  # dimensions of an action
_MAX_ACTION_BARS = 32  # actions that have a bar each
_MAX_NAMED = 6  # actions whose shares the description lists
_BINS = 41
_TICKS = [1, 2, 5, 10]  # the distances of ticks, times a power of ten


@dataclass(frozen=True)
class Sample:
    """The states and actions of a sample of the film's episodes."""

    states: list[np.ndarray]  # (steps + 1, width) float64 each
    returns: np.ndarray  # (episodes,) float64, of the same episodes
    actions: np.ndarray  # (actions, dimensions), from the same shards


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


def read_sample(trajectories: Sequence[Path], unit: str) -> Sample:
    """Read a sample of a run's episodes or, with reaches, of those that reached the goal."""
    states, returns, actions = [], [], []
    chosen = spread(trajectories, _MAX_SHARDS)
    for path in chosen:
        shard = read_trajectories(path)
        rows = np.flatnonzero(shard.episodes.reached | (unit != "reach"))
        rows = spread(rows, max(_MAX_EPISODES // len(chosen), 1))
        states += [shard.episode(row)[0].copy() for row in rows]
        returns.append(shard.episodes.return_[rows])
        steps = spread(range(len(shard.actions)), max(_MAX_ACTIONS // len(chosen), 1))
        actions.append(shard.actions.reshape(len(shard.actions), -1)[steps])
    return Sample(states, np.concatenate(returns), np.concatenate(actions))


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
    if not np.isfinite(returns).all():
        return None
    low, high, mean = map(_number_text, (returns.min(), returns.max(), returns.mean()))
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
        text += f" Every return is {_number_text(returns.min())}."
    elif run.reward is not None:
        text += f" Every step's reward is {_number_text(run.reward)}, which determines the return."
    return figure, "Steps to the goal" if reaches else "Steps", text


def _histogram(values: pd.Series, mark: float, label: str, xlabel: str, unit: str) -> Figure:
    """Return a histogram with one value marked. Whole numbers get bars of equal width."""
    figure, (axes,) = _panels(1, 1)
    low, high = values.min(), values.max()
    bars = min(_MAX_BARS, max(int(2 * len(values) ** 0.5), 12))
    edges = np.linspace(low, high, bars + 1)
    if (values == values.round()).all():
        width = -(-(high - low + 1) // bars)
        edges = np.arange(low, high + width + 1, width) - 0.5
        axes.xaxis.set_major_locator(_integer_ticks())
    axes.hist(values, edges, color=FILL, rwidth=0.92)
    axes.yaxis.set_major_locator(_integer_ticks())
    mark_x(axes, mark, label)
    axes.set(xlabel=xlabel, ylabel=pluralize(2, unit).split()[1])
    return figure


def plot_return_by_episode(run: PlottedRun) -> Plot | None:
    """Draw the returns in film order and, for many episodes, their running mean."""
    if _is_constant(run.episodes["return"]):
        return None
    figure, (axes,) = _panels(1, 1)
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
    axes.xaxis.set_major_locator(_integer_ticks())
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
    figure, (axes,) = _panels(1, 1)
    # Hollow circles show how many overlap.
    axes.plot(rows["initial_position"], rows["steps"], "o", markersize=4, **_HOLLOW)
    axes.yaxis.set_major_locator(_integer_ticks())
    shown = _count_text(len(rows), len(run.counted), run.unit)
    axes.set(xlabel="initial position", ylabel="steps from reset to goal")
    return figure, "Steps by initial position", f"Steps to the goal of {shown} by initial position."


def plot_states(run: PlottedRun) -> Plot | None:
    """Draw each dimension of the state over the steps, with episodes colored by return."""
    sample, total = run.sample, len(run.counted)
    if not sample.states or not 0 < sample.states[0].shape[1] <= _MAX_NUMBERS:
        return None
    chosen = spread(range(len(sample.states)), _MAX_CURVES)
    states, returns = [sample.states[i] for i in chosen], sample.returns[chosen]
    width, varied = states[0].shape[1], returns.min() < returns.max()
    columns = 1 if width == 1 else 2
    figure, grid = _panels(width, columns)
    for number, (axes, name) in enumerate(zip(grid, state_names(run.env, width), strict=True)):
        curves = []
        for values in states:
            # Includes the last state.
            steps = np.unique(np.linspace(0, len(values) - 1, _CURVE_POINTS).round().astype(int))
            curves.append(np.stack([steps, values[steps, number]], axis=1))
        lines = LineCollection(curves, cmap=_RETURNS, linewidths=0.7, alpha=0.8)
        lines.set_array(returns)
        axes.add_collection(lines)
        axes.autoscale()
        axes.margins(0.03)
        _name_panel(axes, name)
        if number >= width - columns:
            axes.set_xlabel("step", size=9)
    if varied:
        figure.colorbar(lines, ax=grid, label="return", fraction=0.05)
    words = _count_text(len(states), total, run.unit).removesuffix(",")
    dimensions = "state" if width == 1 else f"{width} dimensions of the state"
    text = f"The {dimensions} over the steps of {words}. Each line is one {run.unit}"
    return figure, "States", text + (", colored by its return." if varied else ".")


def plot_actions(run: PlottedRun) -> Plot:
    """Draw how often each action was taken, or a histogram of each dimension."""
    actions = run.sample.actions
    numbers = actions.T[:_MAX_PANELS]
    count, is_whole = len(numbers), actions.dtype.kind in "iub"
    is_discrete, names = is_whole and actions.shape[1] == 1, action_names(run.env)
    if len(names) <= actions.max() if is_discrete else len(names) != actions.shape[1]:
        names = ()
    figure, grid = _panels(count, min(count, 3))
    label = names[0] if names and not is_discrete else "action"
    label, size = (label, 11) if count == 1 else ("value of the action", 10)
    figure.supxlabel(label, size=size)
    figure.supylabel("share of steps", size=size)
    for number, (axes, values) in enumerate(zip(grid, numbers, strict=True)):
        low, high = values.min(), values.max()
        edges = np.linspace(low, high, _BINS) if low < high else [low - 0.5, low + 0.5]
        style = {"rwidth": 0.9}
        if is_whole and int(high) - int(low) < _MAX_ACTION_BARS:  # a bar for each action
            edges, style = np.arange(min(int(low), 0), int(high) + 2) - 0.5, {"rwidth": 0.8}
            axes.xaxis.set_major_locator(_integer_ticks())
        shares = np.full(len(values), 1 / len(values))
        axes.hist(values, edges, weights=shares, color=FILL, **style)
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        if count > 1:
            _name_panel(axes, f"dimension {number}")
    if is_discrete and names:
        grid[0].set_xticks(range(len(names)), names, size=11 if len(names) < 5 else 9)
    return figure, "Actions", _describe_actions(actions, numbers, names)


def _name_panel(axes, name: str) -> None:
    axes.set_title(name, size=9, loc="left", pad=2)
    axes.tick_params(labelsize=8)


def _describe_actions(actions: np.ndarray, numbers: np.ndarray, names: Sequence[str]) -> str:
    text = f"Actions in {len(actions):,} steps"
    text += ", evenly sampled" if len(actions) == _MAX_ACTIONS else ""
    if len(numbers) < actions.shape[1]:
        return f"{text}: the first {len(numbers)} of {actions.shape[1]} dimensions."
    if len(numbers) > 1:
        return f"{text}: all {len(numbers)} dimensions."
    if actions.dtype.kind not in "iub":
        return f"{text}: values from {actions.min():.3g} to {actions.max():.3g}."
    values, counts = np.unique(actions, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_MAX_NAMED]
    words = [names[value] if names else f"action {value}" for value in values]
    shares = ", ".join(f"{words[i]} in {counts[i] / len(actions):.1%}" for i in often)
    return f"{text}: {shares}."


PLOTS = {
    "returns": plot_returns,
    "steps": plot_steps,
    "return_by_episode": plot_return_by_episode,
    "initial_position": plot_initial_position,
    "states": plot_states,
    "actions": plot_actions,
}


def _is_constant(values: pd.Series) -> bool:
    return values.nunique() < 2


def _count_text(shown: int, total: int, unit: str) -> str:
    """Return the number of episodes shown, in words."""
    words = pluralize(total, unit)
    return words if shown == total else f"{shown:,} of {words}, evenly sampled,"


def _panels(count: int, columns: int):
    """Return a figure and its `count` axes in a grid."""
    rows = -(-count // columns)
    figure = Figure(figsize=(5.5, max(3.4, 1.45 * rows + 0.3)))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.remove()
    across, up = (7, 7) if count == 1 else (5, 4)  # the greatest number of intervals between ticks
    for axes in grid[:count]:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=across, steps=_TICKS))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=up, steps=_TICKS))
    return figure, list(grid[:count])


def _integer_ticks() -> MaxNLocator:
    return MaxNLocator(nbins=7, steps=_TICKS, integer=True, min_n_ticks=1)


def _number_text(value: float) -> str:
    """Return a number with thousands separators and, if it is not whole, two or three decimals."""
    return format_decimals(value, 0 if value % 1 == 0 else 2 if abs(value) >= 1 else 3)
