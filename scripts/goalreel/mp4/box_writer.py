"""Build the descriptive boxes of an MP4 file: movie header, track headers, sample entries, tags.

Each function returns one box as a list of buffers, so that nesting a box does not copy its tables.
Source: ISO/IEC 14496-12 (8.2.2 mvhd, 8.3.2 tkhd, 8.3.3 tref, 8.4.2 mdhd, 8.4.3 hdlr, 8.5.2 sample
entries, 12.1.4 pasp, 12.1.5 colr), 14496-15 (5.4.2 avcC), 3GPP TS 26.245 (5.16 tx3g), QuickTime
File Format (text, gmhd, ilst). No standard defines chpl, which comes from Nero's software.
"""

import struct
from collections.abc import Sequence

Box = list[bytes | memoryview]

_MATRIX = struct.pack(">9i", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
# Track flags (8.3.2.3). A player shows a disabled track only if the viewer selects it.
ENABLED, IN_MOVIE = 1, 2
_NANOSECONDS = 100  # unit of the times in chpl


def box(name: str, *children: Box | bytes) -> Box:
    """Return a box that holds `children`, below 4 GiB."""
    parts = [p for child in children for p in (child if isinstance(child, list) else [child])]
    return [struct.pack(">I4s", 8 + size(parts), name.encode("latin-1")), *parts]


def full_box(name: str, *children: Box | bytes, version: int = 0, flags: int = 0):
    """Return a box that starts with a version and flags (4.2)."""
    return box(name, struct.pack(">I", version << 24 | flags), *children)


def size(parts: Box) -> int:
    """Return the number of bytes of a box."""
    return sum(len(part) for part in parts)


def movie_header(timescale: int, duration: int, next_track: int) -> Box:
    """Return mvhd. In all headers creation times are 0. Durations take 64 bits only if needed."""
    version, times = _times(timescale, duration)
    fields = struct.pack(">IH10x", 0x10000, 0x100) + _MATRIX + struct.pack(">24xI", next_track)
    return full_box("mvhd", times, fields, version=version)


def track_header(
    track: int, duration: int, flags: int, shown: tuple[int, int] = (0, 0), group: int = 0
) -> Box:
    """Return tkhd for a duration in the movie timescale and a size `shown` in pixels."""
    version, times = _times(track, duration, gap=4)
    position = struct.pack(">8xhh4x", 0, group) + _MATRIX
    dimensions = struct.pack(">2I", *(pixels << 16 for pixels in shown))
    return full_box("tkhd", times, position, dimensions, version=version, flags=flags)


def media(
    timescale: int, duration: int, language: str, handler: str, name: str, header: Box, table: Box
) -> Box:
    """Return mdia with a language (ISO 639-2/T), a header (vmhd, nmhd, gmhd) and a table (stbl)."""
    version, times = _times(timescale, duration)
    first, second, third = (ord(letter) - 0x60 for letter in language)
    packed = first << 10 | second << 5 | third
    same_file = full_box("url ", flags=1)
    return box(
        "mdia",
        full_box("mdhd", times, struct.pack(">H2x", packed), version=version),
        full_box("hdlr", struct.pack(">4x4s12x", handler.encode()), name.encode() + b"\0"),
        box("minf", header, box("dinf", full_box("dref", struct.pack(">I", 1), same_file)), table),
    )


def _times(field: int, duration: int, gap: int = 0) -> tuple[int, bytes]:
    """Return the version and the time fields of mvhd, mdhd, or, with a gap of 4 bytes, tkhd."""
    if duration >> 32:
        return 1, struct.pack(f">16xI{gap}xQ", field, duration)
    return 0, struct.pack(f">8xI{gap}xI", field, duration)


# Media headers of video, subtitle and QuickTime text tracks.
VIDEO_HEADER, SUBTITLE_HEADER = full_box("vmhd", bytes(8), flags=1), full_box("nmhd")
_GMIN = full_box("gmin", struct.pack(">4H4x", 0x40, 0x8000, 0x8000, 0x8000))
CHAPTER_HEADER = box("gmhd", _GMIN, box("text", _MATRIX))


def video_entry(configuration: bytes, pixels: tuple[int, int]) -> Box:
    """Return stsd of a video track: avc1 with avcC, BT.709 in limited range."""
    fixed = struct.pack(">6xH16x2H2I4xH32xHh", 1, *pixels, 72 << 16, 72 << 16, 1, 24, -1)
    colors = box("colr", struct.pack(">4s3HB", b"nclx", 1, 1, 1, 0))
    square = box("pasp", struct.pack(">2I", 1, 1))
    return _description(box("avc1", fixed, box("avcC", configuration), colors, square))


def text_entry(name: str, opaque: bool) -> Box:
    """Return stsd of a text track: tx3g for subtitles, text for QuickTime chapters."""
    # If opaque, players draw white letters of 16 pixels on black at the bottom, else nothing.
    look = struct.pack(">Ibb4B8x", *((0, 1, -1, 0, 0, 0, 255) if opaque else (1, *[0] * 6)))
    style = struct.pack(">2x2xHBBI", 1, 0, 16 * opaque, 0xFFFFFFFF * opaque)
    font = b"Arial" if opaque else b""
    fonts = box("ftab", struct.pack(">HHB", 1, 1, len(font)) + font)
    return _description(box(name, struct.pack(">6xH", 1), look, style, fonts))


def _description(entry: Box) -> Box:
    return full_box("stsd", struct.pack(">I", 1), entry)


def user_data(title: str, comment: str, chapters: Sequence[tuple[int, str]], timescale: int) -> Box:
    """Return udta with the tags and, if any, the chapters as (start in ticks, title)."""
    tags = [_tag(name, text) for name, text in (("©nam", title), ("©cmt", comment)) if text]
    handler = full_box("hdlr", struct.pack(">4x4s4s9x", b"mdir", b"appl"))
    meta = full_box("meta", handler, box("ilst", *tags))
    if not chapters:
        return box("udta", meta)
    entries = b""
    for start, name in chapters:
        text = utf8(name, 255)
        time = start * (10**9 // _NANOSECONDS) // timescale
        entries += struct.pack(">QB", time, len(text)) + text
    count = struct.pack(">IB", 0, len(chapters))
    return box("udta", meta, full_box("chpl", count, entries, version=1))


def _tag(name: str, text: str) -> Box:
    return box(name, box("data", struct.pack(">II", 1, 0), text.encode()))  # 1: UTF-8


def utf8(text: str, most: int) -> bytes:
    """Return the text in UTF-8, cut to at most `most` bytes between characters."""
    return text.encode()[:most].decode(errors="ignore").encode()
