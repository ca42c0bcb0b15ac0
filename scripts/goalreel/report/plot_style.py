"""What the plots of a report share: axes, ticks, and how a number is written."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

_TICKS = [1, 2, 5, 10]


def axes_of(width: float, height: float):
    """Return a figure of this size in inches and its axes."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_subplot()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=7, steps=_TICKS))
    return figure, axes


def panels(count: int, columns: int, width: float, row: float, legend: float = 0.3):
    """Return a figure of `count` axes in rows, the rest of the last row left out."""
    rows = -(-count // columns)
    figure = Figure(figsize=(width, rows * row + legend))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.remove()
    for axes in grid[:count]:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=_TICKS))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=_TICKS))
    return figure, list(grid[:count])


def whole() -> MaxNLocator:
    """Return ticks at whole numbers, for counts."""
    return MaxNLocator(nbins=7, steps=_TICKS, integer=True, min_n_ticks=1)


def numbered(value: float) -> str:
    """Return a number with a thousands separator and as many decimals as it needs, two at most."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.{2 if abs(value) >= 1 else 3}f}"
