"""Levels: how many macroblocks a decoder promises to take. Source: ITU-T H.264, A.3.1, Table A-1.

Bit rates are not looked at: a film's is not known before it is made, and is far below the limits.
"""

from fractions import Fraction

from goalreel.errors import GoalreelError

# level_idc, MaxMBPS, MaxFS, MaxDpbMbs; 1b is left out, since 1.1 holds all that it does.
_LEVELS = (
    *[(10, 1485, 99, 396), (11, 3000, 396, 900), (12, 6000, 396, 2376), (13, 11880, 396, 2376)],
    *[(20, 11880, 396, 2376), (21, 19800, 792, 4752), (22, 20250, 1620, 8100)],
    *[(30, 40500, 1620, 8100), (31, 108000, 3600, 18000), (32, 216000, 5120, 20480)],
    *[(40, 245760, 8192, 32768), (41, 245760, 8192, 32768), (42, 522240, 8704, 34816)],
    *[(50, 589824, 22080, 110400), (51, 983040, 36864, 184320), (52, 2073600, 36864, 184320)],
    *[(60, 4177920, 139264, 696320), (61, 8355840, 139264, 696320)],
    *[(62, 16711680, 139264, 696320)],
)
LARGEST_SIDE = 1055  # macroblocks: the highest level's sqrt(8 * MaxFS)


def smallest_level(columns: int, rows: int, fps: Fraction, references: int) -> int:
    """Return the level_idc of the smallest level that holds a stream.

    columns, rows: of a frame, in macroblocks. references: frames that the decoder keeps. Raises
    GoalreelError if even the highest level is too small.
    """
    frame = columns * rows
    for level, rate, largest, buffer in _LEVELS:
        fits = frame <= largest and max(columns, rows) ** 2 <= 8 * largest
        if fits and frame * fps <= rate and references * frame <= buffer:
            return level
    _, rate, largest, _ = _LEVELS[-1]
    raise GoalreelError(
        f"frames of {16 * columns}x{16 * rows} pixels, {fps} a second: {frame} macroblocks each; "
        f"allowed by H.264's highest level: {largest}, {rate} a second, a side of {LARGEST_SIDE}"
    )
