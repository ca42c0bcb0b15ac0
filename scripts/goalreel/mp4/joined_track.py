"""Joining segments: from their indices to one video track and the bytes that it takes.

Nothing is decoded or copied here: segments become ranges of their files. They are taken one at a
time; what is kept of one is in columns.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.mp4.columns import Column
from goalreel.mp4.movie_box import FileRange, VideoTrack
from goalreel.mp4.reader import read_index


class Joined:
    """Segments as one video: take all `parts` first, then the `payload`."""

    def __init__(self, segments: Sequence[Path], fps: int | Fraction, folder: Path) -> None:
        """Take segments at `fps`, alike in configuration and size.

        folder: for columns. Raises GoalreelError if an index cannot be read.
        """
        self._segments, self._fps = segments, fps
        self._ranges = Column(folder, "<i8", 3)  # the segment's number, start, length
        self.frames = self.payload_bytes = 0
        self.parameter_sets: tuple[bytes, ...] = ()

    def parts(self) -> Iterator[VideoTrack]:
        """Yield a part of the video for each segment.

        Raises GoalreelError if one has several sample descriptions, OSError if one cannot be read.
        """
        for number, path in enumerate(self._segments):
            index = read_index(path)
            if len(index.parameter_sets) != 1:
                raise GoalreelError(
                    f"{path}: {len(index.parameter_sets)} sample descriptions; allowed: 1; delete "
                    f"it and run snakemake again"
                )
            self.parameter_sets = self.parameter_sets or index.parameter_sets
            ranges = [(number, *run) for run in index.samples.runs()]
            self._ranges.append(np.array(ranges, np.int64))
            self.frames += index.frames
            self.payload_bytes += index.payload
            yield VideoTrack(
                configuration=index.parameter_sets[0],
                size=index.size,
                fps=self._fps,
                sizes=index.samples.sizes,
                keyframes=index.keyframes,
            )

    def payload(self) -> Iterator[FileRange]:
        """Yield the bytes of all samples, as ranges of the segments' files."""
        for number, start, length in self._ranges.rows():
            yield FileRange(self._segments[number], start, length)
