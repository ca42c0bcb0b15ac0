"""OpenH264, a decoder of another house than ffmpeg's, asked through GStreamer."""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

_PROGRAMS = ("gst-launch-1.0", "gst-inspect-1.0")


@cache
def skip_reason() -> str:
    """Return why OpenH264 cannot be asked here; an empty string where it can."""
    if None in map(shutil.which, _PROGRAMS):
        return f"needs {' and '.join(_PROGRAMS)} (apt-get install gstreamer1.0-tools)"
    for element in ("h264parse", "openh264dec"):
        found = subprocess.run(["gst-inspect-1.0", "--exists", element], check=False)
        if found.returncode:
            return f"needs GStreamer's {element} (apt-get install gstreamer1.0-plugins-bad)"
    return ""


def decode(source: bytes | str | os.PathLike, size: tuple[int, int]) -> np.ndarray:
    """Return an Annex B stream's pictures in yuv420p, (frames, H * 3 / 2, W) uint8.

    source: the stream, or the path of a file of it. size: (width, height) shown, even. An
    AssertionError says what GStreamer said where it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stream.h264") if isinstance(source, bytes) else Path(source)
        if isinstance(source, bytes):
            path.write_bytes(source)
        raw = Path(folder, "pictures.yuv")
        pipeline = f"filesrc location={path} ! h264parse ! openh264dec ! filesink location={raw}"
        command = ["gst-launch-1.0", "--quiet", *pipeline.split()]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        samples = np.frombuffer(raw.read_bytes(), np.uint8)
    return _tight(samples, *size)


def _tight(samples: np.ndarray, width: int, height: int) -> np.ndarray:
    """Return pictures without what GStreamer's I420 adds: rows are filled up to 4 bytes."""
    planes = [(height, width), (height // 2, width // 2), (height // 2, width // 2)]
    sizes = [rows * (-(-across // 4) * 4) for rows, across in planes]
    assert samples.size and samples.size % sum(sizes) == 0, (samples.size, sizes)
    parts = np.split(samples.reshape(-1, sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
    tight = [
        part.reshape(len(part), rows, -1)[:, :, :across].reshape(len(part), -1)
        for part, (rows, across) in zip(parts, planes, strict=True)
    ]
    return np.concatenate(tight, axis=1).reshape(-1, height * 3 // 2, width)
