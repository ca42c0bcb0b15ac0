"""The frames of any attempt of a run, with the overlay.

`RunAttempts.frames_of` yields them shard by shard. A filmed attempt's frames are in the shard's
frame cache. Other attempts are simulated again from their seeds.
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
from goalreel.rendering.atlas import Atlas, read_atlas
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
    """The frames of one attempt."""

    episode: int  # its index among all attempts
    row: Mapping[str, object]  # its columns in the table of attempts
    yuv: Yuv420p  # the frames of its shard
    frames: range  # its frames in `yuv`, from the reset state on


@dataclass(frozen=True)
class RunAttempts:
    """All attempts of a run."""

    trajectories: Sequence[Path]  # of its shards
    caches: Sequence[Path]  # frame caches of its shards
    atlas: Path | None  # None for an environment without one
    learned: Path | None  # the file of a trained policy
    config: Mapping  # env, overlay, render, unit

    @cached_property
    def rows(self) -> Attempts:
        """The table of all attempts, by reach and attempt."""
        return concatenate(read_summary(path).attempts for path in self.trajectories)

    def frames_of(self, episodes: Collection[int]) -> Iterator[list[AttemptFrames]]:
        """Yield the frames of attempts, a list for each shard, with one shard in memory."""
        first, size = 0, (0, 0) if self.atlas else max_frame_size(self.caches)
        for trajectories_path, cache_path in zip(self.trajectories, self.caches, strict=True):
            shard = read_trajectories(trajectories_path)
            pairs, filmed = shard.attempts.pairs(), set(shard.episodes.pairs())
            numbers = {p: n for n, p in enumerate(pairs, first) if n in episodes}
            first += len(pairs)
            if numbers.keys() & filmed:
                yield self._to_attempt_frames(shard, open_cache(cache_path, size), numbers)
            if numbers.keys() - filmed:
                missing = [pair in numbers and pair not in filmed for pair in pairs]
                drawing = open_cache(cache_path).spec.config
                with self._replay(shard, np.array(missing), size, drawing) as played:
                    yield self._to_attempt_frames(*played, numbers)

    def _to_attempt_frames(
        self, played: Trajectories, cache: FrameCache, numbers: Mapping[tuple[int, int], int]
    ) -> list[AttemptFrames]:
        """Return the frames of the attempts in `numbers`, by (reach, attempt)."""
        env, hud = self.config["env"], self.config["overlay.hud"]
        texts = captions(self.config["overlay.caption"], played, env, self.config["unit"])
        scale, signals = self.config["render.scale"], self.config["overlay.signals"]
        yuv = Yuv420p(add_overlay(cache, played, env, texts, hud, False, scale, signals))
        rows = played.episodes
        return [
            AttemptFrames(numbers[pair], rows.row(place), yuv, cache.episode(place))
            for place, pair in enumerate(rows.pairs())
            if pair in numbers
        ]

    def _replay(
        self, shard: Trajectories, missing: np.ndarray, size: tuple[int, int], drawing: Mapping
    ) -> contextlib.AbstractContextManager[tuple[Trajectories, FrameCache]]:
        """Return attempts that were not filmed, simulated and rendered like the film's."""
        if not shard.spec.reproducible:
            raise GoalreelError(
                "clips: An attempt was not filmed, and check_determinism=false forbids to play it "
                "again. Film all attempts: --config 'film={show_failures: true}'"
            )
        scene = open_scene(shard.spec.config | drawing, self.learned)
        attempts = shard.attempts.take(missing)
        play = partial(simulate_attempts, attempts, scene.env, scene.policy, shard.spec)
        atlas = read_atlas(self.atlas) if self.atlas else None
        return play_and_render(play, scene, atlas, NO_SPEC, size)


@contextlib.contextmanager
def play_and_render(
    play: Callable[[EpisodeRecorder | None], Trajectories],
    scene: Scene,
    atlas: Atlas | None,
    spec: Spec,
    size: tuple[int, int] = (0, 0),
) -> Iterator[tuple[Trajectories, FrameCache]]:
    """Yield trajectories and their frames, which are in a temporary file if there is no atlas."""
    # play: takes a recorder, or None; size: the least height and width, see open_cache
    if atlas is not None:
        played = play(None)
        yield played, render_states(played, atlas, scene.env.id, spec)
        return
    with tempfile.TemporaryDirectory(prefix="goalreel-") as folder:
        path = Path(folder, "frames.npz")
        yield scene.film(path, play, spec), open_cache(path, size)
