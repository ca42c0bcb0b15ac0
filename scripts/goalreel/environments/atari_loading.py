"""Atari's games begun from another seed, without the tenth of a second that loading takes.

`AtariEnv.reset(seed=...)` loads its game anew, most of which computes a table of blended colours.
The seed shapes one thing of what is loaded: the random numbers by which actions are repeated. ALE's
serialised state holds that generator in C++'s text form, std::mt19937: 624 words and a position. So
the state of another seed is that of one seed with other words, and is restored in place of a load,
once it was found to be what a load gives.

Source: `load_game` and `seed_game` in ale_py/env.py (0.12.1); the form by trial.
"""

import re
from dataclasses import dataclass

import numpy as np

_GENERATOR = re.compile(rb"(?:\d{1,10} ){624}\d{1,3}")
_LENGTH = slice(24, 28)  # of the part that holds the generators, as each length in four bytes
_BY_TIME = -1  # the seed for which ALE takes the time


@dataclass
class Loading:
    """How the instances of one environment load their game."""

    state: bytes | None = None  # of a seed
    known: bool | None = None  # whether states of other seeds are as expected, None before a trial

    def quicken(self, env) -> None:
        """Have an instance of AtariEnv load its game anew as fast as it can."""
        whole = env.load_game
        if self.state is None:
            self.state = env.ale.cloneSystemState().serialize()
        env.load_game = lambda: self._load(env, whole)

    def _load(self, env, whole) -> None:
        seed = env.ale.getInt("random_seed")
        state = None if seed == _BY_TIME or self.known is False else _reseeded(self.state, seed)
        if state is not None and self.known:
            env.ale.restoreSystemState(type(env.ale.cloneSystemState())(state))
            return
        whole()
        if seed != _BY_TIME:
            self.known = state == env.ale.cloneSystemState().serialize()


def _reseeded(state: bytes, seed: int) -> bytes | None:
    """Return ALE's state as it is loaded with a seed, None where its form is another."""
    found = list(_GENERATOR.finditer(state))
    if len(found) != 2:
        return None
    first, end = found[1].span()
    # NumPy's old generator begins as the standard library's does.
    generator = np.random.RandomState(seed % 2**32).get_state(legacy=False)["state"]
    words = " ".join(map(str, [*generator["key"].tolist(), generator["pos"]])).encode()
    made = bytearray(state[: first - 4] + len(words).to_bytes(4, "little") + words + state[end:])
    length = int.from_bytes(made[_LENGTH], "little") + len(made) - len(state)
    made[_LENGTH] = (length % 2**32).to_bytes(4, "little")
    return bytes(made)
