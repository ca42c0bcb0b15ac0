"""Plots of what episodes did, step by step: their states and their actions."""

from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection

from goalreel.errors import counted
from goalreel.files.svg_plot import FILL, INK, Caption, mark_x, save, styled
from goalreel.report.plot_data import ACTIONS, Sample
from goalreel.report.plot_style import axes_of, panels, whole

_MAP = "cividis"
_CURVES = 40  # episodes whose states are shown
_POINTS = 200  # of each of them
_MOST_PANELS = 6  # numbers of an action
_MOST_BARS = 32  # actions that have a bar each
_NAMED = 6  # actions whose shares the caption tells
_BINS = 41


def plot_phase(path: Path, sample: Sample, goal: float, unit: str, spec: str) -> None:
    """Draw the phase portrait: position against velocity, the goal, the fastest and the slowest."""
    with styled():
        figure, axes = axes_of(5.5, 4.2)
        steps = np.array([len(curve) - 1 for curve in sample.states])
        lines = LineCollection(sample.states, cmap=_MAP, linewidths=0.7)
        lines.set_array(steps)
        axes.add_collection(lines)
        for which, style in ((int(steps.argmin()), "-"), (int(steps.argmax()), "--")):
            name = "fewest" if style == "-" else "most"
            label = f"{name} steps: {steps[which]:,}"
            axes.plot(*sample.states[which].T, style, color=INK, lw=1.8, label=label)
        axes.autoscale()
        axes.margins(0.05)
        mark_x(axes, goal, "goal")
        end = "to the goal" if unit == "reach" else "of the episode"
        figure.colorbar(lines, ax=axes, label=f"steps {end}", ticks=whole())
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
        chosen = ", evenly chosen" if len(steps) < sample.episodes else ""
        words = ", from the reset to" if unit == "reach" else ";"
        text = f"Position against velocity of {counted(len(steps), unit)}{chosen}{words} the goal "
        text += "at " if unit == "reach" else "is at "
        text += f"{goal:g}; the solid black line took the fewest steps, {steps.min():,}, the "
        text += f"dashed one the most, {steps.max():,}."
        axes.set(xlabel="position", ylabel="velocity")
        save(figure, path, Caption("Phase portrait", text, spec))


def plot_states(path: Path, sample: Sample, unit: str, spec: str) -> None:
    """Draw each number of the state over the steps of some episodes, coloured by return."""
    count = min(len(sample.states), _CURVES)
    chosen = np.arange(count) * len(sample.states) // count
    width, returns = sample.states[0].shape[1], sample.returns[chosen]
    varied = returns.min() < returns.max()
    columns = 1 if width == 1 else 2
    with styled():
        figure, grid = panels(width, columns, 5.5, 2.6 if width == 1 else 1.45)
        for number, axes in enumerate(grid):
            curves = []
            for index in chosen:
                values = sample.states[index][:, number]
                # The last state too, which is where the episode ended.
                shown = np.unique(np.linspace(0, len(values) - 1, _POINTS).round().astype(int))
                curves.append(np.stack([shown, values[shown]], axis=1))
            lines = LineCollection(curves, cmap=_MAP, linewidths=0.7, alpha=0.8)
            lines.set_array(returns)
            axes.add_collection(lines)
            axes.autoscale()
            axes.margins(0.03)
            axes.set_title(f"number {number}", size=9, loc="left", pad=2)
            axes.tick_params(labelsize=8)
            if number >= width - columns:
                axes.set_xlabel("step", size=9)
        if varied:
            figure.colorbar(lines, ax=grid, label="return", fraction=0.05)
        words = counted(count, unit)
        words += f", evenly chosen of {sample.episodes:,}" if count < sample.episodes else ""
        text = f"The {width} numbers of the state over the steps of {words}"
        text += ", a line each, coloured by its return." if varied else ", a line each."
        text = text.replace("The 1 numbers", "The number")
        save(figure, path, Caption("States", text, spec))


def plot_actions(path: Path, actions: np.ndarray, spec: str) -> None:
    """Draw how often which action was taken: a bar each, or a histogram of each number."""
    numbers = actions.T[:_MOST_PANELS]
    is_whole = actions.dtype.kind in "iub"
    with styled():
        if len(numbers) == 1:
            figure, axes = axes_of(5.5, 3.8)
            grid = [axes]
        else:
            figure, grid = panels(len(numbers), min(len(numbers), 3), 5.5, 1.9)
        for number, (axes, values) in enumerate(zip(grid, numbers, strict=True)):
            _draw_actions(axes, values, is_whole)
            axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
            if len(grid) > 1:
                axes.set_title(f"number {number}", size=9, loc="left", pad=2)
                axes.tick_params(labelsize=8)
        if len(grid) == 1:
            grid[0].set(xlabel="action", ylabel="share of the steps")
        else:
            figure.supxlabel("number of the action", size=10)
            figure.supylabel("share of the steps", size=10)
        save(figure, path, Caption("Actions", _told(actions, numbers, is_whole), spec))


def _draw_actions(axes, values: np.ndarray, is_whole: bool) -> None:
    """Draw the shares of values as bars."""
    low, high = values.min(), values.max()
    shares = np.full(len(values), 1 / len(values))
    if is_whole and int(high) - int(low) < _MOST_BARS:
        low = min(int(low), 0)
        counts = np.bincount(values.astype(np.int64) - low)
        axes.bar(np.arange(len(counts)) + low, counts / len(values), color=FILL)
        axes.xaxis.set_major_locator(whole())
        return
    edges = np.linspace(low, high, _BINS) if low < high else [low - 0.5, low + 0.5]
    axes.hist(values, edges, weights=shares, color=FILL, edgecolor="white", lw=0.3)


def _told(actions: np.ndarray, numbers: np.ndarray, is_whole: bool) -> str:
    """Return the plot's finding in a sentence."""
    text = f"What was done in {len(actions):,} steps"
    text += ", evenly chosen" if len(actions) == ACTIONS else ""
    if len(numbers) < actions.shape[1]:
        return f"{text}: the first {len(numbers)} of an action's {actions.shape[1]} numbers."
    if len(numbers) > 1:
        return f"{text}: the {len(numbers)} numbers of an action."
    if not is_whole:
        return f"{text}: actions from {actions.min():.3g} to {actions.max():.3g}."
    values, counts = np.unique(actions, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_NAMED]
    shares = ", ".join(f"{values[i]} in {counts[i] / len(actions):.1%}" for i in often)
    return f"{text}: action {shares}."
