"""Render CarRacing's frames and observations by the pygame calls of its renderer, where they show.

NumPy rotates all pieces of grass and road at once, and an observation that nobody reads is not
drawn. Source: `_render` in gymnasium/envs/box2d/car_racing.py (1.4.0).
"""

import math
from weakref import WeakKeyDictionary

import numpy as np

from goalreel.environments.drawing.block_store import BlockFrame, BlockReader, BlockStore, rgb
from goalreel.environments.drawing.frame_surface import draw_polygon, new_image

_SIZE = _WIDTH, _HEIGHT = 1000, 800  # pixels of the picture before scaling
_PANEL = 100  # rows of the indicators, which hide the road
_scenes: WeakKeyDictionary = WeakKeyDictionary()


def scene_of(env) -> "CarRacingScene":
    """Return the scene of an unwrapped environment, the same each time."""
    return _scenes.get(env) or _scenes.setdefault(env, CarRacingScene())


def defer_observations(env) -> None:
    """Make an unwrapped environment step without drawing its observation."""
    env._render = lambda mode: scene_of(env).render_or_defer(env, mode)


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
        self._reader = BlockReader(BlockStore(), channels=4, limit=1 << 13)  # 6 MB
        # The episode's road, and the reward that the observation shows, which is drawn when read.
        self._road, self._reward, self._obs = None, 0.0, None
        self._is_read = False  # whether the observation of an earlier step was read

    def render_or_defer(self, env, mode: str) -> np.ndarray | None:
        """Render as an environment does. Only note what the observation of a step shows."""
        if mode == "state_pixels":
            self._reward, self._obs = env.reward, None
        return None if mode == "state_pixels" else type(env)._render(env, mode)

    def observation(self, env) -> np.ndarray:
        """Return the observation of the latest step, (96, 96, 3) uint8."""
        self._is_read = True
        if self._obs is None:
            self._draw_road(env)
            env.car.draw(self._image, *self._view, False)
            self._upright_pixels[:-_PANEL] = self._pixels[: _PANEL - 1 : -1]
            self._draw_indicators(env, self._reward)  # over the road, if they are high
            self._scale(self._upright, (96, 96), self._obs_image)
            self._obs = rgb(self._obs_pixels)
        return self._obs

    def frame(self, env) -> BlockFrame | None:
        """Return the frame of `env.render()`, or None for one that this scene does not draw."""
        if max(2 * env.car.hull.linearVelocity.length, *(w.omega for w in env.car.wheels)) > 390:
            return None  # indicators reach over the road from 400 on
        # An observation also draws the road.
        draw = self.observation if self._is_read and self._obs is None else self._draw_road
        draw(env)
        env.car.draw(self._image, *self._view, True)
        self._draw_indicators(env, env.reward)
        self._pixels[:_PANEL] = self._upright_pixels[: -_PANEL - 1 : -1]
        # Scaling to the half may come first, since a mean of two rows has no order.
        self._scale(self._image, (600, 400), self._frame_image)
        return self._reader.read(self._frame_pixels[::-1])

    def _start_episode(self, env) -> None:
        """Note the corners and colors of all pieces that the renderer draws."""
        pieces: list = []
        env._draw_colored_polygon = lambda _, *piece, **clip: pieces.append(piece[:2])
        env._render_road(0, (0, 0), 0)
        del env._draw_colored_polygon
        corners, colors = zip(*pieces, strict=True)
        self._x, self._y = np.ascontiguousarray(np.array(corners, float).T)
        # The environment changes a tile's color in place when the car visits it.
        self._road, road = env.road_poly, [color for _, color in env.road_poly]
        self._colors = [*colors[: -len(road)], *road]

    def _draw_road(self, env) -> None:
        """Draw the field, the grass and the road, upside down."""
        from gymnasium.envs.box2d.car_racing import PLAYFIELD, SCALE, ZOOM
        from pygame import Vector2

        if self._road is not env.road_poly:
            self._start_episode(env)
        (x, y), angle = env.car.hull.position, -env.car.hull.angle
        zoom = 0.1 * SCALE * max(1 - env.t, 0) + ZOOM * SCALE * min(env.t, 1)
        shift = Vector2(-x * zoom, -y * zoom).rotate_rad(angle) + (_WIDTH / 2, _HEIGHT / 4)
        self._view = zoom, tuple(shift), angle
        cos, sin = Vector2(1, 0).rotate_rad(angle)
        turned = cos * self._x - sin * self._y, sin * self._x + cos * self._y
        points = (np.stack(turned, axis=2) * zoom + shift).astype(np.int32)  # as gfxdraw
        # Antialiasing reaches a pixel further. The panel covers the rows before it.
        is_seen = ((points.max(0) >= (-1, _PANEL - 1)) & (points.min(0) <= _SIZE)).all(1)
        # Filling the picture is faster than drawing the field, if its border is out of sight.
        is_seen[0] = max(abs(x), abs(y)) + math.hypot(_WIDTH, _HEIGHT) / zoom >= PLAYFIELD - 1
        self._image.fill((0, 0, 0) if is_seen[0] else env.bg_color, (0, _PANEL, *_SIZE))
        for place in np.flatnonzero(is_seen).tolist():
            draw_polygon(self._image, points[:, place].tolist(), [*map(int, self._colors[place])])

    def _draw_indicators(self, env, reward: float) -> None:
        """Draw the panel with a reward, upright."""
        env.surf = self._upright
        env._render_indicators(*_SIZE)
        text = self._font.render(f"{reward:04.0f}", True, (255, 255, 255), (0, 0, 0))
        self._upright.blit(text, text.get_rect(center=(60, _HEIGHT - _HEIGHT * 2.5 / 40.0)))
