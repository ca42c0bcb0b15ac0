"""Helpers that the plots of a report share: axes, ticks and number formatting."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from goalreel.report.statistics import format_decimals

_TICKS = [1, 2, 5, 10]


def panels(count: int, columns: int):
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


def integer_ticks() -> MaxNLocator:
    """Return a locator that puts ticks at whole numbers."""
    return MaxNLocator(nbins=7, steps=_TICKS, integer=True, min_n_ticks=1)


def format_number(value: float) -> str:
    """Return a number with thousands separators and, if it is not whole, two or three decimals."""
    return format_decimals(value, 0 if value == round(value) else 2 if abs(value) >= 1 else 3)
