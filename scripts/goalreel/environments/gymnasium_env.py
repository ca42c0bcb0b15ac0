"""An environment of Gymnasium's, stepped by Gymnasium itself.

Some environments keep something of what they played before, and an episode is to depend on its seed
alone. So each gets a new instance, unless a used one is known to give the same.
"""

import inspect
import os
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from goalreel.arrays import to_rgb
from goalreel.environments.action_space import ActionSpace, action_space
from goalreel.environments.atari_loading import Loading
from goalreel.environments.drawing.block_store import BlockFrame
from goalreel.environments.drawing.frame_memo import FrameMemo
from goalreel.environments.gymnasium_ids import find_spec
from goalreel.environments.registry import describe
from goalreel.environments.wrappers import apply_wrappers
from goalreel.errors import GoalreelError

_MAX_STORED_NUMBERS = 64  # of an observation that is stored
_OPENGL = """
  MuJoCo draws with the OpenGL that MUJOCO_GL names: egl, for which Debian has libegl1 and
  libgl1-mesa-dri, osmesa (libosmesa6), or glfw, with a display."""


def _reset_without_seed(reset: Callable[[], object], **_: object) -> tuple:
    """Return what Gymnasium's wrappers expect of `reset`, which may return no more than it sees."""
    found = reset()
    return found if isinstance(found, tuple) else (found, {})


def _described(error: Exception) -> str:
    """Return an error's type and message, or where it was raised if it has none."""
    if str(error):
        return f"{type(error).__name__}: {error}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {last.filename}, line {last.lineno}: {last.line}"


@dataclass
class GymnasiumEnvironment:
    """An environment by its id, its maker's keyword arguments, time limit and wrappers."""

    id: str
    kwargs: Mapping = field(default_factory=dict)
    max_episode_steps: int | None = None  # None for the limit that it is registered with
    wrappers: Sequence[str | Mapping] = ()  # as in `env_wrappers`, the first innermost
    check: bool = True  # whether an episode must depend on its seed alone

    idle_share: ClassVar = 0.0  # an instance is not stepped after its end

    def __post_init__(self) -> None:
        """Begin without an instance."""
        self.new, self.used = [], []  # those that have not played, and those that have
        self.reusable = None  # whether the latter may play again, None as long as it was not tried
        self.making = 0.0  # seconds that it took to make instances for episodes
        self._memo, self._loading = FrameMemo(), Loading()

    @property
    def max_envs(self) -> int:
        """How many episodes are played side by side; some instances take seconds to make."""
        return 2 if self.id.startswith("ALE/") else 4

    def make(self):
        """Return a new instance. Raises GoalreelError if Gymnasium cannot make one."""
        if sys.platform == "linux" and not os.environ.get("MUJOCO_GL"):
            os.environ["MUJOCO_GL"] = "egl"  # MuJoCo's own default needs a screen
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        import gymnasium

        try:
            env = gymnasium.make(
                find_spec(self.id),
                max_episode_steps=self.max_episode_steps,
                disable_env_checker=True,
                render_mode="rgb_array",
                **self.kwargs,
            )
        except GoalreelError as error:
            raise GoalreelError(f"env: {error}") from None
        except Exception as error:  # whatever its constructor raises
            given = f" with env_kwargs {dict(self.kwargs)}" if self.kwargs else ""
            problem = f"cannot be made{given}: {_described(error)}"
            raise GoalreelError(f"env: {self.id} {problem}") from error
        if type(env.unwrapped).__module__ == "ale_py.env":
            self._loading.quicken(env.unwrapped)
        env = apply_wrappers(env, self.wrappers)
        inner = env.unwrapped
        parameters = inspect.signature(inner.reset).parameters.values()
        if not any(p.name == "seed" or p.kind is p.VAR_KEYWORD for p in parameters):
            if self.check:
                raise GoalreelError(
                    f"env: reset of {self.id} takes no seed, so no episode can be repeated. "
                    f"Film each once, as it comes: --config check=false"
                )
            inner.reset = partial(_reset_without_seed, inner.reset)
        return env

    @cached_property
    def _spaces(self) -> tuple:
        env = self.make()
        self.new.append(env)
        meanings = getattr(env.unwrapped, "get_action_meanings", list)
        return env.observation_space, env.action_space, meanings()

    @cached_property
    def actions(self) -> ActionSpace:
        """The actions that the environment takes."""
        return action_space(self.action_space, self.id)

    @property
    def observation_space(self):
        """Gymnasium's observation space."""
        return self._spaces[0]

    @property
    def action_space(self):
        """Gymnasium's action space."""
        return self._spaces[1]

    @property
    def action_meanings(self) -> list[str]:
        """What the actions of an emulated game press, such as "NOOP" and "FIRE"; [] of others."""
        return self._spaces[2]

    @cached_property
    def width(self) -> int:
        """How many numbers of an observation are stored: all of a small Box, else none."""
        from gymnasium import spaces

        space = self.observation_space
        size = int(np.prod(space.shape)) if isinstance(space, spaces.Box) else 0
        return size if size <= _MAX_STORED_NUMBERS else 0

    def sub_envs(self, seeds: np.ndarray) -> "_Instances":
        """Return an instance for each seed, reset with it."""
        return _Instances([Instance(self, seed) for seed in seeds.tolist()])

    def recorded(self, env, observation: object) -> np.ndarray:
        """Return what is recorded of an instance's state, (width,) float64."""
        if self.width == 0:
            return np.zeros(0)
        # A Mountain Car's observation is a rounded copy of its state.
        state = env.unwrapped.state if describe(self.id).is_mountain_car else observation
        return np.array(state, np.float64).reshape(-1)  # a copy: some keep writing to theirs

    def batch(self, observations: list, space=None) -> np.ndarray | dict:
        """Return observations as one array, (num_envs, *shape), in the dtype of their space.

        Of a Dict space it is an array for each key, and of texts an array of strings.

        Args:
            observations: of each environment.
            space: theirs, if they are a part of the environment's.

        Raises:
            GoalreelError: the space has other observations, such as a Tuple.
        """
        from gymnasium import spaces

        space = self.observation_space if space is None else space
        if isinstance(space, spaces.Dict):
            return {key: self.batch([o[key] for o in observations], space[key]) for key in space}
        if space.dtype is not None and space.dtype.kind == "U":
            return np.array(observations)
        if space.shape is None or space.dtype is None:
            raise GoalreelError(
                f"{self.id}: its observations are {self.observation_space}, which cannot be "
                f"batched for a policy; allowed there: policy.name: random or recorded, or a "
                f"wrapper that makes arrays or a Dict of arrays of them (env_wrappers)"
            )
        return np.stack([np.asarray(o, space.dtype) for o in observations])

    def sample_observations(self, count: int) -> np.ndarray | dict:
        """Return what a policy may see: a batch of random episodes' observations from seed 0 on."""
        env = self.make()
        env.action_space.seed(0)
        obs, over = [], [True]
        while len(obs) < count:
            if any(over):
                instance = Instance(self, len(obs), env)
                obs.append(instance.observation)
            _, *over = instance.step(env.action_space.sample())
            obs.append(instance.observation)
        env.close()
        return self.batch(obs[:count])

    def picture(self, env, observation) -> BlockFrame | np.ndarray:
        """Return what `env.render()` draws of an instance of `make`, drawn before or now.

        As a BlockFrame if the environment is one that `FrameMemo` knows, and is not wrapped.
        """
        return to_rgb(env.render() if self.wrappers else self._memo.render(env, observation))

    def set_instance_reuse(self, reuse: bool) -> None:
        """Decide whether instances play one episode after another; those at hand may be closed."""
        self.reusable = reuse
        if not reuse:
            self.close()

    def close(self) -> None:
        """Close the instances that wait for another episode."""
        for instances in (self.new, self.used):
            while instances:
                instances.pop().close()

    def acquire(self):
        """Return an instance for an episode."""
        if self.reusable and self.used:
            return self.used.pop()
        if self.new:
            return self.new.pop()
        began = time.perf_counter()
        env = self.make()
        self.making += time.perf_counter() - began
        return env

    def release(self, env) -> None:
        """Take an instance that has played."""
        if self.reusable is False:
            env.close()
        else:
            self.used.append(env)


