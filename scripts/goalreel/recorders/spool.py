"""Frames kept on disk, each compressed on its own, for those who come back to them later.

A frame of a drawn environment takes some kilobytes there. Who comes back, and why, stands in
snippets.
"""

import tempfile
import zlib

import numpy as np

_LEVEL = 1  # of zlib: higher ones take several times as long for some percent


class Spool:
    """Frames by number, in a temporary file without a name, which goes with the program.

    Raises OSError where the disk is full.
    """

    def __init__(self) -> None:
        """Open the file, in the system's folder for temporary files."""
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (close closes it)
        self._places: dict[int, tuple[int, int, tuple[int, ...]]] = {}  # offset, length, shape

    def __setitem__(self, number: int, frame: np.ndarray) -> None:
        """Keep a uint8 array under `number`."""
        packed = zlib.compress(np.ascontiguousarray(frame), _LEVEL)
        offset = self._file.seek(0, 2)
        self._file.write(packed)
        self._places[number] = offset, len(packed), frame.shape

    def __getitem__(self, number: int) -> np.ndarray:
        """Return the array kept under `number`. Raises KeyError if there is none."""
        offset, length, shape = self._places[number]
        self._file.seek(offset)
        return np.frombuffer(zlib.decompress(self._file.read(length)), np.uint8).reshape(shape)

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()
