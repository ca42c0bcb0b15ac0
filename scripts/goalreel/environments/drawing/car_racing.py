"""Render CarRacing's frames and observations by the pygame calls of its renderer, where they show.

Gymnasium rotates each piece of grass and road by itself, also those that are out of sight, and does
so again for the observation of each step. Here NumPy rotates all pieces at once, and an observation
that nobody reads is not drawn. Source: `_render` in gymnasium/envs/box2d/car_racing.py and
`Car.draw` in car_dynamics.py (1.4.0).
"""

import math
from collections.abc import Iterable
from weakref import WeakKeyDictionary

import numpy as np

from goalreel.environments.drawing.block_store import BlockFrame, BlockReader, BlockStore, rgb
from goalreel.environments.drawing.frame_surface import new_image

_WIDTH, _HEIGHT = 1000, 800  # pixels of the picture before scaling
_PANEL = 100  # rows of the indicators, below the road
_SHAPE, _OBS_SHAPE = (400, 600), (96, 96)  # rows and columns of a frame and of an observation
_MAX_KEPT = 1 << 13  # blocks in memory, 6 MB
_scenes: WeakKeyDictionary = WeakKeyDictionary()


def scene_of(env) -> "CarRacingScene":
    """Return the scene of an unwrapped environment, the same each time."""
    if env not in _scenes:
        _scenes[env] = CarRacingScene()
    return _scenes[env]


def defer_observations(env) -> None:
    """Make an unwrapped environment step without drawing its observation."""
    scene, render = scene_of(env), type(env)._render

    def render_or_defer(mode: str) -> np.ndarray | None:
        if mode != "state_pixels":
            return render(env, mode)
        scene.start_step(env)
        return None

    env._render = render_or_defer


