"""Render BipedalWalker's frames by the pygame calls of its renderer, but the ground only once.

The ground does not move in the pixels of the world, so it is drawn when it first appears, and
copied. Near the right border of a frame it is drawn again, because SDL_gfx cuts lines there and so
bends them. Source: `render` in gymnasium/envs/box2d/bipedal_walker.py (1.4.0).
"""

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from goalreel.environments.drawing.block_store import BlockFrame, BlockReader, BlockStore
from goalreel.environments.drawing.frame_surface import new_image

_SCALE = 30.0  # pixels per meter
_WIDTH, _HEIGHT = 600, 400  # pixels of a frame
_STEP = 14  # pixels of a piece of ground
_FOOT = _HEIGHT / 4  # of the flag
_SKY, _CLOTH = (215, 215, 255), (230, 51, 0)
_WHITE, _RED, _BLACK = (255, 255, 255), (255, 0, 0), (0, 0, 0)
_CUT = 4  # pieces of ground before the right border that it may bend
_WIDEST = 10  # more pieces than anything on the ground covers
_AHEAD = 40  # pieces to draw at a time
_MAX_KEPT = 1 << 13  # blocks in memory, 6 MB


class BipedalWalkerScene:
    """Renders the frames of one episode, from its reset on."""

    def __init__(self, env):
        self.ground = env.terrain_poly  # identifies the episode
        scaled = ([(x * _SCALE, y * _SCALE) for x, y in points] for points, _ in self.ground)
        self._pieces = [*zip(scaled, (color for _, color in self.ground), strict=True)]
        (*_, (last, _)) = self._pieces
        self._columns = [int(points[0][0]) for points, _ in self._pieces] + [int(last[1][0])]
        # Obstacles, and the lines between pieces of ground, which cover a lidar.
        self._things = [(_points(f), body) for body in env.terrain for f in body.fixtures]
        spans = [np.transpose(points) for points, _ in self._things]
        self._starts, self._ends = (np.array([end(x) for x, _ in spans]) for end in (min, max))
        self._tops = np.array([max(y) for _, y in spans])
        self._num_drawn = 0  # pieces
        shape = _HEIGHT, self._columns[-1] + 2 * _WIDTH
        images = [new_image(shape) for _ in range(3)]
        (self._pixels, self._image), (_, self._bare), (_, self._full) = images
        self._reader = BlockReader(BlockStore(), channels=4, limit=_MAX_KEPT)

    def frame(self, env) -> BlockFrame | None:
        """Return and count the frame of `env.render()`; None if clouds may be behind anything."""
        from pygame import draw

        image, width = self._image, int(_WIDTH + max(env.scroll, 0.0) * _SCALE)
        left, last = width - _WIDTH, bisect_left(self._columns, width, hi=len(self._pieces)) - 1
        is_visible = (self._ends >= left - 2) & (self._starts <= width + 2)
        top = max(self._tops[is_visible].max(), env.hull.position.y * _SCALE)
        clouds = list(_visible_clouds(env))
        if any(y < top + 3 for cloud in clouds for _, y in cloud):
            return None
        self._extend(last + _WIDEST)
        lidar = next_lidar(env)
        image.set_clip((0, 0, width, _HEIGHT))
        bent = self._columns[max(last - 2 * _CUT, 0)]
        copies = not lidar and env.scroll >= 0
        first = max(bent, left) if copies else left
        if env.scroll >= 0:
            _copy(self._bare, image, first, self._columns[last - 1])
            self._draw_ground(image, last - 1, last + 1, width)
        else:  # the sky and the ground end before the right border
            start, end = env.scroll * _SCALE, env.scroll * _SCALE + _WIDTH
            corners = [(start, 0), (end, 0), (end, _HEIGHT), (start, _HEIGHT)]
            image.fill(_BLACK)
            draw.polygon(image, _SKY, corners)
            self._draw_pieces(image, 0, sum(points[0][0] <= end for points, _ in self._pieces))
        if lidar:
            points = [(x * _SCALE, y * _SCALE) for x, y in (lidar.p1, lidar.p2)]
            draw.line(image, _RED, *points, 1)
        self._draw_things(image, is_visible & (self._ends >= (bent if copies else left) - 2))
        if copies:
            _copy(self._full, image, left, self._columns[max(last - _CUT, 0)])
        for cloud in clouds:
            _draw_polygon(image, cloud, _WHITE)
        for body in [*env.legs, env.hull]:
            for fixture in body.fixtures:
                _draw_thing(image, _points(fixture), body)
        _draw_flag(image)
        return self._reader.read(self._pixels[::-1, left:width])

    def _extend(self, stop: int) -> None:
        """Draw the ground up to a piece, and some more, without and with the things on it."""
        done, count = self._num_drawn, len(self._pieces)
        if done >= min(stop, count):
            return
        self._num_drawn = min(stop + _AHEAD, count)
        end, width = self._columns[self._num_drawn], _WIDEST * _STEP
        self._draw_ground(self._bare, done, self._num_drawn, end + 2)
        # Things overlap in the order of drawing, so the latest ones are drawn again.
        first = self._columns[max(done - _WIDEST, 0)]
        before = self._full.subsurface((max(first - width, 0), 0, min(first, width), _HEIGHT))
        before, place = before.copy(), before.get_offset()
        _copy(self._bare, self._full, first, end)
        self._draw_things(self._full, (self._ends >= first - 2) & (self._starts <= end))
        self._full.blit(before, place)

    def _draw_ground(self, image, first: int, stop: int, width: int) -> None:
        """Draw some pieces of ground, and the sky from the first one to a column."""
        image.fill(_SKY, (self._columns[first], 0, width - self._columns[first], _HEIGHT))
        self._draw_pieces(image, first, stop)

    def _draw_pieces(self, image, first: int, stop: int) -> None:
        for points, color in self._pieces[first:stop]:
            _draw_polygon(image, points, color)

    def _draw_things(self, image, chosen: np.ndarray) -> None:
        for place in np.flatnonzero(chosen).tolist():
            _draw_thing(image, *self._things[place])


