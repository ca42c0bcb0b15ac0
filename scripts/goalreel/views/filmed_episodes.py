"""The filmed episodes of a run, as views take them: their rows and their frames, in film order."""

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from goalreel.encoding.yuv import Yuv420p
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError
from goalreel.rendering.captions import caption
from goalreel.rendering.frame_cache import FrameCache, max_frame_size, open_cache
from goalreel.simulation.trajectories import Attempts, Summary, concatenate, read_summary


@dataclass(frozen=True)
class FilmedEpisode:
    """A filmed episode."""

    row: dict[str, object]  # its columns in the tables
    caption: Callable[[str], str]  # fills in a template
    cache: FrameCache  # its shard's frames
    frames: range  # which of them are its own; the first shows the reset state


@dataclass(frozen=True)
class FilmedEpisodes:
    """All filmed episodes of a run; their frames stay in their files until a shard is opened.

    Episodes are numbered in film order.
    """

    env: str
    unit: str  # what the run counts: "reach" or "episode"
    frames: Sequence[Path]  # the shards' frame caches
    summaries: list[Summary]  # of the shards' trajectory files

    @cached_property
    def rows(self) -> Attempts:
        """The rows of all episodes."""
        return concatenate(summary.episodes for summary in self.summaries)

    def __len__(self) -> int:
        """Return the number of episodes."""
        return len(self.rows.steps)

    @cached_property
    def _size(self) -> tuple[int, int]:
        """The least size of drawn frames: that of the max_frame_size shard."""
        return (0, 0) if describe(self.env).has_atlas else max_frame_size(self.frames)

    def episodes(self, numbers: Iterable[int] | None = None) -> Iterator[FilmedEpisode]:
        """Yield episodes, all of them or those chosen; a shard is opened when one of it comes.

        Raises:
            GoalreelError: if a frame cache shows other trajectories than those of its shard.
        """
        counts = [len(summary.episodes.steps) for summary in self.summaries]
        ends = list(itertools.accumulate(counts))
        numbers = range(len(self)) if numbers is None else numbers
        for shard, group in itertools.groupby(numbers, partial(bisect.bisect, ends)):
            cache = self._open(shard)
            for number in group:
                row = self.rows.row(number)
                text = partial(caption, row=row, env=self.env, unit=self.unit)
                yield FilmedEpisode(
                    row, text, cache, cache.episode(number - ends[shard] + counts[shard])
                )

    def movies(
        self, frames_of: Callable[[FrameCache], Yuv420p], numbers: Iterable[int] | None = None
    ) -> Iterator[tuple[FilmedEpisode, Iterator[np.ndarray]]]:
        """Yield episodes, as `episodes` does, and their frames; frames_of: shows a shard's."""
        cache = None
        for episode in self.episodes(numbers):
            if cache is not episode.cache:
                cache = episode.cache
                shown = frames_of(cache)
            yield episode, shown.frames(episode.frames)

    def _open(self, shard: int) -> FrameCache:
        path, summary = self.frames[shard], self.summaries[shard]
        cache = open_cache(path, self._size)
        if cache.source != summary.digest:
            raise GoalreelError(
                f"{path}: does not show the trajectories of its shard; delete it and run snakemake "
                f"again"
            )
        return cache

    def ranking(self) -> list[int]:
        """Return the episodes from the least to the greatest return.

        Of reaches, those that reached, or all if none did, from the shortest to the longest. Equal
        ones are in film order.
        """
        rows = self.rows
        counted = rows.reached if rows.reached.any() else np.ones_like(rows.reached)
        order = np.argsort(rows.steps if self.unit == "reach" else rows.return_, kind="stable")
        return order[counted[order]].tolist()

    def median(self) -> FilmedEpisode:
        """Return the median by the order of `ranking`; of two, the first."""
        ordered = self.ranking()
        return next(self.episodes([ordered[(len(ordered) - 1) // 2]]))


def read_filmed(
    trajectories: Sequence[Path], frames: Sequence[Path], env: str, unit: str
) -> FilmedEpisodes:
    """Return the filmed episodes of a run, from the files of all shards in film order.

    Raises:
        GoalreelError: if a trajectory file cannot be used.
    """
    return FilmedEpisodes(env, unit, frames, [read_summary(path) for path in trajectories])
