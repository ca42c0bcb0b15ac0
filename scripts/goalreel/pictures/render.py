"""Rendering: the frames of a shard, from its trajectories.

Where an atlas holds every picture, each state's is looked up. Elsewhere each filmed episode is
played again and drawn by Gymnasium; the recorded rewards, endings and observations must come again
bit for bit, so that the pictures are those of the recorded episode.
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from goalreel.environments.gymnasium_env import GymnasiumEnvironment, Step
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError
from goalreel.pictures.atlas import Atlas, read_atlas, state_keys
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import Layer, cut_patches, join, layer_from_frames
from goalreel.pictures.styles import Style, make_style
from goalreel.provenance.spec import Spec, check_alike
from goalreel.simulation.trajectories import Trajectories


def render_shard(
    trajectories: Trajectories, config: Mapping, atlas: Path | None, spec: Spec
) -> FrameCache:
    """Return the frames of a shard, drawn as its environment is.

    Args:
        trajectories: what is shown.
        config: env and, where there is an atlas, render; elsewhere env_kwargs and max_steps.
        atlas: the atlas's file, for an environment that has one.
        spec: how the frames are made.

    Raises:
        GoalreelError: the inputs do not fit together, or as `render_states` and `render_episodes`.

    """
    env = config["env"]
    if not describe(env).has_atlas:
        environment = GymnasiumEnvironment(
            env, config.get("env_kwargs") or {}, config.get("max_steps")
        )
        return render_episodes(trajectories, environment, spec)
    if atlas is None:
        raise GoalreelError(f"{env} is drawn from an atlas; name it with --atlas")
    style = make_style(env, config["render"])
    return render_states(trajectories, read_atlas(atlas), style, spec)


def render_states(trajectories: Trajectories, atlas: Atlas, style: Style, spec: Spec) -> FrameCache:
    """Return the frames of a shard: one per state, each episode's reset state first.

    Raises GoalreelError if the trajectories or the atlas are of another environment, or the atlas
    is drawn otherwise than `spec` asks.
    """
    asked = {**spec.config, "env": style.env}
    check_alike(asked, "trajectories are", trajectories.spec)
    check_alike(asked, "atlas is", atlas.spec)
    keys = state_keys(trajectories.states, trajectories.offsets, style)
    pictures = atlas.find(keys)
    patches = atlas.patches
    missing = pictures < 0
    if missing.any():
        # Rounding at a pixel's border can give a key that the atlas's search did not meet.
        extra, which = np.unique(keys[missing], axis=0, return_inverse=True)
        pictures[missing] = len(patches) + which.reshape(-1)
        patches = join([patches, cut_patches(atlas.background, style.draw(extra)[1])])
    used, index = np.unique(pictures, return_inverse=True)
    car = Layer("car", patches.take(used), index.astype(np.int32))
    return FrameCache(atlas.background, (car,), trajectories.offsets, trajectories.digest(), spec)


def render_episodes(
    trajectories: Trajectories, environment: GymnasiumEnvironment, spec: Spec
) -> FrameCache:
    """Return the frames of a shard: one per state, each episode's reset state first.

    Raises GoalreelError if the trajectories are of another environment, if one does not repeat
    itself, and if a picture is not uint8 (H, W, 3) of the same size as all others.
    """
    env = trajectories.spec.config.get("env", environment.id)
    if env != environment.id:
        raise GoalreelError(f"the trajectories are of {env}, not of {environment.id}; delete them")
    pictures = _pictures(trajectories, environment)
    background = next(pictures)
    layer = layer_from_frames("picture", background, itertools.chain([background], pictures))
    return FrameCache(background, (layer,), trajectories.offsets, trajectories.digest(), spec)


def replayed(
    environment: GymnasiumEnvironment,
    seed: int,
    states,
    actions,
    rewards,
    ending: tuple[bool, bool],
) -> Iterator[Step]:
    """Yield every step of a recorded episode as Gymnasium plays it again, with its picture.

    states: (steps + 1, width); actions: (steps, ...); rewards: (steps,); ending: whether the last
    step terminated and truncated it. Raises GoalreelError at the first step that is not bit for
    bit the recorded one.
    """
    for step in environment.play(seed, actions, pictures=True):
        place = f"{environment.id}: the episode of seed {seed}, step {step.step}"
        _compare(place, "the observation", step.state, states[step.step])
        if step.step:
            _compare(place, "the reward", step.reward, rewards[step.step - 1])
            over = (step.terminated, step.truncated)
            last = step.step == len(actions)
            _compare(place, "(terminated, truncated)", over, ending if last else (False, False))
        yield step


def _pictures(
    trajectories: Trajectories, environment: GymnasiumEnvironment
) -> Iterator[np.ndarray]:
    """Yield every picture of a shard, all of one size."""
    rows, shape = trajectories.episodes, ()
    for e in range(len(trajectories)):
        seed, ending = int(rows.seed[e]), (bool(rows.terminated[e]), bool(rows.truncated[e]))
        for step in replayed(environment, seed, *trajectories.episode(e), ending):
            place = f"{environment.id}: the episode of seed {seed}, step {step.step}"
            picture = _checked(step.picture, place)
            shape = shape or picture.shape
            if picture.shape != shape:
                raise GoalreelError(
                    f"{place}: env.render() returned {picture.shape[1]}x{picture.shape[0]} pixels, "
                    f"and {shape[1]}x{shape[0]} in the shard's first frame; "
                    f"all frames must have one size"
                )
            yield picture


def _checked(picture: object, place: str) -> np.ndarray:
    """Return a copy of a picture, which the environment may draw over."""
    array = np.asarray(picture)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
        kind = type(picture).__name__ if array.dtype == object else array.dtype
        raise GoalreelError(
            f"{place}: env.render() returned {kind} of shape {array.shape}; "
            f"allowed: uint8 of shape (height, width, 3)"
        )
    return array.copy()


def _compare(place: str, what: str, again: object, recorded: object) -> None:
    if not np.array_equal(np.asarray(again, float), np.asarray(recorded, float), equal_nan=True):
        raise GoalreelError(
            f"{place}: Gymnasium gives {what} {_shown(again)}, the recording has "
            f"{_shown(recorded)}; an environment can be filmed only if its episodes depend on "
            f"their seed alone"
        )


def _shown(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
