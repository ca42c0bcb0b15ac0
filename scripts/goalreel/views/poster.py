"""The poster: one episode in one image, like a photograph with a stroboscope, or a filmstrip.

`draw_poster` shows the moving parts at several moments, fainter the earlier, over the background,
with the last frame in front. If they move too little to lie apart, it shows moments next to each
other instead. It needs only frames and so works for any environment.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from PIL import Image

from goalreel.arrays import paste, spread
from goalreel.errors import pluralize
from goalreel.rendering.captions import default_captions
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.overlay import fitting_scale
from goalreel.rendering.text import Color, draw_text
from goalreel.views.filmed_episodes import FilmedEpisode, FilmedEpisodes

_MIN_OPACITY, _MAX_OPACITY = 0.12, 0.7  # of the first frame and of the last but one
_MIN_GHOSTS = 4
_GAP = 0.02  # least distance of shown positions, as a share of the frame's width
_FRAMES = 400  # frames of a long episode to choose from
_SAMPLES = 25  # frames whose median is the background
_MARGIN = 0.05  # around moving parts, as a share of the frame
_MOMENTS = 6  # of a filmstrip
_ASPECT = 2  # width to height of a filmstrip, about
_SIDE = 1200  # about the longer side in pixels, large enough for smooth text
_PAPER: Color = (255, 255, 255)
INK: Color = (33, 37, 43)
GRAY: Color = (98, 105, 115)


def draw_poster(filmed: FilmedEpisodes) -> np.ndarray:
    """Return the poster of the median episode, (h, w, 3) uint8, with two lines of text below."""
    episode, count = filmed.median(), len(filmed.ranking())
    image = stroboscope(episode.cache, episode.frames)
    image = filmstrip(episode) if image is None else enlarge(image)
    template, _ = default_captions(filmed.unit)
    kind = filmed.unit if episode.row["reached"] else "episode"
    text = f"{episode.caption(template)} · the median of {pluralize(count, kind)}"
    return np.concatenate([image, band(image.shape[1], filmed.env, text)])


def enlarge(image: np.ndarray) -> np.ndarray:
    """Return an image, (H, W, 3) uint8, enlarged to about the size of a poster."""
    return _resize(image, max(round(_SIDE / max(image.shape)), 1))


def _resize(image: np.ndarray, times: int) -> np.ndarray:
    # Pixel art looks best with sharp pixels.
    small = times > 2 or fitting_scale(image.shape[:2]) > 1
    smooth = Image.Resampling.NEAREST if small else Image.Resampling.LANCZOS
    size = image.shape[1] * times, image.shape[0] * times
    return np.asarray(Image.fromarray(image).resize(size, smooth))


def stroboscope(cache: FrameCache, frames: range) -> np.ndarray | None:
    """Return an episode's last frame with earlier ones behind it: (H, W, 3) uint8.

    The earlier ones are the latest whose moving parts do not overlap. If these are few, as for an
    arm that turns about its joint, moving parts may overlap by half. None if they still are few.
    """
    sample = np.stack([cache[frame] for frame in spread(frames, _SAMPLES)])
    # A middle value of each channel, since the mean of two would be a new color.
    background = np.sort(sample, axis=0)[len(sample) // 2]
    *earlier, last = spread(frames, _FRAMES)
    chosen = _choose_apart(cache, earlier, last, background, 0)
    if len(chosen) < _MIN_GHOSTS:
        chosen = _choose_apart(cache, earlier, last, background, 0.5)
    if len(chosen) < _MIN_GHOSTS:
        return None
    canvas = background.astype(np.float64)
    strengths = np.linspace(_MIN_OPACITY, _MAX_OPACITY, len(chosen) + 1)[1:].tolist()
    for frame, strength in zip([*reversed(chosen), last], [*strengths, 1], strict=True):
        image = cache[frame]
        moved = (image != background).any(axis=2)
        canvas[moved] += strength * (image[moved] - canvas[moved])
    return np.round(canvas).astype(np.uint8)


def moving_box(
    images: Iterable[np.ndarray], least: tuple[int, int] = (0, 0)
) -> tuple[slice, slice]:
    """Return the rows and columns in which images differ, with a margin; all if they are small."""
    # images: (H, W, 3) uint8 each; least: the fewest rows and columns
    images = iter(images)
    first = next(images)
    moved = np.zeros(first.shape[:2], bool)
    for image in images:
        moved |= (image != first).any(axis=2)
    if not moved.any() or fitting_scale(moved.shape) > 1:
        return np.s_[:, :]
    box = []
    for axis, fewest in enumerate(least):
        places, length = np.flatnonzero(moved.any(axis=1 - axis)), moved.shape[axis]
        first, end = places[0], places[-1] + 1
        margin = max(round(_MARGIN * length), (fewest - (end - first) + 1) // 2)
        start = max(min(first - margin, length - fewest), 0)
        box.append(slice(start, min(max(end + margin, start + fewest), length)))
    return tuple(box)


def filmstrip(episode: FilmedEpisode) -> np.ndarray:
    """Return moments of an episode with their steps, large frames cut to where anything moves."""
    moments, cache = spread(episode.frames, _MOMENTS), episode.cache
    box = moving_box(cache[frame] for frame in spread(episode.frames, _SAMPLES))
    height, width = cache.background[box].shape[:2]
    count = len(moments)
    across = min(
        (n for n in range(1, count + 1) if count % n == 0),
        key=lambda n: abs(math.log(n * n * width / (count * height * _ASPECT))),
    )
    times = max(round(_SIDE / max(across * width, count // across * height)), 1)
    gap, size, tiles = round(_GAP * _SIDE), _SIDE / 50, []
    for frame in moments:
        image = _resize(cache[frame][box], times)
        label = draw_text(f"step {frame - moments[0]:,}", size, GRAY, _PAPER)[:, : image.shape[1]]
        shape = len(image) + len(label) + gap, image.shape[1] + gap, 3
        tile = paste(np.full(shape, _PAPER, np.uint8), image, gap // 2, gap // 2)
        tiles.append(paste(tile, label, len(image) + gap // 2, gap // 2))
    lines = (tiles[n : n + across] for n in range(0, count, across))
    return np.concatenate([np.concatenate(line, axis=1) for line in lines])


def _choose_apart(
    cache: FrameCache, earlier: Sequence[int], last: int, background: np.ndarray, share: float
) -> list[int]:
    """Return earlier frames, latest first, of which at most a share of what moves overlaps."""
    chosen, taken = [], _grow((cache[last] != background).any(axis=2))
    for frame in reversed(earlier):
        moved = (cache[frame] != background).any(axis=2)
        if moved.any() and (moved & taken).sum() <= share * moved.sum():
            chosen.append(frame)
            taken |= _grow(moved)
    return chosen


def _grow(mask: np.ndarray) -> np.ndarray:
    """Return the mask, grown by the gap to all sides."""
    gap = round(mask.shape[1] * _GAP / 2)
    for _ in range(2):  # down and across, by the sums of 2 * gap + 1 neighbors
        sums = np.cumsum(np.pad(mask, [(gap + 1, gap), (0, 0)]), axis=0, dtype=np.int32)
        mask = (sums[2 * gap + 1 :] > sums[: len(mask)]).T
    return mask


def band(width: int, title: str, text: str) -> np.ndarray:
    """Return two lines of text on paper, (h, width, 3) uint8, below a rule."""
    size = max(width / 30, 8)
    margin, first, second = round(size), round(size), round(size * 0.6)
    head = draw_text(title, first, INK, _PAPER, width - 2 * margin)
    line = draw_text(text, second, GRAY, _PAPER, width - 2 * margin)
    height = margin // 2 + len(head) + len(line) + margin * 2 // 3
    band = np.full((height, width, 3), _PAPER, np.uint8)
    paste(band, head, margin // 2, margin)
    paste(band, line, margin // 2 + len(head), margin)
    band[: max(width // 600, 1)] = INK
    return band
