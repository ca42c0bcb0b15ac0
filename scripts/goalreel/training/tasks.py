"""The task of a training: the environments that fit, and how a network sees them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from goalreel.environments.environment import gymnasiums_environment, parts_of
from goalreel.errors import OptionError, quoted
from goalreel.policies.preprocessing import SIDE
from goalreel.training.envs import (
    AtariEnvs,
    Envs,
    GymnasiumEnvs,
    StackedFrames,
    Task,
    episode_seeds,
    has_pixels,
    is_picture,
)
from goalreel.training.settings import Settings

_SEEN = 200  # decisions of random play


def check_spaces(config: Mapping, observation_space, action_space) -> None:
    """Raise OptionError if the spaces do not fit a training, or its network."""
    from gymnasium import spaces

    env, train = config["env"], config["train"]
    if not isinstance(action_space, spaces.Discrete):
        kind = "continuous actions" if isinstance(action_space, spaces.Box) else str(action_space)
        fix = "Training needs discrete ones, as CartPole-v1 has."
        raise OptionError("env", f"{quoted(env)} has {kind}. {fix}")
    if train["pixels"] or is_picture(observation_space):
        if isinstance(train["network"], list):
            problem = f"'{train['network']}' is for states, but {env} has frames"
            raise OptionError("train.network", f"{problem}. Use small, for example.")
        return
    try:
        spaces.flatdim(observation_space)
    except (NotImplementedError, ValueError):  # a graph, or a sequence
        kind = f"{quoted(env)} has observations of the type {type(observation_space).__name__}"
        fix = "Training needs arrays, which a wrapper can make (env_wrappers)."
        raise OptionError("env", f"{kind}. {fix}") from None
    is_own = ":" in str(train["network"])
    pictures = [part.shape for part in parts_of(observation_space) if has_pixels(part)]
    if pictures and not is_own:
        problem = f"{quoted(env)} has pictures of the shape {pictures[0]} in its observations"
        fix = "Training needs one gray or RGB picture, which a wrapper can make (env_wrappers)."
        raise OptionError("env", f"{problem}. {fix}")
    if isinstance(train["network"], str) and not is_own:
        problem = f"{quoted(train['network'])} is for frames, but {env} has states"
        raise OptionError("train.network", f"{problem}. Use a list, such as [64, 64].")
    if train["screen_size"] != SIDE:
        problem = f"'{train['screen_size']}' is for frames, but {env} has states"
        raise OptionError("train.screen_size", f"{problem}. Remove it.")


def make_task(config: Mapping, settings: Settings) -> Task:
    """Return the task of a configuration. Raises GoalreelError if its environment does not fit."""
    from gymnasium.spaces import flatdim, flatten_space

    name = config["env"].rpartition(":")[2]
    pixels = {"warp": "pillow", "maximum": False, "noop": 0, "fire": False, "marks": False}
    pixels["background"] = None
    environment = gymnasiums_environment(config)
    actions, space = environment.action_space, environment.observation_space
    environment.close()
    check_spaces(config, space, actions)
    if name.startswith("ALE/"):
        pixels |= {"warp": "area", "maximum": settings.frame_skip > 1, "noop": 30, "fire": True}
    elif name.startswith("SuperMarioBros-"):
        pixels |= {"warp": "mario", "noop": 30, "marks": True}
    elif not settings.pixels and not is_picture(space):
        flat = flatten_space(space)
        low, high = (np.asarray(bound, np.float32).reshape(-1) for bound in (flat.low, flat.high))
        unbounded = ~(np.isfinite(low) & np.isfinite(high) & (high > low) & (high - low < 1e6))
        low, high = np.where(unbounded, -1, low), np.where(unbounded, 1, high)
        own = dict.fromkeys(pixels) | {"obs": "state", "stack": 1}
        return Task(config, int(actions.n), (flatdim(space),), low, high, own)
    stack, bounds = 4, (np.float32(0), np.float32(255))
    own = {**pixels, "obs": "pixels", "stack": stack}
    task = Task(config, int(actions.n), (stack, SIDE, SIDE), *bounds, own)
    task = replace(task, **_bounds(task, Settings(**vars(settings) | {"starts": "reset"})))
    if (side := settings.screen_size) == SIDE:
        return task
    own["background"] = round(float(task.low + task.high) / 2)
    return replace(task, shape=(stack, side, side), preprocessing=own)


def _bounds(task: Task, settings: Settings) -> dict[str, np.float32]:
    """Return which pixels enter as -1 and 1: at random play's deviation from its median."""
    # Most pixels are then near 0. Without that, DQN learned Pong several times as slowly.
    envs, rng, seen = make_envs(task, settings, 0, range(4)), np.random.default_rng(0), []
    for _ in range(_SEEN):
        seen.append(envs.obs[:, -1].copy())
        envs.step(rng.integers(task.num_actions, size=4))
    envs.close()
    middle = np.rint(np.median(seen))
    deviation = max(np.rint(np.sqrt(np.square(np.subtract(seen, middle)).mean())), 1)
    return {"low": np.float32(middle - deviation), "high": np.float32(middle + deviation)}


def make_envs(task: Task, settings: Settings, seed: int, indices: range) -> Envs:
    """Return the environments with the given indices; those of a seed and an index always equal."""
    name = task.config["env"].rpartition(":")[2]
    if name.startswith("SuperMarioBros-"):
        from goalreel.training.mario_envs import MarioEnvs

        return MarioEnvs(task, settings, seed, indices)
    seeds = [episode_seeds(seed, n) for n in indices]
    if settings.pixels:
        from goalreel.training.mountain_car_envs import CarPixelEnvs

        envs = CarPixelEnvs(settings.frame_skip, seeds)
    elif name.startswith("ALE/"):
        envs = AtariEnvs(task, settings, seed, indices)
    else:
        envs = GymnasiumEnvs(task, settings.frame_skip, seeds)
    if not task.is_pixels:
        return envs
    return StackedFrames(envs, task.preprocessing["stack"], task.preprocessing["background"])
