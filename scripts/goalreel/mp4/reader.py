"""What an MP4 file's index says of its video track, so that a file can be checked without decoding.

Source of the boxes: ISO/IEC 14496-12 (stsd, elst, mdhd, hdlr), 14496-15 (avcC). No more of a file
is read than is asked for; NumPy is imported where tables of samples are.
"""

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
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
    comment: str  # the file's, or ""
    size: tuple[int, int]  # (width, height) in pixels, as the sample entry has it


@dataclass(frozen=True)
class VideoIndex(Outline):
    """The video track of an MP4 file, sample by sample."""

    keyframes: Sequence[int]  # 0-based numbers of the sync samples
    samples: "Samples" = field(repr=False, compare=False)


def read_index(path: str | os.PathLike) -> VideoIndex:
    """Read an MP4 file's index.

    What it says is not held against the rest of the file: its checksum tells of damage.

    Raises:
        GoalreelError: the file is missing.
        UnusableFileError: it is not whole.
    """
    from goalreel.mp4.sample_table_reader import read_keyframes, read_samples

    with _movie(path) as moov:
        track = _video_track(moov)
        table = track[b"mdia"][b"minf"][b"stbl"]
        outline, samples = _outline(moov, track), read_samples(table)
        if outline.frames != len(samples.sizes):
            raise ValueError(f"{outline.frames} durations for {len(samples.sizes)} samples")
        keyframes = read_keyframes(table, outline.frames)
        return VideoIndex(**vars(outline), keyframes=keyframes, samples=samples)


def read_outline(path: str | os.PathLike) -> Outline:
    """Read an MP4 file's index as a whole, in memory that no film's length changes.

    Raises as read_index.
    """
    with _movie(path) as moov:
        return _outline(moov, _video_track(moov))


def read_comment(path: str | os.PathLike) -> str:
    """Return what an MP4 file keeps about its making, or "". Raises as read_index."""
    with _movie(path) as moov:
        return _comment(moov)


@contextlib.contextmanager
def _movie(path: str | os.PathLike) -> Iterator[Span]:
    """Yield the moov box's content; what is wrong with it is raised as the file's error."""
    damage = "it is truncated or corrupt: not a whole MP4 file"
    with reporting_damage(path, damage), Path(path).open("rb") as stream:
        boxes = dict(boxes_in(Span(stream, 0, os.fstat(stream.fileno()).st_size)))
        yield boxes[b"moov"]


def _video_track(moov: Span) -> dict:
    tracks = [tree_of(content) for name, content in boxes_in(moov) if name == b"trak"]
    videos = [track for track in tracks if track[b"mdia"][b"hdlr"].read(8, 4) == b"vide"]
    if len(videos) != 1:
        raise ValueError(f"{len(videos)} video tracks")
    return videos[0]


def _outline(moov: Span, track: dict) -> Outline:
    from goalreel.mp4.sample_table_reader import read_composition, read_durations

    media = track[b"mdia"]
    table = media[b"minf"][b"stbl"]
    frames, durations = read_durations(table)
    offsets, first_offset = read_composition(table)
    size, configuration = _description(table[b"stsd"])
    return Outline(
        frames=frames,
        timescale=_timescale(media[b"mdhd"]),
        durations=durations,
        reordered=offsets > 1,
        first_pts=first_offset - _edit_start(track),
        configuration=configuration,
        comment=_comment(moov),
        size=size,
    )


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
