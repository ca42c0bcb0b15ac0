"""Verification of single files: each as it was written, and by the spec that is planned now."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError, Unusable
from goalreel.files.seal import check_seal
from goalreel.films.shards import shard_name
from goalreel.mp4.reader import read_index
from goalreel.pictures.frame_cache import open_cache
from goalreel.provenance.embedded_specs import read_spec
from goalreel.simulation.trajectories import Trajectories, read_trajectories

OTHER = "it was made by other options, code or tools than this run's"


@dataclass(frozen=True)
class Plan:
    """What the workflow plans now."""

    outputs: Mapping[str, Sequence[str]]  # of each stage, with wildcards, in the results folder
    made_of: Mapping[str, str]  # of each stage, the digest of its spec
    env: str  # the environment's id
    fps: int
    cards: int  # title-card frames of each episode
    shards: int
    unit: str  # what the run counts: "reach" or "episode"; all below are counts of it
    reaches: int
    size: int  # of a shard but the last
    reproducible: bool = True

    @property
    def is_drawn(self) -> bool:
        """Whether Gymnasium draws while it plays."""
        return not describe(self.env).has_atlas

    def path(self, results: Path, stage: str, shard: int) -> Path:
        """Return the file that a stage leaves of a shard."""
        return results / self.outputs[stage][0].format(shard=shard_name(shard))

    def reaches_of(self, shard: int) -> dict[str, int]:
        """Return a shard's reaches, as its spec has them."""
        first = shard * self.size
        return {"first": first, "count": min(self.size, self.reaches - first)}


def check_made(path: Path, stage: str, plan: Plan, shard: Mapping | None = None) -> None:
    """Raise Unusable unless a file was made by the stage as it is planned now.

    shard: the part of its spec that says which reaches it holds; None if it need not fit.
    """
    spec = read_spec(path)
    if spec.stage != stage:
        raise Unusable(path, f"it was made by the stage {spec.stage!r}, not {stage!r}")
    if spec.digest != plan.made_of.get(stage, spec.digest):
        raise Unusable(path, OTHER)
    if shard is not None and spec.shard != shard:
        raise Unusable(path, f"it is of {spec.shard}, not of {dict(shard)}")


def sound_trajectories(path: Path, plan: Plan, shard: int) -> Trajectories:
    """Return a shard's trajectories, all of their file checked. Raises as the above."""
    check_seal(path)
    check_made(path, "simulate", plan, plan.reaches_of(shard))
    return read_trajectories(path)


def check_cache(path: Path, plan: Plan, shard: int, trajectories: Trajectories | None) -> int:
    """Return a frame cache's frames, all of its file checked against its trajectories."""
    check_seal(path)
    check_made(path, "simulate" if plan.is_drawn else "render", plan, plan.reaches_of(shard))
    cache = open_cache(path)
    if trajectories is not None:
        if cache.source != trajectories.digest():
            raise Unusable(path, "it does not show the trajectories of its shard")
        if cache.offsets.tolist() != trajectories.offsets.tolist():
            raise Unusable(
                path, f"{len(cache)} frames, where there are {trajectories.offsets[-1]} states"
            )
    return len(cache)


def check_segment(path: Path, plan: Plan, shard: int, trajectories: Trajectories | None) -> int:
    """Return a segment's frames, all of its file checked against its trajectories."""
    check_seal(path)
    check_made(path, "encode", plan, plan.reaches_of(shard))
    frames = read_index(path).frames
    if trajectories is not None:
        if read_spec(path).source != trajectories.digest():
            raise Unusable(path, "it does not show the trajectories of its shard")
        expected = len(trajectories) * plan.cards + int(trajectories.offsets[-1])
        if frames != expected:
            raise Unusable(path, f"it holds {frames} frames, not {expected}")
    return frames


def count_table(path: Path) -> tuple[int, int]:
    """Return the number of a table's rows and that of their frames, cards included.

    Raises Unusable if it is not a table of goalreel's.
    """
    rows = frames = 0
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                rows += 1
                frames += int(row.get("card_frames") or 0) + int(row["steps"]) + 1
    except FileNotFoundError:
        raise GoalreelError(f"{path}: no such file; run snakemake to make it") from None
    except OSError as error:
        raise GoalreelError(f"{path}: cannot be read: {error}") from None
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise Unusable(path, f"it is not a table of episodes ({error})") from None
    return rows, frames
