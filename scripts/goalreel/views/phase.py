"""The phase plane: position against velocity, the trajectories of a run drawn as they grow.

Where a state stands on the picture, and what stands around the plane, is told in axes; how the
run's shards are read, in views.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.simulation.trajectories import read_summary
from goalreel.views.axes import SIZE, Axes, colours
from goalreel.views.run_shards import goal_position, run_shards

MOST = 2000  # trajectories that are drawn: more would cost, and show nothing more
_FINER = 3  # the plane is drawn so many times larger and reduced, which is its antialiasing
_LINE, _DOT = 1.2, 2.6  # a line's width and a head's radius on a picture of 600x400, in pixels
# The lines of n trajectories have the opacity n ** -_FADING, but never less than _FAINTEST.
_FADING, _FAINTEST = 0.2, 0.3


@dataclass(frozen=True)
class Trails:
    """The trajectories that are drawn.

    states: (trajectories, steps_max + 1, 2) float64, position and velocity, the reset first; a
    trajectory stays at its last state
    steps: (trajectories,) int64, to the goal
    total: how many trajectories of the run reached the goal
    goal_position: where the goal is
    """

    states: np.ndarray
    steps: np.ndarray
    total: int
    goal_position: float


def read_trails(paths: list[Path], env: str) -> Trails:
    """Return the trajectories that reached the goal, or MOST of them, evenly from the whole run.

    paths: the trajectory files of all shards, in order. Which are taken does not depend on the
    sharding. Raises GoalreelError if a file cannot be used, the environment is no Mountain Car, or
    no episode reached the goal.
    """
    goal = goal_position(env)
    reached = [np.flatnonzero(read_summary(path).episodes.reached) for path in paths]
    ends = np.cumsum([len(episodes) for episodes in reached])
    total = int(ends[-1])
    shown = min(total, MOST)
    taken = np.arange(shown) * total // max(shown, 1)
    shards = np.searchsorted(ends, taken, side="right")
    episodes = []
    for shard, trajectories in enumerate(run_shards(paths, env)):
        first = ends[shard] - len(reached[shard])
        chosen = reached[shard][taken[shards == shard] - first]
        episodes += [trajectories.episode(episode)[0] for episode in chosen.tolist()]
    if not episodes:
        raise GoalreelError("no episode reached the goal, so there is no trajectory to show")
    steps = np.array([len(states) - 1 for states in episodes])
    rows = steps.max() + 1
    padded = [np.pad(s, ((0, rows - len(s)), (0, 0)), mode="edge") for s in episodes]
    return Trails(np.stack(padded), steps, total, goal)


def portraits(trails: Trails, size: tuple[int, int] = SIZE) -> Iterator[np.ndarray]:
    """Yield a frame per step, (height, width, 3) uint8, of size (width, height).

    Frame t shows every trajectory up to its step t, with a dot at its head; the last one is the
    phase portrait. Raises GoalreelError for an odd or tiny size.
    """
    from PIL import ImageDraw

    axes = Axes(size)
    page = axes.page(trails.goal_position, trails.steps)
    canvas = axes.ground(trails.goal_position, _FINER)
    pen = ImageDraw.Draw(canvas, "RGBA")
    opacity = max(len(trails.steps) ** -_FADING, _FAINTEST)
    width, radius = round(_LINE * axes.scale * _FINER), _DOT * axes.scale * _FINER
    radius *= (1 + opacity) / 2  # a crowd's heads are smaller
    inks = [tuple(ink) for ink in colours(trails.steps).tolist()]
    places = np.rint(axes.places(trails.states) * _FINER).astype(np.int64)
    left, top, right, bottom = axes.box
    for step in range(places.shape[1]):
        now = places[:, step].tolist()
        if step > 0:
            # A line is drawn once, on the canvas that all later frames show.
            growing = np.flatnonzero(step <= trails.steps).tolist()
            before = places[:, step - 1].tolist()
            for trail in growing:
                ink = (*inks[trail], round(255 * opacity))
                pen.line((*before[trail], *now[trail]), fill=ink, width=width)
        picture = canvas.copy()
        dots = ImageDraw.Draw(picture)
        for (x, y), ink in zip(now, inks, strict=True):
            dots.ellipse((x - radius, y - radius, x + radius, y + radius), fill=ink)
        frame = page.copy()
        frame[top:bottom, left:right] = np.asarray(picture.reduce(_FINER))
        axes.write_head(frame, f"{_counted(trails)} · step {step}")
        yield frame


def portrait(trails: Trails, size: tuple[int, int] = SIZE) -> np.ndarray:
    """Return the phase portrait: the last frame of `portraits`."""
    return deque(portraits(trails, size), maxlen=1).pop()


def _counted(trails: Trails) -> str:
    shown, total = len(trails.steps), trails.total
    noun = "trajectory" if total == 1 else "trajectories"
    return f"{total:,} {noun}" if shown == total else f"{shown:,} of {total:,} {noun}"
