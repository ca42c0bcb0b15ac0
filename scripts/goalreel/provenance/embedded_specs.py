"""The specs that a run's files carry, read without what else is in them."""

import zipfile
from collections import namedtuple
from collections.abc import Iterable
from pathlib import Path

from goalreel.errors import UnusableFileError
from goalreel.files import npz
from goalreel.files.damage import reporting_damage
from goalreel.files.svg_plot import read_caption
from goalreel.mp4.reader import read_comment
from goalreel.provenance.spec import Spec, parse_spec

# A tool that shaped results; stages: those that used it, by commas.
Tool = namedtuple("Tool", "name version stages")


def read_spec(path: Path) -> Spec:
    """Return the spec of a trajectory file, cache, atlas, policy, video, plot or table's .json.

    Raises:
        GoalreelError: there is no such file, or it cannot be read.
        UnusableFileError: it carries no spec.
    """
    with reporting_damage(path, "it is truncated or corrupt: it holds no spec"):
        spec = parse_spec(_READERS[path.suffix](path), path)
    if not spec.stage:
        raise UnusableFileError(path, "its spec names no stage")
    return spec


def _npz_spec(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return str(npz.read_array(archive, "spec"))


_READERS = {
    ".npz": _npz_spec,
    ".mp4": read_comment,
    ".svg": lambda path: read_caption(path).spec,
    ".json": lambda path: path.read_text(encoding="utf-8"),
}


def tools_of(specs: Iterable[Spec]) -> list[Tool]:
    """Return every version of every tool that specs name, with its stages."""
    stages: dict[tuple[str, str], dict[str, None]] = {}
    for spec in specs:
        for tool in spec.tools.items():
            stages.setdefault(tool, {})[spec.stage] = None
    return [Tool(*tool, ", ".join(users)) for tool, users in sorted(stages.items())]
