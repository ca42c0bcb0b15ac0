"""Title cards: the environment, the policy and the number of an episode, before its first frame."""

import re
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from goalreel.arrays import paste
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import Layer, cut_patches
from goalreel.rendering.text import Color, draw_text

_PAPER: Color = (37, 37, 37)  # a gray that coarse quantizers leave as it is
# The lines of a card: name, font size and distance to the line above in a frame of 600x400, color.
_LINES = (
    ("environment", 35, 0, (255, 255, 255)),
    ("policy", 17, 4, (176, 176, 176)),
    ("number", 22, 34, (255, 255, 255)),
    ("seed", 13, 3, (150, 150, 150)),
)
_RULE, _RULE_SIZE = (96, 165, 216), (3, 56)  # between policy and number: rows, columns
_SMALLEST = 9  # font size in pixels
_MARGIN = 24  # columns


def card_texts(
    row: Mapping[str, object], env: str, policy: str, unit: str, count: int
) -> tuple[str, ...]:
    """Return the lines of an episode's card, one of `count`. row: its columns in the tables."""
    seed = f"seed {row['seed']}" + (f" · attempt {row['attempt']}" if row["attempt"] else "")
    return env, policy, f"{unit.capitalize()} {row['reach']:,} of {count:,}", seed


def title_cards(size: tuple[int, int], texts: Sequence[tuple[str, ...]], frames: int) -> FrameCache:
    """Return (height, width) title cards of `card_texts`, each as an episode of equal frames."""
    scale = min(size[0] / 400, size[1] / 600)
    room = size[1] - 2 * round(_MARGIN * scale)
    background, layers = np.full((*size, 3), _PAPER, np.uint8), []
    lines = []  # name, distance to the line above, its distinct images, the image of each card
    for (name, font, above, ink), column in zip(_LINES, zip(*texts, strict=True), strict=True):
        numbers = {text: number for number, text in enumerate(dict.fromkeys(column))}
        font = max(font * scale, _SMALLEST)
        images = [_draw_line(text, font, ink, room) for text in numbers]
        lines.append((name, round(above * scale), images, [numbers[text] for text in column]))
    top = max((size[0] - sum(above + len(images[0]) for _, above, images, _ in lines)) // 2, 0)
    for name, above, images, index in lines:
        if name == "number":
            tall, wide = (max(round(length * scale), 1) for length in _RULE_SIZE)
            middle, left = top + (above - tall) // 2, (size[1] - wide) // 2
            background[middle : middle + tall, left : left + wide] = _RULE
        top += above
        if top >= size[0]:
            break  # a frame too small for all lines shows a part of them
        images = [image[: size[0] - top, : size[1]] for image in images]
        places = [(top, (size[1] - image.shape[1]) // 2, image) for image in images]
        if len(images) == 1:
            paste(background, images[0], *places[0][:2])
        else:
            patches = cut_patches(background, places)
            layers.append(Layer(name, patches, np.repeat(np.array(index, np.int32), frames)))
        top += len(images[0])
    return FrameCache(background, tuple(layers), frames * np.arange(len(texts) + 1))


def _draw_line(text: str, font: float, ink: Color, room: int) -> np.ndarray:
    """Return a line of text with digits of equal width, which takes a tenth of the time."""
    parts = [_draw_part(part, font, ink, _PAPER) for part in re.findall(r"\d|\D+", text)]
    line = np.concatenate(parts, axis=1)
    return line if line.shape[1] <= room else draw_text(text, font, ink, _PAPER, room)


_draw_part = cache(draw_text)