class Instance:
    """An environment's instance that plays one episode.

    Attributes:
        env: Gymnasium's.
        state: (width,) float64, what is recorded of it.
    """

    def __init__(self, environment: GymnasiumEnvironment, seed: int, env=None):
        """Reset `env`, one of `environment.make`; None for the next one that is free."""
        self.environment, self.seed = environment, seed
        self.env = environment.acquire() if env is None else env
        self._observe(self._call("reset", self.env.reset, seed=seed)[0])

    def _call(self, method: str, function: Callable, *arguments: object, **named: object) -> object:
        """Return what a function gives, or raise GoalreelError with the traceback."""
        try:
            return function(*arguments, **named)
        except Exception as error:
            trace = textwrap.indent("".join(traceback.format_exception(error)).rstrip(), "  ")
            advice = _OPENGL if method == "render" and "mujoco" in sys.modules else ""
            raise GoalreelError(
                f"env: {self.environment.id}: its {method} raised {type(error).__name__} in the "
                f"episode of seed {self.seed}:\n{trace}{advice}"
            ) from None

    def _observe(self, observation: object) -> None:
        self.observation, self.state = observation, self.environment.recorded(self.env, observation)

    def step(self, action: np.ndarray) -> tuple[float, bool, bool]:
        """Take a stored action; return the reward, and whether it terminated and truncated."""
        taken = self.environment.actions.taken(action)
        observation, reward, *over, _ = self._call("step", self.env.step, taken)
        self._observe(observation)
        return float(reward), *map(bool, over)

    def render(self) -> object:
        """Return what Gymnasium draws now."""
        return to_rgb(self._call("render", self.env.render))

    def picture(self) -> object:
        """Return what `env.render()` draws, drawn before or now, see FrameMemo."""
        return self._call("render", self.environment.picture, self.env, self.observation)


@dataclass(frozen=True)
class _Instances:
    """Sub-environments of Gymnasium's instances; see environment.SubEnvs."""

    instances: list[Instance]

    def observations(self) -> list:
        return [instance.observation for instance in self.instances]

    def states(self) -> np.ndarray:
        return np.stack([instance.state for instance in self.instances], axis=1)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        steps = [one.step(action) for one, action in zip(self.instances, actions, strict=True)]
        return tuple(map(np.array, zip(*steps, strict=True)))

    def take(self, mask: np.ndarray) -> "_Instances":
        return _Instances([self.instances[index] for index in np.flatnonzero(mask)])

    def pictures(self) -> list:
        return [instance.picture() for instance in self.instances]

    def close(self) -> None:
        for instance in self.instances:
            instance.environment.release(instance.env)
