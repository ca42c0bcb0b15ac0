"""The plots of a comparison of trainings: bars of the table, and learning curves with bands."""

import os
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from goalreel.files.svg_plot import FILL, INK, MARK, Caption, save, styled
from goalreel.training.dqn.comparison import LEVEL, TITLES, Curve, Row, explained
from goalreel.training.dqn.metrics import SOLVED

# M. Okabe and K. Ito, "Color Universal Design" (2008): apart for the colour-blind; with the dashes
# also in grey.
_COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#8C7A00")
_DASHES = ("-", "--", "-.", ":")


def plot_bars(path: str | os.PathLike, rows: Sequence[Row], spec: str) -> None:
    """Draw each variant's FPS and minutes to solve."""
    with styled():
        figure = Figure((9, 1.4 + 0.45 * len(rows)))
        left, right = figure.subplots(1, 2, sharey=True)
        places, titles = range(len(rows)), [TITLES[row.variant] for row in rows]
        _bars(left, places, [row.fps for row in rows], [f"{row.fps:,.0f}" for row in rows])
        labels = ["not solved" if row.minutes is None else f"{row.minutes:.2f}" for row in rows]
        _bars(right, places, [row.minutes or 0 for row in rows], labels)
        left.set(yticks=places, yticklabels=titles, ylim=(len(rows) - 0.4, -0.6))
        left.set_xlabel("frames per second")
        right.set_xlabel("minutes to solve")
        figures = ", ".join(
            f"{title}: {row.fps:,.0f} FPS, {minutes}{'' if row.minutes is None else ' minutes'}"
            for title, row, minutes in zip(titles, rows, labels, strict=True)
        )
        save(figure, path, Caption("Speed of training", f"{figures}. {explained(rows)}", spec))


def _bars(axes, places, values: Sequence[float], labels: Sequence[str]) -> None:
    axes.barh(places, values, color=FILL, height=0.7)
    for place, value, text in zip(places, values, labels, strict=True):
        axes.annotate(
            text, (value, place), (4, 0), textcoords="offset points", va="center", color=INK
        )
    axes.set_xlim(0, 1.2 * max(*values, 1e-9))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(axis="y", length=0)


def plot_curves(path: str | os.PathLike, curves: Sequence[Curve], spec: str) -> None:
    """Draw the mean return by frames and by minutes of training, with the bootstrap's bands."""
    with styled():
        figure = Figure((9, 4.9))
        left, right = figure.subplots(1, 2, sharey=True)
        for number, curve in enumerate(curves):
            style = {
                "color": _COLOURS[number % len(_COLOURS)],
                "linestyle": _DASHES[number // len(_COLOURS) % len(_DASHES)],
            }
            for axes, across in ((left, curve.frames / 1000), (right, curve.minutes)):
                label = TITLES[curve.variant] if axes is left else None
                axes.plot(across, curve.mean, lw=1.6, label=label, **style)
                axes.fill_between(
                    across, curve.low, curve.high, color=style["color"], alpha=0.12, lw=0
                )
        for axes in (left, right):
            axes.axhline(SOLVED, color=MARK, linestyle=":", lw=1.2)
        left.set(xlabel="thousands of frames", ylabel="mean return of 100 episodes")
        # Some variants take a fiftieth of others' time.
        right.set(xlabel="minutes of training", xscale="log")
        right.xaxis.set_major_formatter("{x:g}")
        right.xaxis.set_minor_formatter(NullFormatter())
        figure.legend(loc="outside lower center", ncols=min(len(curves), 3), frameon=False)
        save(figure, path, Caption("Learning curves", _description(curves), spec))


def _description(curves: Sequence[Curve]) -> str:
    ends = ", ".join(
        f"{TITLES[curve.variant]} {curve.mean[-1]:.1f} "
        f"({curve.low[-1]:.1f} to {curve.high[-1]:.1f})"
        for curve in curves
    )
    seeds = sorted({curve.seeds for curve in curves})
    many = " to ".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
    return (
        f"Mean return over {many} seed{'s' if seeds[-1] > 1 else ''} with a {LEVEL:.0%} band, a "
        f"bootstrap's over the seeds of each variant. At the end: {ends}. The dotted line is "
        f"{SOLVED:.0f}, at which the environment counts as solved."
    )
