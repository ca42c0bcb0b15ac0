"""The poster: one episode on one picture, as a stroboscope would show it.

What moves is shown at several places of its way, the fainter the earlier, over what stands still;
the last frame stands in front. That takes nothing but frames, so that it works for any environment:
where everything moves, the poster is the last frame.
"""

from collections.abc import Sequence

import numpy as np

from goalreel.arrays import paste
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.overlay import fitting_scale
from goalreel.rendering.text import Colour, draw_text
from goalreel.views.filmed_episodes import spread

_FAINTEST, _STRONGEST = 0.12, 0.7  # opacity of the earliest and of the last but one
_FEW = 4
_GAP = 0.02  # of the frame's width, left around what is drawn
_FRAMES = 400  # of a long episode that are looked at
_STILLNESS = 25  # frames whose median is what stands still
_SIDE = 1200  # of the picture's longer one, about: frames are enlarged, so that text is smooth
_PAPER: Colour = (255, 255, 255)
_INK: Colour = (33, 37, 43)
_GREY: Colour = (98, 105, 115)


def draw_poster(cache: FrameCache, frames: range, title: str, text: str) -> np.ndarray:
    """Return the poster of an episode, (h, w, 3) uint8, with a band of two lines below.

    frames: the numbers of its frames. Raises GoalreelError if a line does not fit.
    """
    from PIL import Image

    picture = stroboscope(cache, frames)
    times = max(round(_SIDE / max(picture.shape)), 1)
    size = (picture.shape[1] * times, picture.shape[0] * times)
    # Few pixels a side are drawn one by one, and look best so.
    small = times > 2 or fitting_scale(picture.shape[:2]) > 1
    smooth = Image.Resampling.NEAREST if small else Image.Resampling.LANCZOS
    large = np.asarray(Image.fromarray(picture).resize(size, smooth))
    return np.concatenate([large, _band(size[0], title, text)])


def stroboscope(cache: FrameCache, frames: range) -> np.ndarray:
    """Return an episode's last frame with earlier ones behind it: (H, W, 3) uint8.

    Of the earlier ones, the latest are shown that do not cover each other, or not half of each
    other if that leaves few, as where an arm turns about its joint.
    """
    still = _still(cache, frames)
    last = cache[frames[-1]]
    chosen = _apart(cache, spread(frames, _FRAMES), still, 0)
    if len(chosen) < _FEW:
        chosen = _apart(cache, spread(frames, _FRAMES), still, 0.5)
    canvas = still.astype(np.float64)
    strengths = np.linspace(_FAINTEST, _STRONGEST, len(chosen) + 1)[1:]
    for frame, strength in zip(reversed(chosen), strengths, strict=True):
        picture = cache[frame]
        moved = (picture != still).any(axis=2)
        canvas[moved] += strength * (picture[moved] - canvas[moved])
    moved = (last != still).any(axis=2)
    canvas[moved] = last[moved]
    return np.round(canvas).astype(np.uint8)


def _apart(cache: FrameCache, frames: Sequence[int], still: np.ndarray, share: float) -> list[int]:
    """Return frames, latest first, on which what moved is apart from where it is on later ones.

    share: of what moved, that may be in a place already taken.
    """
    taken = _widened((cache[frames[-1]] != still).any(axis=2))
    chosen = []
    for frame in reversed(frames[:-1]):
        moved = (cache[frame] != still).any(axis=2)
        if moved.any() and (moved & taken).sum() <= share * moved.sum():
            chosen.append(frame)
            taken |= _widened(moved)
    return chosen


def _widened(mask: np.ndarray) -> np.ndarray:
    """Return the mask grown by the gap to all sides."""
    from PIL import Image, ImageFilter

    side = 2 * round(mask.shape[1] * _GAP / 2) + 1
    grown = Image.fromarray(mask.astype(np.uint8)).filter(ImageFilter.MaxFilter(side))
    return np.asarray(grown) > 0


def _still(cache: FrameCache, frames: range) -> np.ndarray:
    """Return each pixel's median over the episode, channel by channel."""
    sample = [cache[frame] for frame in spread(frames, _STILLNESS)]
    ordered = np.sort(np.stack(sample), axis=0)
    return ordered[len(sample) // 2]  # not the mean of two, which would be a colour of its own


def _band(width: int, title: str, text: str) -> np.ndarray:
    """Return two lines of text on paper, (h, width, 3) uint8, with a line above."""
    size = width / 30
    margin = round(size)
    lines = [
        draw_text(title, round(size), _INK, _PAPER, width - 2 * margin),
        draw_text(text, round(size * 0.6), _GREY, _PAPER, width - 2 * margin),
    ]
    tops = [margin // 2, margin // 2 + lines[0].shape[0]]
    band = np.full((tops[1] + lines[1].shape[0] + margin * 2 // 3, width, 3), _PAPER, np.uint8)
    for top, line in zip(tops, lines, strict=True):
        paste(band, line, top, margin)
    band[: max(width // 600, 1)] = _INK
    return band
