"""The HUD: step, return so far and, in Mountain Car, velocity, as layers of few hundred patches.

It stands in the rows below Mountain Car's valley. Where it is laid over the frames is told by
overlay.
"""

from collections.abc import Callable, Iterable

import numpy as np

from goalreel.layers import Layer, join
from goalreel.mountain_car import MAX_SPEED, NATIVE
from goalreel.signwriting import Board
from goalreel.trajectories import Trajectories

# In columns and rows of a picture of 400 rows; the lowest point of the hill's line is row 367.
_TOP, _SIZE = 374, 15
_STEP, _RETURN, _VELOCITY, _BAR = 12, 96, 232, 300
_BAR_WIDTH, _BAR_HEIGHT = 120, 11


def hud_layers(board: Board, trajectories: Trajectories, env: str) -> list[Layer]:
    """Return the HUD's layers, an index per state of the shard, each reset state included."""
    lengths = np.diff(trajectories.offsets)
    steps = np.concatenate([np.arange(length) for length in lengths])
    returns = _running_returns(trajectories)
    layers = [
        _layer("step", steps, lambda step: board.text(f"step {step}", _TOP, _SIZE, _STEP)),
        _layer(
            "return",
            np.round(returns * 10).astype(np.int64),
            lambda tenths: board.text(f"return {_tenths(tenths)}", _TOP, _SIZE, _RETURN),
        ),
    ]
    if env in NATIVE:
        label = board.text("velocity", _TOP, _SIZE, _VELOCITY)
        layers.append(Layer("velocity_label", label, np.zeros(len(steps), np.int32)))
        half = board.scaled(_BAR_WIDTH / 2)
        pixels = np.round(trajectories.states[:, 1] / MAX_SPEED * half).astype(np.int64)
        layers.append(_layer("velocity", pixels, lambda pixel: _bar(board, pixel, half)))
    return layers


def _layer(name: str, values: np.ndarray, draw: Callable) -> Layer:
    """Return a layer with one patch per distinct value."""
    distinct, index = np.unique(values, return_inverse=True)
    return Layer(name, join(map(draw, distinct.tolist())), index.astype(np.int32))


def _running_returns(trajectories: Trajectories) -> np.ndarray:
    """Return the sum of the rewards up to each state, (states,) float64."""
    parts: Iterable = (
        np.concatenate([[0.0], np.cumsum(trajectories.episode(i)[2])])
        for i in range(len(trajectories))
    )
    return np.concatenate(list(parts))


def _tenths(value: int) -> str:
    return f"{value / 10:.1f}".removesuffix(".0")


def _bar(board: Board, pixel: int, half: int):
    """Return a bar from the middle to `pixel`, in a frame that is `half` wide on either side."""
    height = max(board.scaled(_BAR_HEIGHT), 4)
    mask = np.zeros((height, 2 * half + 1), np.uint8)
    mask[[0, -1], :] = mask[:, [0, -1]] = 90
    mask[1:-1, half] = 150
    low, high = sorted((half, half + pixel))
    mask[2:-2, low : high + 1] = 255
    return board.stamp(mask, board.scaled(_TOP + 4), board.scaled(_BAR))
