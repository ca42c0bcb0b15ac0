"""What an MP4 file's index says of its video track, so that a file can be checked without decoding.

Source of the boxes: ISO/IEC 14496-12 (stts, ctts, stsz, stss, stsd, elst, mdhd), 14496-15 (avcC).
Files are written by ffmpeg (segment, film); this module only reads.
"""

import os
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import GoalreelError

_CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"udta", b"ilst", b"\xa9cmt"}


@dataclass(frozen=True)
class VideoIndex:
    """The video track of an MP4 file.

    frames: number of samples; durations: the distinct sample durations in units of 1 / timescale;
    reordered: whether composition times differ from decoding times; first_pts: in timescale units;
    keyframes: 0-based numbers of the sync samples; parameter_sets: the avcC box of each sample
    description, SPS and PPS in it; payload: bytes of all samples; comment: the file's, or "".
    """

    frames: int
    timescale: int
    durations: tuple[int, ...]
    reordered: bool
    first_pts: int
    keyframes: Sequence[int]
    parameter_sets: tuple[bytes, ...]
    payload: int
    comment: str


def read_index(path: str | os.PathLike) -> VideoIndex:
    """Read an MP4 file's index. Raises GoalreelError, naming the file, if it is not whole."""
    try:
        with Path(path).open("rb") as stream:
            moov, media_bytes = _top_level(stream, os.fstat(stream.fileno()).st_size)
        index = _video_index(moov)
    except FileNotFoundError:
        raise GoalreelError(f"{path}: no such file; run snakemake to make it") from None
    except (OSError, ValueError, LookupError, struct.error, RecursionError) as error:
        raise GoalreelError(
            f"{path}: not a whole MP4 file ({error}); delete it and run snakemake again"
        ) from None
    if index.payload > media_bytes:
        raise GoalreelError(
            f"{path}: truncated: its index tells of {index.payload} bytes of video, it holds "
            f"{media_bytes}; delete it and run snakemake again"
        )
    return index


def _top_level(stream, size: int) -> tuple[bytes, int]:
    """Return the moov box's content and the number of bytes in mdat boxes."""
    moov, media, place = None, 0, 0
    while place < size:
        stream.seek(place)
        head = stream.read(16)
        length, name = struct.unpack(">I4s", head[:8])
        start = 8
        if length == 1:
            (length,), start = struct.unpack(">Q", head[8:16]), 16
        elif length == 0:
            length = size - place
        if length < start or place + length > size:
            raise ValueError(f"box {name!r} reaches beyond the end of the file")
        if name == b"moov":
            stream.seek(place + start)
            moov = stream.read(length - start)
        elif name == b"mdat":
            media += length - start
        place += length
    if moov is None:
        raise ValueError("no moov box")
    return moov, media


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 0
    while place + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, place)
        start = 8
        if length == 1:
            (length,), start = struct.unpack_from(">Q", data, place + 8), 16
        if length < start or place + length > len(data):
            raise ValueError(f"box {name!r} reaches beyond its parent")
        yield name, data[place + start : place + length]
        place += length


def _tree(data: bytes) -> dict[bytes, bytes | dict]:
    """Return the boxes of one track or of udta, by name, containers opened."""
    tree: dict[bytes, bytes | dict] = {}
    for name, content in _boxes(data):
        if name == b"meta":
            content = content[4:]  # a full box that holds boxes
        tree[name] = _tree(content) if name in _CONTAINERS or name == b"meta" else content
    return tree


def _video_index(moov: bytes) -> VideoIndex:
    tracks = [_tree(content) for name, content in _boxes(moov) if name == b"trak"]
    videos = [track for track in tracks if track[b"mdia"][b"hdlr"][8:12] == b"vide"]
    if len(videos) != 1:
        raise ValueError(f"{len(videos)} video tracks")
    media = videos[0][b"mdia"]
    table = media[b"minf"][b"stbl"]
    timed = list(struct.iter_unpack(">II", _entries(table[b"stts"], 8)))
    samples, payload = _samples(table[b"stsz"])
    frames = sum(count for count, _ in timed)
    if frames != samples:
        raise ValueError(f"{frames} durations for {samples} samples")
    syncs = table.get(b"stss")
    offsets = (
        [offset for _, offset in struct.iter_unpack(">Ii", _entries(table[b"ctts"], 8))]
        if (b"ctts" in table)
        else [0]
    )
    return VideoIndex(
        frames=frames,
        timescale=_timescale(media[b"mdhd"]),
        durations=tuple(sorted({duration for _, duration in timed})),
        reordered=len(set(offsets)) > 1,
        first_pts=offsets[0] - _edit_start(videos[0]),
        keyframes=range(frames)
        if syncs is None
        else tuple(number - 1 for (number,) in struct.iter_unpack(">I", _entries(syncs, 4))),
        parameter_sets=_parameter_sets(table[b"stsd"]),
        payload=payload,
        comment=_comment(moov),
    )


def _entries(content: bytes, width: int) -> bytes:
    """Return the entries of a full box: version and flags, a count, then the entries."""
    (count,) = struct.unpack_from(">I", content, 4)
    if 8 + count * width > len(content):
        raise ValueError("a table of samples is cut short")
    return content[8 : 8 + count * width]


def _samples(content: bytes) -> tuple[int, int]:
    """Return the number of samples and their bytes; a long film's table is not unpacked."""
    same, count = struct.unpack_from(">II", content, 4)
    if same:
        return count, same * count
    sizes = array("I", content[12 : 12 + 4 * count])
    if len(sizes) != count:
        raise ValueError("the table of sample sizes is cut short")
    if sys.byteorder == "little":
        sizes.byteswap()
    return count, sum(sizes)


def _timescale(content: bytes) -> int:
    return struct.unpack_from(">I", content, 20 if content[0] == 1 else 12)[0]


def _edit_start(track: dict) -> int:
    """Return the media time that an edit list starts at; empty edits delay and count negative."""
    edits = track.get(b"edts", {}).get(b"elst")
    if edits is None:
        return 0
    (count,) = struct.unpack_from(">I", edits, 4)
    layout, width = (">Qq", 20) if edits[0] == 1 else (">Ii", 12)
    times = [struct.unpack_from(layout, edits, 8 + i * width)[1] for i in range(count)]
    if len(times) != 1:
        raise ValueError(f"{count} edits")
    return times[0]


def _parameter_sets(content: bytes) -> tuple[bytes, ...]:
    found = []
    for name, entry in _boxes(content[8:]):
        if name != b"avc1":
            raise ValueError(f"a sample description {name!r} in place of avc1")
        found.append(dict(_boxes(entry[78:]))[b"avcC"])
    return tuple(found)


def _comment(moov: bytes) -> str:
    udta = dict(_boxes(moov)).get(b"udta")
    if udta is None:
        return ""
    data = _tree(udta).get(b"meta", {}).get(b"ilst", {}).get(b"\xa9cmt", {}).get(b"data", b"")
    return data[8:].decode()
