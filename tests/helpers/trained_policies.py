"""Network files with random weights."""

from pathlib import Path

import numpy as np

from goalreel.policies.network_file import Checkpoints, write_checkpoints

ALE = {"warp": "area", "maximum": True, "noop": 30, "fire": True}
MARIO = {"warp": "mario", "noop": 30, "marks": True}


def random_weights(actions: int, seed: int, inputs: int = 0, side: int = 84, hidden=(32,)):
    """Return the weights of a network of four frames of a side, or of `inputs` numbers.

    One of frames sees only movement, so that its actions vary.
    """
    rng, shapes = np.random.default_rng(seed), {}
    if not inputs:
        shapes = {"convolution0": (8, 4, 8, 8), "convolution1": (16, 8, 4, 4)}
        inputs = 16 * (9 if side == 84 else 3) ** 2
    for place, outputs in enumerate((*hidden, actions)):
        shapes[f"dense{place}"], inputs = (outputs, inputs), outputs
    weights = {}
    for name, shape in shapes.items():
        drawn = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
        if name == "convolution0":
            drawn -= drawn.mean(axis=1, keepdims=True)
        weights[f"{name}.weight"] = drawn.astype(np.float32)
        weights[f"{name}.bias"] = rng.normal(0, 0.02, shape[0]).astype(np.float32)
    return weights


def random_policy(
    path: Path,
    env: str,
    actions: int,
    inputs: int = 0,
    steps: tuple[int, ...] = (0, 100),
    **changes,
) -> Path:
    """Write a network file of an environment, with `changes` to its settings."""
    own = ALE if env.startswith("ALE/") else MARIO if "Mario" in env else {"warp": "pillow"}
    settings = {"env": env, "actions": actions, "frame_skip": 4, "module": None, "bounds": None}
    settings |= {"obs": "pixels", "obs_shape": [4, 84, 84], "stack": 4, "maximum": False}
    settings |= {"noop": 0, "fire": False, "marks": False, "strides": [4, 2, 1]}
    settings |= {"background": None} | own
    if inputs:
        settings |= {"obs": "state", "obs_shape": [inputs], "stack": 1, "warp": None}
    settings |= changes
    side = settings["obs_shape"][-1]
    weights = tuple(random_weights(actions, step, inputs, side) for step in steps)
    checkpoints = Checkpoints(steps, tuple(map(float, steps)), weights, settings)
    write_checkpoints(path, checkpoints)
    return path
