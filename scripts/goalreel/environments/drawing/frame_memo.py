"""Return the frames of `env.render()`, reusing what was rendered before.

Toy-text environments reuse frames of equal states, MiniGrid its tiles, Box2D environments the
ground, and Atari games the blocks that stay.
Sources: `render` in gymnasium/envs/toy_text/{frozen_lake,cliffwalking,taxi}.py (1.4.0),
`get_full_render` in minigrid/minigrid_env.py and `Grid.render` in minigrid/core/grid.py (3.2.0).
"""

from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary

import numpy as np

from goalreel.environments.drawing import car_racing, mujoco_scene
from goalreel.environments.drawing.atari_screen import AtariColors, AtariScreen
from goalreel.environments.drawing.bipedal_walker import BipedalWalkerScene, next_lidar
from goalreel.environments.drawing.block_store import SIDE, BlockFrame, BlockReader, BlockStore
from goalreel.environments.drawing.lunar_lander import LunarLanderScene, fade_particles

_MAX_KEPT = 1 << 13  # blocks or frames in memory, 6 MB and about 30 MB


def _taxi_key(env) -> Hashable:
    if env.lastaction in (0, 1, 2, 3):
        env.taxi_orientation = env.lastaction  # as its `render` does
    return env.s, env.taxi_orientation


# The state that determines a frame, for the environments of a module.
_TOY_TEXT_KEYS: dict[str, Callable[[object], Hashable]] = {
    "gymnasium.envs.toy_text.frozen_lake": lambda env: (env.s, env.desc.tobytes()),
    "gymnasium.envs.toy_text.cliffwalking": lambda env: env.s,
    "gymnasium.envs.toy_text.taxi": _taxi_key,
}
# The effect of `render` on the next frames of an environment, by module.
_EFFECTS: dict[str, Callable[[object], object]] = {
    "gymnasium.envs.box2d.lunar_lander": fade_particles,
    "gymnasium.envs.box2d.bipedal_walker": next_lidar,
}


def skip_frame(env) -> None:
    """Change an instance as its `render` does, if that is known."""
    effect = _EFFECTS.get(type(env.unwrapped).__module__)
    if effect:
        effect(env.unwrapped)


class FrameMemo:
    """The rendered frames of one environment's instances, without wrappers."""

    def __init__(self):
        self._clear()

    def _clear(self) -> None:
        self._store = BlockStore()
        self._reader = BlockReader(self._store)
        self._frames: dict[Hashable, BlockFrame] = {}
        self._tiles: dict[Hashable, int] = {}  # MiniGrid tiles, as rows of the table
        self._table: list[np.ndarray] = []  # the block numbers of each tile
        self._colors = AtariColors(self._store)
        self._scenes: WeakKeyDictionary = WeakKeyDictionary()  # by instance
        self._shared: list[mujoco_scene.MujocoScene] = []

    def render(self, env, observation) -> BlockFrame | np.ndarray:
        """Return what `env.render()` returns for an instance, given its latest observation."""
        unwrapped, kind = env.unwrapped, type(env.unwrapped)
        if max(len(self._store), len(self._frames)) > _MAX_KEPT:
            self._clear()
        if kind.__module__ in _TOY_TEXT_KEYS:
            key = _TOY_TEXT_KEYS[kind.__module__](unwrapped)
            if key not in self._frames:
                self._frames[key] = self._reader.read(env.render())
            return self._frames[key]
        if (kind.__module__, kind.__name__) == ("gymnasium.envs.box2d.lunar_lander", "LunarLander"):
            scene = self._scene(LunarLanderScene, unwrapped, unwrapped.sky_polys)
            return scene.frame(unwrapped, self._store)
        if kind.__module__ == "gymnasium.envs.box2d.bipedal_walker":
            scene = self._scene(BipedalWalkerScene, unwrapped, unwrapped.terrain_poly)
            frame = scene.frame(unwrapped)
            return env.render() if frame is None else frame
        if kind.__module__ == "gymnasium.envs.box2d.car_racing":
            frame = car_racing.scene_of(unwrapped).frame(unwrapped)
            return env.render() if frame is None else frame
        if mujoco_scene.is_mujoco(unwrapped):
            if unwrapped not in self._scenes:
                self._scenes[unwrapped] = mujoco_scene.scene_of(unwrapped, self._shared)
            return self._scenes[unwrapped].frame(unwrapped)
        if kind.__module__.startswith("minigrid.") and not unwrapped.agent_pov:
            has_blocks = unwrapped.tile_size % SIDE == 0
            return self._render_minigrid(unwrapped, observation) if has_blocks else env.render()
        if kind.__module__ == "ale_py.env":
            if unwrapped not in self._scenes:
                self._scenes[unwrapped] = AtariScreen(unwrapped.ale, self._colors)
            return self._scenes[unwrapped].frame()
        return env.render()

    def _scene(self, kind: type, env, ground: list):
        """Return the scene of an instance's episode, which its ground identifies."""
        scene = self._scenes.get(env)
        if scene is None or scene.ground is not ground:
            scene = self._scenes[env] = kind(env)
        return scene

    def _render_minigrid(self, env, observation) -> BlockFrame:
        """Return a MiniGrid frame, composed from tiles like in `Grid.render`."""
        width, height, tile = env.grid.width, env.grid.height, env.tile_size
        # Walls are many, and differ only in color.
        cells = [c and (c.color if c.type == "wall" else c.encode()) for c in env.grid.grid]
        agent = int(env.agent_pos[1]) * width + int(env.agent_pos[0])
        key = tuple(cells), agent, int(env.agent_dir)
        if key in self._frames:
            return self._frames[key]
        visible = _visible_cells(env, observation["image"]).ravel().tolist()
        keys: list[Hashable] = list(zip(cells, visible, strict=True))
        keys[agent] = *keys[agent], int(env.agent_dir)
        rows = list(map(self._tiles.get, keys))
        for place in [place for place, row in enumerate(rows) if row is None]:
            facing = env.agent_dir if place == agent else None
            pixels = type(env.grid).render_tile(env.grid.grid[place], facing, visible[place], tile)
            rows[place] = self._tiles.setdefault(keys[place], len(self._table))
            if rows[place] == len(self._table):
                self._table.append(self._reader.read(pixels.astype(np.uint8)).numbers)
        each = tile // SIDE
        numbers = np.array(self._table)[rows].reshape(height, width, each, each).swapaxes(1, 2)
        size = height * tile, width * tile
        self._frames[key] = BlockFrame(size, numbers.ravel(), self._store)
        return self._frames[key]


def _visible_cells(env, image: np.ndarray) -> np.ndarray:
    """Return the MiniGrid cells that the agent sees, (height, width) bool."""
    # image: of the observation, (view, view, 3), rotated to the agent's view; 0 is not visible
    size = env.agent_view_size
    left, top, *_ = env.get_view_exts()
    visible = np.zeros((env.height + 2 * size, env.width + 2 * size), bool)
    seen = np.rot90(image[..., 0].T, -1 - env.agent_dir) > 0
    visible[top + size : top + 2 * size, left + size : left + 2 * size] = seen & env.highlight
    return visible[size:-size, size:-size]
