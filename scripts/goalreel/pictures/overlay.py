"""The overlay: title cards, captions and the HUD, as layers over a shard's frames.

A card is the empty track (in other environments the episode's first frame) with the episode's
caption, which stays on screen through the episode, and the HUD as at the reset. In Mountain Car
all of it is in rows that the car never touches, and everywhere it depends on the episode alone.
"""

from dataclasses import replace

import numpy as np

from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError
from goalreel.pictures.blocks import Drawn
from goalreel.pictures.captions import caption
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.hud import hud_at_reset, hud_layers
from goalreel.pictures.layers import NOTHING, Layer, join
from goalreel.pictures.text_patches import Canvas
from goalreel.simulation.trajectories import Trajectories

_TOP, _SIZE = 7, 18  # the caption's first row and its font's size, in a picture of 600x400


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
) -> FrameCache:
    """Return a shard's frames with its overlay; `cards` frames come before each reset frame.

    texts: a line for each episode, from its card to its end. An episode of the result begins with
    its card. Raises GoalreelError if the frames do not show these trajectories.
    """
    if cache.source != trajectories.digest():
        raise GoalreelError(
            "the frames do not show these trajectories; delete them and run snakemake again"
        )
    is_track = describe(env).has_atlas  # whose background is the empty track
    canvas = Canvas(cache.background, plate=not is_track)
    resets = cache.offsets[:-1]
    layers = [
        _with_cards(layer, cache.offsets, cards, NOTHING if is_track else layer.index[resets])
        for layer in cache.layers
    ]
    offsets = cache.offsets + cards * np.arange(len(cache.offsets))
    if texts is not None:
        patches = join(canvas.centred(text, _TOP, _SIZE) for text in texts)
        index = np.repeat(np.arange(len(resets), dtype=np.int32), np.diff(offsets))
        layers.append(Layer("caption", patches, index))
    if hud:
        for layer in hud_layers(canvas, trajectories, env):
            layers.append(_with_cards(layer, cache.offsets, cards, 0))  # as at a reset
    return replace(cache, layers=tuple(layers), offsets=offsets)


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
