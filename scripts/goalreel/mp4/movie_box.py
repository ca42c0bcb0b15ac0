"""Lay out the samples of an MP4 file and build its moov box.

A film of episodes has three tracks: video, subtitles and QuickTime chapters, which are not limited
in number. The subtitle and chapter tracks have one text sample per episode.
Source: ISO/IEC 14496-12, 8.6.1 (stts, stss), 8.7.3 to 8.7.5 (stsz, stsc, stco, co64).
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
_CHUNK = 1 << 20  # a chunk ends after this many bytes; players read and interleave chunks
_UTF8 = bytes([0, 0, 0, 12]) + b"encd" + bytes([0, 0, 1, 0])  # QuickTime text encoding: UTF-8


@dataclass(frozen=True)
class VideoTrack:
    """The samples of a video track."""

    configuration: bytes  # content of the avcC box
    size: tuple[int, int]  # (width, height) in pixels
    fps: int | Fraction
    sizes: np.ndarray  # (samples,) integers, bytes of each sample, at least 1
    keyframes: Sequence[int]  # ascending indices of the sync samples, the first is 0


class Chapter(NamedTuple):
    """A filmed episode. Chapters follow each other without gaps."""

    frames: int  # title card included
    title: str


class Movie:
    """The moov box and the layout of the media after it.

    The media are the chapter samples (`titles`), then `stored` bytes of video. Each of `subtitles`
    stands before the video byte in `cuts` that begins its episode, so that a player that streams
    the film has it in time.
    """

    def __init__(self, video: VideoTrack, title: str, comment: str, chapters: Iterable[Chapter]):
        """Lay out all samples. The chapters cover all frames, or there are none."""
        rate = Fraction(video.fps)
        self._video, self._tags = video, (title, comment)
        self._timescale, self._tick = TICKS * rate.numerator, TICKS * rate.denominator
        self._duration = len(video.sizes) * self._tick
        self.subtitles, lengths = [], []
        for chapter in chapters:
            name = boxes.utf8(chapter.title, 0xFFFF)
            self.subtitles.append(len(name).to_bytes(2, "big") + name)
            lengths.append(chapter.frames)
        ends = np.cumsum(lengths, dtype=np.int64)
        self._lengths, self._firsts = np.array(lengths, np.int64), ends - lengths
        self._chunks = _chunks(video.sizes, self._firsts if lengths else np.zeros(1, np.int64))
        sizes = _bytes_of_runs(video.sizes, self._chunks)
        starts, self.stored = np.cumsum(sizes) - sizes, int(sizes.sum())
        self.cuts = starts[np.searchsorted(self._chunks, self._firsts)]
        self._text_sizes = np.array([*map(len, self.subtitles)], np.int64)
        texts = np.append(0, np.cumsum(self._text_sizes))
        front = int(texts[-1]) + len(lengths) * len(_UTF8)
        self._subtitle_offsets = front + self.cuts + texts[:-1]
        self._video_offsets = front + starts + texts[np.searchsorted(self.cuts, starts, "right")]
        self.media_bytes = front + int(texts[-1]) + self.stored

    def titles(self) -> Iterator[bytes]:
        """Yield the samples of the chapter track."""
        return (text + _UTF8 for text in self.subtitles)

    def box(self, base: int, wide: bool) -> Box:
        """Return moov. Its length does not depend on `base`, the offset of the first media byte."""
        # `wide` chunk offsets have 64 bits.
        texts = self._text_tracks(base, wide) if self.subtitles else []
        # chpl holds 255 chapters. Players that prefer it to the track would miss the others.
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

    def _video_track(self, base: int, wide: bool) -> Box:
        video, frames = self._video, len(self._video.sizes)
        keyframes = np.asarray(video.keyframes, np.int64) + 1
        counts = np.diff(self._chunks, append=frames)
        new = np.flatnonzero(np.diff(counts, prepend=0))  # stsc lists only changes
        samples = box(
            "stbl",
            boxes.video_entry(video.configuration, video.size),
            _table("stts", [frames], [self._tick]),
            _table("stss", keyframes) if len(keyframes) < frames else [],
            _table("stsc", new + 1, counts[new], np.ones_like(new)),
            _chunk_offsets(self._video_offsets + base, wide),
            _sample_sizes(video.sizes),
        )
        shown = boxes.ENABLED | boxes.IN_MOVIE
        header = boxes.track_header(_VIDEO, self._duration, shown, video.size)
        chapters = box("tref", box("chap", _CHAPTERS.to_bytes(4, "big"))) if self.subtitles else []
        kind = ("und", "vide", "VideoHandler", boxes.VIDEO_HEADER)
        return self._track(header, chapters, *kind, samples)

    def _text_tracks(self, base: int, wide: bool) -> list[Box]:
        """Return the tracks of subtitles, each in its own chunk, and of titles, all in one."""
        times = _table("stts", np.ones_like(self._lengths), self._lengths * self._tick)

        def samples(entry: Box, per_chunk: int, offsets: Sequence[int], more: bytes = b"") -> Box:
            chunks = _table("stsc", [1], [per_chunk], [1]), _chunk_offsets(offsets, wide)
            return box("stbl", entry, times, *chunks, _sample_sizes(self._text_sizes + len(more)))

        table = samples(boxes.text_entry("tx3g", True), 1, self._subtitle_offsets + base)
        header = boxes.track_header(_SUBTITLES, self._duration, boxes.IN_MOVIE, group=1)
        kind = "eng", "sbtl", "Episodes", boxes.SUBTITLE_HEADER
        subtitles = self._track(header, [], *kind, table)
        table = samples(boxes.text_entry("text", False), len(self.subtitles), [base], _UTF8)
        header = boxes.track_header(_CHAPTERS, self._duration, boxes.IN_MOVIE)
        kind = "eng", "text", "Chapters", boxes.CHAPTER_HEADER
        return [subtitles, self._track(header, [], *kind, table)]

    def _track(self, header: Box, chapters: Box, *kind) -> Box:
        # No edit list: without one a track plays once from its start (8.6.5), and ffmpeg keeps the
        # offset of each sample only once.
        media = boxes.media(self._timescale, self._duration, *kind)
        return box("trak", header, chapters, media)


def _chunks(sizes: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Return the first sample of each chunk: `firsts`, and one after every _CHUNK bytes."""
    starts, bounds = [firsts], [*firsts.tolist(), len(sizes)]
    for run in np.flatnonzero(_bytes_of_runs(sizes, firsts) > _CHUNK).tolist():
        inside = sizes[bounds[run] : bounds[run + 1]].astype(np.int64)
        steps = (np.cumsum(inside) - inside) // _CHUNK
        starts.append(bounds[run] + 1 + np.flatnonzero(np.diff(steps)))
    return np.sort(np.concatenate(starts))


def _bytes_of_runs(sizes: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Return the bytes of the samples from each of `firsts` to the next, (runs,) int64."""
    bounds = itertools.pairwise([*firsts.tolist(), len(sizes)])  # reduceat would copy all sizes
    return np.array([sizes[first:end].sum() for first, end in bounds], np.int64)


def _table(name: str, *columns: Sequence[int] | np.ndarray, kind: str = ">u4") -> Box:
    """Return a full box that holds a row count and the rows."""
    entries = np.stack(columns, axis=1).astype(kind)
    return full_box(name, len(entries).to_bytes(4, "big"), entries.tobytes())


def _chunk_offsets(offsets: Sequence[int] | np.ndarray, wide: bool) -> Box:
    """Return stco or, if wide, co64: the file offset of each chunk."""
    return _table("co64", offsets, kind=">u8") if wide else _table("stco", offsets)


def _sample_sizes(sizes: np.ndarray) -> Box:
    """Return stsz: one size if all samples have it, else a table."""
    count = len(sizes).to_bytes(4, "big")
    if (sizes == sizes[0]).all():
        return full_box("stsz", int(sizes[0]).to_bytes(4, "big"), count)
    return full_box("stsz", bytes(4), count, sizes.astype(">u4").view(np.uint8).data)
