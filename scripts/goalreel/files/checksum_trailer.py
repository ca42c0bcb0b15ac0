"""Write and check the checksum trailer, a SHA-256 at the end of each .npz and .mp4 result.

The checksums of a zip file do not cover its directory, and MP4 has none. In an .npz file the
trailer is the archive comment, in an MP4 file a `free` box (ISO/IEC 14496-12, 8.1.2). Other
programs ignore both.
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
    """Write the trailer over the last LENGTH bytes of a file, which its writer reserved."""
    with Path(path).open("r+b") as stream:
        body = stream.seek(0, os.SEEK_END) - LENGTH
        trailer = _MARK + _sha256(stream, body)
        stream.seek(body)
        stream.write(trailer)


def append_trailer(path: str | os.PathLike) -> None:
    """Append the trailer, in a `free` box, to a complete MP4 file."""
    with Path(path).open("ab") as stream:
        stream.write(_BOX + bytes(LENGTH))
    write_trailer(path)


def check_trailer(path: str | os.PathLike) -> None:
    """Raise GoalreelError for an unreadable file, UnusableFileError unless its SHA-256 matches."""
    with reporting_damage(path), Path(path).open("rb") as stream:
        body = max(stream.seek(0, os.SEEK_END) - LENGTH, 0)
        stream.seek(body)
        trailer = stream.read(LENGTH)
        if not trailer.startswith(_MARK):
            raise ValueError("the checksum at its end is missing")
        if trailer != _MARK + _sha256(stream, body):
            raise ValueError("checksum mismatch")


def _sha256(stream, length: int) -> bytes:
    """Return the hexadecimal SHA-256 of the first `length` bytes of a stream."""
    stream.seek(0)
    digest = hashlib.sha256()
    while length > 0 and (block := stream.read(min(length, _BLOCK))):
        digest.update(block)
        length -= len(block)
    return digest.hexdigest().encode()
