"""ALE games in ale-py's AtariVectorEnv, which emulates, resizes and resets in C++."""

import importlib
import math

import numpy as np

from goalreel.environments.gymnasium_ids import find_spec
from goalreel.policies.pixel_network import SIDE
from goalreel.training.games.pixel_envs import EndedGame, PixelStep
from goalreel.training.games.settings import GameSettings, ale_games

_MAX_FRAMES = 18_000  # per game: five minutes, as in the evaluations of Mnih et al., 2015


class AtariEnvs:
    """A PixelEnvs of an ALE game, resized by area interpolation.

    Actions are not sticky, unlike those of Gymnasium's -v5 ids by default.
    """

    def __init__(self, settings: GameSettings, seed: int, num_envs: int):
        """Create and reset all games, each environment with its own seed.

        Raises GoalreelError if ale-py is not installed, or does not have the game.
        """
        find_spec(settings.game)
        emulator = importlib.import_module("ale_py")
        emulator.ALEInterface.setLoggerMode(emulator.LoggerMode.Error)  # no banner
        self._env = importlib.import_module("ale_py.vector_env").AtariVectorEnv(
            ale_games()[settings.game],
            num_envs,
            num_threads=1,
            autoreset_mode="SameStep",
            img_height=SIDE,
            img_width=SIDE,
            stack_num=1,
            frameskip=settings.frame_skip,
            maxpool=settings.maximum and settings.frame_skip > 1,
            noop_max=settings.noop,
            use_fire_reset=settings.fire,
            life_loss_info=True,  # a lost life ends the learner's episode, not the game
            reward_clipping=False,
            max_num_frames_per_episode=_MAX_FRAMES,
        )
        self.actions = int(self._env.single_action_space.n)
        seeds = np.random.SeedSequence(seed).generate_state(num_envs) >> 1  # int32 in ale-py
        obs, info = self._env.reset(seed=seeds.astype(np.int64))
        self.obs = obs[:, -1].copy()
        self._returns = np.zeros(num_envs)
        self._number = info["episode_frame_number"].copy()

    def step(self, actions: np.ndarray) -> PixelStep:
        """Take (num_envs,) actions."""
        obs, rewards, terminated, truncated, info = self._env.step(actions.astype(np.int64))
        self.obs = obs[:, -1].copy()
        self._returns += rewards
        number = info["episode_frame_number"]
        # The frame number goes on after a lost life. It starts again with another game.
        (over,) = np.nonzero(truncated | (terminated & (number <= self._number)))
        ended = tuple(EndedGame(int(n), float(self._returns[n]), math.nan) for n in over)
        self._returns[over] = 0.0
        self._number = number.copy()
        next_obs = self.obs
        if len(over):  # final_obs is undefined for other environments
            next_obs = self.obs.copy()
            next_obs[over] = info["final_obs"][over, -1]
        rewards = np.sign(rewards).astype(np.float32)
        return PixelStep(rewards, terminated.copy(), truncated.copy(), next_obs, ended)

    def close(self) -> None:
        """Free the emulators."""
        self._env.close()
