"""The filmed episodes of a run, for views: their rows, captions and frames, in film order."""

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from goalreel.environments.registry import describe
from goalreel.errors import UnusableFileError
from goalreel.rendering.captions import caption
from goalreel.rendering.frame_cache import FrameCache, max_frame_size, open_cache
from goalreel.simulation.trajectories import Attempts, Summary, concatenate, read_summary


@dataclass(frozen=True)
class FilmedEpisode:
    """One filmed episode."""

    row: dict[str, object]  # its columns in the tables
    caption: Callable[[str], str]  # fills in a template
    cache: FrameCache  # its shard's frames
    frames: range  # its frames in `cache`, from the reset state on


@dataclass(frozen=True)
class FilmedEpisodes:
    """All filmed episodes of a run, numbered in film order. Frames are read on demand."""

    env: str
    unit: str  # "reach" or "episode"
    frames: Sequence[Path]  # the shards' frame caches
    summaries: list[Summary]  # of the shards' trajectory files

    @cached_property
    def rows(self) -> Attempts:
        """The table of all episodes."""
        return concatenate(summary.episodes for summary in self.summaries)

    @cached_property
    def starts(self) -> list[int]:
        """The number of the first episode of each shard, and the number of all episodes."""
        counts = (len(summary.episodes.steps) for summary in self.summaries)
        return list(itertools.accumulate(counts, initial=0))

    def __len__(self) -> int:
        return self.starts[-1]

    @cached_property
    def _size(self) -> tuple[int, int]:
        """The least height and width of frames, which is that of the largest shard."""
        return (0, 0) if describe(self.env).has_atlas else max_frame_size(self.frames)

    def episodes(self, numbers: Iterable[int] | None = None) -> Iterator[FilmedEpisode]:
        """Yield episodes by number, None for all. Raises GoalreelError if frames are of others."""
        numbers = range(len(self)) if numbers is None else numbers
        for after, group in itertools.groupby(numbers, partial(bisect.bisect, self.starts)):
            start, path = self.starts[after - 1], self.frames[after - 1]
            cache = open_cache(path, self._size)
            if cache.source != self.summaries[after - 1].digest:
                raise UnusableFileError(path, "it does not show the trajectories of its shard")
            for number in group:
                row = self.rows.row(number)
                text = partial(caption, row=row, env=self.env, unit=self.unit)
                yield FilmedEpisode(row, text, cache, cache.episode(number - start))

    def ranking(self) -> list[int]:
        """Return the numbers of episodes from the least to the greatest return.

        With reaches, they are the successful ones (all if none succeeded) from the shortest to the
        longest. Ties are in film order.
        """
        rows = self.rows
        counted = rows.reached if rows.reached.any() else np.ones_like(rows.reached)
        order = np.argsort(rows.steps if self.unit == "reach" else rows.return_, kind="stable")
        return order[counted[order]].tolist()

    def median(self) -> FilmedEpisode:
        """Return the middle episode of `ranking`, the first of two."""
        ordered = self.ranking()
        return next(self.episodes([ordered[(len(ordered) - 1) // 2]]))


def read_filmed(
    trajectories: Sequence[Path], frames: Sequence[Path], env: str, unit: str
) -> FilmedEpisodes:
    """Return the filmed episodes of a run, given the files of all shards in film order."""
    return FilmedEpisodes(env, unit, frames, [read_summary(path) for path in trajectories])
