"""What the plots of a report share: axes, ticks, and how a number is written."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

_TICKS = [1, 2, 5, 10]


def panels(count: int, columns: int, width: float, height: float):
    """Return a figure of this size in inches, and `count` axes in rows of some columns."""
    figure = Figure(figsize=(width, height))
    grid = figure.subplots(-(-count // columns), columns, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.remove()
    across, up = (7, 7) if count == 1 else (5, 4)  # ticks at most, and one
    for axes in grid[:count]:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=across, steps=_TICKS))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=up, steps=_TICKS))
    return figure, list(grid[:count])


def whole() -> MaxNLocator:
    """Return ticks at whole numbers, for counts."""
    return MaxNLocator(nbins=7, steps=_TICKS, integer=True, min_n_ticks=1)


def numbered(value: float) -> str:
    """Return a number with a thousands separator and as many decimals as it needs, two at most."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.{2 if abs(value) >= 1 else 3}f}"
