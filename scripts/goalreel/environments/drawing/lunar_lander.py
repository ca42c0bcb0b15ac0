"""LunarLander's frames, by its renderer's pygame calls, drawn and read where they change.

Source: `render` in gymnasium/envs/box2d/lunar_lander.py (1.4.0).
"""

from goalreel.environments.drawing.block_store import BlockFrame, BlockStore
from goalreel.environments.drawing.kept_surface import KeptSurface

_SCALE = 30.0  # pixels of a metre
_BLACK, _WHITE, _YELLOW = (0, 0, 0), (255, 255, 255), (204, 204, 0)


class LunarLanderScene:
    """The frames of one episode."""

    def __init__(self, env):
        """Draw the ground of an instance that is reset."""
        from pygame import draw, gfxdraw

        self.ground = env.sky_polys  # by which an episode is known
        self._kept = KeptSurface((400, 600))
        for polygon in env.sky_polys:
            points = [(x * _SCALE, y * _SCALE) for x, y in polygon]
            draw.polygon(self._kept.surface, _BLACK, points)
            gfxdraw.aapolygon(self._kept.surface, points, _BLACK)
        self._kept.set_background()
        foot = env.helipad_y * _SCALE
        poles = [x * _SCALE for x in (env.helipad_x1, env.helipad_x2)]
        self._flags = self._kept.box([(poles[0], foot), (poles[1] + 25, foot + 50)])

    def frame(self, env, store: BlockStore) -> BlockFrame:
        """Return what `env.render()` would draw now. What only drawing moves is moved."""
        _age(env)
        moved = self._kept.box(_paint(self._kept.surface, env))
        return self._kept.frame(store, [moved, self._flags])


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
