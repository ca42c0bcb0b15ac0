"""Checksum trailers: each .npz and .mp4 file that a stage writes ends with a sha256 of its bytes.

A zip's own checksums leave out its directory, and MP4 has none. In an .npz the trailer is the
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


def write_trailer(path: str | os.PathLike) -> None:
    """Write the trailer over a file's last LENGTH bytes, which its writer left free for it."""
    with Path(path).open("r+b") as stream:
        body = stream.seek(0, os.SEEK_END) - LENGTH
        trailer = _MARK + _sha256(stream, body)
        stream.seek(body)
        stream.write(trailer)


def append_trailer(path: str | os.PathLike) -> None:
    """Append the trailer to a complete MP4 file, in a box of its own."""
    with Path(path).open("ab") as stream:
        stream.write(_BOX + bytes(LENGTH))
    write_trailer(path)


def check_trailer(path: str | os.PathLike) -> None:
    """Raise UnusableFileError, naming the file, unless its every byte is as it was written.

    Raises GoalreelError if it cannot be read.
    """
    with reporting_damage(path), Path(path).open("rb") as stream:
        body = max(stream.seek(0, os.SEEK_END) - LENGTH, 0)
        stream.seek(body)
        trailer = stream.read(LENGTH)
        if not trailer.startswith(_MARK):
            raise ValueError("the checksum at its end is missing")
        if trailer != _MARK + _sha256(stream, body):
            raise ValueError("its sha256 differs from that at its end")


def _sha256(stream, length: int) -> bytes:
    """Return the hexadecimal sha256 of a stream's first bytes."""
    stream.seek(0)
    digest = hashlib.sha256()
    while length > 0 and (block := stream.read(min(length, _BLOCK))):
        digest.update(block)
        length -= len(block)
    return digest.hexdigest().encode()
