"""An environment of Gymnasium's, made for each episode anew and stepped by Gymnasium itself.

A fresh instance per episode is what makes an episode depend on its seed alone: some environments
keep something of what they played before. Many of them side by side stand in gym_episodes, their
pictures in gym_render; the Mountain Cars, which need no Gymnasium, in physics.
"""

import os
import textwrap
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from goalreel.environments.action_space import ActionSpace, action_space
from goalreel.environments.gymnasium_ids import find_spec
from goalreel.errors import GoalreelError

_MOST_NUMBERS = 64  # of an observation that is stored


@dataclass(frozen=True)
class Step:
    """What an environment gave after a reset (step 0) or an action.

    observation: as Gymnasium gave it; reward: float, 0 at the reset; picture: None if not asked for
    """

    step: int
    observation: object
    reward: float
    terminated: bool
    truncated: bool
    picture: np.ndarray | None


def step_of(env, action: object, seed: int) -> tuple:
    """Return what `env.step(action)` gives. Raises GoalreelError, with its traceback, if it raises.

    seed: the episode's, for the message
    """
    try:
        return env.step(action)
    except Exception as error:  # whatever an environment may raise
        told = textwrap.indent(traceback.format_exc().rstrip(), "  ")
        raise GoalreelError(
            f"env: {env.spec.id if env.spec else env}: its step raised {type(error).__name__} in "
            f"the episode of seed {seed}:\n{told}"
        ) from None


@dataclass(frozen=True)
class GymEnvironment:
    """An environment by its id, its maker's keyword arguments and its time limit.

    max_steps: None for the limit that it is registered with
    """

    id: str
    kwargs: Mapping = field(default_factory=dict)
    max_steps: int | None = None

    @classmethod
    def of(cls, config: Mapping) -> "GymEnvironment":
        """Return the environment of a stage's configuration: env, env_kwargs, max_steps."""
        return cls(config["env"], config.get("env_kwargs") or {}, config.get("max_steps"))

    def make(self):
        """Return a new instance. Raises GoalreelError if Gymnasium cannot make one."""
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # no screen is needed
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        import gymnasium

        try:
            find_spec(self.id)
            name = self.id.rpartition(":")[2]
            env = gymnasium.make(
                name,
                max_episode_steps=self.max_steps,
                disable_env_checker=True,
                render_mode="rgb_array",
                **self.kwargs,
            )
        except GoalreelError as error:
            raise GoalreelError(f"env: {error}") from None
        except Exception as error:  # whatever its constructor raises
            said = f"{type(error).__name__}: {error}"
            given = f" with env_kwargs {dict(self.kwargs)}" if self.kwargs else ""
            raise GoalreelError(f"env: {self.id} cannot be made{given}: {said}") from error
        if env.render_mode != "rgb_array":
            raise GoalreelError(
                f"env: {self.id} cannot be filmed: its render mode is {env.render_mode!r}, "
                f"and a film needs 'rgb_array'"
            )
        return env

    @cached_property
    def _spaces(self) -> tuple[object, ActionSpace]:
        env = self.make()
        spaces = env.observation_space, action_space(env.action_space, self.id)
        env.close()
        return spaces

    @property
    def actions(self) -> ActionSpace:
        """The actions that the environment takes."""
        return self._spaces[1]

    @property
    def observation_space(self):
        """Gymnasium's observation space."""
        return self._spaces[0]

    @cached_property
    def width(self) -> int:
        """How many numbers of an observation are stored: all of a small Box, else none."""
        from gymnasium import spaces

        space = self.observation_space
        size = int(np.prod(space.shape)) if isinstance(space, spaces.Box) else 0
        return size if size <= _MOST_NUMBERS else 0

    def stored(self, observation: object) -> np.ndarray:
        """Return what is stored of an observation, (width,) float64."""
        if self.width == 0:
            return np.zeros(0)
        return np.array(observation, np.float64).reshape(-1)  # a copy: some keep writing to theirs

    def batch(self, observations: list) -> np.ndarray:
        """Return observations as one array, (lanes, *shape), in the dtype of their space.

        Raises GoalreelError if the space is no array's, such as a Dict or a Tuple.
        """
        shape, dtype = self.observation_space.shape, self.observation_space.dtype
        if shape is None or dtype is None:
            raise GoalreelError(
                f"{self.id}: its observations are {self.observation_space}, which makes no batch "
                f"for a policy; policy.name: random and recorded play it"
            )
        return np.stack([np.asarray(observation, dtype) for observation in observations])

    def sample_observations(self, count: int) -> np.ndarray:
        """Return what a policy may see: (count, *shape), the resets of seeds 0, 1, ..."""
        env = self.make()
        seen = self.batch([env.reset(seed=seed)[0] for seed in range(count)])
        env.close()
        return seen

    def play(self, seed: int, actions: np.ndarray, pictures: bool = False) -> Iterator[Step]:
        """Yield what a new instance gives at its reset with `seed` and after each stored action."""
        env = self.make()
        try:
            observation, _ = env.reset(seed=seed)
            yield Step(0, observation, 0.0, False, False, env.render() if pictures else None)
            for number, action in enumerate(actions, 1):
                observation, reward, *over, _ = step_of(env, self.actions.taken(action), seed)
                picture = env.render() if pictures else None
                yield Step(number, observation, float(reward), *map(bool, over), picture)
        finally:
            env.close()
