"""The index of an MP4 file with one video track, for media that start at any byte of the file.

A film of episodes has a subtitle track and a chapter track (QuickTime's, which has no limit of
chapters) with one sample per episode. The boxes stand in mp4_boxes, the tables of samples in
mp4_tables; mp4_writer puts the media behind the index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from goalreel import mp4_boxes as boxes
from goalreel.mp4 import TICKS
from goalreel.mp4_boxes import Box, box
from goalreel.mp4_tables import chunk_places, chunks, sample_sizes, table

_UTF8 = bytes([0, 0, 0, 12]) + b"encd" + bytes([0, 0, 1, 0])  # QuickTime: this text is UTF-8
_VIDEO, _SUBTITLES, _CHAPTERS = 1, 2, 3  # track numbers


@dataclass(frozen=True)
class VideoTrack:
    """What is told of a video's samples; the payload is their bytes.

    codec: "avc1" or "vp09"; configuration: the content of its avcC box, or of its vpcC box from
    version and flags on
    size: (width, height) in pixels
    fps: frames per second, a whole number or a fraction
    sizes: (samples,) integers, bytes of each sample, 1 or more
    keyframes: numbers of the sync samples, ascending, 0 the first
    offsets: (samples,) int64, where each sample starts in the payload, several at one place if
    they are alike; None if the payload is the samples one after another
    """

    codec: str
    configuration: bytes
    size: tuple[int, int]
    fps: int | Fraction
    sizes: np.ndarray
    keyframes: Sequence[int]
    offsets: np.ndarray | None = None


@dataclass(frozen=True)
class Chapter:
    """A filmed episode's place in the film, its title card included, in frames, and its title."""

    first_frame: int
    frames: int
    title: str


@dataclass(frozen=True)
class FileRange:
    """`length` bytes of a file from `start` on."""

    path: Path
    start: int
    length: int


class Movie:
    """The moov box, and how the media behind it are laid out.

    The media are `front`, the chapters' titles, and then the payload's `stored` bytes with
    texts[i], an episode's subtitle, before the payload's byte cuts[i].
    """

    def __init__(
        self, video: VideoTrack, chapters: Sequence[Chapter], title: str, comment: str
    ) -> None:
        """Lay out a video, whose chapters, if any, cover it one after another."""
        rate = Fraction(video.fps)
        self._video, self._chapters, self._tags = video, chapters, (title, comment)
        self._timescale, self._tick = TICKS * rate.numerator, TICKS * rate.denominator
        self._duration = len(video.sizes) * self._tick
        starts = np.zeros(len(video.sizes) + 1, np.int64)
        np.cumsum(video.sizes, out=starts[1:])
        names = [boxes.utf8(chapter.title, 0xFFFF) for chapter in chapters]
        self.texts = [len(name).to_bytes(2, "big") + name for name in names]
        self.front = b"".join(text + _UTF8 for text in self.texts)
        self._lengths = np.array([len(text) for text in self.texts], np.int64)
        firsts = np.array([chapter.first_frame for chapter in chapters], np.int64)
        if video.offsets is None:
            # A line stands before its episode's first frame, so that who loads the film from one
            # end to the other has it in time. Where samples are shared there is no such place.
            self.stored, self.cuts = int(starts[-1]), starts[firsts]
            first, self._counts = chunks(starts, None, firsts)
            places = starts[first]
        else:
            self.stored, self.cuts = int((video.offsets + video.sizes).max()), firsts * 0
            first, self._counts = chunks(starts, video.offsets, firsts[:0])
            places = video.offsets[first]
        before = np.append(0, np.cumsum(self._lengths))  # the bytes of texts before each text
        texts = before[np.searchsorted(self.cuts, places, side="right")]
        self._places = len(self.front) + places + texts
        self._text_places = len(self.front) + self.cuts + before[:-1]
        self._sizes = sample_sizes(video.sizes)  # made once: the largest of the tables

    @property
    def media_bytes(self) -> int:
        """The number of bytes of the media."""
        return len(self.front) + sum(map(len, self.texts)) + self.stored

    def box(self, base: int, wide: bool) -> Box:
        """Return moov for media whose first byte is at `base`.

        wide: places take 64 bits. Its length is the same for every base.
        """
        names = [(c.first_frame * self._tick, c.title) for c in self._chapters]
        texts = [self._subtitles(base, wide), self._titles(base, wide)] if names else []
        return box(
            "moov",
            boxes.movie_header(self._timescale, self._duration, 2 + len(texts)),
            self._frames(base, wide),
            *texts,
            boxes.user_data(*self._tags, names, self._timescale),
        )

    def _frames(self, base: int, wide: bool) -> Box:
        video, frames = self._video, len(self._video.sizes)
        syncs = np.asarray(video.keyframes, np.int64) + 1
        samples = box(
            "stbl",
            boxes.video_entry(video.codec, video.configuration, video.size),
            table("stts", np.array([[frames, self._tick]])),
            table("stss", syncs) if len(syncs) < frames else [],
            *chunk_places(self._counts, self._places + base, wide),
            self._sizes,
        )
        shown = boxes.ENABLED | boxes.IN_MOVIE
        header = boxes.track_header(_VIDEO, self._duration, shown, video.size)
        chapters = boxes.references("chap", _CHAPTERS) if self._chapters else []
        kind = ("und", "vide", "VideoHandler", boxes.video_header())
        return self._track(header, chapters, *kind, samples)

    def _subtitles(self, base: int, wide: bool) -> Box:
        places = chunk_places(np.ones_like(self._lengths), self._text_places + base, wide)
        samples = self._texts(boxes.text_entry("tx3g", True), places, self._lengths)
        header = boxes.track_header(_SUBTITLES, self._duration, boxes.IN_MOVIE, group=1)
        kind = ("eng", "sbtl", "Episodes", boxes.subtitle_header())
        return self._track(header, [], *kind, samples)

    def _titles(self, base: int, wide: bool) -> Box:
        places = chunk_places(np.array([len(self.texts)]), np.array([base]), wide)
        lengths = self._lengths + len(_UTF8)
        samples = self._texts(boxes.text_entry("text", False), places, lengths)
        header = boxes.track_header(_CHAPTERS, self._duration, boxes.IN_MOVIE)
        kind = ("eng", "text", "Chapters", boxes.chapter_header())
        return self._track(header, [], *kind, samples)

    def _texts(self, description: Box, places: list[Box], lengths: np.ndarray) -> Box:
        """Return stbl of a track with a text for each chapter."""
        ticks = np.array([chapter.frames * self._tick for chapter in self._chapters], np.int64)
        timed = np.stack([np.ones_like(ticks), ticks], axis=1)
        return box("stbl", description, table("stts", timed), *places, sample_sizes(lengths))

    def _track(self, header: Box, chapters: Box, *kind) -> Box:
        # No edit list: all play once from their start, which is what its absence says (8.6.5). With
        # one, ffmpeg and all that is built on it would hold every sample's place twice.
        media = boxes.media(self._timescale, self._duration, *kind)
        return box("trak", header, chapters, media)
