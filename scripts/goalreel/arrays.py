"""Index arithmetic for arrays that hold pieces of different lengths end to end."""

import numpy as np


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return `arange(start, start + length)` of each pair, end to end, as int64."""
    ends = np.cumsum(lengths)
    if len(ends) == 0:
        return np.zeros(0, np.int64)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
