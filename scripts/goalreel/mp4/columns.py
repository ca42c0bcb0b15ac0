"""Columns: numbers that grow with a film, appended a part at a time and read back in blocks.

Few of them stay in memory; more go to a file without a name, beside what is being written, which
goes with the program however that ends.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_IN_MEMORY = 1 << 18  # bytes of a column
_BLOCK = 1 << 18  # bytes that are read back at a time


class Column:
    """Rows of `width` numbers of a NumPy dtype. Raises OSError where the disk is full."""

    def __init__(self, folder: Path, kind: str, width: int = 1) -> None:
        """Begin an empty column; `folder` is for its file, if it needs one."""
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=folder)  # noqa: SIM115
        self._kind, self._width = np.dtype(kind), width
        self._rows = 0

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return self._width

    def append(self, values: np.ndarray) -> None:
        """Add rows, (rows,) or (rows, width)."""
        stored = np.ascontiguousarray(values, self._kind).reshape(-1, self._width)
        self._file.seek(0, 2)
        self._file.write(stored.tobytes())
        self._rows += len(stored)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield all rows, a block at a time: (rows, width)."""
        row = self._kind.itemsize * self._width
        place, end = 0, self._rows * row
        while place < end:
            self._file.seek(place)  # others may have read or written in between
            content = self._file.read(min(end - place, _BLOCK // row * row))
            yield np.frombuffer(content, self._kind).reshape(-1, self._width)
            place += len(content)

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Yield each row as Python's numbers."""
        for block in self.blocks():
            yield from map(tuple, block.tolist())


class Entries:
    """A column's numbers as bytes of a file: each with `more` added, in the dtype `kind`."""

    def __init__(self, column: Column, kind: str, more: int = 0) -> None:
        """Take a column, which may grow no more from then on."""
        self._column, self._kind, self._more = column, np.dtype(kind), more

    def __len__(self) -> int:
        """Return the number of bytes."""
        return len(self._column) * self._column.width * self._kind.itemsize

    def __iter__(self) -> Iterator[bytes]:
        """Yield the bytes, a block at a time."""
        for block in self._column.blocks():
            yield (block + self._more if self._more else block).astype(self._kind).tobytes()
