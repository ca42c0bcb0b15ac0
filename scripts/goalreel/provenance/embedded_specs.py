"""Lineage: the specs that a run's files carry, read back without what else is in them."""

import json
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import GoalreelError, Unusable, blames_the_machine
from goalreel.files import npz_archive
from goalreel.files.svg_plot import read_caption
from goalreel.mp4.reader import read_comment
from goalreel.provenance.spec import has_form


@dataclass(frozen=True)
class Made:
    """A file of the run, by its path in the results, and the spec that it carries."""

    file: str
    spec: dict

    def text(self) -> str:
        """Return the spec as JSON to be read by people."""
        return json.dumps(self.spec, indent=2, sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True)
class Tool:
    """A tool that shaped results, and the stages that it was used in."""

    name: str
    version: str
    stages: str


def read_made(path: Path, results: Path) -> Made:
    """Return a file with its spec. Raises as `read_spec`."""
    return Made(Path(os.path.relpath(path, results)).as_posix(), read_spec(path))


def read_spec(path: Path) -> dict:
    """Return the spec of a trajectory file, cache, atlas, video, plot, or table's .json.

    Raises GoalreelError if there is no such file, Unusable if it carries no spec.
    """
    try:
        spec = json.loads(_READERS[path.suffix](path))
        if not has_form(spec) or "stage" not in spec:
            raise ValueError("no spec in it")
    except FileNotFoundError:
        raise GoalreelError(f"{path}: no such file; run snakemake to make it") from None
    except (OSError, *npz_archive.BROKEN) as error:
        said = npz_archive.told(error)
        if blames_the_machine(error):
            raise GoalreelError(f"{path}: cannot be read: {error}") from None
        raise Unusable(path, f"truncated or corrupt: it holds no spec ({said})") from None
    return spec


def _npz_spec(path: Path) -> str:
    with npz_archive.opened(path) as archive:
        return str(archive.read(["spec"])["spec"])


def _pt_spec(path: Path) -> str:
    with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        return archive.read("archive/spec.json").decode()


_READERS = {
    ".npz": _npz_spec,
    ".pt": _pt_spec,
    ".mp4": read_comment,
    ".svg": lambda path: read_caption(path).spec,
    ".json": lambda path: path.read_text(encoding="utf-8"),
}


def tools_of(made: Iterable[Made]) -> list[Tool]:
    """Return every version of every tool that the specs name, with its stages."""
    stages: dict[tuple[str, str], list[str]] = {}
    for item in made:
        for name, version in item.spec.get("tools", {}).items():
            users = stages.setdefault((name, str(version)), [])
            if item.spec["stage"] not in users:
                users.append(item.spec["stage"])
    return [Tool(*key, ", ".join(users)) for key, users in sorted(stages.items())]
