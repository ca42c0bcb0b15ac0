"""Render CarRacing's frames and observations by the pygame calls of its renderer, where they show.

Gymnasium rotates each piece of grass and road by itself, also those that are out of sight, and does
so again for the observation of each step. Here NumPy rotates all pieces at once, and an observation
that nobody reads is not drawn. Source: `_render` in gymnasium/envs/box2d/car_racing.py (1.4.0).
"""

import math
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from goalreel.environments.drawing.block_store import BlockFrame, BlockReader, BlockStore, rgb
from goalreel.environments.drawing.frame_surface import new_image

_WIDTH, _HEIGHT = 1000, 800  # pixels of the picture before scaling
_PANEL = 100  # rows of the indicators, which hide the road
_MAX_KEPT = 1 << 13  # blocks in memory, 6 MB
_scenes: WeakKeyDictionary = WeakKeyDictionary()


def scene_of(env) -> "CarRacingScene":
    """Return the scene of an unwrapped environment, the same each time."""
    if env not in _scenes:
        _scenes[env] = CarRacingScene()
    return _scenes[env]


def defer_observations(env) -> None:
    """Make an unwrapped environment step without drawing its observation."""
    env._render = partial(scene_of(env).render_or_defer, env)


class CarRacingScene:
    """Renders the frames and the observations of one environment."""

    def __init__(self):
        import pygame

        pygame.font.init()
        self._font = pygame.font.Font(pygame.font.get_default_font(), 42)
        self._scale = pygame.transform.smoothscale
        # The renderer draws the road upside down, and turns it.
        self._pixels, self._image = new_image((_HEIGHT, _WIDTH))
        self._upright_pixels, self._upright = new_image((_HEIGHT, _WIDTH))
        self._frame_pixels, self._frame_image = new_image((400, 600))
        self._obs_pixels, self._obs_image = new_image((96, 96))
        self._reader = BlockReader(BlockStore(), channels=4, limit=_MAX_KEPT)
        self._road: list | None = None  # of the episode
        self._reward = 0.0  # when the step drew its observation
        self._obs: np.ndarray | None = None  # of the step, once it is read
        self._is_read = False  # whether the observation of an earlier step was read

    def render_or_defer(self, env, mode: str) -> np.ndarray | None:
        """Render as an environment does. Only note what the observation of a step shows."""
        if mode != "state_pixels":
            return type(env)._render(env, mode)
        self._reward, self._obs = env.reward, None
        return None

    def observation(self, env) -> np.ndarray:
        """Return the observation of the latest step, (96, 96, 3) uint8."""
        self._is_read = True
        if self._obs is None:
            self._draw_road(env)
            env.car.draw(self._image, *self._view, draw_particles=False)
            self._upright_pixels[:-_PANEL] = self._pixels[: _PANEL - 1 : -1]
            self._draw_panel(env, self._reward)
            self._scale(self._upright, (96, 96), self._obs_image)
            self._obs = rgb(self._obs_pixels)
        return self._obs

    def frame(self, env) -> BlockFrame | None:
        """Return the frame of `env.render()`. None if indicators reach over the road."""
        speeds = [2 * env.car.hull.linearVelocity.length]
        if max(speeds + [wheel.omega for wheel in env.car.wheels]) > 390:  # 400 is the upper end
            return None
        if self._is_read and self._obs is None:
            self.observation(env)  # draws the road
        else:
            self._draw_road(env)
        env.car.draw(self._image, *self._view)
        self._draw_panel(env, env.reward)
        self._pixels[:_PANEL] = self._upright_pixels[: -_PANEL - 1 : -1]
        # Scaling to the half may come first, since a mean of two rows has no order.
        self._scale(self._image, (600, 400), self._frame_image)
        return self._reader.read(self._frame_pixels[::-1])

    def _start_episode(self, env) -> None:
        """Note the corners and colors of the field, and of each piece of grass and road."""
        from gymnasium.envs.box2d.car_racing import GRASS_DIM, PLAYFIELD

        self._road = env.road_poly
        field = [(x * PLAYFIELD, y * PLAYFIELD) for x, y in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
        corners = (GRASS_DIM, 0), (0, 0), (0, GRASS_DIM), (GRASS_DIM, GRASS_DIM)
        steps = [step * GRASS_DIM for step in range(-20, 20, 2)]
        grass = [[(x + dx, y + dy) for dx, dy in corners] for x in steps for y in steps]
        road, colors = zip(*env.road_poly, strict=True)
        self._x, self._y = np.ascontiguousarray(np.array([field, *grass, *road], float).T)
        # The environment changes a tile's color in place when the car visits it.
        self._colors = [env.bg_color, *[env.grass_color] * len(grass), *colors]

    def _draw_road(self, env) -> None:
        """Draw the field, the grass and the road, upside down."""
        from gymnasium.envs.box2d.car_racing import PLAYFIELD, SCALE, ZOOM
        from pygame import Vector2, gfxdraw

        if self._road is not env.road_poly:
            self._start_episode(env)
        (x, y), angle = env.car.hull.position, -env.car.hull.angle
        zoom = 0.1 * SCALE * max(1 - env.t, 0) + ZOOM * SCALE * min(env.t, 1)
        shift = Vector2(-x * zoom, -y * zoom).rotate_rad(angle) + (_WIDTH / 2, _HEIGHT / 4)
        self._view = zoom, tuple(shift), angle
        cos, sin = Vector2(1, 0).rotate_rad(angle)
        columns = ((cos * self._x - sin * self._y) * zoom + shift[0]).astype(np.int32)
        rows = ((sin * self._x + cos * self._y) * zoom + shift[1]).astype(np.int32)  # as gfxdraw
        # Antialiasing reaches a pixel further. The panel covers the rows before it.
        is_seen = (columns.max(axis=0) >= -1) & (columns.min(axis=0) <= _WIDTH)
        is_seen &= (rows.max(axis=0) >= _PANEL - 1) & (rows.min(axis=0) <= _HEIGHT)
        # Filling the picture is faster than drawing the field, if its border is out of sight.
        is_seen[0] = max(abs(x), abs(y)) + math.hypot(_WIDTH, _HEIGHT) / zoom >= PLAYFIELD - 1
        color = (0, 0, 0) if is_seen[0] else env.bg_color
        self._image.fill(color, (0, _PANEL, _WIDTH, _HEIGHT))
        for place in np.flatnonzero(is_seen).tolist():
            points = [*zip(columns[:, place].tolist(), rows[:, place].tolist(), strict=True)]
            color = [int(c) for c in self._colors[place]]
            gfxdraw.aapolygon(self._image, points, color)
            gfxdraw.filled_polygon(self._image, points, color)

    def _draw_panel(self, env, reward: float) -> None:
        """Draw the indicators, and a reward."""
        env.surf = self._upright
        env._render_indicators(_WIDTH, _HEIGHT)
        text = self._font.render(f"{reward:04.0f}", True, (255, 255, 255), (0, 0, 0))
        self._upright.blit(text, text.get_rect(center=(60, _HEIGHT - _HEIGHT * 2.5 / 40.0)))
