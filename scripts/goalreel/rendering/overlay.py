"""The overlay: title cards, captions and the HUD, as layers over a shard's frames.

A card is the empty track (in other environments the episode's first frame) with the episode's
caption, which stays on screen through the episode, and the HUD as at the reset. In Mountain Car
all of it is in rows that the car never touches. Other pictures are enlarged if they are small, and
text stands in bands of its own, so that all of the picture is seen. Everywhere all of it depends on
the episode alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from goalreel.environments.registry import MAX_SPEED, describe
from goalreel.errors import GoalreelError
from goalreel.rendering.blocks import Drawn
from goalreel.rendering.captions import caption
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import NOTHING, Layer, Patches, join
from goalreel.rendering.text import Canvas
from goalreel.simulation.trajectories import Trajectories

_TOP, _SIZE = 7, 18  # the caption's first row and its font's size, in a picture of 600x400
# The HUD's, in pixels of such a picture, rows from its lower border; the lowest point of the hill's
# line is 33 rows above it.
_HUD_TOP, _HUD_SIZE = 26, 15
_STEP, _RETURN, _VELOCITY, _BAR = 12, 100, 232, 300  # columns
_BAR_WIDTH, _BAR_HEIGHT = 120, 11
_SMALLEST = 8 / _HUD_SIZE  # scale of the smallest letters that can be read
_PAPER = (33, 37, 43)  # of bands
_SMALL, _LARGE, _WIDE = 320, 480, 1920  # rows and columns of pictures, see `fitting_scale`


def captions(template: str, trajectories: Trajectories, env: str, unit: str) -> list[str] | None:
    """Return the caption of each filmed episode, None for the empty template.

    unit: what the run counts, "reach" or "episode".
    """
    rows = trajectories.episodes
    count = len(rows.reach) if template else 0
    return [caption(template, rows.row(i), env, unit) for i in range(count)] or None


def overlaid(
    cache: FrameCache,
    trajectories: Trajectories,
    env: str,
    texts: list[str] | None,
    hud: bool,
    cards: int,
    scale: int | None = None,
) -> FrameCache:
    """Return a shard's frames with its overlay; `cards` frames come before each reset frame.

    Args:
        cache: the frames.
        trajectories: the shard's.
        env: the environment.
        texts: a line for each episode, from its card to its end; None for none.
        hud: whether there is a HUD.
        cards: frames of a card; an episode of the result begins with its card.
        scale: how many times pictures that Gymnasium draws are enlarged; None for what fits them.

    Raises:
        GoalreelError: the frames do not show these trajectories.
    """
    if cache.source != trajectories.digest():
        raise GoalreelError(
            "the frames do not show these trajectories; delete them and run snakemake again"
        )
    cache, bands = framed(cache, scale, texts is not None, hud)
    is_track = bands is None  # whose background is the empty track
    canvas = Canvas(cache.background)
    resets = cache.offsets[:-1]
    layers = [
        _with_cards(layer, cache.offsets, cards, NOTHING if is_track else layer.index[resets])
        for layer in cache.layers
    ]
    offsets = cache.offsets + cards * np.arange(len(cache.offsets))
    if texts is not None:
        lines = (
            bands.caption(canvas, text) if bands else canvas.centred(text, _TOP, _SIZE)
            for text in texts
        )
        index = np.repeat(np.arange(len(resets), dtype=np.int32), np.diff(offsets))
        layers.append(Layer("caption", join(lines), index))
    if hud:
        place = bands.hud(canvas) if bands else None
        for layer in hud_layers(canvas, trajectories, env, place):
            layers.append(_with_cards(layer, cache.offsets, cards, 0))  # as at a reset
    return replace(cache, layers=tuple(layers), offsets=offsets)


def fitting_scale(size: tuple[int, int]) -> int:
    """Return how many times a picture is enlarged by default, so that it can be seen well.

    size: H and W. The least number that gives 480 rows, but 1 from 320 rows on, where twice would
    be four times the pixels to encode, and no more than keeps a wide one within 1920 columns.
    """
    height, width = size
    most = max(_WIDE // width, 1)
    return 1 if height >= _SMALL else min(-(-_LARGE // height), most)


@dataclass(frozen=True)
class Bands:
    """Bands of paper above and below pictures; width: of the film."""

    width: int

    @property
    def size(self) -> int:
        """The font's size."""
        return min(max(round(0.03 * self.width), 14), 40)

    @property
    def height(self) -> int:
        """Rows of a band: whole macroblocks, so that the picture's own are changed alone."""
        return -(-self.size * 3 // 2 // 16) * 16

    def _top(self) -> int:
        """Return the first row of a line in its band, so that capitals are in the middle."""
        return (self.height - round(1.25 * self.size)) // 2

    def caption(self, canvas: Canvas, text: str) -> Patches:
        """Return a caption in the band above."""
        return canvas.text(text, self._top(), self.size, room=self.width - self.size)

    def hud(self, canvas: Canvas) -> tuple[int, float]:
        """Return the first row of the HUD in the band below, and its font's size."""
        return len(canvas.background) - self.height + self._top(), self.size


def framed(
    cache: FrameCache, scale: int | None, caption: bool = False, hud: bool = False
) -> tuple[FrameCache, Bands | None]:
    """Return drawn pictures enlarged, with a band above for captions and one below for the HUD.

    A frame's sides are even: odd ones count the last row or column once more. Frames that are
    patches over a background stay as they are, without bands.
    """
    (pictures,) = cache.layers
    if not isinstance(pictures, Drawn):
        return cache, None
    scale = scale or fitting_scale(pictures.size)
    # Blocks at an odd border are filled up with it.
    height, width = (length + length % 2 * (scale % 2) for length in pictures.size)
    bands = Bands(width * scale)
    top, bottom = bands.height * caption, bands.height * hud
    background = np.full((top + height * scale + bottom, width * scale, 3), _PAPER, np.uint8)
    pictures = replace(pictures, size=(height, width), scale=scale, top=top)
    pictures.paste(background, 0)
    return replace(cache, background=background, layers=(pictures,)), bands


def empty_card(background: np.ndarray, env: str, hud: bool) -> np.ndarray:
    """Return the title card without its caption, (H, W, 3) uint8, given the empty track."""
    card = background.copy()
    for patch in _hud_at_reset(Canvas(background), env) if hud else ():
        patch.paste(card, 0)
    return card


def clear_rows(background: np.ndarray, env: str, hud: bool) -> tuple[int, int]:
    """Return which rows of pixels, from and to, no overlay touches, whatever it says."""
    canvas = Canvas(background)
    top, _, height, _ = canvas.centred("Ag", _TOP, _SIZE).boxes[0].tolist()
    lowest = [int(patch.boxes[0, 0]) for patch in _hud_at_reset(canvas, env) if hud]
    return top + height, min(lowest, default=len(background))


def _with_cards(
    layer: Layer | Drawn, offsets: np.ndarray, cards: int, shown: int | np.ndarray
) -> Layer | Drawn:
    """Return a layer with `cards` more frames before each episode; `shown` is on them."""
    episodes = np.arange(len(offsets) - 1)
    index = np.empty(len(layer.index) + cards * len(episodes), layer.index.dtype)
    starts = offsets[:-1] + cards * episodes
    index[(starts[:, None] + np.arange(cards)).ravel()] = np.repeat(
        np.broadcast_to(shown, episodes.shape), cards
    )
    moved = np.repeat(cards * (episodes + 1), np.diff(offsets))
    index[np.arange(len(layer.index)) + moved] = layer.index
    return replace(layer, index=index)


def hud_layers(
    canvas: Canvas, trajectories: Trajectories, env: str, place: tuple[int, float] | None = None
) -> list[Layer]:
    """Return the HUD's layers, an index per state of the shard, each reset state included.

    Patch 0 of each is that of any reset state, whether a state of the shard has it or not.
    A picture too narrow for all of it shows the first of step, return, velocity.
    place: its first row and the size of its letters, both in pixels; None for Mountain Car's.
    """
    layers = []
    for name, (values_of, draw) in _hud_parts(canvas, env, place).items():
        values = values_of(trajectories)
        distinct = np.setdiff1d(values, [0])
        index = np.where(values == 0, 0, np.searchsorted(distinct, values) + 1)
        patches = join(map(draw, [0, *distinct.tolist()]))
        layers.append(Layer(name, patches, index.astype(np.int32)))
    return layers


def _hud_at_reset(canvas: Canvas, env: str) -> list[Patches]:
    """Return the HUD of every reset state, a patch for each layer: nothing is done or moves yet."""
    return [draw(0) for _, draw in _hud_parts(canvas, env).values()]


def _hud_parts(
    canvas: Canvas, env: str, place: tuple[int, float] | None = None
) -> dict[str, tuple[Callable[[Trajectories], np.ndarray], Callable[[int], Patches]]]:
    """Return each layer's values, whole numbers per state, and what draws one of them."""
    rows, columns = canvas.background.shape[:2]
    if place:
        top, scale = place[0], place[1] / _HUD_SIZE
    else:
        scale = max(canvas.scale, _SMALLEST)
        top = max(rows - round(_HUD_TOP * scale), 0)

    def write(text: str, left: float) -> Patches:
        return canvas.text(text, top, _HUD_SIZE * scale, round(left * scale))

    parts = {"step": (_steps, lambda step: write(f"step {step}", _STEP))}
    if columns >= _VELOCITY * scale:
        parts["return"] = (
            _tenths,
            lambda tenths: write(f"return {f'{tenths / 10:.1f}'.removesuffix('.0')}", _RETURN),
        )
    if describe(env).is_mountain_car and columns >= (_BAR + _BAR_WIDTH + _STEP) * scale:
        half = round(_BAR_WIDTH / 2 * max(canvas.scale, _SMALLEST))
        height = max(round(_BAR_HEIGHT * scale), 4)
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


def _steps(trajectories: Trajectories) -> np.ndarray:
    """Return each state's step, (states,) int64."""
    return np.concatenate([np.arange(length) for length in np.diff(trajectories.offsets)])


def _tenths(trajectories: Trajectories) -> np.ndarray:
    """Return ten times the sum of the rewards up to each state, (states,) int64."""
    rewards = (trajectories.episode(i)[2] for i in range(len(trajectories)))
    sums = np.concatenate([np.append(0.0, np.cumsum(episode)) for episode in rewards])
    return np.round(sums * 10).astype(np.int64)


def _shown(tenths: int) -> str:
    return f"{tenths / 10:.1f}".removesuffix(".0")


def _bar(pixel: int, half: int, height: int) -> np.ndarray:
    """Return a bar from the middle to `pixel`, in a frame that is `half` wide on either side."""
    mask = np.zeros((height, 2 * half + 1), np.uint8)
    mask[[0, -1], :] = mask[:, [0, -1]] = 90
    mask[1:-1, half] = 150
    low, high = sorted((half, half + pixel))
    mask[2:-2, low : high + 1] = 255
    return mask
