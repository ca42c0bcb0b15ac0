"""LunarLander's pictures, by its renderer's pygame calls, drawn and read where they change.

Source: `render` in gymnasium/envs/box2d/lunar_lander.py (1.4.0), which draws the ground anew for
each picture, on a new surface that it turns, copies and reads in whole. Here the ground of an
episode is drawn once, upside down as the renderer draws it, and mended where something moved.
"""

from collections.abc import Callable

import numpy as np

_SIZE = 400, 600  # height and width
_SCALE = 30.0  # pixels of a metre
_EDGE = 2  # pixels that antialiasing reaches beyond a shape's corners
_BLACK, _WHITE, _YELLOW = (0, 0, 0), (255, 255, 255), (204, 204, 0)


def is_lunar_lander(env) -> bool:
    """Tell whether an instance is Gymnasium's own."""
    kind = type(env)
    return (kind.__module__, kind.__name__) == ("gymnasium.envs.box2d.lunar_lander", "LunarLander")


class LunarLanderScene:
    """The pictures of one episode, as the numbers of their squares."""

    size = _SIZE

    def __init__(self, env, side: int, numbers_of: Callable[[np.ndarray], list[int]]):
        """Draw the ground.

        Args:
            env: the instance, reset.
            side: of the squares, in pixels.
            numbers_of: returns the numbers of squares, (n, side, side) uint32 of red, green, blue
                and nothing.
        """
        import pygame
        from pygame import gfxdraw

        self.ground = env.sky_polys  # by which an episode is known
        self._side, self._numbers_of = side, numbers_of
        height, width = _SIZE
        rows, columns = -(-height // side), -(-width // side)
        # Whole squares, upside down as the surface is: below it, as SDL sees it, there is a margin.
        memory = np.zeros((rows * side, columns * side), np.uint32)
        whole = pygame.image.frombuffer(memory, memory.shape[::-1], "RGBX")
        self._surface = whole.subsurface((0, len(memory) - height, width, height))
        self._picture = memory[::-1]
        self._squares = self._picture.reshape(rows, side, columns, side).swapaxes(1, 2)
        self._surface.fill(_WHITE)
        for polygon in env.sky_polys:
            points = [(x * _SCALE, y * _SCALE) for x, y in polygon]
            pygame.draw.polygon(self._surface, _BLACK, points)
            gfxdraw.aapolygon(self._surface, points, _BLACK)
        self._fill_margin()
        self._under = self._surface.copy()
        self._before = self._picture.copy()  # the picture that was told last
        self._numbers = np.array(numbers_of(self._squares.reshape(-1, side, side)))
        left, top = int(env.helipad_x1 * _SCALE), int(env.helipad_y * _SCALE)
        right = int(env.helipad_x2 * _SCALE) + 25
        self._flags = _clipped(left, right, top, top + 50)
        self._moved = self._flags  # where the picture differs from the ground

    def numbers(self, env) -> np.ndarray:
        """Return the numbers of the squares of what `env.render()` would draw now, (squares,).

        What only drawing moves is moved: the particles age.
        """
        _age(env)
        for box in (self._moved, self._flags):
            self._surface.blit(self._under, box, box)
        across, down = zip(*_paint(self._surface, env), strict=True)
        moved = _clipped(min(across), max(across), min(down), max(down))
        self._fill_margin()
        boxes = [box for box in (self._moved, moved, self._flags) if box]
        places = np.concatenate([self._changed(box) for box in boxes])
        self._moved, self._numbers = moved, self._numbers.copy()
        if len(places):
            row, column = np.divmod(places, self._squares.shape[1])
            self._numbers[places] = self._numbers_of(self._squares[row, column])
        return self._numbers

    def _changed(self, box) -> np.ndarray:
        """Return the places of a box that changed since they were told; they are told now."""
        side, columns = self._side, self._squares.shape[1]
        height = _SIZE[0]
        row, column = (height - box.bottom) // side, box.left // side
        rows, end = -(-(height - box.top) // side) - row, -(-box.right // side)
        part = np.s_[row * side : (row + rows) * side, column * side : end * side]
        now, before = self._picture[part], self._before[part]
        unequal = (now != before).reshape(rows, side, end - column, side).any(axis=1)
        # A reduction over few truth values takes long.
        found = np.flatnonzero(unequal.view(f"u{side // 2}").any(axis=2))
        before[:] = now
        r, c = np.divmod(found, end - column)
        return (row + r) * columns + column + c

    def _fill_margin(self) -> None:
        """Repeat the picture's last column up to the end of its square; rows fill theirs."""
        width = _SIZE[1]
        self._picture[:, width:] = self._picture[:, width - 1 : width]


def _clipped(left: float, right: float, top: float, bottom: float):
    """Return the box of the picture in which something is drawn."""
    import pygame

    left, top = int(left) - _EDGE, int(top) - _EDGE
    box = pygame.Rect(left, top, int(right) + 2 * _EDGE - left, int(bottom) + 2 * _EDGE - top)
    return box.clip(pygame.Rect(0, 0, *_SIZE[::-1]))


def _age(env) -> None:
    """Have the particles fade, as `render` does."""
    for particle in env.particles:
        particle.ttl -= 0.15
        bright = int(max(0.2, 0.15 + particle.ttl) * 255)
        dim = int(max(0.2, 0.5 * particle.ttl) * 255)
        particle.color1 = particle.color2 = (bright, dim, dim)
    env._clean_particles(False)


def _paint(surface, env) -> list[tuple[float, float]]:
    """Draw all that moves, and the flags; return the points that the former spans."""
    from pygame import draw, gfxdraw

    foot, flags = env.helipad_y * _SCALE, []
    top = foot + 50
    for x in (env.helipad_x1 * _SCALE, env.helipad_x2 * _SCALE):
        flags.append(((x, foot), (x, top), [(x, top), (x, top - 10), (x + 25, top - 5)]))
    spanned: list[tuple[float, float]] = []
    for thing in env.particles + env.drawlist:
        for fixture in thing.fixtures:
            place, shape = fixture.body.transform, fixture.shape
            if not hasattr(shape, "pos"):  # which circles have
                points = [tuple(place * vertex * _SCALE) for vertex in shape.vertices]
                draw.polygon(surface, thing.color1, points)
                gfxdraw.aapolygon(surface, points, thing.color1)
                draw.aalines(surface, thing.color2, True, points)
                spanned += points
            else:
                (x, y), radius = place * shape.pos * _SCALE, shape.radius * _SCALE
                for colour in (thing.color1, thing.color2):
                    draw.circle(surface, colour, (x, y), radius)
                spanned += [(x - radius, y - radius), (x + radius, y + radius)]
            for low, high, cloth in flags:  # each time: their borders get denser
                draw.line(surface, _WHITE, low, high, 1)
                draw.polygon(surface, _YELLOW, cloth)
                gfxdraw.aapolygon(surface, cloth, _YELLOW)
    return spanned
