"""Writing MP4 files: the index, then the media, whose samples are all known before.

Since the index is first, a browser plays the film while it loads; since sizes are known, the media
are written once. The index is gathered in columns, which a long film keeps on disk.
"""

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.checksum_trailer import append_trailer
from goalreel.mp4 import box_writer as boxes
from goalreel.mp4.movie_box import FileRange, Movie, VideoTrack
from goalreel.mp4.reader import MOST_FRAMES, TICKS
from goalreel.mp4.text_tracks import Chapter

_BLOCK = 1 << 20
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
        GoalreelError: the film would be too long, or a file has been cut meanwhile.
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
    append_trailer(path)


def _gathered(
    parts: Iterable[VideoTrack], chapters: Iterable[Chapter], title: str, comment: str, folder: Path
) -> Movie:
    """Return the index of all parts, each with the chapters that begin in it."""
    movie, chapters, end = None, iter(chapters), 0
    following = next(chapters, None)
    for part in parts:
        movie = Movie(part, title, comment, folder) if movie is None else movie
        _check_part(part, movie)
        most = ((1 << 32) - 1) // (TICKS * Fraction(part.fps).denominator)
        begun: list[Chapter] = []
        while following is not None and end < movie.frames + len(part.sizes):
            fits = following.first_frame == end and 0 < following.frames <= most
            assert fits, f"a chapter of 1 to {most:,} frames from {end} on, not {following}"
            begun.append(following)
            end += following.frames
            following = next(chapters, None)
        movie.add(part, begun)
    assert following is None and end in (0, movie.frames), f"chapters of {end} frames"
    movie.end()
    return movie


def _check_part(video: VideoTrack, movie: Movie) -> None:
    """Raise GoalreelError if a part makes the film too long."""
    samples, keyframes = len(video.sizes), np.asarray(video.keyframes, np.int64)
    frames = movie.frames + samples
    if frames > MOST_FRAMES:
        raise GoalreelError(
            f"one film holds up to {MOST_FRAMES:,} frames, and this one has {frames:,} and more. "
            f"Make several films: set reaches, seed and results of each"
        )
    assert np.min(video.sizes) >= 1 and np.max(video.sizes) < 1 << 32, "sizes of 1 byte to 4 GiB"
    assert movie.frames or keyframes[:1].tolist() == [0], "a film begins with a keyframe"
    assert (np.diff(keyframes, prepend=-1, append=samples) > 0).all(), "keyframes ascend"


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
    assert place == movie.stored, f"the frames take {movie.stored} bytes, but {place} came"


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
                    raise UnusableFileError(piece.path, "it is shorter than its index says")
                yield buffer[:taken]
                left -= taken
