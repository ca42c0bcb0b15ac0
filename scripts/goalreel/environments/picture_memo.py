"""Pictures that an environment has drawn before, where few numbers tell what it draws.

Toy texts and MiniGrid draw from tiles: the same state gives the same picture. Each is drawn by
`env.render()` when it first occurs. Sources: `render` in gymnasium/envs/toy_text/{frozen_lake,
cliffwalking,taxi}.py (1.4.0) and minigrid/minigrid_env.py (3.1.0).
"""

from collections.abc import Callable, Hashable

import numpy as np

_MOST = 96 << 20  # bytes of pictures that are kept


def _frozen_lake(env) -> Hashable:
    return env.s, env.desc.tobytes()


def _cliff_walking(env) -> Hashable:
    return env.s


def _taxi(env) -> Hashable:
    if env.lastaction in (0, 1, 2, 3):
        env.taxi_orientation = env.lastaction  # as its `render` does
    return env.s, env.taxi_orientation


def _minigrid(env) -> Hashable:
    things = tuple(None if thing is None else thing.encode() for thing in env.grid.grid)
    # Open doors let the agent see further, which is highlighted, and are in the grid too.
    return things, tuple(map(int, env.agent_pos)), int(env.agent_dir)


_TOY_TEXTS: dict[str, Callable[[object], Hashable]] = {
    "gymnasium.envs.toy_text.frozen_lake": _frozen_lake,
    "gymnasium.envs.toy_text.cliffwalking": _cliff_walking,
    "gymnasium.envs.toy_text.taxi": _taxi,
}


def _key_of(env) -> Callable[[object], Hashable] | None:
    """Return what tells an instance's picture, None where that is not known."""
    kind = type(env.unwrapped)
    if kind.__module__ in _TOY_TEXTS:
        return _TOY_TEXTS[kind.__module__]
    names = {one.__module__.partition(".")[0] for one in kind.__mro__}
    known = kind.__module__.startswith("minigrid.") and names <= {"minigrid", *_NEUTRAL}
    return _minigrid if known else None


_NEUTRAL = ("gymnasium", "builtins", "typing", "abc")  # bases of any environment


class PictureMemo:
    """The pictures of the instances of one environment, without wrappers of the user's."""

    def __init__(self):
        """Begin without a picture."""
        self._key: Callable[[object], Hashable] | None = None
        self._asked = False
        self._pictures: dict[Hashable, np.ndarray] = {}
        self._bytes = 0

    def picture(self, env) -> object:
        """Return what `env.render()` draws of an instance; not to be written to."""
        if not self._asked:
            self._key, self._asked = _key_of(env), True
        if self._key is None:
            return env.render()
        key = self._key(env.unwrapped)
        found = self._pictures.get(key)
        if found is None:
            if self._bytes > _MOST:
                self._pictures, self._bytes = {}, 0
            found = self._pictures[key] = np.array(env.render())
            self._bytes += found.nbytes
        return found
