"""The way of a view's frames into video."""

import os
from collections.abc import Iterable, Iterator

import numpy as np

from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import planar
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
    height, width = first.shape[:2]
    planes = map(planar, _held(first, frames, fps))
    return encode_video(path, planes, (width, height), fps, spec.config["view_encoder"], spec.text)


def _held(last: np.ndarray, others: Iterator[np.ndarray], more: int) -> Iterator[np.ndarray]:
    """Yield the frames, and the last one `more` times again."""
    yield last
    for last in others:
        yield last
    for _ in range(more):
        yield last
