"""The index of an MP4 file with one video track, for media that start at any byte of the file.

A film of episodes has a subtitle track and a chapter track (QuickTime's, which has no limit of
chapters) with one sample per episode: its text.

Source of the sample tables: ISO/IEC 14496-12, 8.6.1 (stts, stss), 8.7.3 to 8.7.5 (stsz, stsc, stco,
co64).
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from goalreel.mp4 import box_writer as boxes
from goalreel.mp4.box_writer import Box, box, full_box
from goalreel.mp4.reader import TICKS

_VIDEO, _SUBTITLES, _CHAPTERS = 1, 2, 3  # track numbers
_CHUNK = 1 << 20  # bytes after which a chunk ends: players read and interleave by chunks
_UTF8 = bytes([0, 0, 0, 12]) + b"encd" + bytes([0, 0, 1, 0])  # QuickTime: this text is UTF-8


@dataclass(frozen=True)
class VideoTrack:
    """A video's samples."""

    configuration: bytes  # the content of its avcC box
    size: tuple[int, int]  # (width, height) in pixels
    fps: int | Fraction
    sizes: np.ndarray  # (samples,) integers, bytes of each sample, 1 or more
    keyframes: Sequence[int]  # numbers of the sync samples, ascending from 0


class Chapter(NamedTuple):
    """A filmed episode; its chapter follows the one before."""

    frames: int  # its title card's included
    title: str


class Movie:
    """The moov box, and how the media behind it are laid out.

    The media are `titles`, the chapters' samples, and then the video's `stored` bytes with
    `subtitles`, each before its byte in `cuts`: the first of its episode, so that whoever loads the
    film from one end to the other has it in time.
    """

    def __init__(self, video: VideoTrack, title: str, comment: str, chapters: Iterable[Chapter]):
        """Lay out all samples; there are no chapters, or they cover all frames."""
        rate = Fraction(video.fps)
        self._video, self._tags = video, (title, comment)
        self._timescale, self._tick = TICKS * rate.numerator, TICKS * rate.denominator
        self.subtitles, lengths = [], []
        for chapter in chapters:
            name = boxes.utf8(chapter.title, 0xFFFF)
            self.subtitles.append(len(name).to_bytes(2, "big") + name)
            lengths.append(chapter.frames)
        ends = np.cumsum(lengths, dtype=np.int64)
        assert not lengths or ends[-1] == len(video.sizes), "the chapters are of other frames"
        self._lengths, self._firsts = np.array(lengths, np.int64), ends - lengths
        self._chunks = _chunks(video.sizes, self._firsts if lengths else np.zeros(1, np.int64))
        sizes = _bytes_of_runs(video.sizes, self._chunks)
        starts, self.stored = np.cumsum(sizes) - sizes, int(sizes.sum())
        self.cuts = starts[np.searchsorted(self._chunks, self._firsts)]
        self._text_sizes = np.array([*map(len, self.subtitles)], np.int64)
        texts = np.append(0, np.cumsum(self._text_sizes))
        front = int(texts[-1]) + len(lengths) * len(_UTF8)
        self._lines = front + self.cuts + texts[:-1]
        self._places = front + starts + texts[np.searchsorted(self.cuts, starts, "right")]
        self.media_bytes = front + int(texts[-1]) + self.stored

    def titles(self) -> Iterator[bytes]:
        """Yield the chapters' samples."""
        return (text + _UTF8 for text in self.subtitles)

    def box(self, base: int, wide: bool) -> Box:
        """Return moov for media whose first byte is at `base`.

        wide: places take 64 bits. Its length is the same for every base.
        """
        texts = [self._subtitles(base, wide), self._titles(base, wide)] if self.subtitles else []
        # A list counts to 255; players that prefer it to the track would know of no chapter beyond.
        named = self.subtitles if len(self.subtitles) <= 255 else ()
        names = (text[2:].decode() for text in named)
        listed = list(zip((self._firsts * self._tick).tolist(), names, strict=False))
        return box(
            "moov",
            boxes.movie_header(self._timescale, self._duration, 2 + len(texts)),
            self._video_track(base, wide),
            *texts,
            boxes.user_data(*self._tags, listed, self._timescale),
        )

    @property
    def _duration(self) -> int:
        return len(self._video.sizes) * self._tick

    def _video_track(self, base: int, wide: bool) -> Box:
        video, frames = self._video, len(self._video.sizes)
        keyframes = np.asarray(video.keyframes, np.int64) + 1
        counts = np.diff(self._chunks, append=frames)
        new = np.flatnonzero(np.diff(counts, prepend=0))  # stored where they change
        samples = box(
            "stbl",
            boxes.video_entry(video.configuration, video.size),
            _table("stts", [frames], [self._tick]),
            _table("stss", keyframes) if len(keyframes) < frames else [],
            _table("stsc", new + 1, counts[new], np.ones_like(new)),
            _chunk_places(self._places + base, wide),
            _sample_sizes(video.sizes),
        )
        shown = boxes.ENABLED | boxes.IN_MOVIE
        header = boxes.track_header(_VIDEO, self._duration, shown, video.size)
        chapters = box("tref", box("chap", _CHAPTERS.to_bytes(4, "big"))) if self.subtitles else []
        kind = ("und", "vide", "VideoHandler", boxes.VIDEO_HEADER)
        return self._track(header, chapters, *kind, samples)

    def _subtitles(self, base: int, wide: bool) -> Box:
        chunks = _table("stsc", [1], [1], [1]), _chunk_places(self._lines + base, wide)
        samples = self._texts(boxes.text_entry("tx3g", True), *chunks, self._text_sizes)
        header = boxes.track_header(_SUBTITLES, self._duration, boxes.IN_MOVIE, group=1)
        return self._track(header, [], "eng", "sbtl", "Episodes", boxes.SUBTITLE_HEADER, samples)

    def _titles(self, base: int, wide: bool) -> Box:
        one = _table("stsc", [1], [len(self.subtitles)], [1]), _chunk_places([base], wide)
        samples = self._texts(boxes.text_entry("text", False), *one, self._text_sizes + len(_UTF8))
        header = boxes.track_header(_CHAPTERS, self._duration, boxes.IN_MOVIE)
        return self._track(header, [], "eng", "text", "Chapters", boxes.CHAPTER_HEADER, samples)

    def _texts(self, description: Box, chunks: Box, places: Box, sizes: np.ndarray) -> Box:
        times = _table("stts", np.ones_like(self._lengths), self._lengths * self._tick)
        return box("stbl", description, times, chunks, places, _sample_sizes(sizes))

    def _track(self, header: Box, chapters: Box, *kind) -> Box:
        # No edit list: all play once from their start, which is what its absence says (8.6.5). With
        # one, ffmpeg and all that is built on it would hold every sample's place twice.
        media = boxes.media(self._timescale, self._duration, *kind)
        return box("trak", header, chapters, media)


