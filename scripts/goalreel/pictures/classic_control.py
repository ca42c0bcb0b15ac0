"""Drawing CartPole, Acrobot and Pendulum with the pygame calls of their own renderers.

Source: `render` in gymnasium/envs/classic_control/{cartpole,acrobot,pendulum}.py (1.4.0): the same
calls in the same order, but on one surface, of which only the box is cleared, drawn and read where
something moved. Gymnasium makes, fills, turns, copies and reads three whole pictures for each.
"""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numpy as np

from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.pictures.blocks import Box

_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_EDGE = 2  # pixels that antialiasing and rounding reach beyond a shape's corners

# Draws an instance's state, upside down, and returns left, top, right and bottom of what moves.
Scene = Callable[[object, object], tuple[float, float, float, float]]


def scene_of(environment: GymnasiumEnvironment) -> Scene | None:
    """Return how an environment is drawn here, None if Gymnasium is to draw it.

    A wrapper may draw something else.
    """
    return None if environment.wrappers else _SCENES.get(environment.id)


class Artist:
    """Draws the pictures of one episode."""

    def __init__(self, scene: Scene):
        """Begin without a picture."""
        self._scene = scene
        self._surface = None

    def draw(self, env) -> tuple[np.ndarray, Box]:
        """Return what `env.render()` draws, and the box outside of which nothing has changed.

        env: an instance, without its wrappers. The picture, (H, W, 3) uint8, is a view of what the
        next call draws over.
        """
        import pygame

        if self._surface is None:
            width, height = _size(env)
            memory = np.empty((height, width, 4), np.uint8)
            self._surface = pygame.image.frombuffer(memory, (width, height), "RGBX")
            self._picture = memory[::-1, :, :3]
            self._moving = changed = self._surface.get_rect()
        else:
            changed = self._moving
        self._surface.fill(_WHITE, self._moving)
        left, top, right, bottom = self._scene(self._surface, env)
        corner = int(left) - _EDGE, int(top) - _EDGE
        size = int(right) + _EDGE + 1 - corner[0], int(bottom) + _EDGE + 1 - corner[1]
        whole = self._surface.get_rect()
        self._moving = pygame.Rect(corner, size).clip(whole)
        changed = changed.union(self._moving) if self._moving.size != (0, 0) else changed
        upper = whole.height - changed.bottom
        return self._picture, Box(upper, changed.left, upper + changed.height, changed.right)


def _size(env) -> tuple[int, int]:
    """Return width and height of an environment's pictures."""
    if hasattr(env, "screen_width"):
        return env.screen_width, env.screen_height
    side = env.SCREEN_DIM if hasattr(env, "SCREEN_DIM") else env.screen_dim
    return side, side


def _bar(surface, corners: Iterable, angle: float, at: tuple, colour: tuple) -> list:
    """Draw a polygon that is turned by an angle, then moved; return its corners."""
    import pygame
    from pygame import gfxdraw

    turned = (pygame.math.Vector2(corner).rotate_rad(angle) for corner in corners)
    points = [(corner[0] + at[0], corner[1] + at[1]) for corner in turned]
    gfxdraw.aapolygon(surface, points, colour)
    gfxdraw.filled_polygon(surface, points, colour)
    return points


def _disc(surface, x: float, y: float, radius: float, colour: tuple) -> list:
    """Draw a disc; return two corners of the square around it."""
    from pygame import gfxdraw

    x, y, radius = int(x), int(y), int(radius)
    gfxdraw.aacircle(surface, x, y, radius, colour)
    gfxdraw.filled_circle(surface, x, y, radius, colour)
    return [(x - radius, y - radius), (x + radius, y + radius)]


def _around(points: list) -> tuple[float, float, float, float]:
    across, down = zip(*points, strict=True)
    return min(across), min(down), max(across), max(down)


def _cartpole(surface, env) -> tuple[float, float, float, float]:
    from pygame import gfxdraw

    width = env.screen_width
    scale = width / (env.x_threshold * 2)
    at, ground = env.state[0] * scale + width / 2.0, 100
    cart = [(-25.0, -15.0), (-25.0, 15.0), (25.0, 15.0), (25.0, -15.0)]
    points = [(x + at, y + ground) for x, y in cart]
    gfxdraw.aapolygon(surface, points, _BLACK)
    gfxdraw.filled_polygon(surface, points, _BLACK)
    axle = ground + 30.0 / 4.0
    end = scale * (2 * env.length) - 5.0
    pole = [(-5.0, -5.0), (-5.0, end), (5.0, end), (5.0, -5.0)]
    points += _bar(surface, pole, -env.state[2], (at, axle), (202, 152, 101))
    points += _disc(surface, at, axle, 5, (129, 132, 203))
    gfxdraw.hline(surface, 0, width, ground, _BLACK)
    return _around(points)


def _acrobot(surface, env) -> tuple[float, float, float, float]:
    import pygame

    upper, lower = env.LINK_LENGTH_1, env.LINK_LENGTH_2
    bound, offset = upper + lower + 0.2, env.SCREEN_DIM / 2
    scale, thick = env.SCREEN_DIM / (bound * 2), 0.1
    first, second = env.state[0], env.state[0] + env.state[1]
    goal = 1 * scale + offset
    pygame.draw.line(
        surface,
        start_pos=(-2.2 * scale + offset, goal),
        end_pos=(2.2 * scale + offset, goal),
        color=_BLACK,
    )
    elbow = upper * np.sin(env.state[0]) * scale, -upper * np.cos(env.state[0]) * scale
    points = []
    links = ((0.0, 0.0), first, upper), (elbow, second, lower)
    for (x, y), angle, length in links:
        left, right, half = 0, length * scale, thick * scale
        link = [(left, -half), (left, half), (right, half), (right, -half)]
        at = x + offset, y + offset
        points += _bar(surface, link, angle - np.pi / 2, at, (0, 204, 204))
        points += _disc(surface, *at, half, (204, 204, 0))
    return _around(points)


def _pendulum(surface, env) -> tuple[float, float, float, float]:
    import pygame

    scale, offset, red = env.screen_dim / (2.2 * 2), env.screen_dim // 2, (204, 77, 77)
    length, half = 1 * scale, 0.2 * scale / 2
    angle, middle = env.state[0] + np.pi / 2, (offset, offset)
    rod = [(0, -half), (0, half), (length, half), (length, -half)]
    points = _bar(surface, rod, angle, middle, red)
    points += _disc(surface, offset, offset, half, red)
    end = pygame.math.Vector2((length, 0)).rotate_rad(angle)
    points += _disc(surface, int(end[0] + offset), int(end[1] + offset), half, red)
    if env.last_u is not None:
        side = float(scale * np.abs(env.last_u) / 2)
        arrow = pygame.transform.smoothscale(_arrow(), (side, side))
        arrow = pygame.transform.flip(arrow, bool(env.last_u > 0), True)
        left, top = offset - arrow.get_rect().centerx, offset - arrow.get_rect().centery
        surface.blit(arrow, (left, top))
        points += [(left, top), (left + arrow.get_width(), top + arrow.get_height())]
    _disc(surface, offset, offset, 0.05 * scale, _BLACK)
    return _around(points)


@cache
def _arrow():
    """Return Gymnasium's picture of a torque."""
    import pygame
    from gymnasium.envs.classic_control import pendulum

    return pygame.image.load(Path(pendulum.__file__).parent / "assets" / "clockwise.png")


_SCENES: dict[str, Scene] = {
    "CartPole-v0": _cartpole,
    "CartPole-v1": _cartpole,
    "Acrobot-v1": _acrobot,
    "Pendulum-v1": _pendulum,
}
