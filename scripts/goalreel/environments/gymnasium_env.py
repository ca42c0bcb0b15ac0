"""An environment that Gymnasium steps and renders.

An episode must depend only on its seed, but some environments carry state over from earlier
episodes. Each episode therefore gets a new instance, unless a check has shown that a used instance
plays the same.
"""

import inspect
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar
from weakref import WeakValueDictionary

import numpy as np

from goalreel.arrays import to_rgb
from goalreel.environments.action_space import ActionSpace, action_space
from goalreel.environments.atari_loading import Loading
from goalreel.environments.drawing import mujoco_scene
from goalreel.environments.drawing.block_store import BlockFrame
from goalreel.environments.drawing.frame_memo import FrameMemo
from goalreel.environments.gymnasium_ids import find_spec, load_creator, make_arguments
from goalreel.environments.gymnasium_instance import Instance, close_instance
from goalreel.environments.registry import describe
from goalreel.environments.wrappers import apply_wrappers, named
from goalreel.errors import GoalreelError, unknown

# Wrappers that `gymnasium.make` adds, which neither draw nor change what they pass on.
_NEUTRAL = "TimeLimit", "OrderEnforcing", "PassiveEnvChecker"
# Modules of wrappers that do not change the environment in them, as those of a user may.
_RENEWABLE = "gymnasium.wrappers:", "stable_baselines3.common.atari_wrappers:"
_MAX_STORED_NUMBERS = 64  # larger observations are not stored
# The newest MuJoCo for packages that later ones break, as of November 2026.
_MUJOCO = {"shimmy": "mujoco<4", "gymnasium_robotics": "mujoco<3.12"}


def _reset_without_seed(reset: Callable[[], object], **_: object) -> tuple:
    """Return the observation and info of a `reset` that takes no seed and may return no info."""
    result = reset()
    return result if isinstance(result, tuple) else (result, {})


def layers(env) -> list:
    """Return the wrappers of an environment, the outermost first, and the environment itself."""
    found = [env]
    while found[-1] is not env.unwrapped:
        found.append(found[-1].env)
    return found


def _describe(error: Exception) -> str:
    """Return an error's type and message, or the line that raised it if the message is empty."""
    if str(error):
        return f"{type(error).__name__}: {error}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {last.filename}, line {last.lineno}: {last.line}"


