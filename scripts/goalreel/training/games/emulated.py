"""Games of an emulator, each stepped by itself: the stack of wrappers, and lanes of it."""

import gymnasium
import numpy as np

from goalreel.errors import GoalreelError
from goalreel.training.games.ale import make_ale
from goalreel.training.games.lanes import Episode, PixelStep
from goalreel.training.games.mario import MarioEnv
from goalreel.training.games.names import MARIO
from goalreel.training.games.settings import GameSettings
from goalreel.training.games.warp import WARPS
from goalreel.training.games.wrappers import FIRE as FIRE_ACTION
from goalreel.training.games.wrappers import (
    NOOP,
    ClipRewardEnv,
    EpisodicLifeEnv,
    FireResetEnv,
    MaxAndSkipEnv,
    NoopResetEnv,
    WarpFrame,
    lives,
)


class GameRecord(gymnasium.Wrapper):
    """Counts a game's frames and rewards, beneath all wrappers that change them.

    frames: all that were ever stepped, those of resets too; ended: the games that were over, for
    whoever empties the list: (return, frames, distance) each
    """

    def __init__(self, env: gymnasium.Env):
        """Wrap an environment."""
        super().__init__(env)
        self.frames, self.ended = 0, []
        self._begin()

    def _begin(self) -> None:
        self._return, self._start, self._distance = 0.0, self.frames, float("nan")

    def reset(self, **kwargs) -> tuple[np.ndarray, dict]:
        """Begin the next game."""
        self._begin()
        return self.env.reset(**kwargs)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Step, and write the game down if it is over."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.frames += 1
        self._return += float(reward)
        if "x_pos" in info:
            self._distance = float(np.fmax(self._distance, int(info["x_pos"])))
        if terminated or truncated:
            self.ended.append((self._return, self.frames - self._start, self._distance))
        return observation, reward, terminated, truncated, info


def wrap(env: gymnasium.Env, settings: GameSettings) -> gymnasium.Env:
    """Return a game with its wrappers, in the order of Stable-Baselines3's AtariWrapper.

    env: its pictures are those of `render`. Raises GoalreelError for a wrapper that asks for what
    the game does not have: lives, a fire button, an action that does nothing.
    """
    settings = settings.filled()
    meanings, counted = env.unwrapped.get_action_meanings(), _counts_lives(env)
    can_fire = len(meanings) > 2 and meanings[FIRE_ACTION] == "FIRE"
    names = ", ".join(meanings)
    if settings.fire and not can_fire:
        raise GoalreelError(
            f"fire: true for {settings.game}: it has no fire button; its actions: {names}"
        )
    if settings.episodic_life and not counted:
        raise GoalreelError(f"episodic_life: true for {settings.game}: it counts no lives")
    if settings.noop:
        if meanings[NOOP] != "NOOP":
            raise GoalreelError(
                f"noop: {settings.noop} for {settings.game}: its action 0 does something; "
                f"its actions: {names}"
            )
        env = NoopResetEnv(env, settings.noop)
    env = MaxAndSkipEnv(env, settings.skip, settings.maximum, rendered=True)
    if counted if settings.episodic_life is None else settings.episodic_life:
        env = EpisodicLifeEnv(env)
    if can_fire if settings.fire is None else settings.fire:
        env = FireResetEnv(env)
    env = WarpFrame(env, WARPS[settings.warp])
    return ClipRewardEnv(env) if settings.clip_reward else env


def _counts_lives(env: gymnasium.Env) -> bool:
    env.reset()
    return lives(env) > 0


class _Lane:
    """A game that begins anew whenever it is over."""

    def __init__(self, settings: GameSettings, seed: int):
        make = MarioEnv if settings.family == MARIO else make_ale
        self.record = GameRecord(make(settings.game))
        self.env = wrap(self.record, settings)
        self.seen, _ = self.env.reset(seed=seed)

    def step(self, action: int) -> tuple[int, float, bool, bool, np.ndarray]:
        before = self.record.frames
        after, reward, terminated, truncated, _ = self.env.step(action)
        frames = self.record.frames - before
        self.seen = self.env.reset()[0] if terminated or truncated else after
        return frames, reward, terminated, truncated, after


class EmulatedLanes:
    """Lanes of an emulated game; see lanes.PixelLanes."""

    def __init__(self, settings: GameSettings, seed: int, lanes: int):
        """Make and reset all games; each lane has a seed of its own for all that follows."""
        seeds = np.random.SeedSequence(seed).generate_state(lanes)
        self._lanes = [_Lane(settings, int(own)) for own in seeds]
        self.actions = int(self._lanes[0].env.action_space.n)
        self.ages = np.zeros(lanes, np.int32)
        self.seen = np.stack([lane.seen for lane in self._lanes])

    def step(self, actions: np.ndarray) -> PixelStep:
        """Take (lanes,) actions, one game after another."""
        steps = [
            lane.step(action) for lane, action in zip(self._lanes, actions.tolist(), strict=True)
        ]
        frames, rewards, terminated, truncated, after = zip(*steps, strict=True)
        self.seen = np.stack([lane.seen for lane in self._lanes])
        over = np.array(terminated) | np.array(truncated)
        self.ages = np.where(over, 0, self.ages + 1).astype(np.int32)
        return PixelStep(
            sum(frames),
            np.array(rewards, np.float32),
            np.array(terminated, bool),
            np.array(truncated, bool),
            np.stack(after),
            self._ended(),
        )

    def _ended(self) -> tuple[Episode, ...]:
        ended = []
        for number, lane in enumerate(self._lanes):
            ended += [Episode(number, *game) for game in lane.record.ended]
            lane.record.ended.clear()
        return tuple(ended)

    def close(self) -> None:
        """Close all games."""
        for lane in self._lanes:
            lane.env.close()
