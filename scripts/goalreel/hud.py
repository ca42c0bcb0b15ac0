"""The HUD: step, return so far and, in Mountain Car, velocity, as layers of few hundred patches.

It stands in the rows below Mountain Car's valley. Where it is laid over the frames is told by
overlay.
"""

from collections.abc import Callable, Iterable

import numpy as np

from goalreel.layers import Layer, Patches, join
from goalreel.mountain_car import MAX_SPEED, NATIVE
from goalreel.signwriting import Board
from goalreel.trajectories import Trajectories

# In pixels of a picture of 600x400, rows from its lower border; the lowest point of the hill's line
# is 33 rows above it.
_TOP, _SIZE = 26, 15
_STEP, _RETURN, _VELOCITY, _BAR = 12, 100, 232, 300
_BAR_WIDTH, _BAR_HEIGHT = 120, 11
_SMALLEST = 8 / _SIZE  # scale of the smallest letters that can be read


def hud_layers(board: Board, trajectories: Trajectories, env: str) -> list[Layer]:
    """Return the HUD's layers, an index per state of the shard, each reset state included.

    A picture too narrow for all of it shows the first of step, return, velocity.
    """
    rows, columns = board.background.shape[:2]
    scale = max(board.scale, _SMALLEST)
    top = max(rows - round(_TOP * scale), 0)

    def write(text: str, left: float) -> Patches:
        return board.text(text, top, round(left * scale), _SIZE * scale)

    lengths = np.diff(trajectories.offsets)
    steps = np.concatenate([np.arange(length) for length in lengths])
    layers = [_layer("step", steps, lambda step: write(f"step {step}", _STEP))]
    if columns >= _VELOCITY * scale:
        tenths = np.round(_running_returns(trajectories) * 10).astype(np.int64)
        layers.append(_layer("return", tenths, lambda t: write(f"return {_tenths(t)}", _RETURN)))
    if env in NATIVE and columns >= (_BAR + _BAR_WIDTH + _STEP) * scale:
        label = write("velocity", _VELOCITY)
        layers.append(Layer("velocity_label", label, np.zeros(len(steps), np.int32)))
        half = round(_BAR_WIDTH / 2 * scale)
        pixels = np.round(trajectories.states[:, 1] / MAX_SPEED * half).astype(np.int64)
        place = top + round(4 * scale), round(_BAR * scale)
        height = max(round(_BAR_HEIGHT * scale), 4)
        bars = _layer("velocity", pixels, lambda p: board.stamp(_bar(p, half, height), *place))
        layers.append(bars)
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


def _bar(pixel: int, half: int, height: int) -> np.ndarray:
    """Return a bar from the middle to `pixel`, in a frame that is `half` wide on either side."""
    mask = np.zeros((height, 2 * half + 1), np.uint8)
    mask[[0, -1], :] = mask[:, [0, -1]] = 90
    mask[1:-1, half] = 150
    low, high = sorted((half, half + pixel))
    mask[2:-2, low : high + 1] = 255
    return mask
