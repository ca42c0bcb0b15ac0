"""The overlay: captions, the HUD and signals, as layers over a shard's frames.

`add_overlay` adds them. In Mountain Car the text is in rows that the car never reaches. Elsewhere
small frames are enlarged, and the text is in bands above and below. Signals are in a band below
all. The overlay depends only on the episode.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from goalreel.arrays import ranges
from goalreel.environments.registry import MAX_SPEED, describe
from goalreel.errors import GoalreelError
from goalreel.rendering.blocks import BlockLayer
from goalreel.rendering.captions import caption
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import NOTHING, Layer, Patches, join
from goalreel.rendering.signals import count_rows, signal_layers
from goalreel.rendering.text import Canvas
from goalreel.simulation.trajectories import Trajectories

_HUD_SIZE = 15  # font size of the HUD in a frame of 600x400
_STEP, _RETURN, _VELOCITY, _BAR = 12, 100, 232, 300  # the HUD's columns in such a frame
_BAR_WIDTH, _BAR_HEIGHT = 120, 11
_PAPER = (33, 37, 43)  # the color of bands
_SMALL, _LARGE, _WIDE = 320, 480, 1920  # rows and columns, see `fitting_scale`
_SIGNALS_WIDTH = 64  # pixels, at least


class TextRows(NamedTuple):
    """The rows and font sizes of text in a frame, in pixels."""

    caption_top: int
    caption_size: float
    caption_room: int  # the most columns
    hud_top: int
    hud_size: float
    signals_top: int
    signals_height: int  # of each row

    def caption(self, canvas: Canvas, text: str) -> Patches:
        """Return the patch of a caption."""
        return canvas.text(text, self.caption_top, self.caption_size, room=self.caption_room)


# Over a Mountain Car's track the caption ends before the flag, and the HUD is below the hill.
TRACK_ROWS = TextRows(7, 18, 520, 374, _HUD_SIZE, 400, 64)


def captions(template: str, trajectories: Trajectories, env: str, unit: str) -> list[str] | None:
    """Return the caption of each filmed episode, None if the template is empty."""
    rows, count = trajectories.episodes, len(trajectories) if template else 0
    return [caption(template, rows.row(i), env, unit) for i in range(count)] or None


def add_overlay(
    cache: FrameCache,
    trajectories: Trajectories,
    env: str,
    texts: list[str] | None,
    hud: bool,
    track: bool = False,
    scale: int | None = None,
    signals: bool = False,
) -> FrameCache:
    """Return a shard's frames with its overlay: each episode's caption, the HUD, and the signals.

    With `track`, each episode begins with a frame of Mountain Car's empty track, to which all
    others refer in an assembled film. `scale` enlarges images, None by `fitting_scale`. Raises
    GoalreelError if the frames do not show these trajectories, or if these have no signals.
    """
    if cache.source != trajectories.digest():
        raise GoalreelError(
            "frames: They do not show these trajectories. Delete them to make them again."
        )
    if signals and not trajectories.signals:
        raise GoalreelError(
            "overlay.signals: The policy says nothing of its choices. Return (actions, signals) "
            "from its function, or remove overlay.signals."
        )
    rows_below = count_rows(trajectories) if signals else 0
    cache, rows = add_bands(cache, scale, texts is not None, hud, rows_below)
    canvas, (images,), resets = Canvas(cache.background), cache.layers, cache.offsets[:-1]
    added = resets if track else resets[:0]
    # Mountain Car's background is the empty track.
    layers = [replace(images, index=np.insert(images.index, added, NOTHING))]
    offsets = cache.offsets + track * np.arange(len(cache.offsets))
    if texts is not None:
        index = np.repeat(np.arange(len(resets), dtype=np.int32), np.diff(offsets))
        layers.append(Layer("caption", join(rows.caption(canvas, text) for text in texts), index))
    if hud:
        for layer in hud_layers(canvas, rows, trajectories, env):
            # The added frames show the values of a reset.
            layers.append(replace(layer, index=np.insert(layer.index, added, 0)))
    if signals:
        if canvas.background.shape[1] < _SIGNALS_WIDTH:
            fix = "Enlarge them with render.scale."
            raise GoalreelError(f"overlay.signals: Frames are too narrow to show signals. {fix}")
        place = rows.signals_top, rows.signals_height, rows.hud_size
        layers += signal_layers(canvas, trajectories, *place)
    return replace(cache, layers=tuple(layers), offsets=offsets)


def fitting_scale(size: tuple[int, int]) -> int:
    """Return the default factor by which to enlarge frames of a size, (height, width).

    It is the least factor that gives 480 rows. From 320 rows on it is 1, as 2 would quadruple the
    pixels to encode. It keeps a wide frame within 1920 columns.
    """
    height, width = size
    most = max(_WIDE // width, 1)
    return 1 if height >= _SMALL else min(-(-_LARGE // height), most)


def add_bands(
    cache: FrameCache, scale: int | None, caption: bool = False, hud: bool = False, signals: int = 0
) -> tuple[FrameCache, TextRows]:
    """Enlarge the images of a BlockLayer, with a band above for captions and one below for the HUD.

    A band below has rows for `signals`. Odd sides become even by repeating the last row or column.
    Frames with a background stay as they are, except for signals. Also return the rows of text in
    the frames.
    """
    (images,) = cache.layers
    if not isinstance(images, BlockLayer):
        below = np.full((signals * TRACK_ROWS.signals_height, *cache.background.shape[1:]), _PAPER)
        whole = np.concatenate([cache.background, below.astype(np.uint8)])
        return replace(cache, background=whole), TRACK_ROWS
    scale = scale or fitting_scale(images.size)
    # An odd image gains a row or column, which its blocks repeat.
    height, width = (length + length % 2 * (scale % 2) for length in images.size)
    size = min(max(round(0.03 * width * scale), 14), 40)
    band = -(-size * 3 // 2 // 16) * 16  # whole macroblocks, so that only those of the image change
    inset = (band - round(1.25 * size)) // 2  # centers capitals in a band
    top = band * caption + height * scale + band * hud
    rows = top + 2 * band * signals, width * scale
    background = np.full((*rows, 3), _PAPER, np.uint8)
    images = replace(images, size=(height, width), scale=scale, top=band * caption)
    images.paste(background, 0)
    cache = replace(cache, background=background, layers=(images,))
    return cache, TextRows(inset, size, rows[1] - size, top - band + inset, size, top, 2 * band)


def empty_track(background: np.ndarray, env: str, hud: bool) -> tuple[np.ndarray, tuple[int, int]]:
    """Return the frame of the empty track without its caption, (H, W, 3) uint8.

    Also return the range of its rows that no caption or HUD covers.
    """
    frame, canvas, rows = background.copy(), Canvas(background), TRACK_ROWS
    # At a reset, step, return and velocity are 0.
    patches = [draw(0) for _, draw in _hud_parts(canvas, rows, env).values()] if hud else []
    for patch in patches:
        patch.paste(frame, 0)
    top, _, height, _ = rows.caption(canvas, "Ag").boxes[0].tolist()
    lowest = min((int(patch.boxes[0, 0]) for patch in patches), default=len(background))
    return frame, (top + height, lowest)


def hud_layers(canvas: Canvas, rows: TextRows, trajectories: Trajectories, env: str) -> list[Layer]:
    """Return the HUD's layers, with an index per state of the shard, reset states included.

    Patch 0 of each is that of a reset. A frame too narrow for step, return and velocity shows as
    many of them as fit, in this order.
    """
    layers = []
    for name, (values_of, draw) in _hud_parts(canvas, rows, env).items():
        values = values_of(trajectories)
        distinct = np.setdiff1d(values, [0])
        index = np.where(values == 0, 0, np.searchsorted(distinct, values) + 1)
        patches = join(map(draw, [0, *distinct.tolist()]))
        layers.append(Layer(name, patches, index.astype(np.int32)))
    return layers


def _hud_parts(
    canvas: Canvas, rows: TextRows, env: str
) -> dict[str, tuple[Callable[[Trajectories], np.ndarray], Callable[[int], Patches]]]:
    """Return for each layer a function of its values per state, and one that draws a value."""
    top, size, columns = rows.hud_top, rows.hud_size, canvas.background.shape[1]
    scale = size / _HUD_SIZE

    def write(text: str, left: float) -> Patches:
        return canvas.text(text, top, size, round(left * scale))

    parts = {
        "step": (
            lambda shown: ranges(np.zeros(len(shown), np.int64), np.diff(shown.offsets)),
            lambda step: write(f"step {step}", _STEP),
        )
    }
    if columns >= _VELOCITY * scale:
        parts["return"] = (
            _tenths,
            lambda tenths: write(f"return {f'{tenths / 10:.1f}'.removesuffix('.0')}", _RETURN),
        )
    if describe(env).is_mountain_car and columns >= (_BAR + _BAR_WIDTH + _STEP) * scale:
        half, height = round(_BAR_WIDTH / 2 * scale), max(round(_BAR_HEIGHT * scale), 4)
        place = top + round(4 * scale), round(_BAR * scale)
        parts["velocity_label"] = (
            lambda shown: np.zeros(len(shown.states), np.int64),
            lambda _: write("velocity", _VELOCITY),
        )
        parts["velocity"] = (
            lambda shown: np.round(shown.states[:, 1] / MAX_SPEED * half).astype(np.int64),
            lambda pixel: canvas.stamp(_bar(pixel, half, height), *place),
        )
    return parts


def _tenths(trajectories: Trajectories) -> np.ndarray:
    """Return ten times the sum of the rewards up to each state, (states,), as whole floats."""
    rewards = (trajectories.episode(i)[2] for i in range(len(trajectories)))
    sums = np.concatenate([np.append(0.0, np.cumsum(episode)) for episode in rewards])
    return np.round(sums * 10)


def _bar(pixel: int, half: int, height: int) -> np.ndarray:
    """Return a bar from the middle to `pixel`, in a box that extends `half` to either side."""
    mask = np.zeros((height, 2 * half + 1), np.uint8)
    mask[[0, -1], :] = mask[:, [0, -1]] = 90
    mask[1:-1, half] = 150
    low, high = sorted((half, half + pixel))
    mask[2:-2, low : high + 1] = 255
    return mask
