"""The usual wrappers of games, with the names and semantics of Stable-Baselines3's atari_wrappers.

They are rewritten because collectors run without PyTorch, which Stable-Baselines3 needs; tests
compare each with the original. Frames are stacked by who acts or learns.
"""

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from goalreel.policies.warp import SIDE, Warp

NOOP, FIRE = 0, 1


def lives(env: gymnasium.Env) -> int:
    """Return the lives that are left, 0 in a game that counts none."""
    bare = env.unwrapped
    return int(bare.ale.lives() if hasattr(bare, "ale") else bare.lives())


class NoopResetEnv(gymnasium.Wrapper):
    """Does nothing for a random number of frames after a reset, 1 to `noop_max`."""

    def __init__(self, env: gymnasium.Env, noop_max: int = 30):
        """Wrap an environment whose action 0 does nothing."""
        super().__init__(env)
        self._noop_max = noop_max

    def reset(self, **kwargs) -> tuple[np.ndarray, dict]:
        """Reset, and let the frames pass."""
        obs, info = self.env.reset(**kwargs)
        for _ in range(self.unwrapped.np_random.integers(1, self._noop_max + 1)):
            obs, _, terminated, truncated, info = self.env.step(NOOP)
            if terminated or truncated:
                obs, info = self.env.reset(**kwargs)
        return obs, info


class MaxAndSkipEnv(gymnasium.Wrapper):
    """Repeats an action for `frame_skip` frames; the observation is the maximum of the last two.

    An episode that ends sooner shows its last frame, where Stable-Baselines3 shows one that is left
    of the step before.
    """

    def __init__(
        self, env: gymnasium.Env, frame_skip: int = 4, maximum: bool = True, rendered: bool = False
    ):
        """Wrap an environment.

        Args:
            env: to wrap.
            frame_skip: frames that an action lasts.
            maximum: False shows the last frame alone.
            rendered: frames are what `render()` gives, and only those that are shown are rendered;
                else they are the observations.
        """
        super().__init__(env)
        self._frame_skip, self._rendered = frame_skip, rendered
        self._maximum = maximum and frame_skip > 1

    def _frame(self, obs: np.ndarray) -> np.ndarray:
        return self.env.render() if self._rendered else obs

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Repeat the action until the skip or the episode is over; rewards are summed."""
        total, before = 0.0, None
        for number in range(1, self._frame_skip + 1):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
            if self._maximum and number == self._frame_skip - 1:
                before = self._frame(obs)
        frame = self._frame(obs)
        if before is not None:
            frame = np.maximum(before, frame)
        return frame, total, terminated, truncated, info

    def reset(self, **kwargs) -> tuple[np.ndarray, dict]:
        """Reset, and show the first frame."""
        obs, info = self.env.reset(**kwargs)
        return self._frame(obs), info


class EpisodicLifeEnv(gymnasium.Wrapper):
    """Ends an episode with each life lost, and resets the game only once it is over."""

    def __init__(self, env: gymnasium.Env):
        """Wrap a game that counts lives."""
        super().__init__(env)
        self._lives, self._over = 0, True

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Step, and compare the lives."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._over = terminated or truncated
        left = lives(self.env)
        # At 0 the game may go on for some frames (Qbert); it says itself when it is over.
        terminated = terminated or 0 < left < self._lives
        self._lives = left
        return obs, reward, terminated, truncated, info

    def reset(self, **kwargs) -> tuple[np.ndarray, dict]:
        """Reset a game that is over; after a lost life, continue by a step that does nothing."""
        over = self._over
        if not over:
            obs, _, terminated, truncated, info = self.env.step(NOOP)
            over = terminated or truncated
        if over:
            obs, info = self.env.reset(**kwargs)
        self._lives = lives(self.env)
        return obs, info


class FireResetEnv(gymnasium.Wrapper):
    """Starts games that stand still until a button is pressed."""

    def reset(self, **kwargs) -> tuple[np.ndarray, dict]:
        """Reset, then take actions 1 (fire) and 2."""
        obs, info = self.env.reset(**kwargs)
        for action in (FIRE, FIRE + 1):
            obs, _, terminated, truncated, info = self.env.step(action)
            if terminated or truncated:
                obs, info = self.env.reset(**kwargs)
        return obs, info


class WarpFrame(gymnasium.ObservationWrapper):
    """Shows (84, 84) uint8, grey, of (H, W, 3) uint8."""

    def __init__(self, env: gymnasium.Env, warp: Warp):
        """Wrap an environment that shows pictures."""
        super().__init__(env)
        self.observation_space = Box(0, 255, (SIDE, SIDE), np.uint8)
        self._warp = warp

    def observation(self, obs: np.ndarray) -> np.ndarray:
        """Warp a picture."""
        return self._warp(obs)


class ClipRewardEnv(gymnasium.RewardWrapper):
    """Gives the sign of each reward: -1, 0 or 1."""

    def reward(self, reward: float) -> float:
        """Return the sign."""
        return float(np.sign(float(reward)))
