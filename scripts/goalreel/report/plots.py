"""The plots: steps to the goal, steps by initial position, the phase portrait, the reach rate.

Timings are not among them, since they differ from run to run.
"""

import os

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from goalreel.files.svg_plot import FILL, GRID, INK, Caption, mark_x, save, styled
from goalreel.report.plot_data import Portrait, Steps
from goalreel.report.reach_rate import ReachRate

_MAP = "cividis"
_BARS = 60
_TICKS = [1, 2, 5, 10]


def plot_steps(path: str | os.PathLike, steps: Steps, spec: str) -> None:
    """Draw the histogram of steps to the goal, its median marked."""
    title = "Steps to the goal"
    with styled():
        figure, axes = _axes(5.5, 3.8)
        if steps.reaches:
            low, high, median = steps.least(), steps.most(), steps.median()
            width = -(-(high - low + 1) // _BARS)
            edges = np.arange(low, high + width + 1, width) - 0.5
            values = np.arange(len(steps.counts))
            axes.hist(values, edges, weights=steps.counts, color=FILL, edgecolor="white", lw=0.5)
            mark_x(axes, median, f"median {median:g}")
            text = f"{steps.reaches:,} reaches took {low:,} to {high:,} steps; the median is "
            text += f"{median:g}."
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(_whole())
        else:
            text = _empty(axes, "No episode reached the goal.")
        axes.set(xlabel="steps from reset to goal", ylabel="reaches")
        save(figure, path, Caption(title, text, spec))


def plot_initial_position(path: str | os.PathLike, steps: Steps, spec: str) -> None:
    """Draw the steps to the goal against the initial position."""
    with styled():
        figure, axes = _axes(5.5, 3.8)
        if len(steps.positions):
            # Hollow circles: where many overlap, they grow dark.
            axes.plot(
                *(steps.positions, steps.steps, "o"),
                **{"markersize": 4, "markerfacecolor": "none"},
                **{"markeredgecolor": FILL, "markeredgewidth": 0.8},
            )
            axes.yaxis.set_major_locator(_whole())
            counted = f"{len(steps.positions):,} reaches"
            if len(steps.positions) < steps.reaches:
                counted += f" of {steps.reaches:,}, evenly chosen,"
            text = f"Steps to the goal of {counted} by the position that they started from."
        else:
            text = _empty(axes, "This environment's table has no initial positions.")
        axes.set(xlabel="initial position", ylabel="steps from reset to goal")
        save(figure, path, Caption("Steps by initial position", text, spec))


def plot_phase(path: str | os.PathLike, portrait: Portrait, spec: str) -> None:
    """Draw the phase portrait: position against velocity, the goal, the fastest and the slowest."""
    with styled():
        figure, axes = _axes(5.5, 4.2)
        if portrait.curves and portrait.goal is not None:
            steps = np.array([len(curve) - 1 for curve in portrait.curves])
            lines = LineCollection(portrait.curves, cmap=_MAP, linewidths=0.7)
            lines.set_array(steps)
            axes.add_collection(lines)
            for which, style in ((int(steps.argmin()), "-"), (int(steps.argmax()), "--")):
                name = "fewest" if style == "-" else "most"
                label = f"{name} steps: {steps[which]:,}"
                axes.plot(*portrait.curves[which].T, style, color=INK, lw=1.8, label=label)
            axes.autoscale()
            axes.margins(0.05)
            mark_x(axes, portrait.goal, "goal")
            figure.colorbar(lines, ax=axes, label="steps to the goal", ticks=_whole())
            figure.legend(loc="outside lower center", ncols=2, frameon=False)
            text = f"Position against velocity of {len(steps):,} evenly chosen reaches, from the "
            text += f"reset to the goal at {portrait.goal:g}; the solid black line took the "
            text += f"fewest steps, {steps.min():,}, the dashed one the most, {steps.max():,}."
        else:
            text = _empty(axes, "States of this environment are no\nposition and velocity.")
        axes.set(xlabel="position", ylabel="velocity")
        save(figure, path, Caption("Phase portrait", text, spec))


def plot_reach_rate(path: str | os.PathLike, rates: list[ReachRate], spec: str) -> None:
    """Draw the share of attempts that reached the goal, with its 95% interval, per policy."""
    with styled():
        figure, axes = _axes(5.5, 1.5 + 0.6 * len(rates))
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


def _axes(width: float, height: float):
    figure = Figure(figsize=(width, height))
    axes = figure.add_subplot()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=7, steps=_TICKS))
    return figure, axes


def _whole() -> MaxNLocator:
    """Return ticks at whole numbers, for counts."""
    return MaxNLocator(nbins=7, steps=_TICKS, integer=True, min_n_ticks=1)


def _empty(axes, reason: str) -> str:
    """Write the reason where the plot would be, and return it as a sentence."""
    axes.text(0.5, 0.5, reason, ha="center", va="center", transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])
    return reason.replace("\n", " ")
