"""Writing MP4 files: the index, then the media, whose samples are all known before.

Since the index is first, a browser plays the film while it loads; since sizes are known, the media
are written once.
"""

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
    """Write an MP4 file.

    Args:
        path: the file.
        video: its video.
        payload: buffers of bytes, all samples one after another.
        title: the file's, "" for none.
        comment: the file's, "" for none.
        chapters: one after another, from the first frame to the last; each is a subtitle too.

    Raises:
        GoalreelError: the film is too long.
        OSError: the file cannot be written.
    """
    if len(video.sizes) > MOST_FRAMES:
        raise GoalreelError(
            f"one film holds up to {MOST_FRAMES:,} frames, and this one has {len(video.sizes):,}. "
            f"Make several films: set reaches, seed and results of each"
        )
    movie = Movie(video, title, comment, chapters)
    head = boxes.box("ftyp", b"isom", (512).to_bytes(4, "big"), b"isomiso2avc1mp41")
    media = _media_header(movie.media_bytes)
    front = boxes.size(head) + len(media)
    wide = front + movie.media_bytes + boxes.size(movie.box(0, wide=True)) >> 32 > 0
    base = front + boxes.size(movie.box(0, wide))
    with Path(path).open("wb", buffering=_BLOCK) as stream:
        stream.writelines([*head, *movie.box(base, wide), media])
        stream.writelines(movie.titles())
        _write_media(stream, payload, movie)
    append_trailer(path)


def read_runs(path: Path, runs: Iterable[tuple[int, int]]) -> Iterator[memoryview]:
    """Yield stretches of a file, (start, length) each, by blocks that are good until the next.

    Raises UnusableFileError if the file ends before.
    """
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
    """Return the head of mdat, with a largesize where the box needs one (4.2)."""
    if content + 8 >> 32:
        return (1).to_bytes(4, "big") + b"mdat" + (content + 16).to_bytes(8, "big")
    return (content + 8).to_bytes(4, "big") + b"mdat"


def _write_media(stream, payload: Iterable, movie: Movie) -> None:
    """Write the payload with the subtitles in their places."""
    texts, cuts = iter(movie.subtitles), iter(movie.cuts.tolist())
    place, cut = 0, next(cuts, -1)
    for block in map(memoryview, payload):
        while place <= cut < place + len(block):
            stream.write(block[: cut - place])
            stream.write(next(texts))
            block, place, cut = block[cut - place :], cut, next(cuts, -1)
        stream.write(block)
        place += len(block)
    assert place == movie.stored, f"the frames take {movie.stored} bytes, but {place} came"
