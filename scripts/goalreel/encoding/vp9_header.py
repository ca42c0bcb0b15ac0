"""VP9 frame headers: reading and rewriting the uncompressed header, and describing it to MP4.

Clause numbers are those of the VP9 Bitstream & Decoding Process Specification, version 0.6. Frames
are made in vp9, files in the writer of MP4.
"""

from dataclasses import dataclass
from fractions import Fraction

from goalreel.errors import GoalreelError

_SYNC_CODE = 0x498342  # 7.2
_RGB = 7  # color_space, 7.2.2
_REFERENCES = 3  # LAST, GOLDEN and ALTREF
_SLOTS = 8
# Annex A: the level times ten, luma samples per second, luma samples per picture, longest side.
_LEVELS = (
    (10, 829_440, 36_864, 512),
    (11, 2_764_800, 73_728, 768),
    (20, 4_608_000, 122_880, 960),
    (21, 9_216_000, 245_760, 1344),
    (30, 20_736_000, 552_960, 2048),
    (31, 36_864_000, 983_040, 2752),
    (40, 83_558_400, 2_228_224, 4160),
    (41, 160_432_128, 2_228_224, 4160),
    (50, 311_951_360, 8_912_896, 8384),
    (51, 588_251_136, 8_912_896, 8384),
    (52, 1_176_502_272, 8_912_896, 8384),
    (60, 1_176_502_272, 35_651_584, 16832),
    (61, 2_353_004_544, 35_651_584, 16832),
    (62, 4_706_009_088, 35_651_584, 16832),
)
_BT709 = 1  # primaries, transfer and matrix alike, ITU-T H.273


@dataclass(frozen=True)
class Header:
    """What a frame's uncompressed header says (6.2, 7.2).

    size: (width, height) in pixels; of an inter frame None, where it takes its reference's
    refresh: the reference slots that the frame fills, a bit each
    references: the slots that it predicts from, none for a key frame
    segmented: whether segmentation is on
    refresh_at, filter_level_at: where these fields start, in bits; refresh_at of a key frame, which
    has no such field, is None
    """

    profile: int
    key: bool
    shown: bool
    error_resilient: bool
    size: tuple[int, int] | None
    refresh: int
    references: tuple[int, ...]
    filter_level: int
    base_q_idx: int
    segmented: bool
    refresh_at: int | None
    filter_level_at: int


class _Bits:
    """The bits of a frame, most significant first (4.9.2)."""

    def __init__(self, data: bytes):
        self._data = data
        self.place = 0

    def take(self, count: int) -> int:
        end = self.place + count
        if end > 8 * len(self._data):
            raise GoalreelError(f"a VP9 frame of {len(self._data)} bytes ends within its header")
        first, last = self.place // 8, -(-end // 8)
        value = int.from_bytes(self._data[first:last], "big") >> (8 * last - end)
        self.place = end
        return value & ((1 << count) - 1)


def parse_header(data: bytes) -> Header:
    """Return what stands in a frame's uncompressed header (6.2).

    Raises GoalreelError if `data` is no VP9 frame of profile 0 that is a key frame or an inter
    frame: one that shows an existing frame, or an intra-only one, is refused too.
    """
    bits = _Bits(data)
    if bits.take(2) != 2:  # frame_marker
        raise GoalreelError("no VP9 frame: it does not begin with a frame marker")
    profile = bits.take(1) | bits.take(1) << 1
    if profile != 0:
        raise GoalreelError(f"a VP9 frame of profile {profile}; allowed: 0")
    if bits.take(1):
        raise GoalreelError("a VP9 frame that shows an existing one; allowed: key and inter frames")
    key, shown, resilient = not bits.take(1), bool(bits.take(1)), bool(bits.take(1))
    refresh_at = None
    if key:
        size, refresh, references = _key_fields(bits), (1 << _SLOTS) - 1, ()
    else:
        if not shown and bits.take(1):
            raise GoalreelError("an intra-only VP9 frame; allowed: key and inter frames")
        if not resilient:
            bits.take(2)  # reset_frame_context
        refresh_at = bits.place
        refresh = bits.take(_SLOTS)
        references = tuple(bits.take(4) >> 1 for _ in range(_REFERENCES))  # index and sign bias
        size = _size_with_references(bits)
        bits.take(1)  # allow_high_precision_mv
        if not bits.take(1):  # is_filter_switchable
            bits.take(2)  # raw_interpolation_filter
    if not resilient:
        bits.take(2)  # refresh_frame_context, frame_parallel_decoding_mode
    bits.take(2)  # frame_context_idx
    filter_level_at = bits.place
    filter_level = _loop_filter(bits)
    base_q_idx = bits.take(8)  # 6.2.9
    for _ in range(3):
        if bits.take(1):
            bits.take(5)  # delta_q
    return Header(
        profile=profile,
        key=key,
        shown=shown,
        error_resilient=resilient,
        size=size,
        refresh=refresh,
        references=references,
        filter_level=filter_level,
        base_q_idx=base_q_idx,
        segmented=bool(bits.take(1)),  # 6.2.11
        refresh_at=refresh_at,
        filter_level_at=filter_level_at,
    )


