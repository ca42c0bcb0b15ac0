"""The filmed episodes as the views take them: their rows, for captions, and their frames.

Views show episodes in film order, shard after shard. What they show of them stands in grid and
stills; what a trajectory file and a frame cache are, in trajectories and frame_cache.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.pictures.frame_cache import FrameCache, open_cache
from goalreel.provenance.spec import common_spec
from goalreel.simulation.trajectories import Summary, read_summary
from goalreel.views.triggers import EpisodeTrigger, chosen_episodes

_JUDGED = ("steps", "return_", "reached")
Place = tuple[int, int]  # an episode: its shard, and its number in that shard


@dataclass(frozen=True)
class Filmed:
    """All filmed episodes of a run; their frames stay in their files until a shard is opened.

    frames: the shards' frame caches; summaries: what their trajectory files tell, one per shard
    """

    env: str
    frames: list[Path]
    summaries: list[Summary]

    @cached_property
    def lengths(self) -> np.ndarray:
        """The number of frames of each episode in film order: (episodes,) int64."""
        return np.concatenate([summary.episodes.steps + 1 for summary in self.summaries])

    def places(self) -> Iterator[Place]:
        """Yield every episode in film order."""
        for shard, summary in enumerate(self.summaries):
            for index in range(len(summary.episodes.steps)):
                yield shard, index

    def row(self, place: Place) -> dict[str, object]:
        """Return an episode's row, as captions take it."""
        shard, index = place
        return {"env": self.env} | self.summaries[shard].episodes.row(index)

    def open(self, shard: int) -> FrameCache:
        """Return a shard's frames. Raises GoalreelError if they show other trajectories."""
        path, summary = self.frames[shard], self.summaries[shard]
        cache = open_cache(path)
        same = np.array_equal(np.diff(cache.offsets), summary.episodes.steps + 1)
        if cache.source != summary.digest or not same:
            raise GoalreelError(
                f"{path}: does not show the trajectories of its shard; delete it and run snakemake "
                f"again"
            )
        return cache

    def by_steps(self) -> list[Place]:
        """Return the episodes that reached, or all if none did, from the shortest to the longest.

        Episodes of as many steps stand in film order.
        """
        reached = np.concatenate([summary.episodes.reached for summary in self.summaries])
        wanted = reached if reached.any() else np.ones_like(reached)
        places = list(self.places())
        return [places[i] for i in np.argsort(self.lengths, kind="stable").tolist() if wanted[i]]

    def chosen(self, trigger: EpisodeTrigger) -> list[Place]:
        """Return the episodes that a trigger selects of the filmed ones, in film order."""
        rows = [summary.episodes for summary in self.summaries]
        columns = ([getattr(row, name) for row in rows] for name in _JUDGED)
        places = list(self.places())
        picked = chosen_episodes(trigger, *(np.concatenate(column) for column in columns))
        return [places[i] for i in picked.tolist()]

    def median(self) -> Place:
        """Return the median reach by steps; of two, the shorter."""
        ordered = self.by_steps()
        return ordered[(len(ordered) - 1) // 2]


def read_filmed(frames: list[Path], trajectories: list[Path], env: str) -> Filmed:
    """Read what the trajectory files tell of the filmed episodes.

    frames, trajectories: the files of all shards, in film order. Raises GoalreelError if the
    trajectories are of another environment than `env`, or do not belong together.
    """
    summaries = [read_summary(path) for path in trajectories]
    specs = {path: s.spec for path, s in zip(trajectories, summaries, strict=True)}
    made = common_spec(specs)["config"]["env"]
    if made != env:
        raise GoalreelError(f"the trajectories are of {made}, not of {env}")
    return Filmed(env, frames, summaries)


def spread(items: Sequence, count: int) -> list:
    """Return at most `count` of the items in their order, evenly spread from the first to the last.

    A single one is the middle one.
    """
    if count >= len(items):
        return list(items)
    if count == 1:
        return [items[(len(items) - 1) // 2]]
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]
