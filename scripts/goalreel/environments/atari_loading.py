"""Reset Atari games to a new seed without reloading the game, which takes 0.1 s.

`AtariEnv.reset(seed=...)` reloads the game, and spends most of the time on a table of blended
colors. The seed only affects the random generator that decides which actions are repeated. The
serialized state of ALE holds this std::mt19937 in text form: 624 words and a position. This module
therefore replaces the words in a saved state, and restores it instead of loading the game. It first
verifies once that the result equals the state after a real load, which is that of a second instance
if it is made before the first reset.
Source: `load_game` and `seed_game` in ale_py/env.py (0.12.1). The state's format was found by
experiment.
"""

import re
from dataclasses import dataclass

import numpy as np

_GENERATOR = re.compile(rb"(?:\d{1,10} ){624}\d{1,3}")
_LENGTH = slice(24, 28)  # bytes that hold the length of the part with the generators
_BY_TIME = -1  # this seed makes ALE seed from the clock


@dataclass
class Loading:
    """The saved state from which instances of one environment load their game."""

    state: bytes | None = None  # the state of some seed
    known: bool | None = None  # whether reseeded states equal real ones, None before a check

    def speed_up(self, env) -> None:
        """Make an AtariEnv instance load its game from the saved state."""
        load_game = env.load_game
        if self.state is None:
            self.state = env.ale.cloneSystemState().serialize()
        else:
            self._verify(env)
        env.load_game = lambda: self._load(env, load_game)

    def _load(self, env, load_game) -> None:
        seed = env.ale.getInt("random_seed")
        if self.known and seed != _BY_TIME and (state := _reseeded(self.state, seed)):
            env.ale.restoreSystemState(type(env.ale.cloneSystemState())(state))
        else:
            load_game()
            self._verify(env)

    def _verify(self, env) -> None:
        """Compare a reseeded state with that of an instance that has loaded its game."""
        seed = env.ale.getInt("random_seed")
        if self.known is None and seed != _BY_TIME:
            self.known = _reseeded(self.state, seed) == env.ale.cloneSystemState().serialize()


def _reseeded(state: bytes, seed: int) -> bytes | None:
    """Return ALE's state with the generator of a seed; None if the format is unknown."""
    found = list(_GENERATOR.finditer(state))
    if len(found) != 2:
        return None
    first, end = found[1].span()
    # NumPy's legacy generator seeds like std::mt19937.
    generator = np.random.RandomState(seed % 2**32).get_state(legacy=False)["state"]
    words = " ".join(map(str, [*generator["key"].tolist(), generator["pos"]])).encode()
    changed = bytearray(state[: first - 4] + len(words).to_bytes(4, "little") + words + state[end:])
    length = int.from_bytes(state[_LENGTH], "little") + len(changed) - len(state)
    changed[_LENGTH] = (length % 2**32).to_bytes(4, "little")
    return bytes(changed)
