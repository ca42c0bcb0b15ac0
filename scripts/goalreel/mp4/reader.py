"""What an MP4 file's index says of its video track, so that a file can be checked without decoding.

Source of the boxes: ISO/IEC 14496-12 (stsd, elst, mdhd, hdlr), 14496-15 (avcC). No more of a file
is read than is asked for; NumPy is imported where tables of samples are.
"""

import contextlib
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from goalreel.files.damage import reporting_damage
from goalreel.mp4.box_reader import Span, boxes_in, tree_of

if TYPE_CHECKING:
    from goalreel.mp4.sample_table_reader import Samples

# Ticks of the videos' timebase per frame: any number, but the same in segments and film.
TICKS = 512
# Of a file: its index stays below the 4 GiB of a box.
MOST_FRAMES = 1 << 27


@dataclass(frozen=True)
class Outline:
    """What is known of an MP4 file's video track as a whole."""

    frames: int  # number of samples
    timescale: int  # units a second
    durations: tuple[int, ...]  # the distinct durations of samples, in units
    reordered: bool  # whether composition times differ from decoding times
    first_pts: int  # in units
    configuration: bytes  # the avcC box of its sample description
    payload: int  # bytes of all samples
    comment: str  # the file's, or ""
    size: tuple[int, int]  # (width, height) in pixels, as the sample entry has it


@dataclass(frozen=True)
class VideoIndex(Outline):
    """The video track of an MP4 file, sample by sample."""

    keyframes: Sequence[int]  # 0-based numbers of the sync samples
    samples: "Samples" = field(repr=False, compare=False)


def read_index(path: str | os.PathLike) -> VideoIndex:
    """Read an MP4 file's index. Raises GoalreelError if it is missing, Unusable if not whole."""
    return _read(path, _video_index)


def read_outline(path: str | os.PathLike) -> Outline:
    """Read an MP4 file's index as a whole, in memory that no film's length changes.

    Raises as read_index.
    """
    return _read(path, _outline)


def read_comment(path: str | os.PathLike) -> str:
    """Return what an MP4 file keeps about its making, or "". Raises as read_index."""
    with _whole(path) as (moov, _):
        return _comment(moov)


def _read(path: str | os.PathLike, take: Callable[[Span, list[range]], tuple]):
    with _whole(path) as (moov, media):
        index, inside = take(moov, media)
        if not inside:
            held = sum(map(len, media))
            raise ValueError(f"of {index.payload} bytes of video not all are in the {held} held")
    return index


@contextlib.contextmanager
def _whole(path: str | os.PathLike) -> Iterator[tuple[Span, list[range]]]:
    """Yield the moov box and the media; what is wrong with them is raised as the file's fault."""
    damage = "it is truncated or corrupt: not a whole MP4 file"
    with reporting_damage(path, damage), Path(path).open("rb") as stream:
        yield _top_level(Span(stream, 0, os.fstat(stream.fileno()).st_size))


def _top_level(file: Span) -> tuple[Span, list[range]]:
    """Return the moov box's content and where the contents of mdat boxes are."""
    boxes = list(boxes_in(file))
    movies = [content for name, content in boxes if name == b"moov"]
    if not movies:
        raise ValueError("no moov box")
    media = [content for name, content in boxes if name == b"mdat"]
    return movies[-1], [range(part.start, part.start + len(part)) for part in media]


def _video_index(moov: Span, media: list[range]) -> tuple[VideoIndex, bool]:
    """Return the index, and whether all samples are in the media."""
    from goalreel.mp4 import sample_table_reader

    track = _video_track(moov)
    table = track[b"mdia"][b"minf"][b"stbl"]
    samples = sample_table_reader.read_samples(table)
    fields = _fields(moov, track, len(samples.sizes), samples.payload)
    keyframes = sample_table_reader.read_keyframes(table, fields["frames"])
    return VideoIndex(**fields, keyframes=keyframes, samples=samples), samples.inside(media)


def _outline(moov: Span, media: list[range]) -> tuple[Outline, bool]:
    """Return the outline, and whether all chunks begin in the media."""
    from goalreel.mp4 import sample_table_reader

    track = _video_track(moov)
    table = track[b"mdia"][b"minf"][b"stbl"]
    samples, payload = sample_table_reader.count_samples(table)
    return Outline(**_fields(moov, track, samples, payload)), sample_table_reader.chunks_inside(
        table, media
    )


def _video_track(moov: Span) -> dict:
    tracks = [tree_of(content) for name, content in boxes_in(moov) if name == b"trak"]
    videos = [track for track in tracks if track[b"mdia"][b"hdlr"].read(8, 4) == b"vide"]
    if len(videos) != 1:
        raise ValueError(f"{len(videos)} video tracks")
    return videos[0]


def _fields(moov: Span, track: dict, samples: int, payload: int) -> dict[str, object]:
    """Return the fields of an outline."""
    from goalreel.mp4 import sample_table_reader

    media = track[b"mdia"]
    table = media[b"minf"][b"stbl"]
    frames, durations = sample_table_reader.read_durations(table)
    if frames != samples:
        raise ValueError(f"{frames} durations for {samples} samples")
    offsets, first_offset = sample_table_reader.read_composition(table)
    size, configuration = _description(table[b"stsd"])
    return {
        "frames": frames,
        "timescale": _timescale(media[b"mdhd"]),
        "durations": durations,
        "reordered": offsets > 1,
        "first_pts": first_offset - _edit_start(track),
        "configuration": configuration,
        "payload": payload,
        "comment": _comment(moov),
        "size": size,
    }


def _timescale(box: Span) -> int:
    content = box.read()
    return struct.unpack_from(">I", content, 20 if content[0] == 1 else 12)[0]


def _edit_start(track: dict) -> int:
    """Return the media time that an edit list starts at; empty edits delay and count negative."""
    edits = track.get(b"edts", {}).get(b"elst")
    if edits is None:
        return 0
    edits = edits.read()
    (count,) = struct.unpack_from(">I", edits, 4)
    layout, width = (">Qq", 20) if edits[0] == 1 else (">Ii", 12)
    times = [struct.unpack_from(layout, edits, 8 + i * width)[1] for i in range(count)]
    if len(times) != 1:
        raise ValueError(f"{count} edits")
    return times[0]


def _description(content: Span) -> tuple[tuple[int, int], bytes]:
    """Return the size and the avcC of the one sample description."""
    ((name, entry),) = boxes_in(content.part(8, len(content) - 8))
    configuration = dict(boxes_in(entry.part(78, len(entry) - 78)))[b"avcC"].read()
    if name != b"avc1" or not configuration.startswith(b"\1"):  # its version
        raise ValueError(f"a sample description {name!r}, or of an unknown version")
    return struct.unpack(">HH", entry.read(24, 4)), configuration


def _comment(moov: Span) -> str:
    udta = dict(boxes_in(moov)).get(b"udta")
    if udta is None:
        return ""
    data = tree_of(udta).get(b"meta", {}).get(b"ilst", {}).get(b"\xa9cmt", {}).get(b"data")
    return "" if data is None else data.read()[8:].decode()
