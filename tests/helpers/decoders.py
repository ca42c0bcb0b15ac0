"""Decoders that are not ours: FFmpeg's, OpenH264's, and JM, the standard's own reference."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from assembling import strictly

# As a test's parameter.
DECODERS = ["FFmpeg", *(pytest.param(name, marks=pytest.mark.slow) for name in ("OpenH264", "JM"))]
_PROGRAMS = ("gst-launch-1.0", "gst-inspect-1.0")


def decode_or_skip(decoder: str, stream: bytes, size: tuple[int, int]) -> np.ndarray:
    """Decode an Annex B stream, or skip the test where the decoder is not installed.

    Args:
        decoder: one of DECODERS.
        stream: the Annex B stream.
        size: the width and height shown, in pixels, both even.

    Returns:
        The pictures in yuv420p, (frames, H * 3 / 2, W) uint8.

    """
    if decoder == "FFmpeg":
        return strictly(stream)
    return {"OpenH264": _by_openh264, "JM": _by_jm}[decoder](stream, size)


def _by_jm(stream: bytes, size: tuple[int, int]) -> np.ndarray:
    if not (program := shutil.which("ldecod") or shutil.which("ldecod.exe")):
        pytest.skip("needs ldecod, built of the sources of JM with MAX_NUM_SLICES of 2000")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "stream.h264").write_bytes(stream)
        command = [program, "-i", "stream.h264", "-o", "pictures.yuv", "-s"]
        completed = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert completed.returncode == 0, completed.stdout[-2000:]
        samples = np.fromfile(Path(folder, "pictures.yuv"), np.uint8)
    return samples.reshape(-1, size[1] * 3 // 2, size[0])


def _by_openh264(stream: bytes, size: tuple[int, int]) -> np.ndarray:
    if None in map(shutil.which, _PROGRAMS):
        pytest.skip(f"needs {' and '.join(_PROGRAMS)} (apt-get install gstreamer1.0-tools)")
    for element in ("h264parse", "openh264dec"):
        if subprocess.run(["gst-inspect-1.0", "--exists", element]).returncode:
            pytest.skip(f"needs GStreamer's {element} (apt-get install gstreamer1.0-plugins-bad)")
    with tempfile.TemporaryDirectory() as folder:
        path, raw = Path(folder, "stream.h264"), Path(folder, "pictures.yuv")
        path.write_bytes(stream)
        pipeline = f"filesrc location={path} ! h264parse ! openh264dec ! filesink location={raw}"
        command = ["gst-launch-1.0", "--quiet", *pipeline.split()]
        completed = subprocess.run(command, capture_output=True, text=True)
        assert completed.returncode == 0, completed.stderr
        samples = np.frombuffer(raw.read_bytes(), np.uint8)
    return _unpadded(samples, *size)


def _unpadded(samples: np.ndarray, width: int, height: int) -> np.ndarray:
    """Remove the padding of GStreamer's I420, whose rows are multiples of 4 bytes."""
    planes = [(height, width), (height // 2, width // 2), (height // 2, width // 2)]
    sizes = [rows * (-(-columns // 4) * 4) for rows, columns in planes]
    assert samples.size and samples.size % sum(sizes) == 0, (samples.size, sizes)
    parts = np.split(samples.reshape(-1, sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
    unpadded = [
        part.reshape(len(part), rows, -1)[:, :, :columns].reshape(len(part), -1)
        for part, (rows, columns) in zip(parts, planes, strict=True)
    ]
    return np.concatenate(unpadded, axis=1).reshape(-1, height * 3 // 2, width)
