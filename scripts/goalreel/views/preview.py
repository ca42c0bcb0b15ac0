"""One episode as an animated WebP or GIF file, small enough for a web page.

`preview` first tries the film's size (enlarged if small) and frame rate without loss. Until the
file is small enough it then allows loss, reduces the size and drops frames.
"""

import io
import itertools

import numpy as np
from PIL import Image

from goalreel.arrays import spread
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.overlay import fitting_scale

MAX_BYTES = 500_000  # of the file, exclusive
_MAX_WIDTH = 600  # pixels
_MIN_WIDTH = 160
_MAX_FPS = 50  # frames per second; browsers slow down faster ones
_MAX_FRAMES = 300  # bounds the memory
_REST_MS = 1000  # milliseconds of the last frame, before the animation repeats
_QUALITY = 70  # of a WebP, of 100, or the effort of lossless compression
_COLORS, _FEWER_COLORS = 256, 48  # of a GIF, whose frames share a palette
_SAMPLES = 8  # frames whose colors are in the palette
_MARGIN = 0.95  # an image of half the pixels takes more than half the bytes
_IMAGE_DESCRIPTION = 0x010E  # the Exif tag


def preview(
    cache: FrameCache,
    frames: range,
    fps: int,
    comment: str,
    kind: str = "WEBP",
    max_bytes: int = MAX_BYTES,
) -> tuple[bytes, str]:
    """Return an episode as a WEBP or GIF of fewer than `max_bytes` bytes, and a log message."""
    high, wide = cache.background.shape[:2]
    times = max(min(fitting_scale((high, wide)), _MAX_WIDTH // wide), 1)
    width = min(times * wide, _MAX_WIDTH)
    count = max(min(len(frames), len(frames) * _MAX_FPS // fps, _MAX_FRAMES), 1)
    is_lossless = True
    while True:
        size = (width, max(high * width // wide, 1))
        images = [_resized(cache[frame], size) for frame in spread(frames, count)]
        made = {"WEBP": _webp, "GIF": _gif}[kind](images, is_lossless, comment)
        data = _encoded(*made, kind, [frame - frames[0] for frame in spread(frames, count)], fps)
        share = max_bytes / len(data)
        if share > 1:
            break
        if is_lossless:
            is_lossless = False
        elif width > _MIN_WIDTH:
            width = max(int(width * share**0.5 * _MARGIN), _MIN_WIDTH)
        else:
            assert count > 1, f"one frame of {size[0]}x{size[1]} takes {len(data)} bytes"
            count = max(int(count * share * _MARGIN), 1)
    loss = "without loss" if is_lossless else "with loss"
    if kind == "GIF":
        loss = f"in {_COLORS if is_lossless else _FEWER_COLORS} colors"
    summary = f"{count} of {len(frames)} frames at {size[0]}x{size[1]} {loss} in {len(data)} bytes"
    return data, summary


def _resized(frame: np.ndarray, size: tuple[int, int]) -> Image.Image:
    smooth = size[0] % frame.shape[1]
    resampling = Image.Resampling.LANCZOS if smooth else Image.Resampling.NEAREST
    return Image.fromarray(frame).resize(size, resampling)


def _webp(images: list, is_lossless: bool, comment: str) -> tuple[list, dict]:
    exif = Image.Exif()
    exif[_IMAGE_DESCRIPTION] = comment
    return images, {"lossless": is_lossless, "exif": exif, "quality": _QUALITY, "method": 4}


def _gif(images: list, is_lossless: bool, comment: str) -> tuple[list, dict]:
    sample = np.concatenate([np.asarray(image) for image in spread(images, _SAMPLES)])
    colors = _COLORS if is_lossless else _FEWER_COLORS
    palette = Image.fromarray(sample).quantize(colors, method=Image.Quantize.MAXCOVERAGE)
    none = Image.Dither.NONE
    return [i.quantize(palette=palette, dither=none) for i in images], {"comment": comment.encode()}


def _encoded(images: list, options: dict, kind: str, steps: list[int], fps: int) -> bytes:
    """Return images, shown at these steps, as a file. options: further ones of Pillow."""
    unit = 10 if kind == "GIF" else 1  # milliseconds
    # Round moments, not durations, so that errors do not add up.
    moments = [round(step * 1000 / fps / unit) * unit for step in steps]
    durations = [later - moment for moment, later in itertools.pairwise(moments)]
    stream = io.BytesIO()
    shown = {"save_all": True, "append_images": images[1:], "duration": [*durations, _REST_MS]}
    images[0].save(stream, kind, loop=0, **shown, **options)
    return stream.getvalue()
