"""Write an MP4 file: first the index, so that browsers play it while it loads, then the media."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.checksum_trailer import append_trailer
from goalreel.mp4 import box_writer as boxes
from goalreel.mp4.movie_box import Chapter, Movie, VideoTrack
from goalreel.mp4.reader import MOST_FRAMES

_BLOCK = 1 << 20


def write_mp4(
    path: str | os.PathLike,
    video: VideoTrack,
    payload: Iterable,
    title: str = "",
    comment: str = "",
    chapters: Iterable[Chapter] = (),
) -> None:
    """Write an MP4 file whose samples are in the buffers of `payload`, in order.

    The chapters, if any, cover all frames. Each is also a subtitle. Raises GoalreelError if the
    film is too long.
    """
    if len(video.sizes) > MOST_FRAMES:
        raise GoalreelError(
            f"A film holds up to {MOST_FRAMES:,} frames, but this one has {len(video.sizes):,}. "
            f"Split it into several runs, each with its own seed and results."
        )
    movie = Movie(video, title, comment, chapters)
    head = boxes.box("ftyp", b"isom", (512).to_bytes(4, "big"), b"isomiso2avc1mp41")
    media = _media_header(movie.media_bytes)
    header_bytes = boxes.size(head) + len(media)
    wide = header_bytes + movie.media_bytes + boxes.size(movie.box(0, wide=True)) >> 32 > 0
    first_byte = header_bytes + boxes.size(movie.box(0, wide))
    with Path(path).open("wb", buffering=_BLOCK) as stream:
        stream.writelines([*head, *movie.box(first_byte, wide), media])
        stream.writelines(movie.titles())
        _write_media(stream, payload, movie)
    append_trailer(path)


def read_runs(path: Path, runs: Iterable[tuple[int, int]]) -> Iterator[memoryview]:
    """Yield the bytes of (start, length) ranges in one buffer. Raises UnusableFileError."""
    buffer = memoryview(bytearray(_BLOCK))
    with path.open("rb", buffering=0) as source:
        for start, left in runs:
            source.seek(start)
            while left:
                taken = source.readinto(buffer[: min(left, _BLOCK)])
                if not taken:
                    raise UnusableFileError(path, "it is shorter than its index says")
                yield buffer[:taken]
                left -= taken


def _media_header(content: int) -> bytes:
    """Return the header of mdat, with a largesize if the box needs it (4.2)."""
    if content + 8 >> 32:
        return (1).to_bytes(4, "big") + b"mdat" + (content + 16).to_bytes(8, "big")
    return (content + 8).to_bytes(4, "big") + b"mdat"


def _write_media(stream, payload: Iterable, movie: Movie) -> None:
    """Write the payload and insert each subtitle at its cut."""
    texts, cuts = iter(movie.subtitles), iter(movie.cuts.tolist())
    written, cut = 0, next(cuts, -1)
    for block in map(memoryview, payload):
        while written <= cut < written + len(block):
            stream.write(block[: cut - written])
            stream.write(next(texts))
            block, written, cut = block[cut - written :], cut, next(cuts, -1)
        stream.write(block)
        written += len(block)
    assert written == movie.stored, f"expected {movie.stored} bytes of samples, got {written}"
