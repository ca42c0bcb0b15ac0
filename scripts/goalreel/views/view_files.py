"""Write the files of views: videos and PNG images that store their spec."""

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
    """Encode (H, W, 3) uint8 frames of even sides, hold the last for a second; return the count."""
    frames, fps = iter(frames), spec.config["film.fps"]
    first = next(frames)

    def hold_last() -> Iterator[np.ndarray]:
        for frame in itertools.chain([first], frames):
            yield (buffer := planar(frame))
        yield from itertools.repeat(buffer, fps)

    size = first.shape[1::-1]
    return encode_video(path, hold_last(), size, fps, spec.config["view_encoder"], spec.text)


def write_png(path: str | os.PathLike, pixels: np.ndarray, comment: str) -> None:
    """Write an image, (H, W, 3) uint8, with its spec as the comment."""
    texts = PngImagePlugin.PngInfo()
    texts.add_itxt("Comment", comment)
    with replacing(path) as temporary:
        Image.fromarray(pixels).save(temporary, "PNG", pnginfo=texts, optimize=True)
