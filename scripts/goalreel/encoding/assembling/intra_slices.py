"""Pictures coded as I slices by x264, whose slice data are taken bit for bit into other pictures.

Such a slice may stand anywhere in a picture of the same width, under a header of its own: nothing
in an I slice looks beyond it. Several make up one IDR picture.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from goalreel.encoding import ffmpeg
from goalreel.encoding.x264 import intra_stream
from goalreel.errors import GoalreelError
from goalreel.h264.nal import IDR, PPS, SPS, Nal, split
from goalreel.h264.parameter_sets import PictureParameters, SequenceParameters, read_pps, read_sps
from goalreel.h264.slice_reader import data_from, read_header


@dataclass(frozen=True)
class IntraSlice:
    """A picture coded as one I slice."""

    data: np.ndarray  # the slice data, (n,) uint8 of 0 and 1
    qp: int  # of the slice header
    macroblocks: int  # how many


def code_intra(
    pictures: Iterable[np.ndarray], size: tuple[int, int], qp: int, thorough: bool = False
) -> list[IntraSlice]:
    """Return each picture as an I slice.

    Args:
        pictures: yuv420p, (H * 3 / 2, W) uint8 each.
        size: (width, height), multiples of 16.
        qp: 1 to 51 (x264 takes 0 for another profile).
        thorough: some percent smaller in fifty times the time, for what is coded once.

    Raises:
        GoalreelError: a picture is of another size, ffmpeg fails, or x264 codes something else
            than it was asked.
    """
    width, height = size
    if width % 16 or height % 16 or min(size) < 16:
        raise GoalreelError(f"size: {width}x{height}; allowed: multiples of 16")
    if not 1 <= qp <= 51:
        raise GoalreelError(f"qp: {qp}; allowed: 1 to 51")
    stream, written = ffmpeg.output(
        intra_stream(size, qp, thorough), _checked(pictures, (height * 3 // 2, width))
    )
    slices = list(_taken(split(stream), size, qp))
    if len(slices) != written:
        raise GoalreelError(f"x264 coded {len(slices)} slices of {written} pictures")
    return slices


def _checked(pictures: Iterable[np.ndarray], shape: tuple[int, int]) -> Iterator[np.ndarray]:
    for number, picture in enumerate(pictures):
        if picture.dtype != np.uint8 or picture.shape != shape:
            raise GoalreelError(
                f"picture {number}: {picture.dtype} of shape {picture.shape}; "
                f"allowed: uint8, {shape}"
            )
        yield np.ascontiguousarray(picture)


def _taken(units: list[Nal], size: tuple[int, int], qp: int) -> Iterator[IntraSlice]:
    """Yield the slices of x264's stream. Raises GoalreelError if they cannot stand elsewhere."""
    macroblocks = size[0] * size[1] // 256
    sps = pps = None
    read: dict[Nal, SequenceParameters | PictureParameters] = {}
    for unit in units:
        if unit.type == SPS:
            sps = read[unit] = read.get(unit) or read_sps(unit.rbsp)
        elif unit.type == PPS:
            pps = read[unit] = read.get(unit) or read_pps(unit.rbsp)
        elif unit.type == IDR and sps and pps:
            header, start = read_header(unit, sps, pps)
            fields = {
                "entropy_coding_mode_flag": (pps.cabac, False),
                "transform_8x8_mode_flag": (pps.transform_8x8, False),
                "chroma_qp_index_offset": (pps.chroma_qp_offset, 0),
                "constrained_intra_pred_flag": (pps.constrained_intra, False),
                "chroma_format_idc": (sps.chroma_format, 1),
                "the picture's size": (sps.size, size),
                "first_mb_in_slice": (header.first_mb, 0),
                "the slice's qp": (header.qp, qp),
                "disable_deblocking_filter_idc": (header.disable_deblocking, 1),
            }
            for name, (actual, expected) in fields.items():
                if actual != expected:
                    raise GoalreelError(f"x264 coded {name} {actual}; expected: {expected}")
            yield IntraSlice(data_from(unit, start), header.qp, macroblocks)


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
