"""What a policy keeps of the episode in each lane."""

import itertools

import numpy as np


class PerLane(list):
    """An item for each lane, in order."""

    def take(self, lanes: np.ndarray) -> "PerLane":
        """Return the items of the lanes chosen by a (lanes,) boolean mask."""
        return PerLane(itertools.compress(self, lanes))
