"""Networks with random weights in the files of a training, and settings of a training."""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from goalreel.policies.network_file import PixelCheckpoints, write_checkpoints
from goalreel.policies.pixel_network import NETWORKS, side_after
from goalreel.training.games.settings import CAR, game_settings
from goalreel.training.pixels.presets import PRESETS, with_defaults
from goalreel.training.pixels.settings import PipelineSettings


def random_weights(actions: int, stack: int, seed: int) -> dict[str, np.ndarray]:
    """Return a small network's weights, as Actor.of takes them.

    The network sees only movement, so that its actions vary. Without movement all values are 0.
    """
    rng, (convolutions, hidden) = np.random.default_rng(seed), NETWORKS["small"]
    shapes, channels = {}, stack
    for place, (filters, kernel, _) in enumerate(convolutions):
        shapes[f"convolution{place}"] = (filters, channels, kernel, kernel)
        channels = filters
    side = side_after(tuple(kernel for _, kernel, _ in convolutions))
    shapes |= {"hidden": (hidden, channels * side**2), "values": (actions, hidden)}
    weights = {}
    for name, shape in shapes.items():
        drawn = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
        if name == "convolution0":
            drawn -= drawn.mean(axis=1, keepdims=True)
        weights[f"{name}.weight"] = drawn.astype(np.float32)
        weights[f"{name}.bias"] = np.zeros(shape[0], np.float32)
    return weights


def random_policy(
    path: Path, game: str, actions: int, checkpoint_steps: tuple[int, ...] = (0, 100), **changes
) -> Path:
    """Write a policy file of a game, with `changes` to its GameSettings."""
    settings = asdict(game_settings(game, **changes))
    weights = tuple(random_weights(actions, 4, step) for step in checkpoint_steps)
    means = tuple(float(step) for step in checkpoint_steps)
    given = {"game": settings, "actions": actions, "stack": 4}
    checkpoints = PixelCheckpoints(checkpoint_steps, means, weights, **given)
    write_checkpoints(path, checkpoints)
    return path


def random_perceptron(seed: int, hidden: tuple[int, ...] = (8, 8)) -> dict[str, np.ndarray]:
    """Return the weights of a network for Mountain Car's state, as Network.of takes them."""
    rng, sizes, weights = np.random.default_rng(seed), (2, *hidden, 3), {}
    for number, (inputs, outputs) in enumerate(zip(sizes, sizes[1:], strict=False)):
        weights[f"{2 * number}.weight"] = rng.normal(0, 1, (outputs, inputs)).astype(np.float32)
        weights[f"{2 * number}.bias"] = rng.normal(0, 0.02, outputs).astype(np.float32)
    return weights


def settings(**changes) -> PipelineSettings:
    """Return settings for tests: small batches, float32, on the CPU."""
    section = {**dict.fromkeys(PRESETS[CAR]), "game": "MountainCar-v0"}
    plain = {"batch_size": 8, "autocast": False, "device": "cpu", "dueling": False}
    plain |= {"python": None, "seed": 1, "learning_rate": 1e-4, "max_grad_norm": 0}
    return PipelineSettings(**(with_defaults(section) | plain | changes))
