"""Whether a stage is given what the workflow planned for it, told from the specs in the files.

A file of another run, or of another shard, may have been copied over one of this run: it is whole,
and its seal fits. What specs are stands in spec, who plans them in stages.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError, Unusable
from goalreel.files.seal import check_seal
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import Spec, common_digest, package_version


def check_inputs(spec: Spec, **inputs: Path | Iterable[Path] | None) -> None:
    """Raise Unusable, naming all such files, if inputs were not made as `spec` was planned.

    inputs: by the name of the stage that made them, after which more may stand that tells which of
    its results it is, a file, or those of all shards in order; None
    for none. The seals of videos are checked too; readers of .npz files check theirs. A spec by
    hand names no `made_of`, and nothing is checked.
    """
    faults: list[Unusable] = []
    for stage, paths in inputs.items():
        if stage in spec.made_of and paths is not None:
            faults += _unusable(spec, stage, paths)
    if faults:
        faults[0].others = tuple(faults[1:])
        raise faults[0]


def _unusable(spec: Spec, stage: str, paths: Path | Iterable[Path]) -> list[Unusable]:
    """Return what is wrong with the files of a stage."""
    all_shards, faults = not isinstance(paths, Path), []
    reach: int | None = spec.shard.get("first", 0)
    for path in paths if all_shards else [paths]:
        try:
            _date_back(path)
            if path.suffix == ".mp4":
                check_seal(path)
            reach = _reach_after(spec, stage, path, reach)
        except Unusable as fault:
            faults.append(fault)
            reach = None  # where the next shard is to begin is not known
    if all_shards and reach not in (None, wanted := spec.shard["reaches"]):
        faults.append(Unusable(path, f"it holds reaches up to {reach}, not {wanted}"))
    return faults


def _date_back(path: Path) -> None:
    """Give a file of the future, which a clock that was put back leaves, the time of today.

    Snakemake fails a job whose output is older than its input.
    """
    with contextlib.suppress(OSError):  # who reads it says what is wrong
        if path.stat().st_mtime > (now := time.time()):
            os.utime(path, (now, now))


def _told_otherwise(spec: Spec, made: Mapping) -> str:
    """Return in which way a file differs from planned: a tool is named if one differs.

    What a stage's spec does not name is taken to be what is installed where it runs.
    """
    for name, version in made.get("tools", {}).items():
        found = version
        # An environment of the stage's own may lack the tool.
        with contextlib.suppress(GoalreelError, ImportError):
            found = spec.tools.get(name) or (
                ffmpeg.version() if name == "ffmpeg" else package_version(name)
            )
        if found != version:
            return f"it was made with {name} {version}, and this run is with {found}"
    return "it was made by other options, code or tools than this run's"


def _reach_after(spec: Spec, stage: str, path: Path, reach: int | None) -> int | None:
    """Check a file, which begins with `reach` if it is a shard's; return the reach after it.

    reach: None where that is not known; then any will do.
    """
    made = read_spec(path)
    if made["stage"] != (wanted := stage.split()[0]):
        raise Unusable(path, f"it was made by the stage {made['stage']!r}, not {wanted!r}")
    if common_digest(made) != spec.made_of[stage]:
        raise Unusable(path, _told_otherwise(spec, made))
    shard = made.get("shard", {})
    if "first" not in shard:
        return reach
    first, count = shard["first"], shard.get("count", 0)
    planned, begin = spec.shard.get("count", count), first if reach is None else reach
    if (first, count) != (begin, planned):
        wanted = f"{planned} from {begin} on"
        raise Unusable(path, f"it holds {count} reaches from {first} on, not {wanted}")
    return first + count
