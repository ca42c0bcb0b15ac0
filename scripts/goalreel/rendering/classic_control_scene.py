"""Render CartPole, Acrobot and Pendulum from recorded states, pixel for pixel like `env.render()`.

The integers that the renderers pass to pygame are the frame's plan. `ClassicControlScene` draws
each plan once, by the same pygame calls in the same order.
Source: `render` in gymnasium/envs/classic_control/{cartpole,acrobot,pendulum}.py (1.4.0).
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from goalreel.environments.classic_control import ClassicControl, torques
from goalreel.environments.drawing.block_store import BlockFrame, BlockStore
from goalreel.environments.drawing.frame_surface import FrameSurface
from goalreel.simulation.episodes import Episode

_BLACK = (0, 0, 0)
_MAX_PLANS, _MAX_BLOCKS = 1 << 13, 1 << 15  # plans and blocks in memory, 30 and 25 MB

# Everything that moves: x and y of corners and centers, an arrow's size and direction.
Plan = tuple[int, ...]


class ClassicControlScene:
    """Renders the episodes of a shard."""

    def __init__(self, environment: ClassicControl):
        self._plan, self._paint, size = _SCENES[environment.id]
        self._reset_dtype = environment.rules.reset_dtype
        self._surface = FrameSurface(size)
        self._paint(self._surface, None)
        self._surface.set_background()
        self._clear()

    def _clear(self) -> None:
        self._store, self._frames = BlockStore(), dict[Plan, BlockFrame]()

    def frames(self, episode: Episode) -> Iterator[BlockFrame]:
        """Yield the frames of `env.render()` at the reset and after each step."""
        states: list[Sequence[float]] = list(map(tuple, episode.states.tolist()))
        states[0] = tuple(episode.states[0].astype(self._reset_dtype))
        applied = torques(episode.actions) if episode.actions.ndim == 2 else [None] * len(states)
        for state, torque in zip(states, [None, *applied], strict=False):
            plan = self._plan(state, torque)
            if plan not in self._frames:
                if len(self._frames) > _MAX_PLANS or len(self._store) > _MAX_BLOCKS:
                    self._clear()
                box = self._surface.box(self._paint(self._surface, plan))
                self._frames[plan] = self._surface.frame(self._store, [box])
            yield self._frames[plan]


@cache
def _corners(left: float, right: float, top: float, bottom: float) -> tuple:
    """Return the corners of a bar in the order of Gymnasium's renderer."""
    import pygame

    corners = (left, bottom), (left, top), (right, top), (right, bottom)
    return tuple(map(pygame.math.Vector2, corners))


def _rotate(corners: tuple, angle: float, x: float, y: float) -> Plan:
    """Return the pixels of a bar that is rotated by `angle`, then moved by x and y."""
    plan = []
    for corner in corners:
        rotated = corner.rotate_rad(angle)
        plan += int(rotated[0] + x), int(rotated[1] + y)
    return tuple(plan)


def _bar(canvas: FrameSurface, plan: Plan, color: tuple) -> list[tuple[int, int]]:
    return canvas.polygon(list(zip(plan[::2], plan[1::2], strict=True)), color)


def _plan_cartpole(state: Sequence[float], _: None) -> Plan:
    x, _, theta, _ = state
    scale = 600 / (2.4 * 2)
    at = x * scale + 300.0
    pole = _corners(-5.0, 5.0, scale - 5.0, -5.0)
    return int(-25.0 + at), int(25.0 + at), int(at), *_rotate(pole, -theta, at, 107.5)


def _paint_cartpole(canvas: FrameSurface, plan: Plan | None) -> list[tuple[int, int]]:
    from pygame import gfxdraw

    points = []
    if plan is not None:
        left, right, middle, *pole = plan
        points += _bar(canvas, (left, 85, left, 115, right, 115, right, 85), _BLACK)
        points += _bar(canvas, pole, (202, 152, 101))
        points += canvas.disc(middle, 107, 5, (129, 132, 203))
    gfxdraw.hline(canvas.surface, 0, 600, 100, _BLACK)
    return points


_METER = 500 / (2.2 * 2)  # pixels, in Acrobot and Pendulum
_THICK = 0.1 * _METER


def _plan_acrobot(state: Sequence[float], _: None) -> Plan:
    first, second = state[0], state[0] + state[1]
    link = _corners(0, _METER, _THICK, -_THICK)
    # Gymnasium puts these into an array with integers, which makes them float64.
    x = float(1.0 * np.sin(first) * _METER) + 250.0
    y = float(-1.0 * np.cos(first) * _METER) + 250.0
    upper = _rotate(link, first - np.pi / 2, 250.0, 250.0)
    return int(x), int(y), *upper, *_rotate(link, second - np.pi / 2, x, y)


def _paint_acrobot(canvas: FrameSurface, plan: Plan | None) -> list[tuple[int, int]]:
    import pygame

    if plan is None:
        goal = 1 * _METER + 250.0
        ends = (-2.2 * _METER + 250.0, goal), (2.2 * _METER + 250.0, goal)
        pygame.draw.line(canvas.surface, _BLACK, *ends)
        return []
    points, radius = [], int(_THICK)
    for x, y, *link in ((250, 250, *plan[2:10]), (*plan[:2], *plan[10:])):
        points += _bar(canvas, link, (0, 204, 204))
        points += canvas.disc(x, y, radius, (204, 204, 0))
    return points


_ROD = 0.2 * _METER / 2


def _plan_pendulum(state: Sequence[float], torque: np.float32 | None) -> Plan:
    angle = state[0] + np.pi / 2
    rod = _rotate(_corners(0, _METER, _ROD, -_ROD), angle, 250, 250)
    end = _rotate(_corners(_METER, 0, 0, 0)[:1], angle, 250, 250)
    arrow = (-1, 0) if torque is None else (int(_METER * np.abs(torque) / 2), int(torque > 0))
    return *end, *arrow, *rod


def _paint_pendulum(canvas: FrameSurface, plan: Plan | None) -> list[tuple[int, int]]:
    import pygame

    if plan is None:
        return []
    x, y, side, flipped, *rod = plan
    red, radius = (204, 77, 77), int(_ROD)
    points = _bar(canvas, rod, red)
    points += canvas.disc(250, 250, radius, red)
    points += canvas.disc(x, y, radius, red)
    if side >= 0:
        arrow = pygame.transform.smoothscale(_arrow(), (side, side))
        arrow = pygame.transform.flip(arrow, bool(flipped), True)
        left, top = 250 - arrow.get_rect().centerx, 250 - arrow.get_rect().centery
        canvas.surface.blit(arrow, (left, top))
        points += [(left, top), (left + side, top + side)]
    canvas.disc(250, 250, int(0.05 * _METER), _BLACK)
    return points


@cache
def _arrow():
    """Return Gymnasium's image of a torque."""
    import pygame
    from gymnasium.envs.classic_control import pendulum

    return pygame.image.load(Path(pendulum.__file__).parent / "assets" / "clockwise.png")


_CARTPOLE = _plan_cartpole, _paint_cartpole, (400, 600)
# For each environment, a function that makes a plan, one that draws it, and the height and width.
# A plan is made of a state and the torque that led to it, None at the reset. Drawing returns the
# points that the plan spans, and draws the background for None.
_SCENES = {
    "CartPole-v0": _CARTPOLE,
    "CartPole-v1": _CARTPOLE,
    "Acrobot-v1": (_plan_acrobot, _paint_acrobot, (500, 500)),
    "Pendulum-v1": (_plan_pendulum, _paint_pendulum, (500, 500)),
}
