"""What an MP4 file's index says of its video track, so that a file can be checked without decoding.

Source of the boxes: ISO/IEC 14496-12 (stsd, mdhd, hdlr, stts, stss, stsz, stsc, stco, co64),
14496-15 (avcC). Imported while the Snakefile is parsed, so without NumPy.
"""

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from goalreel.files.damage import reporting_damage

if TYPE_CHECKING:
    import numpy as np

# Ticks of the videos' timebase per frame: any number, but the same in segments and film.
TICKS = 512
# Of a file: its index stays below the 4 GiB of a box.
MOST_FRAMES = 1 << 27
_CONTAINERS = {b"mdia", b"minf", b"stbl", b"meta", b"ilst", b"\xa9cmt"}


@dataclass(frozen=True, eq=False)
class VideoIndex:
    """The video track of an MP4 file."""

    timescale: int  # units a second
    durations: tuple[int, ...]  # the distinct durations of samples, in units
    configuration: bytes  # the avcC box of its sample description
    size: tuple[int, int]  # (width, height) in pixels, as the sample entry has it
    comment: str  # the file's, or ""
    keyframes: Sequence[int]  # 0-based numbers of the sync samples
    sizes: "np.ndarray"  # (frames,) uint32, bytes of each sample
    chunk_places: "np.ndarray"  # (chunks,) int64, the file's byte that each chunk starts at
    chunk_samples: "np.ndarray"  # (chunks,) int64, the number of samples in each

    @property
    def frames(self) -> int:
        """The number of samples."""
        return len(self.sizes)

    def runs(self) -> list[tuple[int, int]]:
        """Return the (start, length) of all stretches of the file that hold the samples in turn."""
        runs, first = [], 0
        chunks = zip(self.chunk_places.tolist(), self.chunk_samples.tolist(), strict=True)
        for start, samples in chunks:
            length = int(self.sizes[first : first + samples].sum(dtype=int))
            first += samples
            if runs and sum(runs[-1]) == start:
                start, before = runs.pop()
                length += before
            runs.append((start, length))
        return runs


def read_index(path: str | os.PathLike) -> VideoIndex:
    """Read an MP4 file's index.

    What it says is not held against the rest of the file: its checksum tells of damage.

    Raises:
        GoalreelError: the file is missing.
        UnusableFileError: it is not whole.
    """
    import numpy as np

    with _opened_movie(path) as movie:
        tracks = [_tree_of(content) for name, content in movie if name == b"trak"]
        (media,) = [t[b"mdia"] for t in tracks if t[b"mdia"][b"hdlr"][8:12] == b"vide"]
        table = media[b"minf"][b"stbl"]
        ((_, entry),) = _boxes_in(table[b"stsd"][8:])
        same, frames = struct.unpack_from(">2I", table[b"stsz"], 4)
        sizes = np.broadcast_to(np.uint32(same), frames)  # which takes no memory
        if not same:
            sizes = _entries(table[b"stsz"][4:])[:, 0].astype(np.uint32)
        wide = b"co64" in table
        places = _entries(table[b"co64"], ">i8") if wide else _entries(table[b"stco"])
        first, samples, _ = _entries(table[b"stsc"], columns=3).T.astype(np.int64)
        keyframes = range(frames)
        if b"stss" in table:
            keyframes = (_entries(table[b"stss"])[:, 0].astype(np.int64) - 1).tolist()
        return VideoIndex(
            struct.unpack_from(">I", media[b"mdhd"], 20 if media[b"mdhd"][0] == 1 else 12)[0],
            tuple(sorted(set(_entries(table[b"stts"], columns=2)[:, 1].tolist()))),
            bytes(dict(_boxes_in(entry[78:]))[b"avcC"]),
            struct.unpack_from(">HH", entry, 24),
            _comment(movie),
            keyframes,
            sizes,
            places[:, 0].astype(np.int64),
            np.repeat(samples, np.diff(first, append=len(places) + 1)),
        )


def read_comment(path: str | os.PathLike) -> str:
    """Return what an MP4 file keeps about its making, or "". Raises as read_index."""
    with _opened_movie(path) as movie:
        return _comment(movie)


@contextlib.contextmanager
def _opened_movie(path: str | os.PathLike) -> Iterator[list[tuple[bytes, memoryview]]]:
    """Yield the boxes of the moov box; what is wrong with it is raised as the file's error."""
    damage = "it is truncated or corrupt: not a whole MP4 file"
    with reporting_damage(path, damage), Path(path).open("rb") as stream:
        place, end, movie = 0, os.fstat(stream.fileno()).st_size, None
        while place < end:
            stream.seek(place)
            length, name, large = struct.unpack(">I4sQ", stream.read(16).ljust(16))
            length = {0: end - place, 1: large}.get(length, length)  # 4.2
            if length < 8 or place + length > end:
                raise ValueError(f"box {name!r} reaches beyond the end of the file")
            if name == b"moov":
                stream.seek(place + 8)
                movie = stream.read(length - 8)
            place += length
        yield list(_boxes_in(memoryview(movie)))


def _boxes_in(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the name and the content of each box. Raises ValueError, struct.error."""
    place = 0
    while place < len(data):
        length, name = struct.unpack_from(">I4s", data, place)
        if length < 8 or place + length > len(data):
            raise ValueError(f"box {name!r} reaches beyond the end of what holds it")
        yield name, data[place + 8 : place + length]
        place += length


def _tree_of(data: memoryview) -> dict[bytes, memoryview | dict]:
    """Return the boxes of a track or of udta, by name, containers opened."""
    tree: dict[bytes, memoryview | dict] = {}
    for name, content in _boxes_in(data):
        content = content[4:] if name == b"meta" else content  # a full box that holds boxes
        tree[name] = _tree_of(content) if name in _CONTAINERS else content
    return tree


def _comment(movie: list[tuple[bytes, memoryview]]) -> str:
    tree = _tree_of(dict(movie).get(b"udta", memoryview(b"")))
    data = tree.get(b"meta", {}).get(b"ilst", {}).get(b"\xa9cmt", {}).get(b"data", b"")
    return bytes(data[8:]).decode()


def _entries(box: memoryview, kind: str = ">u4", columns: int = 1) -> "np.ndarray":
    """Return the entries of a full box, (entries, columns): after version, flags and a count."""
    import numpy as np

    (count,) = struct.unpack_from(">I", box, 4)
    return np.frombuffer(box, kind, count * columns, 8).reshape(count, columns)