def _points(fixture) -> list[tuple[float, float]]:
    """Return the corners of a shape, in pixels."""
    place = fixture.body.transform
    return [tuple(place * vertex * _SCALE) for vertex in fixture.shape.vertices]


def _copy(source, target, left: int, right: int) -> None:
    """Copy columns of an image."""
    if left < right:
        target.blit(source, (left, 0), (left, 0, right - left, _HEIGHT))


def _draw_polygon(image, points: list, color: tuple) -> None:
    from pygame import draw, gfxdraw

    draw.polygon(image, color, points)
    gfxdraw.aapolygon(image, points, color)


def _draw_thing(image, points: list, body) -> None:
    """Draw a polygon with its border, or a line of two points."""
    from pygame import draw, gfxdraw

    if len(points) == 2:
        draw.aaline(image, body.color1, *points)
        return
    _draw_polygon(image, points, body.color1)
    closed = [*points, points[0]]
    draw.polygon(image, body.color2, closed, 1)
    gfxdraw.aapolygon(image, closed, body.color2)


def _draw_flag(image) -> None:
    from pygame import draw

    x, top = 3 * _STEP, _FOOT + 50
    draw.aaline(image, _BLACK, (x, _FOOT), (x, top))
    cloth = [(x, top), (x, top - 10), (x + 25, top - 5)]
    draw.polygon(image, _CLOTH, cloth)
    draw.lines(image, _BLACK, False, [*cloth, cloth[0]], 1)


def _visible_clouds(env) -> Iterator[list[tuple[float, float]]]:
    """Yield the corners of each cloud, in pixels. Clouds pass at half the speed."""
    far = env.scroll / 2
    for cloud, start, end in env.cloud_poly:
        if end >= far and start <= far + _WIDTH / _SCALE:
            yield [(x * _SCALE + env.scroll * _SCALE / 2, y * _SCALE) for x, y in cloud]


def next_lidar(env) -> object | None:
    """Return the lidar that the next frame shows, if any, and count the frame."""
    env.lidar_render = (env.lidar_render + 1) % 100
    place, count = env.lidar_render, len(env.lidar)
    if place >= 2 * count:
        return None
    lidar = env.lidar[place if place < count else count - place - 1]
    return lidar if hasattr(lidar, "p1") and hasattr(lidar, "p2") else None
