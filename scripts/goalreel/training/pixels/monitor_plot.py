"""The plot of a training from pixels: what its monitor saw, over the frames, as SVG."""

import os
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from goalreel.files.svg_plot import FILL, MARK, Caption, save, styled
from goalreel.training.pixels.monitor import COLUMNS

_PANELS = (
    ("return", (("return", "mean of the latest 100 games"),)),
    ("loss", (("loss", "loss"), ("td_error", "TD error"))),
    ("frames per second", (("fps", "processed"),)),
    ("share of time", (("blocked", "collectors blocked"), ("learning", "learner busy"))),
)
_LINES = ("-", "--")
_INKS = (FILL, MARK)


def plot_training(path: str | os.PathLike, rows: Sequence[Sequence], game: str, spec: str) -> None:
    """Draw the curves of a monitor's table, rows below monitor.COLUMNS."""
    with styled():
        figure = Figure(figsize=(8, 5.2))
        panels = figure.subplots(2, 2, sharex=True)
        for axes, (title, curves) in zip(panels.flat, _PANELS, strict=True):
            for (name, label), line, ink in zip(curves, _LINES, _INKS, strict=False):
                places = COLUMNS.index("frames"), COLUMNS.index(name)
                points = [[row[place] for place in places] for row in rows]
                points = [point for point in points if None not in point]
                axes.plot(*zip(*points, strict=True) if points else ((), ()), line, color=ink,
                          label=label, marker="." if len(points) == 1 else None)  # fmt: skip
            axes.set(ylabel=title)
            axes.legend(frameon=False, fontsize=8)
            if title == "share of time":
                axes.set(ylim=(-0.02, 1.02))
                axes.yaxis.set_major_formatter(PercentFormatter(1))
        for axes in panels[1]:
            axes.set(xlabel="frames")
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        told = f"Learning {game} from pixels: return, loss, speed, and who waited, over the frames."
        save(figure, path, Caption("Training from pixels", told, spec))
