"""Style plots and write each one as an SVG file with its caption, for light and dark pages.

The caption is stored in the Dublin Core elements title, description and source (the spec), so that
pages can show it and screen readers can read it.
"""

import io
import os
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from goalreel.files.atomic import write_text
from goalreel.files.damage import reporting_damage

if TYPE_CHECKING:
    from matplotlib.figure import Figure  # read_caption does not need matplotlib

# The colors of report/templates/colors.css, light and dark. Distinct for color-blind readers and in
# gray; no plot relies on color.
INK, SOFT, FILL, MARK, GRID = "#17181c", "#5d626b", "#2456c9", "#b3420a", "#e3e5e9"
_DARK = {INK: "#e8eaee", SOFT: "#9aa0ab", FILL: "#8ab4ff", MARK: "#ffab70", GRID: "#2b2f37"}
_DARK["#000000"] = _DARK[INK]
_STYLE = {
    "svg.hashsalt": "goalreel",  # reproducible ids
    "svg.fonttype": "none",  # the font of the page, see _CSS
    "font.size": 11,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "figure.constrained_layout.use": True,
}
# A dark page gets dark colors, also if it shows the file in <img>. Without a page, `color-scheme`
# makes the canvas dark.
_DARK_RULES = "".join(
    f'[style*="{use}: {light}"]{{{use}:{dark}!important}}'
    for light, dark in _DARK.items()
    for use in ("fill", "stroke")
)
_CSS = (
    ":root{color-scheme:light dark}text{font-family:system-ui,sans-serif!important}"
    f"@media(prefers-color-scheme:dark){{{_DARK_RULES}}}"
)
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"


@dataclass(frozen=True)
class Caption:
    """The caption of a plot."""

    title: str
    description: str  # the finding, in one or two sentences
    spec: str  # canonical JSON


def plot_style():
    """Return the context manager in which plots are drawn and saved."""
    import matplotlib.style

    # Start from matplotlib's defaults, so that a matplotlibrc does not change the bytes.
    return matplotlib.style.context(["default", _STYLE])


def mark_x(axes, x: float, label: str) -> None:
    """Mark a value of x with a dashed line and a label above the axes."""
    axes.axvline(x, color=MARK, linestyle="--", lw=1.6)
    axes.annotate(
        *(label, (x, 1)),
        xycoords=axes.get_xaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        **{"ha": "center", "va": "bottom", "size": 11, "color": MARK, "annotation_clip": False},
    )


def save(figure: "Figure", path: str | os.PathLike, caption: Caption) -> None:
    """Write a plot as SVG with a transparent background, without a date."""
    words = {"Title": caption.title, "Description": caption.description, "Source": caption.spec}
    text, metadata = io.StringIO(), words | {"Date": None}
    figure.savefig(text, format="svg", metadata=metadata, transparent=True)
    write_text(path, text.getvalue().replace("</style>", f"{_CSS}</style>", 1))


def read_caption(path: str | os.PathLike) -> Caption:
    """Return the caption of a plot. Raises GoalreelError if the file is not a goalreel plot."""
    with reporting_damage(path, "it is not a goalreel plot"):
        tree = ElementTree.fromstring(Path(path).read_bytes())  # noqa: S314 - expat itself bounds entities
        names = ("title", "description", "source")
        elements = [tree.find(f".//{_DUBLIN_CORE}{name}") for name in names]
        return Caption(*(element.text or "" for element in elements))
