"""Pictures coded as I slices by x264, whose slice data are taken bit for bit into other pictures.

Such a slice may stand anywhere in a picture of the same width, under a header of its own: nothing
in an I slice looks beyond it. Several make up one IDR picture.
"""

from collections.abc import Iterator

import numpy as np

from goalreel.encoding import ffmpeg
from goalreel.encoding.x264 import intra_stream
from goalreel.h264.bits import BitStrings
from goalreel.h264.macroblocks import SIDE, Planes
from goalreel.h264.slice_reader import read_slices

_HIGHEST = 256 * SIDE  # of a picture that many strips make up


def code_strips(strips: Planes, qp: int, thorough: bool = False) -> BitStrings:
    """Return strips of whole rows of macroblocks as the data of an I slice each.

    A picture of many of them, each in a slice of its own, takes a sixth of the time of as many
    pictures, and the data are the same.

    Args:
        strips: Y, U, V, (n, h, w) and twice (n, h / 2, w / 2) uint8.
        qp: 1 to 51 (x264 takes 0 for another profile).
        thorough: some percent smaller in fifty times the time, for what is coded once.

    Raises:
        GoalreelError: ffmpeg fails.
    """
    count, height, width = strips[0].shape
    together = -(-count // -(-count // max(_HIGHEST // height, 1)))

    def pictures() -> Iterator[np.ndarray]:
        for start in range(0, count, together):
            which = np.minimum(np.arange(start, start + together), count - 1)
            yield np.concatenate([plane[which].ravel() for plane in strips])

    size = width, height * together
    stream = ffmpeg.output(intra_stream(size, height // SIDE, qp, thorough), pictures())
    data, starts, lengths = read_slices(stream, size, qp)
    assert len(starts) == -(-count // together) * together, f"{len(starts)} slices of {count}"
    return BitStrings(data, starts[:count], lengths[:count])


def decode(stream: bytes, size: tuple[int, int]) -> np.ndarray:
    """Return the pictures of an Annex B stream in yuv420p, (frames, H * 3 / 2, W) uint8.

    size: (width, height) shown, even. Raises GoalreelError if ffmpeg finds an error in the stream.
    """
    width, height = size
    arguments = ["-xerror", "-threads", "1", "-f", "h264", "-i", "pipe:0"]
    arguments += ["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "pipe:1"]
    samples = ffmpeg.output(arguments, [stream])
    return np.frombuffer(samples, np.uint8).reshape(-1, height * 3 // 2, width)
