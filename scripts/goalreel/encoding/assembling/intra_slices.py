"""Pictures coded as I slices by x264, whose slice data are taken bit for bit into other pictures.

Such a slice may stand anywhere in a picture of the same width, under a header of its own: nothing
in an I slice looks beyond it. Several make up one IDR picture.
"""

import itertools
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np

from goalreel.encoding import ffmpeg
from goalreel.encoding.x264 import intra_stream
from goalreel.errors import GoalreelError
from goalreel.h264.bits import Bits
from goalreel.h264.macroblocks import Planes
from goalreel.h264.nal import IDR, PPS, SPS, Nal, split
from goalreel.h264.slice_reader import (
    IntraSlice,
    read_further_slice,
    read_pps,
    read_slice,
    read_sps,
)

_SIDE = 16  # of a macroblock
_TOGETHER = 64  # strips that are coded as one picture


def code_intra(
    pictures: Iterable[np.ndarray], size: tuple[int, int], qp: int, thorough: bool = False
) -> list[np.ndarray]:
    """Return each picture as the data of an I slice, (n,) uint8 of 0 and 1.

    Args:
        pictures: yuv420p, (H * 3 / 2, W) uint8 and contiguous each.
        size: (width, height), multiples of 16.
        qp: 1 to 51 (x264 takes 0 for another profile).
        thorough: some percent smaller in fifty times the time, for what is coded once.

    Raises:
        GoalreelError: ffmpeg fails, or x264 codes something else than it was asked.
    """
    stream, written = ffmpeg.output(intra_stream(size, qp, thorough), pictures)
    found = list(_taken(split(stream), size, qp))
    slices = sum(1 + len(further) for _, further in found)
    if not len(found) == slices == written:
        raise GoalreelError(f"x264 coded {slices} slices of {written} pictures")
    return [first.data for first, _ in found]


def code_strips(strips: Planes, qp: int) -> list[Bits]:
    """Return rows of macroblocks as the data of an I slice each.

    A picture of many of them, each in a slice of its own, takes a fifth of the time of as many
    pictures, and the data are the same.

    strips: Y, U, V of m macroblocks each, (n, 16, 16 * m) and twice (n, 8, 8 * m) uint8; qp: 1 to
    51. Raises GoalreelError as code_intra.
    """
    count, _, width = strips[0].shape
    together = min(count, _TOGETHER)
    parts = (
        np.concatenate([plane, plane[:1].repeat(-count % together, axis=0)]) for plane in strips
    )
    pictures = np.concatenate([part.reshape(-1, together * part[0].size) for part in parts], axis=1)
    size = width, _SIDE * together
    stream, _ = ffmpeg.output(intra_stream(size, qp, strips=True), [pictures])
    slices = []
    for first, further in _taken(split(stream), size, qp):
        slices += [Bits.of(first.data), *(read_further_slice(unit, first) for unit in further)]
    if len(slices) != len(pictures) * together:
        raise GoalreelError(f"x264 coded {len(slices)} slices of {count} rows of macroblocks")
    return slices[:count]


def _taken(
    units: list[Nal], size: tuple[int, int], qp: int
) -> Iterator[tuple[IntraSlice, list[Nal]]]:
    """Yield each picture of x264's stream: its first slice, and the units of further ones.

    Raises GoalreelError if they fit nowhere else.
    """
    sps = pps = None
    read_sps_once, read_pps_once = cache(read_sps), cache(read_pps)  # they come with each picture
    # A parameter set comes before each picture, so that a run of slices is one picture.
    for is_slice, run in itertools.groupby(units, lambda unit: unit.type == IDR):
        if not is_slice:
            for unit in run:
                if unit.type == SPS:
                    sps = read_sps_once(unit.rbsp)
                elif unit.type == PPS:
                    pps = read_pps_once(unit.rbsp)
        elif sps and pps:
            first, *further = run
            picture = read_slice(first, sps, pps)
            columns, rows = sps.macroblocks
            if (16 * columns, 16 * rows, picture.qp) != (*size, qp):
                raise GoalreelError(
                    f"x264 coded {16 * columns}x{16 * rows} pixels at qp {picture.qp}; "
                    f"expected: {size[0]}x{size[1]} at qp {qp}"
                )
            yield picture, further


def decode(stream: bytes, size: tuple[int, int]) -> np.ndarray:
    """Return the pictures of an Annex B stream in yuv420p, (frames, H * 3 / 2, W) uint8.

    size: (width, height) shown, even. Raises GoalreelError if ffmpeg finds a fault in the stream,
    or pictures of another size.
    """
    width, height = size
    arguments = ["-xerror", "-threads", "1", "-f", "h264", "-i", "pipe:0"]
    arguments += ["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "pipe:1"]
    samples, _ = ffmpeg.output(arguments, [stream])
    each = width * height * 3 // 2
    if not samples or len(samples) % each:
        raise GoalreelError(f"ffmpeg decoded {len(samples)} bytes; expected: {each} a picture")
    return np.frombuffer(samples, np.uint8).reshape(-1, height * 3 // 2, width)
