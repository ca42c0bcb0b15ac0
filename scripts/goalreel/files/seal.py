"""Seals: the last bytes of each .npz and .mp4 file that a stage writes, a sha256 of all before.

A zip's own checksums leave out its directory, and MP4 has none. In an .npz the seal is the
archive's comment, in an MP4 file a `free` box (ISO/IEC 14496-12, 8.1.2): other readers pass over
both.
"""

import hashlib
import os
from pathlib import Path

from goalreel.files.damage import reporting_damage

_MARK = b"goalreel sha256 "
LENGTH = len(_MARK) + 64
_BOX = (8 + LENGTH).to_bytes(4, "big") + b"free"
_BLOCK = 1 << 20


def write_seal(path: str | os.PathLike) -> None:
    """Write the seal over a file's last LENGTH bytes, which its writer left free for it."""
    with Path(path).open("r+b") as stream:
        body = stream.seek(0, os.SEEK_END) - LENGTH
        seal = _MARK + _sha256(stream, body)
        stream.seek(body)
        stream.write(seal)


def seal_mp4(path: str | os.PathLike) -> None:
    """Append the seal to a complete MP4 file, in a box of its own."""
    with Path(path).open("ab") as stream:
        stream.write(_BOX + bytes(LENGTH))
    write_seal(path)


def check_seal(path: str | os.PathLike) -> None:
    """Raise UnusableFileError, naming the file, unless its every byte is as it was written.

    Raises GoalreelError if it cannot be read.
    """
    with reporting_damage(path), Path(path).open("rb") as stream:
        body = max(stream.seek(0, os.SEEK_END) - LENGTH, 0)
        stream.seek(body)
        seal = stream.read(LENGTH)
        if not seal.startswith(_MARK):
            raise ValueError("the seal at its end is missing")
        if seal != _MARK + _sha256(stream, body):
            raise ValueError("its sha256 differs from that in its seal")


def _sha256(stream, length: int) -> bytes:
    """Return the hexadecimal sha256 of a stream's first bytes."""
    stream.seek(0)
    digest = hashlib.sha256()
    while length > 0 and (block := stream.read(min(length, _BLOCK))):
        digest.update(block)
        length -= len(block)
    return digest.hexdigest().encode()
