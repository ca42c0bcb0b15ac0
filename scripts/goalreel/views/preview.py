"""The preview: one episode as an animated WebP file, small enough for a web page.

`preview` first tries the film's size (enlarged if small) and frame rate without loss. Until the
file is small enough it then allows loss, reduces the size and drops frames.
"""

import io
import itertools

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
_QUALITY = 70  # of 100, or the effort of lossless compression
_MARGIN = 0.95  # an image of half the pixels takes more than half the bytes
_IMAGE_DESCRIPTION = 0x010E  # the Exif tag


def preview(cache: FrameCache, frames: range, fps: int, comment: str) -> tuple[bytes, str]:
    """Return an episode as an animated WebP of fewer than MAX_BYTES bytes, and a log message."""
    high, wide = cache.background.shape[:2]
    times = max(min(fitting_scale((high, wide)), _MAX_WIDTH // wide), 1)
    width = min(times * wide, _MAX_WIDTH)
    count = max(min(len(frames), len(frames) * _MAX_FPS // fps, _MAX_FRAMES), 1)
    options = {"lossless": True, "exif": Image.Exif()}
    options["exif"][_IMAGE_DESCRIPTION] = comment
    while True:
        size = (width, max(high * width // wide, 1))
        data = _animation(cache, spread(frames, count), fps, size, options)
        share = MAX_BYTES / len(data)
        if share > 1:
            break
        if options["lossless"]:
            options["lossless"] = False
        elif width > _MIN_WIDTH:
            width = max(int(width * share**0.5 * _MARGIN), _MIN_WIDTH)
        else:
            assert count > 1, f"one frame of {size[0]}x{size[1]} takes {len(data)} bytes"
            count = max(int(count * share * _MARGIN), 1)
    loss = "without loss" if options["lossless"] else "with loss"
    summary = f"{count} of {len(frames)} frames at {size[0]}x{size[1]} {loss} in {len(data)} bytes"
    return data, summary


def _animation(
    cache: FrameCache, frames: list[int], fps: int, size: tuple[int, int], options: dict
) -> bytes:
    """Return frames as a WebP file of a size, (width, height). options: further ones of Pillow."""
    smooth = size[0] % cache.background.shape[1]
    resampling = Image.Resampling.LANCZOS if smooth else Image.Resampling.NEAREST
    images = [Image.fromarray(cache[frame]).resize(size, resampling) for frame in frames]
    # Round moments, not durations, so that errors do not add up.
    moments = [round((frame - frames[0]) * 1000 / fps) for frame in frames]
    durations = [later - moment for moment, later in itertools.pairwise(moments)]
    stream = io.BytesIO()
    shown = {"save_all": True, "append_images": images[1:], "duration": [*durations, _REST_MS]}
    images[0].save(stream, "WEBP", loop=0, quality=_QUALITY, method=4, **shown, **options)
    return stream.getvalue()