def _chunks(sizes: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Return the samples that chunks begin with: `firsts`, and one past each limit of bytes."""
    starts, bounds = [firsts], [*firsts.tolist(), len(sizes)]
    for run in np.flatnonzero(_bytes_of_runs(sizes, firsts) > _CHUNK).tolist():
        inside = sizes[bounds[run] : bounds[run + 1]].astype(np.int64)
        steps = (np.cumsum(inside) - inside) // _CHUNK
        starts.append(bounds[run] + 1 + np.flatnonzero(np.diff(steps)))
    return np.sort(np.concatenate(starts))


def _bytes_of_runs(sizes: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Return the bytes of the samples from each of `firsts` to the next, (runs,) int64."""
    bounds = itertools.pairwise([*firsts.tolist(), len(sizes)])  # `reduceat` would copy all sizes
    return np.array([sizes[first:end].sum() for first, end in bounds], np.int64)


def _table(name: str, *columns: Sequence[int] | np.ndarray, kind: str = ">u4") -> Box:
    """Return a full box of a count and as many rows."""
    entries = np.stack(columns, axis=1).astype(kind)
    return full_box(name, len(entries).to_bytes(4, "big"), entries.tobytes())


def _chunk_places(places: Sequence[int] | np.ndarray, wide: bool) -> Box:
    """Return stco or, if wide, co64: each chunk's first byte in the file."""
    return _table("co64", places, kind=">u8") if wide else _table("stco", places)


def _sample_sizes(sizes: np.ndarray) -> Box:
    """Return stsz: one size if all are the same, or a table."""
    count = len(sizes).to_bytes(4, "big")
    if (sizes == sizes[0]).all():
        return full_box("stsz", int(sizes[0]).to_bytes(4, "big"), count)
    return full_box("stsz", bytes(4), count, sizes.astype(">u4").view(np.uint8).data)
