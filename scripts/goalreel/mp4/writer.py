"""Writing MP4 files: the index, then the media, whose samples are all known before.

Since the index is first, a browser plays the film while it loads; since sizes are known, the media
are written once. The index is gathered in columns, which a long film keeps on disk.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.files.seal import seal_mp4
from goalreel.mp4 import box_writer as boxes
from goalreel.mp4.movie_box import FileRange, Movie, VideoTrack
from goalreel.mp4.reader import MOST_FRAMES, TICKS
from goalreel.mp4.text_tracks import Chapter

_BLOCK = 1 << 20
_PIECE = 1 << 16  # samples whose places are found at a time
_NO_LINE = (b"", None)


def write_mp4(
    path: str | os.PathLike,
    video: VideoTrack | Iterable[VideoTrack],
    payload: Iterable,
    title: str = "",
    comment: str = "",
    chapters: Iterable[Chapter] = (),
) -> None:
    """Write an MP4 file; what is held in memory is that of a part of the video.

    Args:
        path: the file.
        video: a track, or its parts, one after another, all as the first but for sizes and
            keyframes (numbered in each part from 0 on).
        payload: contiguous buffers and FileRanges, all samples one after another; taken once all
            parts are.
        title: the file's, "" for none.
        comment: the file's, "" for none.
        chapters: one after another, from the first frame to the last; each is a subtitle too.

    Raises:
        GoalreelError: these do not fit each other.
        OSError: a file cannot be read or written.
    """
    parts = [video] if isinstance(video, VideoTrack) else video
    movie = _gathered(parts, chapters, title, comment, Path(path).parent)
    head = boxes.box("ftyp", b"isom", (512).to_bytes(4, "big"), b"isomiso2avc1mp41")
    head_bytes = boxes.size(head)
    media = _media_header(movie.media_bytes)
    behind = head_bytes + len(media) + movie.media_bytes
    wide = behind + boxes.size(movie.box(0, wide=True)) >> 32 > 0
    base = head_bytes + boxes.size(movie.box(0, wide)) + len(media)
    with Path(path).open("wb", buffering=_BLOCK) as stream:
        stream.writelines(boxes.content([*head, *movie.box(base, wide), media]))
        stream.writelines(movie.texts.front())
        _write_media(stream, payload, movie)
    seal_mp4(path)


def _gathered(
    parts: Iterable[VideoTrack], chapters: Iterable[Chapter], title: str, comment: str, folder: Path
) -> Movie:
    """Return the index of all parts."""
    movie, remaining = None, _Chapters(chapters)
    for part in parts:
        movie = Movie(part, title, comment, folder) if movie is None else movie
        _check_part(part, movie)
        most = ((1 << 32) - 1) // (TICKS * Fraction(part.fps).denominator)
        for piece in _pieces(part):
            movie.add(piece, list(remaining.until(movie.frames + len(piece.sizes), most)))
    if movie is None:
        raise _wrong_length(0)
    remaining.check(movie.frames)
    movie.end()
    return movie


def _pieces(part: VideoTrack) -> Iterator[VideoTrack]:
    """Yield a part in pieces of bounded length: what is made of each sample takes ten times it."""
    keyframes = np.asarray(part.keyframes, np.int64)
    for first in range(0, len(part.sizes), _PIECE):
        cut = slice(first, first + _PIECE)
        inside = slice(*np.searchsorted(keyframes, [first, first + _PIECE]).tolist())
        yield replace(part, sizes=part.sizes[cut], keyframes=keyframes[inside] - first)


def _check_part(video: VideoTrack, movie: Movie) -> None:
    samples = len(video.sizes)
    if not video.configuration.startswith(b"\1"):
        raise GoalreelError(
            f"a configuration that starts with {video.configuration[:4].hex() or 'nothing'}; "
            f"allowed: 01, its version"
        )
    if not samples or movie.frames + samples > MOST_FRAMES:
        raise _wrong_length(movie.frames + samples)
    if int(np.min(video.sizes)) < 1 or int(np.max(video.sizes)) >> 32:
        raise GoalreelError("a film with a frame of no bytes, or of 4 GiB and more")
    keyframes = np.asarray(video.keyframes, np.int64)
    first = movie.frames > 0 or keyframes[:1].tolist() == [0]
    if not first or (np.diff(keyframes, prepend=-1, append=samples) < 1).any():
        raise GoalreelError(f"keyframes that do not ascend from 0 to {samples - 1} at most")


def _wrong_length(samples: int) -> GoalreelError:
    return GoalreelError(f"a film of {samples} frames; allowed: 1 to {MOST_FRAMES:,}")


class _Chapters:
    """Chapters that are taken one after another, and checked."""

    def __init__(self, chapters: Iterable[Chapter]) -> None:
        self._left = iter(chapters)
        self._next = next(self._left, None)
        self._any, self._end = self._next is not None, 0

    def until(self, frame: int, most: int) -> Iterator[Chapter]:
        """Yield the chapters that begin before a frame; none may have more than `most` frames."""
        while self._next is not None and self._end < frame:
            chapter = self._next
            if chapter.first_frame != self._end or not 0 < chapter.frames <= most:
                raise GoalreelError(
                    f"the chapter {chapter.title!r} has {chapter.frames} frames from "
                    f"{chapter.first_frame} on; allowed: 1 to {most:,} from {self._end} on"
                )
            self._end += chapter.frames
            self._next = next(self._left, None)
            yield chapter

    def check(self, frames: int) -> None:
        """Raise GoalreelError unless there were no chapters or they cover a film of `frames`."""
        end = self._end + sum(c.frames for c in (self._next, *self._left) if c is not None)
        if self._any and end != frames:
            raise GoalreelError(f"chapters of {end} frames for a film of {frames}")


def _media_header(content: int) -> bytes:
    """Return the head of mdat, with a largesize where the box needs one (4.2)."""
    if content + 8 >> 32:
        return (1).to_bytes(4, "big") + b"mdat" + (content + 16).to_bytes(8, "big")
    return (content + 8).to_bytes(4, "big") + b"mdat"


def _write_media(stream, payload: Iterable, movie: Movie) -> None:
    """Write the payload with the texts in their places."""
    lines = movie.texts.lines()
    text, cut = next(lines, _NO_LINE)
    place = 0
    for block in _blocks(payload):
        begin = 0
        while cut is not None and cut < place + len(block):
            end = cut - place
            stream.write(block[begin:end])
            stream.write(text)
            begin = end
            text, cut = next(lines, _NO_LINE)
        stream.write(block[begin:])
        place += len(block)
    if place != movie.stored:
        raise GoalreelError(f"the frames take {movie.stored} bytes, but {place} came")


def _blocks(payload: Iterable) -> Iterator[memoryview]:
    """Yield the payload's bytes, of files a block at a time; a block is good until the next."""
    buffer = memoryview(bytearray(_BLOCK))
    for piece in payload:
        if not isinstance(piece, FileRange):
            yield memoryview(piece).cast("B")
            continue
        with piece.path.open("rb", buffering=0) as source:
            source.seek(piece.start)
            left = piece.length
            while left:
                taken = source.readinto(buffer[: min(left, _BLOCK)])
                if not taken:
                    raise GoalreelError(
                        f"{piece.path}: is shorter than its index says; delete it and run "
                        f"snakemake again"
                    )
                yield buffer[:taken]
                left -= taken
