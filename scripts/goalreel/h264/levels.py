"""Choose the H.264 level of a stream from its frame size, frame rate and references.

Bit rates are not checked: they are unknown before encoding, and films stay far below the limits.

Source: Rec. ITU-T H.264, A.3.1 and Table A-1.
"""

from fractions import Fraction

from goalreel.errors import GoalreelError

# level_idc, MaxMBPS, MaxFS, MaxDpbMbs. Level 1b is left out: 1.1 covers it.
_LEVELS = (
    *[(10, 1485, 99, 396), (11, 3000, 396, 900), (12, 6000, 396, 2376), (13, 11880, 396, 2376)],
    *[(20, 11880, 396, 2376), (21, 19800, 792, 4752), (22, 20250, 1620, 8100)],
    *[(30, 40500, 1620, 8100), (31, 108000, 3600, 18000), (32, 216000, 5120, 20480)],
    *[(40, 245760, 8192, 32768), (41, 245760, 8192, 32768), (42, 522240, 8704, 34816)],
    *[(50, 589824, 22080, 110400), (51, 983040, 36864, 184320), (52, 2073600, 36864, 184320)],
    *[(60, 4177920, 139264, 696320), (61, 8355840, 139264, 696320)],
    *[(62, 16711680, 139264, 696320)],
)
LARGEST_SIDE = 1055  # in macroblocks: sqrt(8 * MaxFS) of the highest level


def smallest_level(columns: int, rows: int, fps: Fraction, references: int) -> int:
    """Return the level_idc of the smallest level that allows a stream of macroblocks.

    `references` is the number of frames in the decoded picture buffer. Raises GoalreelError if the
    stream exceeds the highest level.
    """
    frame = columns * rows
    for level, rate, largest, buffer in _LEVELS:
        fits = frame <= largest and max(columns, rows) ** 2 <= 8 * largest
        if fits and frame * fps <= rate and references * frame <= buffer:
            return level
    _, rate, largest, _ = _LEVELS[-1]
    raise GoalreelError(
        f"Frames of {16 * columns}x{16 * rows} pixels at {fps} fps exceed H.264's highest level. "
        f"Lower the frame size or film.fps.\n  Limits in macroblocks of 16x16 pixels: "
        f"{largest} per frame, {rate} per second, {LARGEST_SIDE} per side"
    )
