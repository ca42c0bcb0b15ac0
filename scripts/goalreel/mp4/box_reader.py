"""The boxes of an MP4 file, found without reading what they hold."""

import struct
from collections.abc import Iterator
from typing import BinaryIO

_CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"udta", b"ilst", b"\xa9cmt"}


class Span:
    """Bytes of an open file, read when they are asked for."""

    def __init__(self, stream: BinaryIO, start: int, length: int) -> None:
        """Take `length` bytes from `start` on."""
        self._stream, self.start, self._length = stream, start, length

    def __len__(self) -> int:
        """Return the number of bytes."""
        return self._length

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        """Return the bytes from `start` on. Raises ValueError if there are not so many."""
        length = self._length - start if length is None else length
        if start + length > self._length:
            raise ValueError("a box is cut short")
        self._stream.seek(self.start + start)
        return self._stream.read(length)

    def part(self, start: int, length: int) -> "Span":
        """Return a part of it."""
        return Span(self._stream, self.start + start, length)


def boxes_in(data: Span) -> Iterator[tuple[bytes, Span]]:
    """Yield the name and the content of each box. Raises ValueError, struct.error."""
    place = 0
    while place < len(data):
        length, name = struct.unpack(">I4s", data.read(place, 8))
        start = 8
        if length == 1:
            (length,), start = struct.unpack(">Q", data.read(place + 8, 8)), 16
        elif length == 0:  # to the end of the file (4.2)
            length = len(data) - place
        if length < start or place + length > len(data):
            raise ValueError(f"box {name!r} reaches beyond the end of what holds it")
        yield name, data.part(place + start, length - start)
        place += length


def tree_of(data: Span) -> dict[bytes, Span | dict]:
    """Return the boxes of one track or of udta, by name, containers opened."""
    tree: dict[bytes, Span | dict] = {}
    for name, content in boxes_in(data):
        if name == b"meta":
            content = content.part(4, len(content) - 4)  # a full box that holds boxes
        tree[name] = tree_of(content) if name in _CONTAINERS or name == b"meta" else content
    return tree
