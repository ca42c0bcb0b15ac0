"""Footage: the frames of any attempt of a run, whether it was filmed or not.

A filmed attempt's frames stand in its shard's cache; another is simulated again from its seed.
The overlay lies over both. What is made of them stands with the callers.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from goalreel.encoding.yuv import Yuv420p
from goalreel.environments.environment import make_environment
from goalreel.pictures.frame_cache import FrameCache, open_cache
from goalreel.pictures.overlay import captions, overlaid
from goalreel.pictures.render import render_shard
from goalreel.policies.policy import make_policy
from goalreel.simulation.reaches import simulate_attempts
from goalreel.simulation.trajectories import Attempts, Trajectories, read_summary, read_trajectories


@dataclass(frozen=True)
class Shot:
    """An attempt to be filmed: its number among all attempts, its row, its frames."""

    episode: int
    row: Mapping[str, object]
    view: Yuv420p
    first: int
    size: tuple[int, int]

    def frames(self, start: int, stop: int) -> Iterator[np.ndarray]:
        """Yield frames of the attempt, as Yuv420p.frames; frame 0 shows the reset state."""
        return self.view.frames(range(self.first + start, self.first + stop))


@dataclass(frozen=True)
class Footage:
    """The attempts of a run: the files of its shards, and what lies over the frames."""

    trajectories: list[Path]
    frames: list[Path]
    atlas: Path | None
    learned: Path | None
    env: str
    overlay: Mapping
    render: Mapping

    @cached_property
    def attempts(self) -> Attempts:
        """All attempts of the run, by reach and attempt."""
        parts = [read_summary(path).attempts for path in self.trajectories]
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Attempts(*(np.concatenate(column) for column in columns))

    def shots(self, episodes: list[int]) -> Iterator[list[Shot]]:
        """Yield the chosen attempts of one shard after another, so that one is in memory."""
        wanted, first = np.unique(np.array(episodes, np.int64)), 0
        for trajectories_path, frames_path in zip(self.trajectories, self.frames, strict=True):
            trajectories = read_trajectories(trajectories_path)
            last = first + len(trajectories.attempts.reach)
            rows = wanted[(wanted >= first) & (wanted < last)] - first
            if len(rows):
                yield self._shots_of(trajectories, frames_path, rows, first)
            first = last

    def _shots_of(self, trajectories, frames_path, rows, first) -> list[Shot]:
        attempts, episodes = trajectories.attempts.take(rows), trajectories.episodes
        place = {pair: i for i, pair in enumerate(_names(episodes))}
        filmed = np.array([pair in place for pair in _names(attempts)])
        shots = []
        for chosen in (filmed, ~filmed):
            if chosen.any():
                picked = attempts.take(chosen)
                if chosen is filmed:
                    cache, source = open_cache(frames_path), trajectories
                else:
                    source, cache = self._again(trajectories, picked)
                    place = {pair: i for i, pair in enumerate(_names(picked))}
                texts = captions(self.overlay["caption"], source, self.env)
                shown = overlaid(cache, source, self.env, texts, self.overlay["hud"], 0)
                view, size = Yuv420p(shown), shown.background.shape[1::-1]
                for row, pair in zip(rows[chosen].tolist(), _names(picked), strict=True):
                    start = int(shown.offsets[place[pair]])
                    about = trajectories.attempts.row(row)
                    shots.append(Shot(first + row, about, view, start, size))
        return sorted(shots, key=lambda shot: shot.episode)

    def _again(
        self, trajectories: Trajectories, attempts: Attempts
    ) -> tuple[Trajectories, FrameCache]:
        """Return attempts that were not filmed, simulated and rendered as the film's were."""
        config = json.loads(trajectories.spec)["config"]
        environment = make_environment(config)
        policy = make_policy(config["policy"], self.learned)
        again = simulate_attempts(attempts, environment, policy, trajectories.spec)
        return again, render_shard(again, config | {"render": self.render}, self.atlas, "{}")


def _names(rows: Attempts) -> list[tuple[int, int]]:
    return list(zip(rows.reach.tolist(), rows.attempt.tolist(), strict=True))
