"""What `env.render()` would draw, from what was drawn before.

Toy texts draw the same for the same state, MiniGrid the same tiles, LunarLander the same ground.
Sources: `render` in gymnasium/envs/toy_text/{frozen_lake,cliffwalking,taxi}.py (1.4.0);
`get_full_render` in minigrid/minigrid_env.py and `Grid.render` in minigrid/core/grid.py (3.2.0).
"""

from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary

import numpy as np

from goalreel.environments.drawing.block_store import SIDE, BlockFrame, BlockReader, BlockStore
from goalreel.environments.drawing.lunar_lander import LunarLanderScene

_MAX_KEPT = 1 << 13  # blocks, and frames, that are kept: 6 MB and some 30 MB


def _see_taxi(env) -> Hashable:
    if env.lastaction in (0, 1, 2, 3):
        env.taxi_orientation = env.lastaction  # as its `render` does
    return env.s, env.taxi_orientation


# What tells the frames of the environments of a module.
_TOY_TEXTS: dict[str, Callable[[object], Hashable]] = {
    "gymnasium.envs.toy_text.frozen_lake": lambda env: (env.s, env.desc.tobytes()),
    "gymnasium.envs.toy_text.cliffwalking": lambda env: env.s,
    "gymnasium.envs.toy_text.taxi": _see_taxi,
}


class FrameMemo:
    """The frames of the instances of one environment, without wrappers of the user's."""

    def __init__(self):
        """Begin without a frame."""
        self._forget()

    def _forget(self) -> None:
        self._store = BlockStore()
        self._reader = BlockReader(self._store)
        self._frames: dict[Hashable, BlockFrame] = {}
        self._tiles: dict[Hashable, int] = {}  # of MiniGrid: rows of the table
        self._table: list[np.ndarray] = []  # the numbers of each tile's blocks
        self._scenes: WeakKeyDictionary = WeakKeyDictionary()  # of LunarLander's instances

    def render(self, env, observation) -> BlockFrame | np.ndarray:
        """Return what `env.render()` draws of an instance, whose latest observation is told."""
        plain, kind = env.unwrapped, type(env.unwrapped)
        if max(len(self._store), len(self._frames)) > _MAX_KEPT:
            self._forget()
        if kind.__module__ in _TOY_TEXTS:
            key = _TOY_TEXTS[kind.__module__](plain)
            if key not in self._frames:
                drawn = _drawn_taxi(plain) if kind.__name__ == "TaxiEnv" else env.render()
                self._frames[key] = self._reader.read(drawn)
            return self._frames[key]
        if (kind.__module__, kind.__name__) == ("gymnasium.envs.box2d.lunar_lander", "LunarLander"):
            scene = self._scenes.get(plain)
            if scene is None or scene.ground is not plain.sky_polys:
                scene = self._scenes[plain] = LunarLanderScene(plain)
            return scene.frame(plain, self._store)
        if kind.__module__.startswith("minigrid.") and not plain.agent_pov:
            return env.render() if plain.tile_size % SIDE else self._tiled(plain, observation)
        if kind.__module__ == "ale_py.env" and plain.observation_space.shape[2:] == (3,):
            return observation
        return env.render()

    def _tiled(self, env, observation) -> BlockFrame:
        """Return what a MiniGrid's `render` puts together from tiles."""
        width, height, tile = env.grid.width, env.grid.height, env.tile_size
        # Walls are many, and differ by their colours alone.
        things = [
            thing and (thing.color if thing.type == "wall" else thing.encode())
            for thing in env.grid.grid
        ]
        agent = int(env.agent_pos[1]) * width + int(env.agent_pos[0])
        shown = tuple(things), agent, int(env.agent_dir)
        if shown in self._frames:
            return self._frames[shown]
        lit = _lit(env, observation["image"]).ravel().tolist()
        keys: list[Hashable] = list(zip(things, lit, strict=True))
        keys[agent] = *keys[agent], int(env.agent_dir)
        rows = list(map(self._tiles.get, keys))
        for place in [place for place, row in enumerate(rows) if row is None]:
            facing = env.agent_dir if place == agent else None
            drawn = type(env.grid).render_tile(env.grid.grid[place], facing, lit[place], tile)
            rows[place] = self._tiles.setdefault(keys[place], len(self._table))
            if rows[place] == len(self._table):
                self._table.append(self._reader.read(drawn.astype(np.uint8)).numbers)
        each = tile // SIDE
        numbers = np.array(self._table)[rows].reshape(height, width, each, each).swapaxes(1, 2)
        size = height * tile, width * tile
        self._frames[shown] = BlockFrame(size, numbers.ravel(), self._store)
        return self._frames[shown]


def _lit(env, image: np.ndarray) -> np.ndarray:
    """Return the cells of a MiniGrid that the agent sees, (height, width) bool.

    image: of the observation, (view, view, 3), turned as the agent looks; 0 where it sees nothing.
    """
    size = env.agent_view_size
    left, top, *_ = env.get_view_exts()
    lit = np.zeros((env.height + 2 * size, env.width + 2 * size), bool)
    seen = np.rot90(image[..., 0].T, -1 - env.agent_dir) > 0
    lit[top + size : top + 2 * size, left + size : left + 2 * size] = seen & env.highlight
    return lit[size:-size, size:-size]


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
    pixels = pygame.image.tobytes(env.window, "RGB")
    return np.frombuffer(pixels, np.uint8).reshape(*env.window.get_size()[::-1], 3)
