"""The frames of any attempt of a run, whether it was filmed or not, with the overlay.

A filmed attempt's frames are in its shard's cache; another is simulated again from its seed.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from goalreel.encoding.yuv import Yuv420p
from goalreel.errors import GoalreelError
from goalreel.films.render import render_states
from goalreel.films.scene import Scene, open_scene
from goalreel.provenance.spec import NO_SPEC, Spec
from goalreel.rendering.atlas import Atlas, read_atlas
from goalreel.rendering.frame_cache import FrameCache, largest, open_cache
from goalreel.rendering.overlay import captions, overlaid
from goalreel.rendering.styles import make_style
from goalreel.simulation.episodes import FrameRecorder
from goalreel.simulation.reaches import simulate_attempts
from goalreel.simulation.trajectories import (
    Attempts,
    Trajectories,
    concatenate,
    read_summary,
    read_trajectories,
)


@dataclass(frozen=True)
class AttemptFrames:
    """The frames of an attempt."""

    episode: int  # its number among all attempts
    row: Mapping[str, object]  # its columns in the table of attempts
    frames: Yuv420p  # of it and of others
    first: int  # its first among them, which shows the reset state

    def planes(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """Yield its frames from start to stop, as Yuv420p.frames."""
        return self.frames.frames(range(self.first + start, self.first + stop))


@dataclass(frozen=True)
class RunAttempts:
    """All attempts of a run."""

    trajectories: Sequence[Path]  # the files of its shards
    caches: Sequence[Path]  # the frame caches of its shards
    atlas: Path | None  # for an environment that has one
    learned: Path | None  # the file of a policy that was trained
    config: Mapping  # env, overlay.caption, overlay.hud, render, unit

    @cached_property
    def rows(self) -> Attempts:
        """The rows of all attempts, by reach and attempt."""
        return concatenate(read_summary(path).attempts for path in self.trajectories)

    @cached_property
    def _size(self) -> tuple[int, int]:
        return (0, 0) if self.atlas else largest(self.caches)

    def frames_of(self, episodes: Iterable[int]) -> Iterator[list[AttemptFrames]]:
        """Yield the frames of attempts, shard after shard, so that one shard is in memory.

        Args:
            episodes: their numbers among all attempts.
        """
        wanted, first = np.unique(np.fromiter(episodes, np.int64)), 0
        for trajectories_path, frames_path in zip(self.trajectories, self.caches, strict=True):
            trajectories = read_trajectories(trajectories_path)
            last = first + len(trajectories.attempts.reach)
            rows = wanted[(wanted >= first) & (wanted < last)] - first
            if len(rows):
                with contextlib.ExitStack() as files:
                    yield self._of_shard(trajectories, frames_path, rows, first, files)
            first = last

    def _of_shard(
        self,
        trajectories: Trajectories,
        cache_path: Path,
        rows: np.ndarray,
        first: int,
        files: contextlib.ExitStack,
    ) -> list[AttemptFrames]:
        attempts, filmed = trajectories.attempts.take(rows), set(trajectories.episodes.pairs())
        is_filmed = np.array([pair in filmed for pair in attempts.pairs()])
        sources = []
        if is_filmed.any():
            sources.append((trajectories, open_cache(cache_path, self._size)))
        if not is_filmed.all():
            if not trajectories.spec.reproducible:
                raise GoalreelError(
                    "clips: an attempt was not filmed, and check=false plays none again. "
                    "Film all attempts: --config 'film={show: attempts}'"
                )
            again = self._again(trajectories, attempts.take(~is_filmed))
            sources.append(files.enter_context(again))
        numbers = dict(zip(attempts.pairs(), (rows + first).tolist(), strict=True))
        env, hud = self.config["env"], self.config["overlay.hud"]
        template, unit = self.config["overlay.caption"], self.config["unit"]
        found = []
        for source, cache in sources:
            texts, scale = captions(template, source, env, unit), self.config["render"]["scale"]
            frames = Yuv420p(overlaid(cache, source, env, texts, hud, 0, scale))
            for place, pair in enumerate(source.episodes.pairs()):
                if pair in numbers:
                    row, start = source.episodes.row(place), int(cache.offsets[place])
                    found.append(AttemptFrames(numbers[pair], row, frames, start))
        return sorted(found, key=lambda attempt: attempt.episode)

    def _again(
        self, trajectories: Trajectories, attempts: Attempts
    ) -> contextlib.AbstractContextManager[tuple[Trajectories, FrameCache]]:
        """Return attempts that were not filmed, simulated and drawn as the film's were."""
        scene = open_scene(trajectories.spec.config, self.learned)
        again = partial(simulate_attempts, attempts, scene.env, scene.policy, trajectories.spec)
        atlas = read_atlas(self.atlas) if self.atlas else None
        return drawn(again, scene, self.config["render"], atlas, NO_SPEC, self._size)


@contextlib.contextmanager
def drawn(
    play: Callable[[FrameRecorder | None], Trajectories],
    scene: Scene,
    render: Mapping,
    atlas: Atlas | None,
    spec: Spec,
    size: tuple[int, int] = (0, 0),
) -> Iterator[tuple[Trajectories, FrameCache]]:
    """Yield what is played, and its frames, which are in a temporary file where there is no atlas.

    Args:
        play: plays, given what films it, None for nothing.
        scene: where it is played.
        render: that section of the configuration.
        atlas: the pictures, for an environment that has one.
        spec: how the frames are made.
        size: the least H and W of drawn frames, see open_cache.
    """
    if atlas is not None:
        played = play(None)
        yield played, render_states(played, atlas, make_style(scene.env.id, render), spec)
        return
    with tempfile.TemporaryDirectory(prefix="goalreel-") as folder:
        path = Path(folder, "frames.npz")
        yield scene.film(path, play, spec), open_cache(path, size)
