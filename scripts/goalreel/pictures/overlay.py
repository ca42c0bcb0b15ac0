"""The overlay: title cards, captions and the HUD, as layers over a shard's frames.

A card is the empty track (in other environments the episode's first frame) with the episode's
caption, which stays on screen through the episode, and the HUD as at the reset. In Mountain Car
all of it is in rows that the car never touches. Other pictures are enlarged if they are small, and
text stands in bands of its own, so that all of the picture is seen. Everywhere all of it depends on
the episode alone.
"""

from dataclasses import dataclass, replace

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.pictures.blocks import Drawn
from goalreel.pictures.captions import caption
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.hud import hud_at_reset, hud_layers
from goalreel.pictures.layers import NOTHING, Layer, Patches, join
from goalreel.pictures.text import Canvas
from goalreel.simulation.trajectories import Trajectories

_TOP, _SIZE = 7, 18  # the caption's first row and its font's size, in a picture of 600x400
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
        room = max(self.width - self.size, 2)
        return canvas.line(text, self._top(), self.size, room)

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
    for patch in hud_at_reset(Canvas(background), env) if hud else ():
        patch.paste(card, 0)
    return card


def clear_rows(background: np.ndarray, env: str, hud: bool) -> tuple[int, int]:
    """Return which rows of pixels, from and to, no overlay touches, whatever it says."""
    canvas = Canvas(background)
    top, _, height, _ = canvas.centred("Ag", _TOP, _SIZE).boxes[0].tolist()
    lowest = [int(patch.boxes[0, 0]) for patch in hud_at_reset(canvas, env) if hud]
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
