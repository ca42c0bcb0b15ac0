"""Render BipedalWalker's frames by the pygame calls of its renderer, but the ground only once.

The ground does not move in the pixels of the world, so it is drawn when an episode starts, and
copied. Near the right border of a frame it is drawn again, because SDL_gfx cuts lines there and so
bends them. Source: `render` in gymnasium/envs/box2d/bipedal_walker.py (1.4.0).
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import numpy as np

from goalreel.environments.drawing.block_store import BlockFrame, BlockReader, BlockStore
from goalreel.environments.drawing.frame_surface import new_image

_SCALE = 30.0  # pixels per meter
_WIDTH, _HEIGHT = 600, 400  # pixels of a frame
_SKY, _CLOTH = (215, 215, 255), (230, 51, 0)
_WHITE, _RED, _BLACK = (255, 255, 255), (255, 0, 0), (0, 0, 0)
_POLE, _FLAG = [(42, 100), (42, 150)], [(42, 150), (42, 140), (67, 145), (42, 150)]
_BENT = 5  # pieces of ground before the right border, more than anything on it covers
_MAX_KEPT = 1 << 13  # blocks in memory, 6 MB


class BipedalWalkerScene:
    """Renders the frames of one episode, from its reset on."""

    def __init__(self, env):
        self.ground = env.terrain_poly  # identifies the episode
        self._lefts = [points[0][0] for points, _ in self.ground]  # of pieces, in meters
        self._pieces = [(_to_pixels(points), color, None) for points, color in self.ground]
        # Obstacles, and the lines between pieces of ground, which cover a lidar.
        self._things = list(_shapes(env.terrain))
        axes = (zip(*points, strict=True) for points, *_ in self._things)
        spans = [(min(x), max(x), max(y)) for x, y in axes]
        self._starts, self._ends, self._tops = np.transpose(spans)
        shape = _HEIGHT, int(self._lefts[-1] * _SCALE) + 2 * _WIDTH
        (self._pixels, self._image), (_, self._world) = new_image(shape), new_image(shape)
        self._world.fill(_SKY)
        _draw(self._world, self._pieces + self._things)
        self._reader = BlockReader(BlockStore(), channels=4, limit=_MAX_KEPT)

    def frame(self, env) -> BlockFrame | None:
        """Return and count the frame of `env.render()`; None if clouds may be behind anything."""
        from pygame import draw

        image, reach = self._image, _WIDTH / _SCALE
        end = int(_WIDTH + env.scroll * _SCALE)  # of the sky and of the ground
        width = max(end, _WIDTH)
        left = width - _WIDTH
        is_visible = (self._ends >= left - 2) & (self._starts <= width + 2)
        top = max(self._tops[is_visible].max(), env.hull.position.y * _SCALE)
        far = env.scroll / 2  # clouds pass at half the speed
        clouds = [
            ([(x * _SCALE + env.scroll * _SCALE / 2, y * _SCALE) for x, y in cloud], _WHITE, None)
            for cloud, first, last in env.cloud_poly
            if last >= far and first <= far + reach
        ]
        if any(y < top + 3 for cloud, *_ in clouds for _, y in cloud):
            return None
        lidar = next_lidar(env)
        stop = bisect_right(self._lefts, env.scroll + reach)
        copied = bisect_right(self._lefts, lidar.p1[0]) if lidar else stop
        copied = max(copied - _BENT, 0)
        first = max(copied - 1, 0)  # since the edge of a piece may reach over the next one
        start, bent = (int(self._lefts[piece] * _SCALE) for piece in (first, copied))
        image.set_clip((0, 0, width, _HEIGHT))
        image.fill(_SKY, (start, 0, end + 1 - start, _HEIGHT))
        image.fill(_BLACK, (end + 1, 0, _WIDTH, _HEIGHT))
        _draw(image, self._pieces[first:stop])
        if lidar:
            draw.line(image, _RED, *_to_pixels([lidar.p1, lidar.p2]), 1)
        things = np.flatnonzero(is_visible & (self._ends >= start - 2)).tolist()
        _draw(image, [self._things[place] for place in things])
        image.blit(self._world, (left, 0), (left, 0, bent - left, _HEIGHT))
        _draw(image, [*clouds, *_shapes([*env.legs, env.hull])])
        draw.aaline(image, _BLACK, *_POLE)
        draw.polygon(image, _CLOTH, _FLAG[:3])
        draw.lines(image, _BLACK, False, _FLAG, 1)
        return self._reader.read(self._pixels[::-1, left:width])


def next_lidar(env) -> object | None:
    """Return the lidar that the next frame shows, if any, and count the frame."""
    env.lidar_render = (env.lidar_render + 1) % 100
    shown = [*env.lidar, *reversed(env.lidar)][env.lidar_render :]
    return shown[0] if shown and hasattr(shown[0], "p2") else None  # if it hits anything


def _to_pixels(points: Iterable) -> list[tuple[float, float]]:
    return [(x * _SCALE, y * _SCALE) for x, y in points]


def _shapes(bodies: list) -> Iterator[tuple]:
    """Yield the corners of each part of bodies, in pixels, its color and that of its border."""
    for body in bodies:
        place = body.transform
        for fixture in body.fixtures:
            points = [tuple(place * vertex * _SCALE) for vertex in fixture.shape.vertices]
            yield points, body.color1, body.color2


def _draw(image, shapes: list[tuple]) -> None:
    """Draw polygons, and borders that have a color; draw lines of two points."""
    from pygame import draw, gfxdraw

    for points, color, border in shapes:
        if len(points) == 2:
            draw.aaline(image, color, *points)
            continue
        draw.polygon(image, color, points)
        gfxdraw.aapolygon(image, points, color)
        if border:
            closed = [*points, points[0]]
            draw.polygon(image, border, closed, 1)
            gfxdraw.aapolygon(image, closed, border)
