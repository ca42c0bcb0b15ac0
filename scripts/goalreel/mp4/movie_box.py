"""The index of an MP4 file with one video track, for media that start at any byte of the file.

A film of episodes has a subtitle track and a chapter track (QuickTime's, which has no limit of
chapters) with one sample per episode. The index is gathered a part of the film at a time, in
columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from goalreel.mp4 import box_writer as boxes
from goalreel.mp4.box_writer import Box, box
from goalreel.mp4.chunks import Chunks
from goalreel.mp4.columns import Column
from goalreel.mp4.reader import TICKS
from goalreel.mp4.sample_table_writer import SampleSizes, SamplesOfChunks, chunk_places, table
from goalreel.mp4.text_tracks import Chapter, Texts

_VIDEO, _SUBTITLES, _CHAPTERS = 1, 2, 3  # track numbers


@dataclass(frozen=True)
class VideoTrack:
    """A video's samples, or a part of them; the payload is their bytes."""

    configuration: bytes  # the content of its avcC box
    size: tuple[int, int]  # (width, height) in pixels
    fps: int | Fraction
    sizes: np.ndarray  # (samples,) integers, bytes of each sample, 1 or more
    keyframes: Sequence[int]  # numbers of the sync samples, ascending, 0 the first of a video


@dataclass(frozen=True)
class FileRange:
    """`length` bytes of a file from `start` on."""

    path: Path
    start: int
    length: int


class Movie:
    """The moov box, and how the media behind it are laid out.

    The media are `texts.front`, the chapters, and then the payload's `stored` bytes with
    `texts.lines`, the subtitles, each before its byte.
    """

    def __init__(self, first: VideoTrack, title: str, comment: str, folder: Path) -> None:
        """Begin with no samples; `first` is the first part, `folder` a place for the columns."""
        rate = Fraction(first.fps)
        self._like, self._tags = first, (title, comment)
        self._timescale, self._tick = TICKS * rate.numerator, TICKS * rate.denominator
        self.frames = self.stored = 0
        self.texts = Texts(self._tick, folder)
        self._chunks = Chunks()
        self._sizes, self._syncs = SampleSizes(folder), Column(folder, ">u4")
        self._counts, self._places = SamplesOfChunks(folder), Column(folder, "<i8")

    def add(self, video: VideoTrack, chapters: Sequence[Chapter]) -> None:
        """Add a part of the video, made as its first, and the chapters that begin in it."""
        sizes = np.asarray(video.sizes)
        firsts = np.array([c.first_frame - self.frames for c in chapters], np.int64)
        # A line comes before its episode's first frame, so that whoever loads the film from one end
        # to the other has it in time.
        starts = self.stored + np.cumsum(sizes, dtype=np.int64) - sizes
        cuts = starts[firsts]
        before = self.texts.add(chapters, cuts)
        breaks = firsts if self.frames else np.append(0, firsts)
        first, counts = self._chunks.add(sizes, breaks)
        self._places.append(starts[first] + before[np.searchsorted(cuts, starts[first], "right")])
        self._counts.append(counts)
        self.stored = int(starts[-1]) + int(sizes[-1])
        self._syncs.append(np.asarray(video.keyframes, np.int64) + self.frames + 1)
        self._sizes.append(sizes)
        self.frames += len(sizes)

    def end(self) -> None:
        """Take note that all parts are added."""
        self._counts.append(self._chunks.end())

    @property
    def media_bytes(self) -> int:
        """The number of bytes of the media."""
        return self.texts.front_bytes + self.texts.bytes + self.stored

    def box(self, base: int, wide: bool) -> Box:
        """Return moov for media whose first byte is at `base`, once all parts are added.

        wide: places take 64 bits. Its length is the same for every base.
        """
        texts = [self._subtitles(base, wide), self._titles(base, wide)] if self.texts else []
        return box(
            "moov",
            boxes.movie_header(self._timescale, self._duration, 2 + len(texts)),
            self._video(base, wide),
            *texts,
            boxes.user_data(*self._tags, self.texts.listed, self._timescale),
        )

    @property
    def _duration(self) -> int:
        return self.frames * self._tick

    def _video(self, base: int, wide: bool) -> Box:
        video = self._like
        samples = box(
            "stbl",
            boxes.video_entry(video.configuration, video.size),
            table("stts", np.array([[self.frames, self._tick]])),
            table("stss", self._syncs) if len(self._syncs) < self.frames else [],
            self._counts.box(),
            chunk_places(self._places, base + self.texts.front_bytes, wide),
            self._sizes.box(),
        )
        shown = boxes.ENABLED | boxes.IN_MOVIE
        header = boxes.track_header(_VIDEO, self._duration, shown, video.size)
        chapters = boxes.references("chap", _CHAPTERS) if self.texts else []
        kind = ("und", "vide", "VideoHandler", boxes.video_header())
        return self._track(header, chapters, *kind, samples)

    def _subtitles(self, base: int, wide: bool) -> Box:
        samples = self.texts.subtitles(base + self.texts.front_bytes, wide)
        header = boxes.track_header(_SUBTITLES, self._duration, boxes.IN_MOVIE, group=1)
        return self._track(header, [], "eng", "sbtl", "Episodes", boxes.subtitle_header(), samples)

    def _titles(self, base: int, wide: bool) -> Box:
        samples = self.texts.titles(base, wide)
        header = boxes.track_header(_CHAPTERS, self._duration, boxes.IN_MOVIE)
        return self._track(header, [], "eng", "text", "Chapters", boxes.chapter_header(), samples)

    def _track(self, header: Box, chapters: Box, *kind) -> Box:
        # No edit list: all play once from their start, which is what its absence says (8.6.5). With
        # one, ffmpeg and all that is built on it would hold every sample's place twice.
        media = boxes.media(self._timescale, self._duration, *kind)
        return box("trak", header, chapters, media)
