"""The files of views: videos and pictures that keep their spec."""

import itertools
import os
from collections.abc import Iterable, Iterator

import numpy as np
from PIL import Image, PngImagePlugin

from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import planar
from goalreel.files.atomic import replacing
from goalreel.provenance.spec import Spec


def write_video(path: str | os.PathLike, frames: Iterable[np.ndarray], spec: Spec) -> int:
    """Encode a view's frames to an MP4 file, the last one held for a second.

    Args:
        path: the file.
        frames: (H, W, 3) uint8 each, of one even width and height.
        spec: the view's, with film.fps and view_encoder; the file keeps it.

    Returns:
        The number of frames in the file.

    Raises:
        GoalreelError: if a side is odd, or ffmpeg fails.
    """
    frames, fps = iter(frames), spec.config["film.fps"]
    first = next(frames)

    def held() -> Iterator[np.ndarray]:
        for frame in itertools.chain([first], frames):
            buffer = planar(frame)
            yield buffer
        yield from itertools.repeat(buffer, fps)

    size = first.shape[1::-1]
    return encode_video(path, held(), size, fps, spec.config["view_encoder"], spec.text)


def write_png(path: str | os.PathLike, pixels: np.ndarray, comment: str) -> None:
    """Write a picture, (H, W, 3) uint8; comment: its spec, which the file keeps."""
    texts = PngImagePlugin.PngInfo()
    texts.add_itxt("Comment", comment)
    with replacing(path) as temporary:
        Image.fromarray(pixels).save(temporary, "PNG", pnginfo=texts, optimize=True)
