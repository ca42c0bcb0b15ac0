"""Captions of plots: what an SVG file tells of itself in words.

They are Dublin Core elements of the file: title, description, and source for the spec. So whoever
shows a plot has its words too, also for those who cannot see it.
"""

import os
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import GoalreelError

_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"


@dataclass(frozen=True)
class Caption:
    """What a plot says of itself: its title, its finding in a sentence or two, its spec's JSON."""

    title: str
    description: str
    spec: str

    def metadata(self) -> dict[str, str | None]:
        """Return matplotlib's metadata of an SVG file that carries the caption, and no date."""
        told = {"Title": self.title, "Description": self.description, "Source": self.spec}
        return told | {"Date": None}


def read_caption(path: str | os.PathLike) -> Caption:
    """Return what a plot says of itself. Raises GoalreelError if the file is no such plot."""
    try:
        tree = ElementTree.fromstring(Path(path).read_bytes())  # noqa: S314 - expat itself bounds entities
    except (OSError, ElementTree.ParseError) as error:
        raise GoalreelError(f"{path}: not a plot ({error}); delete it") from None
    found = [tree.find(f".//{_DUBLIN_CORE}{name}") for name in ("title", "description", "source")]
    if any(element is None for element in found):
        raise GoalreelError(f"{path}: not a plot of goalreel's: it has no title; delete it")
    return Caption(*(element.text or "" for element in found))
