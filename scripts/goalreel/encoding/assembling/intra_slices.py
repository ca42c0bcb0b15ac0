"""Pictures coded as I slices by x264, whose slice data are taken bit for bit into other pictures.

Such a slice may stand anywhere in a picture of the same width, under a header of its own: nothing
in an I slice looks beyond it. Several make up one IDR picture.
"""

from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np

from goalreel.encoding import ffmpeg
from goalreel.encoding.x264 import intra_stream
from goalreel.errors import GoalreelError
from goalreel.h264.bits import BitStrings, ue_codewords
from goalreel.h264.macroblocks import Planes
from goalreel.h264.nal import IDR, PPS, SPS, Nal, split, units_of, unpack
from goalreel.h264.slice_reader import (
    IntraSlice,
    read_pps,
    read_slice,
    read_sps,
    slice_data,
)

_SIDE = 16  # of a macroblock
_TOGETHER = 256  # strips that are coded as one picture, at most


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
    if len(found) != written:
        raise GoalreelError(f"x264 coded {len(found)} pictures of {written}")
    return [one.data for one in found]


def code_strips(strips: Planes, qp: int) -> BitStrings:
    """Return rows of macroblocks as the data of an I slice each.

    A picture of many of them, each in a slice of its own, takes a sixth of the time of as many
    pictures, and the data are the same.

    strips: Y, U, V of m macroblocks each, (n, 16, 16 * m) and twice (n, 8, 8 * m) uint8; qp: 1 to
    51. Raises GoalreelError as code_intra.
    """
    count, _, width = strips[0].shape
    together = -(-count // -(-count // _TOGETHER))
    parts = (
        np.concatenate([plane, plane[:1].repeat(-count % together, axis=0)]) for plane in strips
    )
    pictures = np.concatenate([part.reshape(-1, together * part[0].size) for part in parts], axis=1)
    size = width, _SIDE * together
    stream, _ = ffmpeg.output(intra_stream(size, qp, strips=True), [pictures])

    starts, ends = units_of(stream)
    slices = np.frombuffer(stream, np.uint8)[starts] & 31 == IDR
    number = np.cumsum(slices) - 1
    first = slices & (number % together == 0)
    apart = ~slices | first
    bounds = zip(starts[apart].tolist(), ends[apart].tolist(), strict=True)
    found = list(_taken([unpack(stream[start:end]) for start, end in bounds], size, qp))
    if not len(found) * together == slices.sum() == len(pictures) * together:
        raise GoalreelError(f"x264 coded {slices.sum()} slices of {count} rows of macroblocks")
    # Headers differ in first_mb_in_slice alone, ue(v) at the beginning.
    _, address = ue_codewords(np.arange(together) * (width // _SIDE))
    headers = np.add.outer([one.header_bits - 1 for one in found], address).ravel()
    return slice_data(stream, starts[slices][:count], ends[slices][:count], headers[:count])


def _taken(units: list[Nal], size: tuple[int, int], qp: int) -> Iterator[IntraSlice]:
    """Yield the slice of each picture of x264's stream.

    Raises GoalreelError if they fit nowhere else.
    """
    sps = pps = None
    read_sps_once, read_pps_once = cache(read_sps), cache(read_pps)  # they come with each picture
    for unit in units:
        if unit.type == SPS:
            sps = read_sps_once(unit.rbsp)
        elif unit.type == PPS:
            pps = read_pps_once(unit.rbsp)
        elif unit.type == IDR and sps and pps:
            picture = read_slice(unit, sps, pps)
            columns, rows = sps.macroblocks
            if (16 * columns, 16 * rows, picture.qp) != (*size, qp):
                raise GoalreelError(
                    f"x264 coded {16 * columns}x{16 * rows} pixels at qp {picture.qp}; "
                    f"expected: {size[0]}x{size[1]} at qp {qp}"
                )
            yield picture


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
