"""libvpx and a decoder, run by ffmpeg: pictures to VP9 frames, frames to samples or hashes.

Frames travel as IVF files, the container of libvpx's own tools. What is encoded, and why in this
order, stands in vp9; what a frame's header says, in vp9_header.
"""

import struct
import tempfile
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from goalreel.encoding import ffmpeg
from goalreel.encoding.vp9_header import parse_header
from goalreel.encoding.x264 import BT709, raw_frames
from goalreel.errors import GoalreelError

# Error resilience starts every frame from the default contexts and takes no motion vector from the
# frame before. One thread and no look-ahead: the same bytes on every machine.
_LIBVPX = [
    *["-c:v", "libvpx-vp9", "-error-resilient", "default", "-frame-parallel", "1"],
    *["-lag-in-frames", "0", "-auto-alt-ref", "0", "-aq-mode", "0", "-tile-columns", "0"],
    *["-threads", "1", "-row-mt", "0", "-flags", "+bitexact", "-fflags", "+bitexact"],
]
_IVF_HEADER = struct.Struct("<4sHH4sHHIIII")
# Frames per second where nobody asks; at few, ffmpeg warns of a bitrate too low to be meant.
_RATE = 1000
_IVF_FRAME = struct.Struct("<IQ")


def encoded(
    pictures: Iterable,
    size: tuple[int, int],
    options: list[str],
    speed: tuple[str, int],
    interval: int,
) -> list[bytes]:
    """Return libvpx's frames of `pictures`, as they are.

    pictures: yuv420p buffers as in yuv, (H * 3 / 2, W) uint8. size: (width, height) in pixels.
    options: libvpx's, for the quality. speed: its deadline and cpu-used. interval: frames from a
    key frame to the next. Raises GoalreelError if ffmpeg fails or has no libvpx, or a frame needs
    more than its references to be decoded.
    """
    options = [*options, "-b:v", "0", "-deadline", speed[0], "-cpu-used", str(speed[1])]
    options += ["-g", str(interval), "-keyint_min", str(interval)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.ivf"
        source = raw_frames("yuv420p", size, Fraction(1), BT709)
        target = [*_LIBVPX, *options, *BT709, "-f", "ivf", "-y", f"file:{path}"]
        written = ffmpeg.run(source + target, pictures)
        frames = _read_ivf(path.read_bytes())
    check(len(frames) == written, f"{len(frames)} frames of {written}")
    for place, frame in enumerate(frames):
        header = parse_header(frame)
        sound = header.shown and header.error_resilient and not header.segmented
        sound = sound and header.key == (place % interval == 0)
        check(sound and header.size in (None, size), f"a frame unlike what it was asked: {header}")
    return frames


def decoded(frames: Sequence[bytes], size: tuple[int, int]) -> np.ndarray:
    """Return the last of the frames as ffmpeg decodes it, (H * 3 / 2, W) uint8.

    The first is a key frame. Raises GoalreelError if ffmpeg finds anything wrong with them.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.yuv"
        target = ["-pix_fmt", "yuv420p", "-fps_mode", "passthrough"]
        _decode(frames, size, [*target, "-f", "rawvideo", "-y", f"file:{path}"])
        samples = np.fromfile(path, np.uint8)
    width, height = size
    return samples.reshape(-1, height * 3 // 2, width)[-1]


def hashes(frames: Sequence[bytes], size: tuple[int, int], filters: str) -> list[str]:
    """Return a hash of each frame as ffmpeg decodes and filters it; see decoded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hashes"
        target = ["-vf", filters, "-fps_mode", "passthrough", "-f", "framehash"]
        _decode(frames, size, [*target, "-hash", "murmur3", "-y", f"file:{path}"])
        lines = path.read_text().splitlines()
    found = [line.rsplit(",", 1)[1] for line in lines if not line.startswith("#")]
    check(len(found) == len(frames), f"{len(found)} decoded frames of {len(frames)}")
    return found


def luma_errors(frames: Sequence[bytes], sources: Iterable, size: tuple[int, int]) -> list[float]:
    """Return the mean square error of each frame's luma against its source; see decoded.

    sources: yuv420p buffers, one for each frame.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "errors"
        second = raw_frames("yuv420p", size, Fraction(_RATE), BT709)
        # A relative name, since a filter's options give : and \\ a meaning.
        target = [*second, "-lavfi", f"[0][1]psnr=stats_file={path.name}", "-f", "null", "-"]
        _decode(frames, size, target, sources, folder)
        found = [float(line.split("mse_y:")[1].split()[0]) for line in path.open()]
    check(len(found) == len(frames), f"{len(found)} decoded frames of {len(frames)}")
    return found


def _decode(
    frames: Sequence[bytes],
    size: tuple[int, int],
    target: list[str],
    sources: Iterable = (),
    work: str = ".",
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.ivf"
        path.write_bytes(ivf(frames, size))
        source = ["-threads", "1", "-err_detect", "explode", "-xerror", "-f", "ivf"]
        ffmpeg.run([*source, "-c:v", "vp9", "-i", f"file:{path}", *target], sources, work)


def ivf(frames: Sequence[bytes], size: tuple[int, int]) -> bytes:
    """Return frames as an IVF file, the container that libvpx's own tools use."""
    width, height = size
    head = _IVF_HEADER.pack(b"DKIF", 0, 32, b"VP90", width, height, _RATE, 1, len(frames), 0)
    parts = [_IVF_FRAME.pack(len(frame), place) + frame for place, frame in enumerate(frames)]
    return head + b"".join(parts)


def _read_ivf(data: bytes) -> list[bytes]:
    frames, place = [], _IVF_HEADER.size
    while place < len(data):
        length, _ = _IVF_FRAME.unpack_from(data, place)
        place += _IVF_FRAME.size
        frames.append(data[place : place + length])
        place += length
    return frames


def check(sound: bool, instead: str) -> None:
    """Raise GoalreelError, saying what libvpx gave `instead`, unless that is sound."""
    if not sound:
        raise GoalreelError(f"libvpx gave {instead}; this ffmpeg cannot make films of size tiny")
