"""Environments as pixels for benchmarks: ordinary stacks of wrappers, and the random play of them.

An ordinary stack is Stable-Baselines3's wrappers over what Gymnasium makes, stacked by Gymnasium's
FrameStackObservation. `Stack` says what is changed in it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import gymnasium
import numpy as np
from gymnasium.wrappers import AddRenderObservation, FrameStackObservation

import benchmarks.sample  # noqa: F401 - which tells Python where goalreel is

# isort: split
from goalreel.policies.warp import WARPS
from goalreel.training.games import wrappers
from goalreel.training.games.emulated import GameRecord, make_ale

CAR, BREAKOUT = "MountainCar-v0", "ALE/Breakout-v5"
SKIP = 4


@dataclass(frozen=True)
class Stack:
    """What a stack has; the defaults are the ordinary one's.

    rendered: whether only frames that are shown are asked for, and not each that is stepped
    """

    noop: bool = True
    episodic_life: bool = True
    fire: bool = True
    clip: bool = True
    maximum: bool = True
    rendered: bool = False
    warp: str = "area"
    frames: int = 4
    skip: int = SKIP

    def make(
        self, game: str, bare: gymnasium.Env | None = None
    ) -> tuple[gymnasium.Env, GameRecord]:
        """Return a game in its wrappers, and what counts its frames beneath them.

        bare: the game, made already
        """
        import stable_baselines3.common.atari_wrappers as sb3

        record = GameRecord(bare or _bare(game, self.rendered))
        env = record if self.rendered or game == BREAKOUT else AddRenderObservation(record)
        atari = game == BREAKOUT
        if atari and self.noop:
            env = sb3.NoopResetEnv(env)
        if self.rendered or not self.maximum:
            env = wrappers.MaxAndSkipEnv(env, self.skip, self.maximum, self.rendered)
        elif self.skip > 1:
            env = sb3.MaxAndSkipEnv(env, self.skip)
        if atari and self.episodic_life:
            env = sb3.EpisodicLifeEnv(env)
        if atari and self.fire:
            env = sb3.FireResetEnv(env)
        env = sb3.WarpFrame(env) if self._is_sb3s_warp else _warped(env, self.warp)
        if self.clip:
            env = sb3.ClipRewardEnv(env)
        return FrameStackObservation(env, self.frames), record

    @property
    def _is_sb3s_warp(self) -> bool:
        return self.warp == "area" and not self.rendered


def _bare(game: str, rendered: bool) -> gymnasium.Env:
    if game == CAR:
        return gymnasium.make(CAR, render_mode="rgb_array")
    bare = make_ale(game)
    if rendered:
        return bare
    bare.close()
    return gymnasium.make(game, frameskip=1, repeat_action_probability=0.0)


def _warped(env: gymnasium.Env, name: str) -> gymnasium.Env:
    return wrappers.WarpFrame(env, WARPS[name])


def random_play(env: gymnasium.Env, record: GameRecord, seed: int = 0) -> Callable[[], int]:
    """Return what takes ten random actions, and begins anew where an episode ends."""
    dice, count = np.random.default_rng(seed), int(env.action_space.n)
    env.reset(seed=seed)

    def run() -> int:
        frames = 0
        for action in dice.integers(count, size=10).tolist():
            before = record.frames
            _, _, terminated, truncated, _ = env.step(action)
            frames += record.frames - before
            if terminated or truncated:
                env.reset()
        return frames

    return run


class Stacked:
    """Lanes with the last `frames` frames of each, (lanes, frames, 84, 84) uint8, oldest first."""

    def __init__(self, lanes, frames: int):
        """Begin with what lanes show, again and again, as FrameStackObservation does."""
        self._lanes = lanes
        self.stacks = np.repeat(lanes.obs[:, None], frames, axis=1)

    def step(self, actions: np.ndarray):
        """Step the lanes, and their stacks with them."""
        step = self._lanes.step(actions)
        self.stacks = np.concatenate([self.stacks[:, 1:], self._lanes.obs[:, None]], axis=1)
        for lane in np.flatnonzero(step.terminated | step.truncated):
            self.stacks[lane] = self._lanes.obs[lane]
        return step


def random_lanes(lanes: Stacked, count: int, actions: int, seed: int = 0) -> Callable[[], int]:
    """Return what takes ten random actions of each lane."""
    dice = np.random.default_rng(seed)

    def run() -> int:
        return sum(lanes.step(row).frames for row in dice.integers(actions, size=(10, count)))

    return run


def warp_all(warp: str) -> None:
    """Draw and warp every picture of Mountain Car, which takes some seconds."""
    from goalreel.pictures.mountain_car_scene import distinct_positions
    from goalreel.pictures.warped import warped_pictures

    warped_pictures(CAR, warp).observe(distinct_positions(np.float64))
