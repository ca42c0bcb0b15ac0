"""Pictures that an environment has drawn before, where few numbers tell what it draws.

Toy texts and MiniGrid draw from tiles: the same state gives the same picture. Each is drawn by
`env.render()` when it first occurs; MiniGrid's is put together from its tiles. Sources: `render` in
gymnasium/envs/toy_text/{frozen_lake,cliffwalking,taxi}.py (1.4.0); `get_full_render` in
minigrid/minigrid_env.py and `Grid.render` in minigrid/core/grid.py (3.2.0).
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from goalreel.environments.lunar_lander import LunarLanderScene, is_lunar_lander

_MOST = 32 << 20  # bytes of pictures that are kept


class Mosaic(NamedTuple):
    """A picture as squares; at its right and lower border filled up with its last pixels."""

    size: tuple[int, int]  # the picture's height and width
    numbers: np.ndarray  # (squares,) int64, in raster order; equal ones show the same
    squares: list[bytes]  # what each number shows, (side, side, 3) uint8


def _frozen_lake(env) -> Hashable:
    return env.s, env.desc.tobytes()


def _cliff_walking(env) -> Hashable:
    return env.s


def _taxi(env) -> Hashable:
    if env.lastaction in (0, 1, 2, 3):
        env.taxi_orientation = env.lastaction  # as its `render` does
    return env.s, env.taxi_orientation


def _minigrid(env) -> Hashable:
    # Walls are many, and differ by their colours alone.
    things = tuple(
        [
            None if thing is None else thing.color if thing.type == "wall" else thing.encode()
            for thing in env.grid.grid
        ]
    )
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


def _observes_its_picture(env) -> bool:
    """Tell whether an observation is the picture: of ALE's games, as they come."""
    shape = getattr(env.observation_space, "shape", None)
    return type(env).__module__ == "ale_py.env" and shape is not None and shape[2:] == (3,)


