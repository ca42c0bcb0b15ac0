"""What a policy keeps of the episode in each sub-environment."""

import itertools

import numpy as np


class PerEnv(list):
    """An item for each sub-environment, in order."""

    def take(self, mask: np.ndarray) -> "PerEnv":
        """Return the items of the sub-environments chosen by a (num_envs,) boolean mask."""
        return PerEnv(itertools.compress(self, mask))
