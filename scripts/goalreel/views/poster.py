"""The poster: one episode on one picture, as a stroboscope would show it.

What moves is shown at several places of its way, the fainter the earlier, over what stands still;
the last frame stands in front. That takes nothing but frames, so that it works for any environment:
where everything moves, the poster is the last frame.
"""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageFilter

from goalreel.arrays import paste, spread
from goalreel.errors import pluralize
from goalreel.rendering.captions import default_captions
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.overlay import fitting_scale
from goalreel.rendering.text import Color, draw_text
from goalreel.views.filmed_episodes import FilmedEpisodes

_MIN_OPACITY, _MAX_OPACITY = 0.12, 0.7  # opacity of the earliest and of the last but one
_MIN_GHOSTS = 4
_GAP = 0.02  # of the frame's width, left around what is drawn
_FRAMES = 400  # of a long episode that are looked at
_STILLNESS = 25  # frames whose median is what stands still
_SIDE = 1200  # of the picture's longer one, about: frames are enlarged, so that text is smooth
_PAPER: Color = (255, 255, 255)
_INK: Color = (33, 37, 43)
_GREY: Color = (98, 105, 115)


def draw_poster(filmed: FilmedEpisodes) -> np.ndarray:
    """Return the poster of the median episode, (h, w, 3) uint8, with a band of two lines below.

    Raises GoalreelError if a line does not fit.
    """
    episode, count = filmed.median(), len(filmed.ranking())
    picture = enlarge(stroboscope(episode.cache, episode.frames))
    template, _ = default_captions(filmed.unit)
    kind = filmed.unit if episode.row["reached"] else "episode"
    text = f"{episode.caption(template)} · the median of {pluralize(count, kind)}"
    return np.concatenate([picture, _band(picture.shape[1], filmed.env, text)])


def enlarge(picture: np.ndarray) -> np.ndarray:
    """Return a picture, (H, W, 3) uint8, as large as a poster's."""
    times = max(round(_SIDE / max(picture.shape)), 1)
    # Few pixels a side are drawn one by one, and look best so.
    small = times > 2 or fitting_scale(picture.shape[:2]) > 1
    smooth = Image.Resampling.NEAREST if small else Image.Resampling.LANCZOS
    size = picture.shape[1] * times, picture.shape[0] * times
    return np.asarray(Image.fromarray(picture).resize(size, smooth))


def stroboscope(cache: FrameCache, frames: range) -> np.ndarray:
    """Return an episode's last frame with earlier ones behind it: (H, W, 3) uint8.

    Of the earlier ones, the latest are shown that do not cover each other, or not half of each
    other if that leaves few, as where an arm turns about its joint.
    """
    sample = np.stack([cache[frame] for frame in spread(frames, _STILLNESS)])
    # Each channel's median, not the mean of two, which would be a color of its own.
    still = np.sort(sample, axis=0)[len(sample) // 2]
    *earlier, last = spread(frames, _FRAMES)
    chosen = _apart(cache, earlier, last, still, 0)
    if len(chosen) < _MIN_GHOSTS:
        chosen = _apart(cache, earlier, last, still, 0.5)
    canvas = still.astype(np.float64)
    strengths = np.linspace(_MIN_OPACITY, _MAX_OPACITY, len(chosen) + 1)[1:].tolist()
    for frame, strength in zip([*reversed(chosen), last], [*strengths, 1], strict=True):
        picture = cache[frame]
        moved = (picture != still).any(axis=2)
        canvas[moved] += strength * (picture[moved] - canvas[moved])
    return np.round(canvas).astype(np.uint8)


def _apart(
    cache: FrameCache, earlier: Sequence[int], last: int, still: np.ndarray, share: float
) -> list[int]:
    """Return earlier frames, latest first, on which what moved is apart from later places.

    share: of what moved, that may be in a place already taken.
    """
    chosen, taken = [], _widened((cache[last] != still).any(axis=2))
    for frame in reversed(earlier):
        moved = (cache[frame] != still).any(axis=2)
        if moved.any() and (moved & taken).sum() <= share * moved.sum():
            chosen.append(frame)
            taken |= _widened(moved)
    return chosen


def _widened(mask: np.ndarray) -> np.ndarray:
    """Return the mask grown by the gap to all sides."""
    side = 2 * round(mask.shape[1] * _GAP / 2) + 1
    grown = Image.fromarray(mask.astype(np.uint8)).filter(ImageFilter.MaxFilter(side))
    return np.asarray(grown) > 0


def _band(width: int, title: str, text: str) -> np.ndarray:
    """Return two lines of text on paper, (h, width, 3) uint8, with a line above."""
    size = width / 30
    margin, first, second = round(size), round(size), round(size * 0.6)
    head = draw_text(title, first, _INK, _PAPER, width - 2 * margin)
    line = draw_text(text, second, _GREY, _PAPER, width - 2 * margin)
    height = margin // 2 + len(head) + len(line) + margin * 2 // 3
    band = np.full((height, width, 3), _PAPER, np.uint8)
    paste(band, head, margin // 2, margin)
    paste(band, line, margin // 2 + len(head), margin)
    band[: max(width // 600, 1)] = _INK
    return band
