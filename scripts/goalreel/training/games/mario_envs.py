"""Environments of Super Mario Bros, stepped one after another."""

import numpy as np

from goalreel.policies.preprocessing import WARPS
from goalreel.training.games.pixel_envs import EndedGame, PixelStep
from goalreel.training.games.settings import GameSettings

_NOOP = 0


class _MarioEnv:
    """A game that restarts when it is over, after a random number of no-op frames.

    An episode of the learner ends with each life, but the game goes on.
    """

    def __init__(self, settings: GameSettings, seed: int):
        from goalreel.environments.mario import MarioEnv

        self.env = MarioEnv(settings.game, obs_type="ram", repeat_action_probability=0.0)
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._restart()

    def _restart(self) -> None:
        self.env.reset()
        self._return = self._distance = 0.0
        noop = self._settings.noop
        for _ in range(self._rng.integers(1, noop + 1) if noop else 0):
            self._frame(_NOOP)
        self._lives, self.obs = self.env.info()["life"], self._seen()

    def _frame(self, action: int) -> tuple[float, bool]:
        """Play one frame, and return its reward and whether the game is over."""
        _, reward, over, _, info = self.env.step(action)
        self._return += reward
        self._distance = max(self._distance, float(info["x_pos"]))
        return reward, over

    def _seen(self) -> np.ndarray:
        return WARPS[self._settings.warp](self.env.render())

    def step(self, action: int) -> tuple[float, bool, np.ndarray, tuple | None]:
        """Play one action; return reward, termination, frame, and a finished game's figures."""
        total = 0.0
        for _ in range(self._settings.frame_skip):
            reward, over = self._frame(action)
            total += reward
            if over:
                break
        next_obs, lives = self._seen(), self.env.info()["life"]
        died = lives < self._lives
        self._lives, self.obs, ended = lives, next_obs, None
        if over:
            ended = self._return, self._distance
            self._restart()
        return total, over or died, next_obs, ended


class MarioEnvs:
    """A PixelEnvs of Super Mario Bros."""

    def __init__(self, settings: GameSettings, seed: int, num_envs: int):
        """Create and reset all games, each environment with its own seed.

        Raises GoalreelError if a package is missing.
        """
        seeds = np.random.SeedSequence(seed).generate_state(num_envs)
        self._envs = [_MarioEnv(settings, int(own)) for own in seeds]
        self.actions = int(self._envs[0].env.action_space.n)
        self.obs = np.stack([env.obs for env in self._envs])

    def step(self, actions: np.ndarray) -> PixelStep:
        """Take (num_envs,) actions, one game after another."""
        steps = [env.step(action) for env, action in zip(self._envs, actions.tolist(), strict=True)]
        rewards, terminated, next_obs, ended = zip(*steps, strict=True)
        self.obs = np.stack([env.obs for env in self._envs])
        return PixelStep(
            np.array(rewards, np.float32),
            np.array(terminated, bool),
            np.zeros(len(actions), bool),  # the game has its own clock
            np.stack(next_obs),
            tuple(EndedGame(number, *game) for number, game in enumerate(ended) if game),
        )

    def close(self) -> None:
        """Close all games."""
        for env in self._envs:
            env.env.close()