@dataclass
class GymnasiumEnvironment:
    """A Gymnasium environment, given by its id, keyword arguments, time limit and wrappers."""

    id: str
    kwargs: Mapping = field(default_factory=dict)
    max_episode_steps: int | None = None  # None for the registered limit
    wrappers: Sequence[str | Mapping] = ()  # as in `env_wrappers`, the first innermost
    check: bool = True  # whether episodes must depend only on their seeds
    opengl: str | None = None  # the name of the OpenGL renderer; None for any
    is_draft: bool = False  # whether MuJoCo renders without shadows and multisampling

    idle_share: ClassVar = 0.0  # Gymnasium does not step an episode after its end

    def __post_init__(self) -> None:
        self.renderer: str | None = None  # the name of that of OpenGL, from the first frame on
        self.new, self.used = [], []  # instances that have not played, and those that have
        self.reusable = None  # whether used instances may play again, or None before the check
        self.making_seconds = 0.0  # spent on making instances for episodes
        self.render_mode = "rgb_array"  # of instances that play, or None if nobody needs frames
        self.max_step_seconds = 0  # of a call of a method; 0 for any
        self.has_network = False  # whether a network plays, or the user's function
        self._memo, self._loading = FrameMemo(), Loading()
        self._bare = WeakValueDictionary()  # instances without their wrappers
        # Whether instances have wrappers, also of their id, and whether new ones are as good.
        self.is_wrapped = self.is_renewable = False

    @property
    def max_envs(self) -> int:
        """The greatest number of episodes in a batch. Instances may start slowly, so it is small.

        An ALE game takes 0.2 s, which only batches of a network's observations make up for. Two are
        needed to find out whether instances can be reused.
        """
        if not self.id.startswith("ALE/"):
            return 4
        return 5 if self.has_network else 2

    def make(self, render_mode: str | None = "rgb_array"):
        """Return a new instance. Raises GoalreelError if Gymnasium cannot make one."""
        import gymnasium

        try:
            load_creator(self.id)  # raises if it has no render mode for films
            how = {"render_mode": render_mode} | make_arguments(self.kwargs)
            env = gymnasium.make(find_spec(self.id), self.max_episode_steps, **how)
        except GoalreelError as error:
            raise GoalreelError(f"env: {error}") from None
        except Exception as error:  # its constructor may raise anything
            kwargs = f" with env_kwargs {dict(self.kwargs)}" if self.kwargs else ""
            problem = f"env: {self.id!r} cannot be made{kwargs}. Correct its arguments or its code."
            family = str(find_spec(self.id).entry_point).partition(".")[0]
            older = _MUJOCO.get(family)
            advice = f"\n  If MuJoCo is too new: pip install '{older}'" if older else ""
            raise GoalreelError(f"{problem}\n  {_describe(error)}{advice}") from error
        inner = env.unwrapped
        camera, renderer = self.kwargs.get("camera_name"), getattr(inner, "mujoco_renderer", None)
        if camera and renderer and renderer.camera_id == -1:  # MuJoCo would take its free camera
            names = [inner.model.camera(number).name for number in range(inner.model.ncam)]
            raise GoalreelError(f"render.camera: {unknown('camera', camera, names)}")
        if self.is_draft:  # read when an instance renders for the first time
            quality = inner.model.vis.quality
            quality.offsamples = quality.shadowsize = 0
        # A saved state lacks the sound.
        if type(inner).__module__ == "ale_py.env" and not self.kwargs.get("sound_obs"):
            self._loading.speed_up(inner)
        self._bare[id(inner)] = env
        is_plain = all(
            type(layer).__name__ in _NEUTRAL and type(layer).__module__.startswith("gymnasium.")
            for layer in layers(env)[:-1]
        )
        self.is_wrapped = bool(self.wrappers) or not is_plain
        names = (named(wrapper)[0] for wrapper in self.wrappers)
        self.is_renewable = is_plain and all(name.startswith(_RENEWABLE) for name in names)
        env = apply_wrappers(env, self.wrappers)
        parameters = inspect.signature(inner.reset).parameters.values()
        if not any(p.name == "seed" or p.kind is p.VAR_KEYWORD for p in parameters):
            if self.check:
                raise GoalreelError(
                    f"env: The reset of {self.id!r} takes no seed, so its episodes cannot be "
                    f"repeated. To film each of them once: --config check_determinism=false"
                )
            inner.reset = partial(_reset_without_seed, inner.reset)
        return env

    @cached_property
    def _spaces(self) -> tuple:
        env = self.make(self.render_mode)
        self.new.append(env)
        meanings = getattr(env.unwrapped, "get_action_meanings", list)
        num_poses = 0 if self.is_wrapped else len(mujoco_scene.poses(env.unwrapped))
        return env.observation_space, env.action_space, meanings(), num_poses

    observation_space = property(lambda self: self._spaces[0], doc="Gymnasium's observation space.")
    action_space = property(lambda self: self._spaces[1], doc="Gymnasium's action space.")
    action_meanings = property(lambda self: self._spaces[2], doc="Those of an Atari game, else [].")
    num_poses = property(lambda self: self._spaces[3], doc="The numbers that MuJoCo draws, else 0.")

    @cached_property
    def actions(self) -> ActionSpace:
        """The action space, as goalreel stores actions."""
        return action_space(self.action_space, self.id)

    @cached_property
    def width(self) -> int:
        """The number of stored values per observation: all values of a small Box, else 0."""
        from gymnasium import spaces

        space = self.observation_space
        size = int(np.prod(space.shape)) if isinstance(space, spaces.Box) else 0
        return size if size <= _MAX_STORED_NUMBERS else 0

    def sub_envs(self, seeds: np.ndarray) -> "_Instances":
        """Return an instance for each seed, reset with that seed."""
        envs = [self.acquire() for _ in seeds]  # first all of them, see atari_loading.py
        return _Instances([*map(Instance, [self] * len(envs), seeds.tolist(), envs)])

    def recorded_state(self, env, observation: object) -> np.ndarray:
        """Return the recorded part of an instance's state, (width,) float64."""
        if self.width == 0:
            return np.zeros(0)
        # The observation of a Mountain Car is its state rounded to float32.
        state = env.unwrapped.state if describe(self.id).is_mountain_car else observation
        return np.array(state, np.float64).reshape(-1)  # a copy: some reuse the array

    def batch(self, observations: list, space=None) -> np.ndarray | dict:
        """Return observations as one array, (num_envs, *shape), in the dtype of their space.

        A Dict space gives one array per key, and a Text space gives an array of strings. Raises
        GoalreelError for others, such as Tuple.
        """
        from gymnasium import spaces

        space = self.observation_space if space is None else space
        if isinstance(space, spaces.Dict):
            return {key: self.batch([o[key] for o in observations], space[key]) for key in space}
        if space.dtype is not None and space.dtype.kind == "U":
            return np.array(observations)
        if space.shape is None or space.dtype is None:
            raise GoalreelError(
                f"env: Only the policies random and recording play {self.id!r}, because of its "
                f"observation space. Add a wrapper that makes arrays (env_wrappers).\n"
                f"  {self.observation_space}"
            )
        return np.stack([np.asarray(o, space.dtype) for o in observations])

    def sample_observations(self, count: int) -> np.ndarray | dict:
        """Return a batch of observations from random episodes with the seeds 0, 1, ..."""
        env = self.make()
        env.action_space.seed(0)
        obs, over = [], [True]
        while len(obs) < count:
            if any(over):
                instance = Instance(self, len(obs), env)
                obs.append(instance.observation)
            _, *over = instance.step(env.action_space.sample())
            obs.append(instance.observation)
        close_instance(env)
        return self.batch(obs[:count])

    def frame(self, env, observation) -> BlockFrame | np.ndarray:
        """Return the frame that `env.render()` gives for an instance of `make`.

        It may be remembered from an earlier call. It is a BlockFrame if `FrameMemo` supports the
        environment, and if neither its id nor its options have wrappers. Raises GoalreelError if
        another OpenGL renderer than planned draws it.
        """
        frame = to_rgb(env.render() if self.is_wrapped else self._memo.render(env, observation))
        if self.renderer is None:
            self.renderer = mujoco_scene.renderer_name(env.unwrapped)
            if self.opengl not in (None, self.renderer):
                raise GoalreelError(
                    f"render.opengl: This machine draws with {self.renderer!r}, not with "
                    f"{self.opengl!r}. Run all jobs on machines with the same GPU and driver, or "
                    "with the same Mesa and MUJOCO_GL=osmesa."
                )
        return frame

    def set_instance_reuse(self, reuse: bool) -> None:
        """Set whether an instance may play several episodes. If not, close all idle instances."""
        self.reusable = reuse
        if not reuse:
            self.close()

    def close(self) -> None:
        """Close all idle instances."""
        for instances in (self.new, self.used):
            while instances:
                close_instance(instances.pop())

    def acquire(self):
        """Return an instance for an episode."""
        if self.reusable and self.used:
            return self.renewed(self.used.pop())
        if self.new:
            return self.new.pop()
        began = time.perf_counter()
        env = self.make(self.render_mode)
        self.making_seconds += time.perf_counter() - began
        return env

    def renewed(self, env):
        """Return a used instance in new wrappers, which know nothing of its episodes."""
        return apply_wrappers(self._bare[id(env.unwrapped)], self.wrappers)

    def release(self, env) -> None:
        """Take back an instance after its episode."""
        is_spare = self.reusable is None and len(self.used) > self.max_envs
        if self.reusable is False or is_spare:
            close_instance(env)
        else:
            self.used.append(env)


@dataclass(frozen=True)
class _Instances(Sequence):
    """A batch of Gymnasium instances (see environment.SubEnvs), and a sequence of observations."""

    instances: list[Instance]

    def __len__(self) -> int:
        return len(self.instances)

    def __getitem__(self, index: int) -> object:
        return self.instances[index].observation  # the latest, made when it is asked for

    def observations(self) -> "_Instances":
        return self

    def states(self) -> np.ndarray:
        return np.stack([instance.state for instance in self.instances], axis=1)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        pairs = zip(self.instances, actions, strict=True)
        steps = [instance.step(action) for instance, action in pairs]
        return tuple(map(np.array, zip(*steps, strict=True)))

    def info(self, index: int) -> dict[str, float]:
        return self.instances[index].info()

    def poses(self) -> np.ndarray:
        envs = (instance.env.unwrapped for instance in self.instances)
        return np.stack([*map(mujoco_scene.poses, envs)], axis=1)

    def take(self, mask: np.ndarray) -> "_Instances":
        return _Instances([self.instances[index] for index in np.flatnonzero(mask)])

    def frames(self) -> list:
        return [instance.frame() for instance in self.instances]

    def close(self) -> None:
        for instance in self.instances:
            instance.environment.release(instance.env)
