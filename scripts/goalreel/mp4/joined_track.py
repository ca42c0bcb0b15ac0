"""Joining segments: from their indices to one video track and the bytes that it takes.

Nothing is decoded or copied here: ordinary segments become ranges of their files. Where a segment
stores a sample once and shows it often, so does the film, for all such segments together. Segments
are taken one at a time; what is kept of one stands in columns. Whether segments belong together is
film's to say; mp4_writer does the writing.
"""

import hashlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.mp4.columns import Column
from goalreel.mp4.movie_box import FileRange, VideoTrack
from goalreel.mp4.reader import VideoIndex, read_index

# Samples that are known by their digests when they come again. A film has some thousand pictures,
# but a title card for each episode: those seen least recently are forgotten, and stored again.
_KNOWN = 1 << 16


class Joined:
    """Segments as one video: `parts` first, which gathers what `payload` then tells."""

    def __init__(self, segments: Sequence[Path], fps: int | Fraction, folder: Path) -> None:
        """Take segments at `fps`, alike in codec, configuration and size.

        folder: where columns may stand. Raises GoalreelError if an index cannot be read.
        """
        self._segments, self._fps = segments, fps
        self._shared = not all(read_index(path).samples.in_order for path in segments)
        self._ranges = Column(folder, "<i8", 3)  # the segment's number, start, length
        self._length = 0
        self._stored: dict[bytes, int] = {}  # places of shared samples by their digests
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
            sizes = index.samples.sizes
            places = None
            if not index.samples.in_order:
                places = self._add_new(number, index)
            elif self._shared:
                places = self._length + np.cumsum(sizes, dtype=np.int64) - sizes
            if index.samples.in_order:
                self._add([(number, *run) for run in index.samples.runs()])
            self.frames += index.frames
            self.payload_bytes += index.payload
            yield VideoTrack(
                codec=index.codec,
                configuration=index.parameter_sets[0],
                size=index.size,
                fps=self._fps,
                sizes=sizes,
                keyframes=index.keyframes,
                offsets=places,
            )

    def payload(self) -> Iterator[FileRange]:
        """Yield the bytes of all samples, as ranges of the segments' files."""
        for number, start, length in self._ranges.rows():
            yield FileRange(self._segments[number], start, length)

    def _add(self, ranges: list[tuple[int, int, int]]) -> None:
        self._length += sum(length for _, _, length in ranges)
        self._ranges.append(np.array(ranges, np.int64))

    def _add_new(self, number: int, index: VideoIndex) -> np.ndarray:
        """Add what no segment before has stored; return where the segment's samples stand."""
        offsets, sizes = index.samples.offsets, index.samples.sizes
        order = np.lexsort((sizes, offsets))
        new = (np.diff(offsets[order], prepend=-1) != 0) | (np.diff(sizes[order], prepend=0) != 0)
        stored = order[new]  # one sample of each stored piece, as they stand in the file
        places, ranges = np.empty(len(stored), np.int64), []
        end = self._length
        with self._segments[number].open("rb") as stream:
            pieces = zip(offsets[stored].tolist(), sizes[stored].tolist(), strict=True)
            for piece, (start, length) in enumerate(pieces):
                stream.seek(start)
                digest = hashlib.sha256(stream.read(length)).digest()
                place = self._stored.pop(digest, None)
                if place is None:
                    place = end
                    end += length
                    ranges.append((number, start, length))
                self._stored[digest] = places[piece] = place  # the last is the latest seen
                if len(self._stored) > _KNOWN:
                    del self._stored[next(iter(self._stored))]
        self._add(ranges)
        mine = np.empty(len(offsets), np.int64)
        mine[order] = places[np.cumsum(new) - 1]
        return mine
