"""Plot the states and the actions of episodes.

Both plots show an evenly spaced sample without randomness, so a run always gives the same plots.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from goalreel.arrays import spread
from goalreel.environments.dimension_names import action_names, state_names
from goalreel.errors import pluralize
from goalreel.files.svg_plot import FILL
from goalreel.report.plot_style import integer_ticks, panels
from goalreel.simulation.trajectories import read_trajectories

_MAX_SHARDS, _MAX_EPISODES, _MAX_ACTIONS = 24, 120, 100_000  # the limits of a sample
_MAX_CURVES = 40  # episodes whose states are shown
_CURVE_POINTS = 200  # points per curve
# Readable on light and dark pages, for color-blind readers, and in gray.
_RETURNS = LinearSegmentedColormap.from_list("returns", ["#3a78f2", "#a76aae", "#ee9428"])
_MAX_NUMBERS = 8  # dimensions of a state; larger states are not plotted
_MAX_PANELS = 6  # dimensions of an action
_MAX_BARS = 32  # actions that have a bar each
_MAX_NAMED = 6  # actions whose shares the description lists
_BINS = 41


@dataclass(frozen=True)
class Sample:
    """The states and actions of a sample of the film's episodes."""

    states: list[np.ndarray]  # (steps + 1, width) float64 each
    returns: np.ndarray  # (episodes,) float64, of the same episodes
    actions: np.ndarray  # (actions, dimensions), from the same shards


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


def plot_states(sample: Sample, unit: str, total: int, env: str) -> tuple[Figure, str, str] | None:
    """Draw each dimension of the state over the steps, with episodes colored by return.

    The sample is of `total` episodes. `env` names the dimensions, "" if it has wrappers.
    """
    if not sample.states or not 0 < sample.states[0].shape[1] <= _MAX_NUMBERS:
        return None
    chosen = spread(range(len(sample.states)), _MAX_CURVES)
    states, returns = [sample.states[i] for i in chosen], sample.returns[chosen]
    width, varied = states[0].shape[1], returns.min() < returns.max()
    columns = 1 if width == 1 else 2
    figure, grid = panels(width, columns)
    for number, (axes, name) in enumerate(zip(grid, state_names(env, width), strict=True)):
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
    words = pluralize(total, unit)
    words = f"{len(states)} of {words}, evenly sampled" if len(states) < total else words
    dimensions = "state" if width == 1 else f"{width} dimensions of the state"
    text = f"The {dimensions} over the steps of {words}. Each line is one {unit}"
    return figure, "States", text + (", colored by its return." if varied else ".")


def plot_actions(actions: np.ndarray, env: str) -> tuple[Figure, str, str]:
    """Draw how often each action was taken, or a histogram of each dimension."""
    numbers = actions.T[:_MAX_PANELS]
    count, is_whole = len(numbers), actions.dtype.kind in "iub"
    is_discrete, names = is_whole and actions.shape[1] == 1, action_names(env)
    if len(names) <= actions.max() if is_discrete else len(names) != actions.shape[1]:
        names = ()
    figure, grid = panels(count, min(count, 3))
    label = names[0] if names and not is_discrete else "action"
    label, size = (label, 11) if count == 1 else ("value of the action", 10)
    figure.supxlabel(label, size=size)
    figure.supylabel("share of steps", size=size)
    for number, (axes, values) in enumerate(zip(grid, numbers, strict=True)):
        low, high = values.min(), values.max()
        edges = np.linspace(low, high, _BINS) if low < high else [low - 0.5, low + 0.5]
        style = {"rwidth": 0.9}
        if is_whole and int(high) - int(low) < _MAX_BARS:  # a bar for each action
            edges, style = np.arange(min(int(low), 0), int(high) + 2) - 0.5, {"rwidth": 0.8}
            axes.xaxis.set_major_locator(integer_ticks())
        shares = np.full(len(values), 1 / len(values))
        axes.hist(values, edges, weights=shares, color=FILL, **style)
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        if count > 1:
            _name_panel(axes, f"dimension {number}")
    if is_discrete and names:
        grid[0].set_xticks(range(len(names)), names, size=11 if len(names) < 5 else 9)
    return figure, "Actions", _describe_actions(actions, numbers, is_whole, names)


def _name_panel(axes, name: str) -> None:
    axes.set_title(name, size=9, loc="left", pad=2)
    axes.tick_params(labelsize=8)


def _describe_actions(
    actions: np.ndarray, numbers: np.ndarray, is_whole: bool, names: Sequence[str]
) -> str:
    """Return the description of the plot."""
    text = f"Actions in {len(actions):,} steps"
    text += ", evenly sampled" if len(actions) == _MAX_ACTIONS else ""
    if len(numbers) < actions.shape[1]:
        return f"{text}: the first {len(numbers)} of {actions.shape[1]} dimensions."
    if len(numbers) > 1:
        return f"{text}: all {len(numbers)} dimensions."
    if not is_whole:
        return f"{text}: values from {actions.min():.3g} to {actions.max():.3g}."
    values, counts = np.unique(actions, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_MAX_NAMED]
    words = [names[value] if names else f"action {value}" for value in values]
    shares = ", ".join(f"{words[i]} in {counts[i] / len(actions):.1%}" for i in often)
    return f"{text}: {shares}."
