"""The HUD: step, return so far and, in Mountain Car, velocity, as layers of few hundred patches.

It is in the rows below Mountain Car's valley, else in a band below the picture; a title card shows
it as at the reset.
"""

from collections.abc import Callable, Iterable

import numpy as np

from goalreel.environments.registry import MAX_SPEED, describe
from goalreel.pictures.layers import Layer, Patches, join
from goalreel.pictures.text import Canvas
from goalreel.simulation.trajectories import Trajectories

# In pixels of a picture of 600x400, rows from its lower border; the lowest point of the hill's line
# is 33 rows above it.
_TOP, _SIZE = 26, 15
_STEP, _RETURN, _VELOCITY, _BAR = 12, 100, 232, 300
_BAR_WIDTH, _BAR_HEIGHT = 120, 11
_SMALLEST = 8 / _SIZE  # scale of the smallest letters that can be read


def hud_layers(
    canvas: Canvas, trajectories: Trajectories, env: str, place: tuple[int, float] | None = None
) -> list[Layer]:
    """Return the HUD's layers, an index per state of the shard, each reset state included.

    Patch 0 of each is the one of hud_at_reset, whether a state of the shard has it or not.
    A picture too narrow for all of it shows the first of step, return, velocity.
    place: its first row and the size of its letters, both in pixels; None for Mountain Car's.
    """
    steps = np.concatenate([np.arange(length) for length in np.diff(trajectories.offsets)])
    half = _half_bar(canvas)
    values = {
        "step": lambda: steps,
        "return": lambda: np.round(_running_returns(trajectories) * 10).astype(np.int64),
        "velocity_label": lambda: np.zeros_like(steps),
        "velocity": lambda: np.round(trajectories.states[:, 1] / MAX_SPEED * half).astype(np.int64),
    }
    parts = _parts(canvas, env, place)
    return [_layer(name, values[name](), draw) for name, draw in parts.items()]


def hud_at_reset(canvas: Canvas, env: str) -> list[Patches]:
    """Return the HUD of every reset state, a patch for each layer: nothing is done or moves yet."""
    return [draw(0) for draw in _parts(canvas, env, None).values()]


def _parts(
    canvas: Canvas, env: str, place: tuple[int, float] | None
) -> dict[str, Callable[[int], Patches]]:
    """Return what draws each layer, given a step, tenths of a return or pixels of the bar."""
    rows, columns = canvas.background.shape[:2]
    if place:
        top, scale = place[0], place[1] / _SIZE
    else:
        scale = max(canvas.scale, _SMALLEST)
        top = max(rows - round(_TOP * scale), 0)

    def write(text: str, left: float) -> Patches:
        return canvas.text(text, top, round(left * scale), _SIZE * scale)

    parts: dict[str, Callable[[int], Patches]] = {"step": lambda n: write(f"step {n}", _STEP)}
    if columns >= _VELOCITY * scale:
        parts["return"] = lambda tenths: write(f"return {_tenths(tenths)}", _RETURN)
    if describe(env).is_mountain_car and columns >= (_BAR + _BAR_WIDTH + _STEP) * scale:
        half, height = _half_bar(canvas), max(round(_BAR_HEIGHT * scale), 4)
        place = top + round(4 * scale), round(_BAR * scale)
        parts["velocity_label"] = lambda _: write("velocity", _VELOCITY)
        parts["velocity"] = lambda pixel: canvas.stamp(_bar(pixel, half, height), *place)
    return parts


def _half_bar(canvas: Canvas) -> int:
    return round(_BAR_WIDTH / 2 * max(canvas.scale, _SMALLEST))


def _layer(name: str, values: np.ndarray, draw: Callable) -> Layer:
    """Return a layer with one patch per distinct value; patch 0 is that of the value 0."""
    distinct = np.setdiff1d(values, [0])
    index = np.where(values == 0, 0, np.searchsorted(distinct, values) + 1)
    return Layer(name, join(map(draw, [0, *distinct.tolist()])), index.astype(np.int32))


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
