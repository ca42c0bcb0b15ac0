"""The frames of any attempt of a run, whether it was filmed or not, with the overlay.

A filmed attempt's frames are in its shard's cache; another is simulated again from its seed.
"""

import contextlib
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from goalreel.encoding.yuv import Yuv420p
from goalreel.errors import GoalreelError
from goalreel.films.render import render_states
from goalreel.films.scene import Scene, open_scene
from goalreel.provenance.spec import NO_SPEC, Spec
from goalreel.rendering.atlas import Atlas, make_style, read_atlas
from goalreel.rendering.frame_cache import FrameCache, max_frame_size, open_cache
from goalreel.rendering.overlay import add_overlay, captions
from goalreel.simulation.episodes import EpisodeRecorder
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
    shown: Yuv420p  # its frames and others
    frames: range  # which are its own; the first shows the reset state


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

    def frames_of(self, episodes: Collection[int]) -> Iterator[list[AttemptFrames]]:
        """Yield the frames of attempts, shard after shard, so that one shard is in memory.

        episodes: their numbers among all attempts.
        """
        first, size = 0, (0, 0) if self.atlas else max_frame_size(self.caches)
        for trajectories_path, cache_path in zip(self.trajectories, self.caches, strict=True):
            shard = read_trajectories(trajectories_path)
            pairs, filmed = shard.attempts.pairs(), set(shard.episodes.pairs())
            numbers = {p: n for n, p in enumerate(pairs, first) if n in episodes}
            first += len(pairs)
            if numbers.keys() & filmed:
                yield self._shown(shard, open_cache(cache_path, size), numbers)
            if numbers.keys() - filmed:
                missing = [pair in numbers and pair not in filmed for pair in pairs]
                with self._again(shard, np.array(missing), size) as played:
                    yield self._shown(*played, numbers)

    def _shown(
        self, played: Trajectories, cache: FrameCache, numbers: Mapping[tuple[int, int], int]
    ) -> list[AttemptFrames]:
        """Return the frames of those that have a number, by reach and attempt."""
        env, hud = self.config["env"], self.config["overlay.hud"]
        texts = captions(self.config["overlay.caption"], played, env, self.config["unit"])
        scale, rows = self.config["render"]["scale"], played.episodes
        shown = Yuv420p(add_overlay(cache, played, env, texts, hud, 0, scale))
        return [
            AttemptFrames(numbers[pair], rows.row(place), shown, cache.episode(place))
            for place, pair in enumerate(rows.pairs())
            if pair in numbers
        ]

    def _again(
        self, shard: Trajectories, missing: np.ndarray, size: tuple[int, int]
    ) -> contextlib.AbstractContextManager[tuple[Trajectories, FrameCache]]:
        """Return attempts that were not filmed, simulated and drawn as the film's were."""
        if not shard.spec.reproducible:
            raise GoalreelError(
                "clips: an attempt was not filmed, and check=false plays none again. "
                "Film all attempts: --config 'film={show_failures: true}'"
            )
        scene, attempts = open_scene(shard.spec.config, self.learned), shard.attempts.take(missing)
        again = partial(simulate_attempts, attempts, scene.env, scene.policy, shard.spec)
        atlas = read_atlas(self.atlas) if self.atlas else None
        return drawn(again, scene, self.config["render"], atlas, NO_SPEC, size)


@contextlib.contextmanager
def drawn(
    play: Callable[[EpisodeRecorder | None], Trajectories],
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