class CarRacingScene:
    """Renders the frames and the observations of one environment."""

    def __init__(self):
        import pygame
        from gymnasium.envs.box2d import car_racing

        pygame.font.init()
        self._font = pygame.font.Font(pygame.font.get_default_font(), 42)
        # The renderer draws the road upside down, and turns it. Scaling to the half needs no turn,
        # since a mean of two rows has no order.
        self._pixels, self._image = new_image((_HEIGHT, _WIDTH))
        self._upright_pixels, self._upright = new_image((_HEIGHT, _WIDTH))
        self._road_pixels, self._road_half = new_image((_SHAPE[0] - _PANEL // 2, _SHAPE[1]))
        self._frame = np.empty(_SHAPE, np.uint32)
        self._panel_half = pygame.image.frombuffer(
            self._frame[-_PANEL // 2 :], (_SHAPE[1], _PANEL // 2), "RGBX"
        )
        self._obs_pixels, self._obs_image = new_image(_OBS_SHAPE)
        self._reader = BlockReader(BlockStore(), channels=4, limit=_MAX_KEPT)
        size, field = car_racing.GRASS_DIM, car_racing.PLAYFIELD
        self._field = [(field, field), (field, -field), (-field, -field), (-field, field)]
        corners = (size, 0), (0, 0), (0, size), (size, size)
        places = [(x * size, y * size) for x in range(-20, 20, 2) for y in range(-20, 20, 2)]
        self._grass = [[(x + dx, y + dy) for dx, dy in corners] for x, y in places]
        self._road: list | None = None  # of the episode
        self._reward = 0.0  # when the step drew its observation
        self._obs: np.ndarray | None = None  # of the step, once it is read
        self._is_read = False  # whether the observation of an earlier step was read

    def start_step(self, env) -> None:
        """Note what the observation of a step shows, at the moment when the step draws it."""
        self._reward, self._obs = env.reward, None

    def observation(self, env) -> np.ndarray:
        """Return the observation of the latest step, (96, 96, 3) uint8."""
        self._is_read = True
        if self._obs is None:
            self._draw_road(env)
            self._draw_car(env)
            self._observe(env)
        return self._obs

    def frame(self, env) -> BlockFrame | None:
        """Return the frame of `env.render()`. None if indicators reach over the road."""
        import pygame

        if self._is_high(env):
            return None
        self._draw_road(env)
        if self._is_read and self._obs is None:
            self._draw_car(env)
            self._observe(env)
        for particle in env.car.particles:  # only frames show them, below the car
            points = self._place(particle.poly)
            pygame.draw.lines(self._image, particle.color, False, points, 2)
        self._draw_car(env)
        self._draw_panel(env, env.reward)
        road = self._image.subsurface((0, _PANEL, _WIDTH, _HEIGHT - _PANEL))
        panel = self._upright.subsurface((0, _HEIGHT - _PANEL, _WIDTH, _PANEL))
        pygame.transform.smoothscale(road, self._road_half.get_size(), self._road_half)
        pygame.transform.smoothscale(panel, self._panel_half.get_size(), self._panel_half)
        self._frame[: -_PANEL // 2] = self._road_pixels[::-1]
        return self._reader.read(self._frame)

    def _observe(self, env) -> None:
        """Keep the observation, given the picture without particles."""
        import pygame

        if self._is_high(env):
            reward, env.reward = env.reward, self._reward
            self._obs = type(env)._render(env, "state_pixels")
            env.reward = reward
            return
        self._upright_pixels[:-_PANEL] = self._pixels[: _PANEL - 1 : -1]
        self._draw_panel(env, self._reward)
        pygame.transform.smoothscale(self._upright, self._obs_image.get_size(), self._obs_image)
        self._obs = rgb(self._obs_pixels)

    def _draw_road(self, env) -> None:
        """Draw the field, the grass and the road, upside down."""
        from gymnasium.envs.box2d import car_racing
        from pygame import Vector2, gfxdraw

        if self._road is not env.road_poly:
            self._road = env.road_poly
            pieces = np.array([*self._grass, *(piece for piece, _ in env.road_poly)], float)
            self._x, self._y = np.ascontiguousarray(pieces.T)
        hull = env.car.hull
        zoom = 0.1 * car_racing.SCALE * max(1 - env.t, 0)
        zoom += car_racing.ZOOM * car_racing.SCALE * min(env.t, 1)
        x, y = Vector2(-hull.position[0] * zoom, -hull.position[1] * zoom).rotate_rad(-hull.angle)
        cos, sin = Vector2(1, 0).rotate_rad(-hull.angle)
        self._view = cos, sin, zoom, _WIDTH / 2 + x, _HEIGHT / 4 + y
        corners = self._place(self._field)
        sight = math.hypot(_WIDTH, _HEIGHT) / zoom
        if max(map(abs, hull.position)) + sight < car_racing.PLAYFIELD - 1:  # faster
            self._image.fill(env.bg_color)
        else:
            self._image.fill((0, 0, 0))
            gfxdraw.aapolygon(self._image, corners, env.bg_color)
            gfxdraw.filled_polygon(self._image, corners, env.bg_color)
        x, y = (a.astype(np.int32) for a in self._project(self._x, self._y))  # as gfxdraw does
        # Antialiasing reaches a pixel further. The panel covers the rows before it.
        is_seen = (x.max(axis=0) >= -1) & (x.min(axis=0) <= _WIDTH)
        is_seen &= (y.max(axis=0) >= _PANEL - 1) & (y.min(axis=0) <= _HEIGHT)
        places = np.flatnonzero(is_seen)
        pieces = np.stack([x[:, places].T, y[:, places].T], axis=2).tolist()
        for place, points in zip(places.tolist(), pieces, strict=True):
            number = place - len(self._grass)
            # A tile's color changes when the car visits it.
            color = env.grass_color if number < 0 else [int(c) for c in self._road[number][1]]
            gfxdraw.aapolygon(self._image, points, color)
            gfxdraw.filled_polygon(self._image, points, color)

    def _project(self, x, y) -> tuple:
        cos, sin, zoom, right, up = self._view
        return (cos * x - sin * y) * zoom + right, (sin * x + cos * y) * zoom + up

    def _place(self, points: Iterable) -> list[tuple[float, float]]:
        """Return points of the world, in meters, as pixels."""
        return [self._project(x, y) for x, y in points]

    def _draw_car(self, env) -> None:
        from gymnasium.envs.box2d import car_dynamics
        from pygame import draw

        for body in env.car.drawlist:
            color, place = [int(c * 255) for c in body.color], body.transform
            for fixture in body.fixtures:
                corners = self._place(place * corner for corner in fixture.shape.vertices)
                draw.polygon(self._image, color, corners)
                mark = _tire_mark(body.phase) if "phase" in vars(body) else ()
                if mark:
                    corners = self._place(place * corner for corner in mark)
                    draw.polygon(self._image, car_dynamics.WHEEL_WHITE, corners)

    def _draw_panel(self, env, reward: float) -> None:
        """Draw the indicators, and a reward."""
        env.surf = self._upright
        env._render_indicators(_WIDTH, _HEIGHT)
        text = self._font.render(f"{reward:04.0f}", True, (255, 255, 255), (0, 0, 0))
        self._upright.blit(text, text.get_rect(center=(60, _HEIGHT - _HEIGHT * 2.5 / 40.0)))

    def _is_high(self, env) -> bool:
        """Return whether an indicator may reach over the road."""
        speeds = [0.02 * env.car.hull.linearVelocity.length]
        speeds += [0.01 * wheel.omega for wheel in env.car.wheels]
        return max(speeds) > 3.9  # 4 is the upper end of the panel


def _tire_mark(phase: float) -> list[tuple[float, float]]:
    """Return the corners of a wheel's white mark, in meters; [] where it is below the wheel."""
    from gymnasium.envs.box2d.car_dynamics import SIZE, WHEEL_R, WHEEL_W

    ends = [(math.sin(angle), math.cos(angle)) for angle in (phase, phase + 1.2)]
    if all(sin > 0 for sin, _ in ends):
        return []
    low, high = (WHEEL_R * (np.sign(cos) if sin > 0 else cos) * SIZE for sin, cos in ends)
    wide = WHEEL_W * SIZE
    return [(-wide, low), (wide, low), (wide, high), (-wide, high)]
