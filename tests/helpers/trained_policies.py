"""Network files with random weights."""

from pathlib import Path

import numpy as np

from goalreel.policies.network_file import Checkpoints, write_checkpoints

ALE = {"warp": "area", "maximum": True, "noop": 30, "fire": True}
MARIO = {"warp": "mario", "noop": 30, "marks": True}


def random_weights(actions: int, seed: int, inputs: int = 0, hidden=(32,)) -> dict[str, np.ndarray]:
    """Return the weights of a network of four frames, or of `inputs` numbers.

    One of frames sees only movement, so that its actions vary.
    """
    rng, shapes = np.random.default_rng(seed), {}
    if not inputs:
        shapes, inputs = {"convolution0": (8, 4, 8, 8), "convolution1": (16, 8, 4, 4)}, 16 * 81
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
    settings |= {"noop": 0, "fire": False, "marks": False} | own
    if inputs:
        settings |= {"obs": "state", "obs_shape": [inputs], "stack": 1, "warp": None}
    weights = tuple(random_weights(actions, step, inputs) for step in steps)
    checkpoints = Checkpoints(steps, tuple(map(float, steps)), weights, settings | changes)
    write_checkpoints(path, checkpoints)
    return path
