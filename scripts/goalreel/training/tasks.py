"""Make the task of a training, and its vectorized environments."""

from collections.abc import Mapping

import numpy as np

from goalreel.environments.environment import gymnasiums_environment
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError, OptionError
from goalreel.policies.preprocessing import SIDE
from goalreel.training.envs import Envs, StackedFrames, Task, episode_seeds
from goalreel.training.gymnasium_envs import GymnasiumEnvs, is_picture
from goalreel.training.settings import Settings


def make_task(config: Mapping, settings: Settings) -> Task:
    """Return the task of a stage's configuration.

    Raises GoalreelError if the environment cannot be made, or if its actions or observations are
    none that a network of goalreel takes.
    """
    from gymnasium import spaces

    env = config["env"]
    name = env.rpartition(":")[2]
    pixels = {"warp": "pillow", "maximum": False, "noop": 0, "fire": False, "marks": False}
    if settings.pixels and not describe(env).has_atlas:
        raise OptionError("train.pixels", f"{env} is not drawn here. Use env=MountainCar-v0.")
    environment = gymnasiums_environment(config)
    actions, space = environment.action_space, environment.observation_space
    environment.close()
    if not isinstance(actions, spaces.Discrete):
        problem = f"{env} has the actions {actions}. Training takes discrete ones"
        raise GoalreelError(f"env: {problem}, as those of CartPole-v1.")
    if name.startswith("ALE/"):
        pixels |= {"warp": "area", "maximum": settings.frame_skip > 1, "noop": 30, "fire": True}
    elif name.startswith("SuperMarioBros-"):
        pixels |= {"warp": "mario", "noop": 30, "marks": True}
    elif not settings.pixels and not is_picture(space):
        try:
            shape = (spaces.flatdim(space),)
        except (NotImplementedError, ValueError):
            problem = f"{env} has observations that no network takes ({space})"
            raise GoalreelError(f"env: {problem}. Add a wrapper that makes arrays.") from None
        flat = spaces.flatten_space(space)
        low, high = (np.asarray(bound, np.float32).reshape(-1) for bound in (flat.low, flat.high))
        unbounded = ~(np.isfinite(low) & np.isfinite(high) & (high - low < 1e6))
        low, high = np.where(unbounded, -1, low), np.where(unbounded, 1, high)
        own = dict.fromkeys(pixels) | {"obs": "state", "stack": 1}
        return Task(config, int(actions.n), shape, low, high, own)
    stack = 4
    low, high = (90.0, 270.0) if pixels["marks"] else (-255.0, 255.0)
    low, high = np.float32(low), np.float32(high)
    own = {**pixels, "obs": "pixels", "stack": stack}
    return Task(config, int(actions.n), (stack, SIDE, SIDE), low, high, own)


def make_envs(task: Task, settings: Settings, seed: int, indices: range) -> Envs:
    """Return the environments with the given indices; those of a seed and an index always equal."""
    env, stack = task.config["env"], task.preprocessing["stack"]
    name = env.rpartition(":")[2]
    if name.startswith("SuperMarioBros-"):
        from goalreel.training.mario_envs import MarioEnvs

        return MarioEnvs(task, settings, seed, indices)
    if settings.pixels:
        from goalreel.training.mountain_car_envs import CarPixelEnvs

        envs = CarPixelEnvs(settings.frame_skip, [episode_seeds(seed, n) for n in indices])
    elif name.startswith("ALE/"):
        from goalreel.training.atari_envs import AtariEnvs

        envs = AtariEnvs(task, settings.frame_skip, seed, indices)
    else:
        seeds = [episode_seeds(seed, n) for n in indices]
        envs = GymnasiumEnvs(task, settings.frame_skip, seeds)
    return StackedFrames(envs, stack) if task.is_pixels else envs
