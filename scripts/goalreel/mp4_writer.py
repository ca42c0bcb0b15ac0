"""Writing MP4 files: the index, then the media, whose samples are all known before.

Since the index stands first, a browser plays the film while it loads; since sizes are known,
nothing is written twice. What the index holds stands in mp4_movie, how segments become one track in
mp4_join; reading is mp4's.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from goalreel import mp4_boxes as boxes
from goalreel.errors import GoalreelError
from goalreel.mp4 import TICKS
from goalreel.mp4_movie import Chapter, FileRange, Movie, VideoTrack
from goalreel.seal import seal_mp4

_MOST_SAMPLES = 1 << 27  # whose tables stay below the 4 GiB of a box
_BLOCK = 1 << 20
_BEGINS = {"avc1": b"\1", "vp09": b"\1\0\0\0"}  # of a configuration: its version
_BRANDS = {"avc1": b"isomiso2avc1mp41", "vp09": b"isomiso2mp41"}


def write_mp4(
    path: str | os.PathLike,
    video: VideoTrack,
    payload: Iterable,
    title: str = "",
    comment: str = "",
    chapters: Sequence[Chapter] = (),
) -> None:
    """Write an MP4 file at `path`; with chapters it has a subtitle for each of them, too.

    payload: contiguous buffers and FileRanges, the bytes that video.offsets point into; title,
    comment: the file's, "" for none; chapters: one after another, from the first frame to the last.
    Raises GoalreelError if these do not fit each other, OSError if a file cannot be read or
    written.
    """
    _check_video(video)
    _check_chapters(chapters, video)
    movie = Movie(video, chapters, title, comment)
    head = boxes.box("ftyp", b"isom", (512).to_bytes(4, "big"), _BRANDS[video.codec])
    head_bytes = boxes.size(head)
    media = _media_header(movie.media_bytes)
    behind = head_bytes + len(media) + movie.media_bytes
    wide = behind + boxes.size(movie.box(0, wide=True)) >> 32 > 0
    base = head_bytes + boxes.size(movie.box(0, wide)) + len(media)
    with Path(path).open("wb", buffering=_BLOCK) as stream:
        stream.writelines([*head, *movie.box(base, wide), media, movie.front])
        _write_media(stream, payload, movie)
    seal_mp4(path)


def _check_video(video: VideoTrack) -> None:
    samples = len(video.sizes)
    if video.codec not in _BEGINS:
        raise GoalreelError(f"a video track of {video.codec!r}; allowed: {', '.join(_BEGINS)}")
    if not video.configuration.startswith(_BEGINS[video.codec]):
        raise GoalreelError(
            f"{video.codec} with a configuration that starts with "
            f"{video.configuration[:4].hex() or 'nothing'}; allowed: "
            f"{_BEGINS[video.codec].hex()}, its version"
        )
    if not 0 < samples <= _MOST_SAMPLES:
        raise GoalreelError(f"a film of {samples} frames; allowed: 1 to {_MOST_SAMPLES:,}")
    if int(np.min(video.sizes)) < 1 or int(np.max(video.sizes)) >> 32:
        raise GoalreelError("a film with a frame of no bytes, or of 4 GiB and more")
    if video.offsets is not None and (
        len(video.offsets) != samples or int(np.min(video.offsets)) < 0
    ):
        raise GoalreelError(f"{len(video.offsets)} places for {samples} frames, or one below 0")
    keyframes = np.asarray(video.keyframes, np.int64)
    if keyframes[:1].tolist() != [0] or (np.diff(keyframes, append=samples) < 1).any():
        raise GoalreelError(f"keyframes that do not ascend from 0 to {samples - 1} at most")


def _check_chapters(chapters: Sequence[Chapter], video: VideoTrack) -> None:
    end, most = 0, ((1 << 32) - 1) // (TICKS * Fraction(video.fps).denominator)
    for chapter in chapters:
        if chapter.first_frame != end or not 0 < chapter.frames <= most:
            raise GoalreelError(
                f"the chapter {chapter.title!r} has {chapter.frames} frames from "
                f"{chapter.first_frame} on; allowed: 1 to {most:,} from {end} on"
            )
        end += chapter.frames
    if chapters and end != len(video.sizes):
        raise GoalreelError(f"chapters of {end} frames for a film of {len(video.sizes)}")


def _media_header(content: int) -> bytes:
    """Return the head of mdat, with a largesize where the box needs one (4.2)."""
    if content + 8 >> 32:
        return (1).to_bytes(4, "big") + b"mdat" + (content + 16).to_bytes(8, "big")
    return (content + 8).to_bytes(4, "big") + b"mdat"


def _write_media(stream, payload: Iterable, movie: Movie) -> None:
    """Write the payload with the texts in their places."""
    cuts, texts = movie.cuts.tolist(), movie.texts
    place = number = 0
    for block in _blocks(payload):
        begin = 0
        while number < len(cuts) and cuts[number] < place + len(block):
            end = cuts[number] - place
            stream.write(block[begin:end])
            stream.write(texts[number])
            begin, number = end, number + 1
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
                        f"{piece.path}: ends {left} bytes before what its index tells of; "
                        f"delete it and run snakemake again"
                    )
                yield buffer[:taken]
                left -= taken
