"""How all plots look, and how one is written: an SVG file that carries its caption.

The caption is Dublin Core elements of the file: title, description, and source for the spec. So
whoever shows a plot has its words too, also for those who cannot see it.
"""

import os
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from goalreel.files.atomic import replacing
from goalreel.files.damage import reporting_damage

if TYPE_CHECKING:
    from matplotlib.figure import Figure  # readers of captions do without matplotlib

# Colours that differ for the colour-blind and in grey; no plot depends on them.
INK, FILL, MARK, GRID = "#1a1a1a", "#4878a8", "#b3420a", "#cccccc"
_STYLE = {
    "svg.hashsalt": "goalreel",  # ids that are the same in every run
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "figure.constrained_layout.use": True,
}
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"


@dataclass(frozen=True)
class Caption:
    """What a plot says of itself."""

    title: str
    description: str  # its finding in a sentence or two
    spec: str  # canonical JSON


def styled():
    """Return the context in which a plot is drawn and written."""
    import matplotlib.style

    # From matplotlib's defaults on, so that a user's own matplotlibrc changes no byte.
    return matplotlib.style.context(["default", _STYLE])


def mark_x(axes, x: float, label: str, size: float = 11, lw: float = 1.6) -> None:
    """Mark a value of x by a dashed line, and say above the axes what it is."""
    axes.axvline(x, color=MARK, linestyle="--", lw=lw)
    axes.annotate(
        *(label, (x, 1)),
        xycoords=axes.get_xaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        **{"ha": "center", "va": "bottom", "size": size, "color": MARK, "annotation_clip": False},
    )


def save(figure: "Figure", path: str | os.PathLike, caption: Caption) -> None:
    """Write a plot, without a date."""
    words = {"Title": caption.title, "Description": caption.description, "Source": caption.spec}
    with replacing(path) as temporary:
        figure.savefig(temporary, format="svg", metadata=words | {"Date": None})


def read_caption(path: str | os.PathLike) -> Caption:
    """Return what a plot says of itself. Raises GoalreelError if the file is no such plot."""
    with reporting_damage(path, "it is not a plot of goalreel's"):
        tree = ElementTree.fromstring(Path(path).read_bytes())  # noqa: S314 - expat itself bounds entities
        names = ("title", "description", "source")
        found = [tree.find(f".//{_DUBLIN_CORE}{name}") for name in names]
        return Caption(*(element.text or "" for element in found))
