"""What goalreel writes into the results: the names by which its own files are known from others."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from goalreel.errors import GoalreelError
from goalreel.provenance.checksums import SUMS, read_sums

_SHARD = r"\d{5,9}"
_NAMES = re.compile(
    "|".join(
        [
            r"(film|grid|swarm|phase|learning)\.mp4",
            r"(episodes|attempts|learning|verify)\.csv|tables\.json|learning\.sha256",
            r"(atlas|dictionary)\.npz",
            rf"films\.csv|films/{_SHARD}\.mp4",
            rf"(trajectories|frames)/{_SHARD}\.npz|segments/{_SHARD}\.mp4",
            rf"train/(policy\.npz|log\.csv|{SUMS})",
            r"train/\w+/\d+/(policy\.pt|log\.csv|metrics\.json)",
            r"pixels/(policy\.npz|monitor\.csv|metrics\.json|training\.svg|checkpoint\.(pt|csv))",
            rf"training/((runs|table)\.csv|table\.md|(bars|curves)\.svg|{SUMS})",
            rf"stills/(poster\.png|contact_sheet\.png|preview\.webp|{SUMS})",
            rf"plots/(steps|initial_position|phase|reach_rate)\.svg|plots/{SUMS}",
            r"replay/\d{5}\.png",
            rf"(logs|benchmarks)/\w+(/({_SHARD}|\w+\.\d+))?\.(log|tsv)",
        ]
    )
)
_CACHE = re.compile(rf"frames/{_SHARD}\.npz")
# What a killed job left (atomic, folders), or Snakemake's mark in a folder.
_LEFT = re.compile(r"(.*/)?(\.[^/]+\.goalreel-[^/]+(/.*)?|\.snakemake_timestamp)")
_FOLDERS = ("clips", "report")  # each one output, with its own list of what is in it


def sort_out(results: Path) -> tuple[list[Path], list[Path]]:
    """Return the files in `results` that goalreel made, and the others."""
    listed = {file for name in _FOLDERS for file in _listed(results / name)}
    made, others = [], []
    for path in files_in(results):
        name = path.relative_to(results).as_posix()
        known = _NAMES.fullmatch(name) or _LEFT.fullmatch(name) or path in listed
        (made if known else others).append(path)
    return made, others


def frame_caches(results: Path) -> list[Path]:
    """Return the frame caches in `results`, and what is left of those whose making was killed."""
    folder = results / "frames"
    files = [(path, path.relative_to(results).as_posix()) for path in files_in(folder)]
    return [path for path, name in files if _CACHE.fullmatch(name) or _LEFT.fullmatch(name)]


def files_in(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder, links as files, in order; none if there is no folder."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        links = [name for name in folders if Path(root, name).is_symlink()]
        yield from (Path(root, name) for name in sorted([*files, *links]))


def _listed(folder: Path) -> set[Path]:
    sums = folder / SUMS
    try:
        return {sums, *read_sums(sums)} if sums.is_file() else set()
    except GoalreelError:
        return set()
