"""Joining segments: from their indices to one video track and the bytes that it takes.

Nothing is decoded or copied here: ordinary segments become ranges of their files. Where a segment
stores a sample once and shows it often, so does the film, for all such segments together. Whether
segments belong together is film's to say; mp4_writer does the writing.
"""

import hashlib
import itertools
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.mp4 import VideoIndex
from goalreel.mp4_movie import FileRange, VideoTrack


def joined(
    segments: Mapping[Path, VideoIndex], fps: int | Fraction
) -> tuple[VideoTrack, list[FileRange]]:
    """Return one track of all segments' samples, in order, and the payload of it.

    segments: at `fps`, alike in codec, configuration and size. Raises GoalreelError if one has
    several sample descriptions, OSError if one cannot be read.
    """
    for path, index in segments.items():
        if len(index.parameter_sets) != 1:
            raise GoalreelError(
                f"{path}: {len(index.parameter_sets)} sample descriptions; allowed: 1; delete it "
                f"and run snakemake again"
            )
    indices = list(segments.values())
    first = indices[0]
    shared = not all(index.samples.in_order for index in indices)
    payload = _Payload(keep_places=shared)
    for path, index in segments.items():
        payload.add(path, index)
    starts = itertools.accumulate((index.frames for index in indices), initial=0)
    keyframes = [
        np.asarray(i.keyframes, np.int64) + s for i, s in zip(indices, starts, strict=False)
    ]
    track = VideoTrack(
        codec=first.codec,
        configuration=first.parameter_sets[0],
        size=first.size,
        fps=fps,
        sizes=np.concatenate([index.samples.sizes for index in indices]),
        keyframes=np.concatenate(keyframes),
        offsets=np.concatenate(payload.places) if shared else None,
    )
    return track, payload.ranges


class _Payload:
    """The bytes of the film's samples, as ranges of the segments' files."""

    def __init__(self, keep_places: bool) -> None:
        self.ranges: list[FileRange] = []
        self.places: list[np.ndarray] = []  # where each segment's samples stand in the payload
        self._keep = keep_places
        self._length = 0
        self._stored: dict[bytes, int] = {}  # places of shared samples by their digests

    def add(self, path: Path, index: VideoIndex) -> None:
        """Add a segment's samples."""
        if index.samples.in_order:
            self._add_all(path, index)
        else:
            self._add_new(path, index)

    def _add_all(self, path: Path, index: VideoIndex) -> None:
        if self._keep:
            ends = np.cumsum(index.samples.sizes, dtype=np.int64)
            self.places.append(self._length + ends - index.samples.sizes)
        for start, length in index.samples.runs():
            self._append(path, start, length)

    def _add_new(self, path: Path, index: VideoIndex) -> None:
        """Add what no segment before has stored; alike is what has the same bytes."""
        offsets, sizes = index.samples.offsets, index.samples.sizes
        order = np.lexsort((sizes, offsets))
        new = (np.diff(offsets[order], prepend=-1) != 0) | (np.diff(sizes[order], prepend=0) != 0)
        stored = order[new]  # one sample of each stored piece, as they stand in the file
        places = np.empty(len(stored), np.int64)
        with path.open("rb") as stream:
            pieces = zip(offsets[stored].tolist(), sizes[stored].tolist(), strict=True)
            for number, (start, length) in enumerate(pieces):
                stream.seek(start)
                digest = hashlib.sha256(stream.read(length)).digest()
                if digest not in self._stored:
                    self._stored[digest] = self._length
                    self._append(path, start, length)
                places[number] = self._stored[digest]
        mine = np.empty(len(offsets), np.int64)
        mine[order] = places[np.cumsum(new) - 1]
        self.places.append(mine)

    def _append(self, path: Path, start: int, length: int) -> None:
        self._length += length
        if self.ranges:
            last = self.ranges[-1]
            if last.path == path and last.start + last.length == start:
                self.ranges[-1] = FileRange(path, last.start, last.length + length)
                return
        self.ranges.append(FileRange(path, start, length))
