"""Read the index of an MP4 file's video track, to check or copy a file without decoding it.

Source: ISO/IEC 14496-12 (stsd, mdhd, hdlr, stts, stss, stsz, stsc, stco, co64), 14496-15 (avcC).
The Snakefile imports this module, so NumPy is imported only in the functions that need it.
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

# Timescale units per frame, the same in segments and film.
TICKS = 512
# Maximum frames of a film: its index must stay below 4 GiB, the limit of a box.
MOST_FRAMES = 1 << 27
_CONTAINERS = {b"mdia", b"minf", b"stbl", b"meta", b"ilst", b"\xa9cmt"}


@dataclass(frozen=True, eq=False)
class VideoIndex:
    """The video track of an MP4 file."""

    timescale: int  # units per second
    durations: tuple[int, ...]  # distinct sample durations, in units
    configuration: bytes  # content of the avcC box
    size: tuple[int, int]  # (width, height) in pixels, from the sample entry
    comment: str  # comment tag of the file, "" if absent
    keyframes: Sequence[int]  # 0-based indices of the sync samples
    sizes: "np.ndarray"  # (frames,) uint32, bytes of each sample
    chunk_offsets: "np.ndarray"  # (chunks,) int64, file offset of each chunk
    chunk_samples: "np.ndarray"  # (chunks,) int64, samples in each chunk

    @property
    def frames(self) -> int:
        """The number of samples."""
        return len(self.sizes)

    def runs(self) -> list[tuple[int, int]]:
        """Return the (start, length) of the file ranges that hold the samples, in order."""
        import numpy as np

        ends = np.cumsum(self.sizes, dtype=np.int64)[np.cumsum(self.chunk_samples) - 1]
        lengths = np.diff(ends, prepend=0)
        return list(zip(self.chunk_offsets.tolist(), lengths.tolist(), strict=True))


def read_index(path: str | os.PathLike) -> VideoIndex:
    """Read the index of an MP4 file.

    The media are not compared with the index. The checksum trailer detects damage there. Raises
    GoalreelError if the file is missing, UnusableFileError if the index is damaged.
    """
    import numpy as np

    with _opened_movie(path) as movie:
        tracks = [_tree_of(content) for name, content in movie if name == b"trak"]
        (media,) = [t[b"mdia"] for t in tracks if t[b"mdia"][b"hdlr"][8:12] == b"vide"]
        table = media[b"minf"][b"stbl"]
        ((_, entry),) = _boxes_in(table[b"stsd"][8:])
        common_size, frames = struct.unpack_from(">2I", table[b"stsz"], 4)
        sizes = np.broadcast_to(np.uint32(common_size), frames)  # takes no memory
        if not common_size:
            sizes = _entries(table[b"stsz"][4:])[:, 0].astype(np.uint32)
        wide = b"co64" in table
        offsets = _entries(table[b"co64"], ">i8") if wide else _entries(table[b"stco"])
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
            offsets[:, 0].astype(np.int64),
            np.repeat(samples, np.diff(first, append=len(offsets) + 1)),
        )


def read_comment(path: str | os.PathLike) -> str:
    """Return the comment of an MP4 file, "" if it has none. Raises as `read_index` does."""
    with _opened_movie(path) as movie:
        return _comment(movie)


@contextlib.contextmanager
def _opened_movie(path: str | os.PathLike) -> Iterator[list[tuple[bytes, memoryview]]]:
    """Yield the children of moov and report errors in the block as damage to the file."""
    damage = "it is truncated or corrupt: not a complete MP4 file"
    with reporting_damage(path, damage), Path(path).open("rb") as stream:
        position, end, movie = 0, os.fstat(stream.fileno()).st_size, None
        while position < end:
            stream.seek(position)
            length, name, large = struct.unpack(">I4sQ", stream.read(16).ljust(16))
            length = {0: end - position, 1: large}.get(length, length)  # 4.2
            if length < 8 or position + length > end:
                raise ValueError(f"box {name!r} extends beyond the end of the file")
            if name == b"moov":
                stream.seek(position + 8)
                movie = stream.read(length - 8)
            position += length
        yield list(_boxes_in(memoryview(movie)))


def _boxes_in(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the name and content of each box. Raises ValueError, struct.error."""
    position = 0
    while position < len(data):
        length, name = struct.unpack_from(">I4s", data, position)
        if length < 8 or position + length > len(data):
            raise ValueError(f"box {name!r} extends beyond the end of its parent")
        yield name, data[position + 8 : position + length]
        position += length


def _tree_of(data: memoryview) -> dict[bytes, memoryview | dict]:
    """Return the boxes of a track or of udta by name, nested for containers."""
    tree: dict[bytes, memoryview | dict] = {}
    for name, content in _boxes_in(data):
        content = content[4:] if name == b"meta" else content  # a full box with children
        tree[name] = _tree_of(content) if name in _CONTAINERS else content
    return tree


def _comment(movie: list[tuple[bytes, memoryview]]) -> str:
    tree = _tree_of(dict(movie).get(b"udta", memoryview(b"")))
    data = tree.get(b"meta", {}).get(b"ilst", {}).get(b"\xa9cmt", {}).get(b"data", b"")
    return bytes(data[8:]).decode()


def _entries(box: memoryview, kind: str = ">u4", columns: int = 1) -> "np.ndarray":
    """Return the (entries, columns) table of a full box, which follows version, flags and count."""
    import numpy as np

    (count,) = struct.unpack_from(">I", box, 4)
    return np.frombuffer(box, kind, count * columns, 8).reshape(count, columns)
