"""What an MP4 file's index says of its video track, so that a file can be checked without decoding.

Source of the boxes: ISO/IEC 14496-12 (stsd, elst, mdhd, hdlr), 14496-15 (avcC), "VP Codec ISO Media
File Format Binding" (vpcC). Files are written by ffmpeg (video) and mp4_writer; this module only
reads. The tables of samples stand in mp4_samples, which needs NumPy.
"""

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from goalreel.errors import GoalreelError, Unusable

if TYPE_CHECKING:
    from goalreel.mp4_samples import Samples

# Ticks of the videos' timebase per frame: any number, but the same in segments and film.
TICKS = 512
_CONFIGURATIONS = {b"avc1": b"avcC", b"vp09": b"vpcC"}  # of each kind of sample entry
_CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"udta", b"ilst", b"\xa9cmt"}


@dataclass(frozen=True)
class VideoIndex:
    """The video track of an MP4 file.

    frames: number of samples; durations: the distinct sample durations in units of 1 / timescale;
    reordered: whether composition times differ from decoding times; first_pts: in timescale units;
    keyframes: 0-based numbers of the sync samples; parameter_sets: the avcC box of each sample
    description, SPS and PPS in it, or its vpcC box; payload: bytes of all samples; comment: the
    file's, or ""; codec: "avc1" or "vp09"; size: (width, height) in pixels, as the sample entry
    has it; samples: where each sample stands in the file.
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
    codec: str
    size: tuple[int, int]
    samples: "Samples" = field(repr=False, compare=False)


def read_index(path: str | os.PathLike) -> VideoIndex:
    """Read an MP4 file's index. Raises GoalreelError if it is missing, Unusable if not whole."""
    try:
        with Path(path).open("rb") as stream:
            moov, media = _top_level(stream, os.fstat(stream.fileno()).st_size)
        index = _video_index(memoryview(moov))
        inside = index.samples.inside(media)
    except FileNotFoundError:
        raise GoalreelError(f"{path}: no such file; run snakemake to make it") from None
    except (OSError, ValueError, LookupError, struct.error, RecursionError) as error:
        raise Unusable(path, f"not a whole MP4 file ({error})") from None
    if not inside:
        raise Unusable(
            path,
            f"truncated: its index tells of {index.payload} bytes of video, not all of them in "
            f"the {sum(map(len, media))} that it holds",
        )
    return index


def read_comment(path: str | os.PathLike) -> str:
    """Return what an MP4 file keeps about its making, or "". Raises as read_index."""
    try:
        with Path(path).open("rb") as stream:
            moov, _ = _top_level(stream, os.fstat(stream.fileno()).st_size)
        return _comment(memoryview(moov))
    except FileNotFoundError:
        raise GoalreelError(f"{path}: no such file; run snakemake to make it") from None
    except (OSError, ValueError, LookupError, struct.error, RecursionError) as error:
        raise Unusable(path, f"not a whole MP4 file ({error})") from None


def _top_level(stream, size: int) -> tuple[bytes, list[range]]:
    """Return the moov box's content and where the contents of mdat boxes stand."""
    moov, media, place = None, [], 0
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
            media.append(range(place + start, place + length))
        place += length
    if moov is None:
        raise ValueError("no moov box")
    return moov, media


def _boxes(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
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


def _tree(data: memoryview) -> dict[bytes, memoryview | dict]:
    """Return the boxes of one track or of udta, by name, containers opened."""
    tree: dict[bytes, memoryview | dict] = {}
    for name, content in _boxes(data):
        if name == b"meta":
            content = content[4:]  # a full box that holds boxes
        tree[name] = _tree(content) if name in _CONTAINERS or name == b"meta" else content
    return tree


def _video_index(moov: memoryview) -> VideoIndex:
    from goalreel import mp4_samples

    tracks = [_tree(content) for name, content in _boxes(moov) if name == b"trak"]
    videos = [track for track in tracks if track[b"mdia"][b"hdlr"][8:12] == b"vide"]
    if len(videos) != 1:
        raise ValueError(f"{len(videos)} video tracks")
    media = videos[0][b"mdia"]
    table = media[b"minf"][b"stbl"]
    samples = mp4_samples.read_samples(table)
    frames, durations = mp4_samples.read_durations(table)
    if frames != len(samples.sizes):
        raise ValueError(f"{frames} durations for {len(samples.sizes)} samples")
    offsets, first_offset = mp4_samples.read_composition(table)
    codec, size, parameter_sets = _descriptions(table[b"stsd"])
    return VideoIndex(
        frames=frames,
        timescale=_timescale(media[b"mdhd"]),
        durations=durations,
        reordered=offsets > 1,
        first_pts=first_offset - _edit_start(videos[0]),
        keyframes=mp4_samples.read_keyframes(table, frames),
        parameter_sets=parameter_sets,
        payload=samples.payload,
        comment=_comment(moov),
        codec=codec,
        size=size,
        samples=samples,
    )


def _timescale(content: memoryview) -> int:
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


def _descriptions(content: memoryview) -> tuple[str, tuple[int, int], tuple[bytes, ...]]:
    """Return the codec, the size and each sample description's configuration."""
    kinds, found = set(), []
    for name, entry in _boxes(content[8:]):
        if name not in _CONFIGURATIONS:
            raise ValueError(f"a sample description {name!r} in place of avc1 or vp09")
        kinds.add((name.decode(), struct.unpack_from(">HH", entry, 24)))
        found.append(bytes(dict(_boxes(entry[78:]))[_CONFIGURATIONS[name]]))
    if len(kinds) != 1:
        raise ValueError(f"{len(kinds)} kinds of sample descriptions")
    ((codec, size),) = kinds
    return codec, size, tuple(found)


def _comment(moov: memoryview) -> str:
    udta = dict(_boxes(moov)).get(b"udta")
    if udta is None:
        return ""
    data = _tree(udta).get(b"meta", {}).get(b"ilst", {}).get(b"\xa9cmt", {}).get(b"data", b"")
    return bytes(data[8:]).decode()
