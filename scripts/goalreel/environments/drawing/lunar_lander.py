"""Render LunarLander's frames by the pygame calls of its renderer, but only where they change.

Source: `render` in gymnasium/envs/box2d/lunar_lander.py (1.4.0).
"""

from goalreel.environments.drawing.block_store import BlockFrame, BlockStore
from goalreel.environments.drawing.frame_surface import FrameSurface

_SCALE = 30.0  # pixels per meter
_BLACK, _WHITE, _YELLOW = (0, 0, 0), (255, 255, 255), (204, 204, 0)


class LunarLanderScene:
    """Renders the frames of one episode, from its reset on."""

    def __init__(self, env):
        from pygame import draw, gfxdraw

        self.ground = env.sky_polys  # identifies the episode
        self._canvas = FrameSurface((400, 600))
        for polygon in env.sky_polys:
            points = [(x * _SCALE, y * _SCALE) for x, y in polygon]
            draw.polygon(self._canvas.surface, _BLACK, points)
            gfxdraw.aapolygon(self._canvas.surface, points, _BLACK)
        self._canvas.set_background()
        foot = env.helipad_y * _SCALE
        poles = [x * _SCALE for x in (env.helipad_x1, env.helipad_x2)]
        self._flags = self._canvas.box([(poles[0], foot), (poles[1] + 25, foot + 50)])

    def frame(self, env, store: BlockStore) -> BlockFrame:
        """Return the frame of `env.render()`, and change the particles as that does."""
        fade_particles(env)
        moved = self._canvas.box(_paint(self._canvas.surface, env))
        return self._canvas.frame(store, [moved, self._flags])


def fade_particles(env) -> None:
    """Fade the particles, as `render` does."""
    for particle in env.particles:
        particle.ttl -= 0.15
        bright = int(max(0.2, 0.15 + particle.ttl) * 255)
        dim = int(max(0.2, 0.5 * particle.ttl) * 255)
        particle.color1 = particle.color2 = (bright, dim, dim)
    env._clean_particles(False)


def _paint(surface, env) -> list[tuple[float, float]]:
    """Draw everything that moves, and the flags; return the points of what moves."""
    from pygame import draw, gfxdraw

    foot, flags = env.helipad_y * _SCALE, []
    top = foot + 50
    for x in (env.helipad_x1 * _SCALE, env.helipad_x2 * _SCALE):
        flags.append(((x, foot), (x, top), [(x, top), (x, top - 10), (x + 25, top - 5)]))
    spanned: list[tuple[float, float]] = []
    for drawable in env.particles + env.drawlist:
        for fixture in drawable.fixtures:
            place, shape = fixture.body.transform, fixture.shape
            if not hasattr(shape, "pos"):  # circles have it
                points = [tuple(place * vertex * _SCALE) for vertex in shape.vertices]
                draw.polygon(surface, drawable.color1, points)
                gfxdraw.aapolygon(surface, points, drawable.color1)
                draw.aalines(surface, drawable.color2, True, points)
                spanned += points
            else:
                (x, y), radius = place * shape.pos * _SCALE, shape.radius * _SCALE
                for color in (drawable.color1, drawable.color2):
                    draw.circle(surface, color, (x, y), radius)
                spanned += [(x - radius, y - radius), (x + radius, y + radius)]
            for low, high, cloth in flags:  # again and again, as `render` darkens their edges
                draw.line(surface, _WHITE, low, high, 1)
                draw.polygon(surface, _YELLOW, cloth)
                gfxdraw.aapolygon(surface, cloth, _YELLOW)
    return spanned
