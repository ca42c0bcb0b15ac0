"""Code strips of a picture with x264 as I slices that can be reused in other pictures.

An I slice depends on nothing outside itself, so its slice data can stand at any row of a picture of
the same width, after a new slice header.
"""

from collections.abc import Iterator

import numpy as np

from goalreel.encoding import ffmpeg
from goalreel.encoding.x264 import intra_stream
from goalreel.h264.bits import BitStrings
from goalreel.h264.macroblocks import SIDE, Planes
from goalreel.h264.slice_reader import read_slices

_MAX_HEIGHT = 256 * SIDE  # of a picture that combines strips


def code_strips(strips: Planes, qp: int, thorough: bool = False) -> BitStrings:
    """Return the slice data of one I slice per strip of whole macroblock rows.

    Strips are combined into tall pictures with a slice each, which takes a sixth of the time of
    separate pictures and gives the same data. `strips` are Y (n, h, w), U and V (n, h / 2, w / 2),
    uint8. A QP of 0 would change the profile. `thorough` is that of `intra_stream`. Raises
    GoalreelError if ffmpeg fails.
    """
    count, height, width = strips[0].shape
    strips_per_picture = -(-count // -(-count // max(_MAX_HEIGHT // height, 1)))

    def pictures() -> Iterator[np.ndarray]:
        for start in range(0, count, strips_per_picture):
            which = np.minimum(np.arange(start, start + strips_per_picture), count - 1)
            yield np.concatenate([plane[which].ravel() for plane in strips])

    size = width, height * strips_per_picture
    stream = ffmpeg.output(intra_stream(size, height // SIDE, qp, thorough), pictures())
    data, starts, lengths = read_slices(stream, size, qp)
    return BitStrings(data, starts[:count], lengths[:count])
