"""Games of an emulator, each stepped by itself: the stack of wrappers, and lanes of it."""

import importlib

import gymnasium
import numpy as np

from goalreel.environments.gymnasium_ids import find_spec
from goalreel.policies.warp import WARPS
from goalreel.training.games import wrappers
from goalreel.training.games.lanes import Episode, PixelStep
from goalreel.training.games.settings import MARIO, GameSettings


def make_mario(game: str) -> gymnasium.Env:
    """Make a game of Super Mario Bros; its observations are the console's memory.

    Raises GoalreelError where its packages are missing.
    """
    from goalreel.environments.mario import MarioEnv

    return MarioEnv(game, obs_type="ram")


def make_ale(game: str) -> gymnasium.Env:
    """Make a game of ALE's; its observations are the console's memory.

    An action lasts a frame, since our wrapper skips, and is never repeated by chance, as was once
    called NoFrameskip-v4 and Stable-Baselines3's AtariWrapper expects; ids ending in -v5 would skip
    four frames and repeat an action with probability 1/4 on their own. The emulator draws each
    frame in any case, but one that is not rendered is not copied. Raises GoalreelError where ale-py
    is not installed, and for a game that it does not have.
    """
    find_spec(game)
    emulator = importlib.import_module("ale_py")
    emulator.ALEInterface.setLoggerMode(emulator.LoggerMode.Error)  # no banner at the first game
    env = gymnasium.make(
        game,
        frameskip=1,
        repeat_action_probability=0.0,
        obs_type="ram",
        render_mode="rgb_array",
        disable_env_checker=True,
    )
    return env.unwrapped


class GameRecord(gymnasium.Wrapper):
    """Counts a game's frames and rewards, beneath all wrappers that change them.

    Attributes:
        frames: all that were ever stepped, those of resets too.
        ended: the games that are over, for the caller to empty: (return, frames, distance) each.
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
        """Step, and record the game if it is over."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.frames += 1
        self._return += float(reward)
        if "x_pos" in info:
            self._distance = float(np.fmax(self._distance, int(info["x_pos"])))
        if terminated or truncated:
            self.ended.append((self._return, self.frames - self._start, self._distance))
        return obs, reward, terminated, truncated, info


def wrap(env: gymnasium.Env, settings: GameSettings) -> gymnasium.Env:
    """Return a game with its wrappers, in the order of Stable-Baselines3's AtariWrapper.

    Wrappers for lives and a fire button are left out where the game has none. Pictures are those of
    `render`.
    """
    settings = settings.filled()
    env.reset()
    has_lives = wrappers.lives(env) > 0
    meanings = env.unwrapped.get_action_meanings()
    can_fire = len(meanings) > 2 and meanings[wrappers.FIRE] == "FIRE"
    if settings.noop:
        env = wrappers.NoopResetEnv(env, settings.noop)
    env = wrappers.MaxAndSkipEnv(env, settings.frame_skip, settings.maximum, rendered=True)
    if has_lives and settings.episodic_life is not False:
        env = wrappers.EpisodicLifeEnv(env)
    if can_fire and settings.fire is not False:
        env = wrappers.FireResetEnv(env)
    env = wrappers.WarpFrame(env, WARPS[settings.warp])
    return wrappers.ClipRewardEnv(env) if settings.clip_reward else env


class _Lane:
    """A game that begins anew whenever it is over."""

    def __init__(self, settings: GameSettings, seed: int):
        make = make_mario if settings.family == MARIO else make_ale
        self.record = GameRecord(make(settings.game))
        self.env = wrap(self.record, settings)
        self.obs, _ = self.env.reset(seed=seed)

    def step(self, action: int) -> tuple[int, float, bool, bool, np.ndarray]:
        before = self.record.frames
        next_obs, reward, terminated, truncated, _ = self.env.step(action)
        frames = self.record.frames - before
        self.obs = self.env.reset()[0] if terminated or truncated else next_obs
        return frames, reward, terminated, truncated, next_obs


class EmulatedLanes:
    """Lanes of an emulated game, a PixelLanes."""

    def __init__(self, settings: GameSettings, seed: int, lanes: int):
        """Make and reset all games; each lane has a seed of its own for all that follows."""
        seeds = np.random.SeedSequence(seed).generate_state(lanes)
        self._lanes = [_Lane(settings, int(own)) for own in seeds]
        self.actions = int(self._lanes[0].env.action_space.n)
        self.obs = np.stack([lane.obs for lane in self._lanes])

    def step(self, actions: np.ndarray) -> PixelStep:
        """Take (lanes,) actions, one game after another."""
        steps = [
            lane.step(action) for lane, action in zip(self._lanes, actions.tolist(), strict=True)
        ]
        frames, rewards, terminated, truncated, next_obs = zip(*steps, strict=True)
        self.obs = np.stack([lane.obs for lane in self._lanes])
        return PixelStep(
            sum(frames),
            np.array(rewards, np.float32),
            np.array(terminated, bool),
            np.array(truncated, bool),
            np.stack(next_obs),
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
