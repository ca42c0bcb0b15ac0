"""How all plots look, and how one is written: an SVG file that carries its caption.

What they show stands in plots, and for trainings in dqn.training_plots.
"""

import os

import matplotlib.style
from matplotlib.figure import Figure

from goalreel.files.atomic import replacing
from goalreel.files.plot_captions import Caption

# Colours that stay apart for the colour-blind and in grey; no plot needs them to be told apart.
INK, FILL, MARK = "#1a1a1a", "#4878a8", "#b3420a"
_STYLE = {
    "svg.hashsalt": "goalreel",  # ids that are the same in every run
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "figure.constrained_layout.use": True,
}


def styled():
    """Return the context in which a plot is drawn and written."""
    # From matplotlib's defaults on, so that a user's own matplotlibrc changes no byte.
    return matplotlib.style.context(["default", _STYLE])


def save(figure: Figure, path: str | os.PathLike, caption: Caption) -> None:
    """Write a plot."""
    with replacing(path) as temporary:
        figure.savefig(temporary, format="svg", metadata=caption.metadata())
