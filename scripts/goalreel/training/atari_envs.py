"""ALE games in ale-py's AtariVectorEnv, which emulates, resizes and resets in C++."""

import importlib

import numpy as np

from goalreel.environments.gymnasium_ids import find_spec
from goalreel.policies.preprocessing import SIDE
from goalreel.training.envs import EndedGame, Envs, Step, Task
from goalreel.training.settings import Settings

_MAX_FRAMES = 18_000  # per game: five minutes, as in the evaluations of Mnih et al., 2015


class AtariEnvs(Envs):
    """An ALE game, resized by area interpolation. Rewards are clipped to their signs."""

    def __init__(self, task: Task, settings: Settings, seed: int, indices: range):
        """Create and reset all games, each environment with its own seed."""
        spec, kwargs = find_spec(task.config["env"]), task.config.get("env_kwargs") or {}
        emulator = importlib.import_module("ale_py")
        emulator.ALEInterface.setLoggerMode(emulator.LoggerMode.Error)  # no banner
        values = spec.kwargs | kwargs
        self._env = importlib.import_module("ale_py.vector_env").AtariVectorEnv(
            values["game"],
            len(indices),
            num_threads=min(settings.threads, len(indices)),
            autoreset_mode="SameStep",
            img_height=SIDE,
            img_width=SIDE,
            stack_num=1,
            frameskip=settings.frame_skip,
            maxpool=task.preprocessing["maximum"],
            noop_max=task.preprocessing["noop"],
            use_fire_reset=task.preprocessing["fire"],
            life_loss_info=True,  # a lost life ends the learner's episode, not the game
            reward_clipping=False,
            repeat_action_probability=values["repeat_action_probability"],
            full_action_space=values["full_action_space"],
            max_num_frames_per_episode=_MAX_FRAMES,
        )
        self.num_actions = int(self._env.single_action_space.n)
        seeds = [np.random.SeedSequence(seed, spawn_key=(n,)).generate_state(1) for n in indices]
        # int32 in ale-py
        obs, info = self._env.reset(seed=(np.concatenate(seeds) >> 1).astype(np.int64))
        self.obs = obs[:, -1].copy()
        self._returns, self._steps = np.zeros(len(indices)), np.zeros(len(indices), int)
        self._number = info["episode_frame_number"].copy()

    def step(self, actions: np.ndarray) -> Step:
        """Take (num_envs,) actions."""
        obs, rewards, terminated, truncated, info = self._env.step(actions)
        self.obs = obs[:, -1].copy()
        self._returns += rewards
        self._steps += 1
        number = info["episode_frame_number"]
        # The frame number goes on after a lost life. It starts again with another game.
        (over,) = np.nonzero(truncated | (terminated & (number <= self._number)))
        games = over, self._returns[over], self._steps[over]
        ended = tuple(map(EndedGame, *(column.tolist() for column in games)))
        self._returns[over], self._steps[over] = 0.0, 0
        self._number = number.copy()
        next_obs = self.obs
        if len(over):  # final_obs is undefined for other environments
            next_obs = self.obs.copy()
            next_obs[over] = info["final_obs"][over, -1]
        rewards = np.sign(rewards).astype(np.float32)
        return Step(rewards, terminated.copy(), truncated.copy(), next_obs, ended)

    def close(self) -> None:
        """Free the emulators."""
        self._env.close()
