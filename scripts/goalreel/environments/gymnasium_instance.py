"""A Gymnasium environment while it plays an episode, with messages for the errors in its code."""

import contextlib
import os
import sys
from collections.abc import Callable, Mapping

import numpy as np

from goalreel.arrays import to_rgb
from goalreel.environments.drawing import car_racing, mujoco_scene
from goalreel.environments.time_limit import TimeLimitError, time_limit
from goalreel.errors import GoalreelError, quoted, trace_of

_RETURNED = ("observation", "reward", "terminated", "truncated", "info")  # by `step`
_SEEDS = """
  Choose smaller seeds, such as --config seeds=0-49"""
_OPENGL = """
  MuJoCo needs the OpenGL library that MUJOCO_GL names: egl (Debian: libegl1 libgl1-mesa-dri),
  osmesa (Debian: libosmesa6), or glfw with a display."""


def close_instance(env) -> None:
    """Close an instance, without its errors, which do not affect what it has played."""
    with contextlib.suppress(Exception):
        mujoco_scene.free_context(env.unwrapped)
    with contextlib.suppress(Exception):
        env.close()


# Drawing or converting an observation takes long, and many are not read. By module, functions that
# let an environment step without, and that read the latest observation.
_DEFERRED: dict[str, tuple[Callable, Callable]] = {
    "ale_py.env": (
        lambda env: setattr(env, "_get_obs", lambda: None),
        lambda env: type(env)._get_obs(env),
    ),
    "gymnasium.envs.box2d.car_racing": (
        car_racing.defer_observations,
        lambda env: car_racing.scene_of(env).observation(env),
    ),
}


def _fits(observation: object, space) -> bool:
    """Return whether an observation has the shape of its space, and numbers that fit its dtype."""
    if isinstance(space, Mapping):
        is_mapping = isinstance(observation, Mapping) and space.keys() <= observation.keys()
        return is_mapping and all(_fits(observation[key], space[key]) for key in space)
    if space.shape is None or space.dtype.kind not in "fiub":
        return True
    try:
        array = np.asarray(observation)
    except ValueError:  # rows of different lengths
        return False
    kinds = "fiub" if space.dtype.kind == "f" else "iub"
    return array.shape == space.shape and array.dtype.kind in kinds


def _kind(value: object) -> str:
    """Return a value as messages show it: the dtype and shape of an array, else the value."""
    if isinstance(value, np.ndarray) and value.shape:
        return f"of {value.dtype}, shape {value.shape},"
    return f"{quoted(repr(value))} ({type(value).__name__})"


class Instance:
    """A Gymnasium instance while it plays one episode."""

    def __init__(self, environment, seed: int, env=None):
        """Reset `env`, made by the GymnasiumEnvironment, or an idle instance if it is None."""
        self.environment, self.seed, self.step_index = environment, seed, 0
        self.env = environment.acquire() if env is None else env
        self._inner, (defer, self._read) = self.env.unwrapped, (None, None)
        if not environment.is_wrapped:
            defer, self._read = _DEFERRED.get(type(self._inner).__module__, (None, None))
        if defer:
            defer(self._inner)
        self._info: Mapping = {}
        self._folder = os.getcwd()  # noqa: PTH109 - to which paths of results are relative
        given = self._call("reset", self.env.reset, seed=seed)
        if not isinstance(given, tuple) or not given:
            raise self._error("reset", f"returned {_kind(given)}", "Return (observation, info).")
        self._observe("reset", given[0])

    def _call(self, method: str, function: Callable, *arguments: object, **named: object) -> object:
        """Call a method of the environment. Raises GoalreelError with the traceback if it fails."""
        limit = self.environment.max_step_seconds
        mujoco_scene.use_context(self._inner)  # wrappers may render in each method
        try:
            with time_limit(limit) if limit else contextlib.nullcontext():
                return function(*arguments, **named)
        except (GoalreelError, KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # also sys.exit
            advice = _OPENGL if method == "render" and "mujoco" in sys.modules else ""
            advice = _SEEDS if "2**32" in str(error) else advice  # of NumPy's RandomState
            problem = f"raised {type(error).__name__}"
            fix = f"Correct its code.\n{trace_of(error)}{advice}"
            if isinstance(error, TimeLimitError):
                problem = f"took more than {limit} s (max_step_seconds)"
            raise self._error(method, problem, fix) from None
        finally:
            if os.getcwd() != self._folder:  # noqa: PTH109 - pathlib is slower
                os.chdir(self._folder)

    def _error(self, method: str, problem: str, fix: str) -> GoalreelError:
        place = f"in {method} (seed {self.seed}, step {self.step_index})"
        return GoalreelError(f"env: {self.environment.id!r} {problem} {place}. {fix}")

    @property
    def observation(self) -> object:
        """The latest observation."""
        return self._read(self._inner) if self._read else self._observation

    def _observe(self, method: str, observation: object) -> None:
        space = self.environment.observation_space
        if not (self._read or _fits(observation, space)):
            problem = f"returned the observation {_kind(observation)}"
            raise self._error(method, problem, f"Its observation_space is {space}.")
        self._observation = observation
        self.state = self.environment.recorded_state(self.env, observation)  # (width,) float64

    def step(self, action: np.ndarray) -> tuple[float, bool, bool]:
        """Take a stored action; return the reward, terminated and truncated."""
        taken, self.step_index = self.environment.actions.to_gymnasium(action), self.step_index + 1
        given = self._call("step", self.env.step, taken)
        if not isinstance(given, tuple) or len(given) != len(_RETURNED):
            fix = f"Return ({', '.join(_RETURNED)})."
            raise self._error("step", f"returned {_kind(given)}", fix)
        observation, *numbers, self._info = given
        self._observe("step", observation)
        for place, (name, number) in enumerate(zip(_RETURNED[1:], numbers, strict=False)):
            try:
                numbers[place] = float(None if isinstance(number, str | bytes) else number)
            except (TypeError, ValueError):
                problem = f"returned the {name} {_kind(number)}"
                raise self._error("step", problem, "Return a single number.") from None
        return numbers[0], *map(bool, numbers[1:])

    def info(self) -> dict[str, float]:
        """Return the numbers by name in `info["columns"]` of the latest step."""

        def numbers() -> dict[str, float]:
            columns = self._info.get("columns", {}).items()
            return {str(name): float(value) for name, value in columns}

        return self._call("step", numbers)

    def render(self) -> object:
        """Return a new frame from `env.render()`."""
        return to_rgb(self._call("render", self.env.render))

    def frame(self) -> object:
        """Return the frame of `env.render()`, which FrameMemo may remember."""
        return self._call("render", self.environment.frame, self.env, self._observation)