def is_key(data: bytes) -> bool:
    """Tell whether a frame is a key frame. Raises GoalreelError as parse_header does."""
    return parse_header(data).key


def rewritten(data: bytes, refresh: int | None = None, filter_level: int | None = None) -> bytes:
    """Return a frame with other values in its header; None leaves one as it is.

    Both fields have a fixed length and are not entropy coded, so that nothing else moves. Raises
    GoalreelError as parse_header does, and if a key frame's `refresh` is to change.
    """
    header = parse_header(data)
    number = int.from_bytes(data, "big")
    if refresh is not None:
        if header.refresh_at is None:
            raise GoalreelError("a VP9 key frame fills all reference slots")
        number = _with_field(number, 8 * len(data) - header.refresh_at - _SLOTS, _SLOTS, refresh)
    if filter_level is not None:
        number = _with_field(number, 8 * len(data) - header.filter_level_at - 6, 6, filter_level)
    return number.to_bytes(len(data), "big")


def configuration(size: tuple[int, int], fps: Fraction | float) -> bytes:
    """Return the content of MP4's box vpcC, its version and flags included, and no more.

    Source: VP Codec ISO Media File Format Binding, version 1.0, "VP Codec Configuration Box".
    size: (width, height) in pixels. Raises GoalreelError for a film beyond VP9's highest level.
    """
    # 8 bits; 4:2:0; limited range. Chroma sits in the middle of four luma samples, as in yuv, for
    # which there is no code; "vertical" (0) is the nearest: it is right in one direction.
    format_ = 8 << 4 | 0 << 1 | 0
    version = bytes([1, 0, 0, 0])
    return version + bytes([0, level(size, fps), format_, _BT709, _BT709, _BT709, 0, 0])


def level(size: tuple[int, int], fps: Fraction | float) -> int:
    """Return the lowest level, times ten, that allows this size and rate (Annex A).

    Raises GoalreelError if none does.
    """
    width, height = size
    for number, rate, picture, side in _LEVELS:
        if width * height <= picture and width * height * fps <= rate and max(size) <= side:
            return number
    raise GoalreelError(f"VP9 has no level for {width}x{height} pixels, {fps} frames per second")


def _key_fields(bits: _Bits) -> tuple[int, int]:
    if bits.take(24) != _SYNC_CODE:
        raise GoalreelError("no VP9 key frame: its sync code is wrong")
    if bits.take(3) == _RGB:
        raise GoalreelError("a VP9 key frame in RGB, which profile 0 does not have")
    bits.take(1)  # color_range
    size = _frame_size(bits)
    _render_size(bits)
    return size


def _frame_size(bits: _Bits) -> tuple[int, int]:
    return bits.take(16) + 1, bits.take(16) + 1


def _render_size(bits: _Bits) -> None:
    if bits.take(1):
        bits.take(32)


def _size_with_references(bits: _Bits) -> tuple[int, int] | None:
    found = any(bits.take(1) for _ in range(_REFERENCES))  # stops at the first found_ref
    size = None if found else _frame_size(bits)
    _render_size(bits)
    return size


def _loop_filter(bits: _Bits) -> int:
    """Read loop_filter_params (6.2.8); return the level."""
    filter_level = bits.take(6)
    bits.take(3)  # loop_filter_sharpness
    if bits.take(1) and bits.take(1):  # loop_filter_delta_enabled, loop_filter_delta_update
        for _ in range(6):  # four references, two modes
            if bits.take(1):
                bits.take(7)
    return filter_level


def _with_field(number: int, shift: int, length: int, value: int) -> int:
    mask = ((1 << length) - 1) << shift
    return number & ~mask | value << shift