class PictureMemo:
    """The pictures of the instances of one environment, without wrappers of the user's."""

    def __init__(self):
        """Begin without a picture."""
        self._key: Callable[[object], Hashable] | None = None
        self._asked = False
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[Hashable, tuple[tuple[int, int], np.ndarray]] = {}
        self._known: dict[bytes, int] = {}
        self._squares: list[bytes] = []
        self._tiles: dict[Hashable, int] = {}  # of MiniGrid: rows of the table
        self._table: list[np.ndarray] = []  # the numbers of a tile's squares
        self._scenes: WeakKeyDictionary = WeakKeyDictionary()  # of LunarLander's instances
        self._latest = np.empty(0), np.empty(0)  # the squares of a picture, and their numbers
        self._bytes = 0

    def picture(self, env, observation, side: int) -> object:
        """Return what `env.render()` draws of an instance, as a Mosaic where that is faster.

        observation: its latest; side: of the squares, in pixels, always the same.
        """
        if not self._asked:
            self._key, self._asked = _key_of(env), True
        plain = env.unwrapped
        if self._key is None:
            if is_lunar_lander(plain):
                return self._scene(plain, side)
            return observation if _observes_its_picture(plain) else env.render()
        key = self._key(plain)
        found = self._numbers.get(key)
        if found is None:
            if self._bytes > _MOST:
                self._forget()
            if self._key is _minigrid and _is_tiled(plain, side):
                found = self._put_together(plain, observation["image"], key[0], side)
            else:
                picture = _drawn_taxi(plain) if self._key is _taxi else np.asarray(env.render())
                found = picture.shape[:2], self._numbers_of(picture, side)
            self._numbers[key] = found
            self._bytes += found[1].nbytes
        return Mosaic(*found, self._squares)

    def _scene(self, env, side: int) -> Mosaic:
        if self._bytes > _MOST:
            self._forget()
        scene = self._scenes.get(env)
        if scene is None or scene.ground is not env.sky_polys:
            scene = self._scenes[env] = LunarLanderScene(env, side, self._numbers_of_pixels)
        return Mosaic(scene.size, scene.numbers(env), self._squares)

    def _numbers_of_pixels(self, squares: np.ndarray) -> list[int]:
        """Return the numbers of squares, (n, side, side) uint32 of red, green, blue and nothing."""
        three = np.empty((*squares.shape, 3), np.uint8)
        four = np.ascontiguousarray(squares).view(np.uint8).reshape(*squares.shape, 4)
        for channel in range(3):  # copying three bytes at a time takes thrice as long
            three[..., channel] = four[..., channel]
        return [self._number(square.tobytes()) for square in three]

    def _numbers_of(self, picture: np.ndarray, side: int) -> np.ndarray:
        """Return the numbers of a picture's squares, (H, W, 3) uint8, in raster order."""
        height, width = picture.shape[:2]
        more = (0, -height % side), (0, -width % side), (0, 0)
        whole = np.pad(picture, more, "edge").reshape(-(-height // side), side, -1, 3 * side)
        squares = whole.swapaxes(1, 2).reshape(-1, side, 3 * side)
        before = self._latest if len(self._latest[0]) == len(squares) else None
        # Most are those of the picture before; the rest are looked up.
        new = np.arange(len(squares))
        if before is not None:
            new = np.flatnonzero((squares != before[0]).reshape(len(squares), -1).any(axis=1))
        numbers = np.empty(len(squares), np.int64) if before is None else before[1].copy()
        numbers[new] = [self._number(squares[place].tobytes()) for place in new.tolist()]
        self._latest = squares, numbers
        return numbers

    def _number(self, square: bytes) -> int:
        number = self._known.get(square)
        if number is None:
            number = self._known[square] = len(self._squares)
            self._squares.append(square)
            self._bytes += len(square)
        return number

    def _put_together(
        self, env, image: np.ndarray, things: tuple, side: int
    ) -> tuple[tuple[int, int], np.ndarray]:
        """Return the size and the numbers of what a MiniGrid's `render` puts together from tiles.

        image: what the agent sees; things: what stands in each cell, encoded.
        """
        width, height, tile = env.grid.width, env.grid.height, env.tile_size
        agent = int(env.agent_pos[1]) * width + int(env.agent_pos[0])
        rows = []
        for place, lit in enumerate(_highlighted(env, image).ravel().tolist()):
            facing = int(env.agent_dir) if place == agent else None
            key = things[place], facing, lit
            row = self._tiles.get(key)
            if row is None:
                thing = env.grid.grid[place]
                drawn = type(env.grid).render_tile(thing, facing, lit, tile)
                row = self._tiles[key] = len(self._table)
                self._table.append(self._numbers_of(drawn.astype(np.uint8), side))
            rows.append(row)
        each = tile // side
        numbers = np.stack(self._table)[rows].reshape(height, width, each, each).swapaxes(1, 2)
        return (height * tile, width * tile), numbers.ravel()


def _is_tiled(env, side: int) -> bool:
    """Tell whether a MiniGrid draws its whole grid, as all do but those that say otherwise."""
    kind = type(env)
    base = next(one for one in kind.__mro__ if one.__name__ == "MiniGridEnv")
    drawing = ("render", "get_frame", "get_full_render")
    usual = all(getattr(kind, name) is getattr(base, name) for name in drawing)
    return usual and not env.agent_pov and env.tile_size % side == 0


def _highlighted(env, image: np.ndarray) -> np.ndarray:
    """Return the cells of a MiniGrid that the agent sees, (height, width) bool.

    image: of the observation, (view, view, 3); its cells begin with 0 where nothing is seen.
    """
    lit = np.zeros((env.height, env.width), bool)
    if env.highlight:
        ahead, right, size = env.dir_vec, env.right_vec, env.agent_view_size
        corner = env.agent_pos + ahead * (size - 1) - right * (size // 2)
        across, along = np.nonzero(image[..., 0])
        x = corner[0] - ahead[0] * along + right[0] * across
        y = corner[1] - ahead[1] * along + right[1] * across
        inside = (x >= 0) & (x < env.width) & (y >= 0) & (y < env.height)
        lit[y[inside], x[inside]] = True
    return lit


def _drawn_taxi(env) -> np.ndarray:
    """Return what a Taxi's `render` draws, its background blended once and the pixels read at once.

    To blend it anew, and to read them turned, takes nine tenths of the time of a picture.
    """
    import pygame
    from gymnasium.envs.toy_text.taxi import BACKGROUND_POS, CANVAS_COLOR

    if env.background_img is None:
        env.render()  # which loads it
        opaque = env.window.copy()
        opaque.fill(CANVAS_COLOR)
        opaque.blit(env.background_img, BACKGROUND_POS)
        place = env.background_img.get_rect(topleft=BACKGROUND_POS).clip(opaque.get_rect())
        env.background_img = opaque.subsurface(place).copy()
    env._render_gui("")  # which draws, and returns nothing
    width, height = env.window.get_size()
    pixels = pygame.image.tobytes(env.window, "RGB")
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)
