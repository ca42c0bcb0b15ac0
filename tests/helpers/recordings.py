"""Shared parts of the tests of recorders: decoding to RGB, memory, and a stand-in for moviepy.

moviepy needs an older Pillow than goalreel. The tests need only the frames that Gymnasium passes to
it, and the stand-in keeps these.
"""

import os
import subprocess
import sys
import types
from dataclasses import fields
from pathlib import Path

import av
import numpy as np
from project import REPOSITORY

from goalreel.simulation.episodes import Episode

LOSSLESS = {"qp": 0, "preset": "ultrafast"}
# Scripts that replace ffmpeg (conftest.fake_ffmpeg), and a part of the error message.
BROKEN = [
    ("cat > /dev/null; echo 'No space left on device' >&2; exit 1", "No space left on device"),
    ("kill -9 $$", "Killed by SIGKILL"),
    ("exit 0", "not a complete MP4|Ended before the last frame|frames"),
]


class _Clip:
    """A stand-in for moviepy's ImageSequenceClip, whose `write_videofile` keeps the frames unchanged."""

    def __init__(self, sequence, fps):
        if not len(sequence):
            raise IndexError("no frames")
        self._kept = {"frames": np.array(sequence), "fps": fps}

    def write_videofile(self, path, logger=None):
        with Path(path).open("wb") as file:
            np.savez(file, **self._kept)


def stand_in_for_moviepy(monkeypatch) -> None:
    """Install the stand-in as moviepy."""
    name = "moviepy.video.io.ImageSequenceClip"
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        path = ".".join(parts[:length])
        monkeypatch.setitem(sys.modules, path, types.ModuleType(path))
    sys.modules[name].ImageSequenceClip = _Clip
    monkeypatch.delitem(sys.modules, "gymnasium.utils.save_video", raising=False)


def kept(folder: Path) -> dict[str, list[np.ndarray]]:
    """Return the frames of each file that the stand-in wrote."""
    return {path.name: list(np.load(path)["frames"]) for path in folder.iterdir()}


def filmed(folder: Path) -> dict[str, list[np.ndarray]]:
    """Return the frames of every video in a folder, (H, W, 3) uint8 each."""
    return {path.name: decoded_rgb(path) for path in folder.iterdir()}


def decoded_rgb(path: Path) -> list[np.ndarray]:
    """Return the frames of a video, (H, W, 3) uint8 each."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def same_episodes(ours, theirs) -> bool:
    """Return whether episodes are the same, bit for bit, except for what the policy said."""
    pairs = zip(ours, theirs, strict=True)
    names = [field.name for field in fields(Episode) if field.name != "signals"]
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for a, b in pairs for n in names)


def equal(ours: dict[str, list], theirs: dict[str, list]) -> bool:
    """Return whether two recorders made the same files with the same frames, pixel for pixel."""
    return ours.keys() == theirs.keys() and all(
        len(ours[name]) == len(theirs[name])
        and all(np.array_equal(a, b) for a, b in zip(ours[name], theirs[name], strict=True))
        for name in ours
    )


# The start of a program that measures itself. getrusage would also count the parent's peak.
PEAK = """
import pathlib, re, sys

def peak():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]) * 1024
"""


def said_by(program: str, *arguments: str) -> str:
    """Run a Python program that can import goalreel, and return what it prints."""
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "scripts")}
    command = [sys.executable, "-c", program, *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
