"""The phase plane: position or angle against velocity, as a video of growing trajectories.

`read_trails` reads the trajectories and `phase_frames` draws them, in axes by matplotlib.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from goalreel.environments.registry import MAX_POSITION, MAX_SPEED, MIN_POSITION, MOUNTAIN_CARS
from goalreel.errors import GoalreelError, use
from goalreel.files.svg_plot import GRID, mark_x, plot_style
from goalreel.simulation.trajectories import read_summary, read_trajectories

MAX_TRAILS = 2000  # trajectories; more would take longer and show nothing new
SIZE = (600, 400)  # width and height in pixels
PLANE = (72, 54, 582, 342)  # left, top, right and bottom of the plane, the last two exclusive
_DPI = 100
_HEADLINE = (320, 36)  # width and height of its area at the top left
_LARGE, _SMALL = 10, 9  # sizes of text in points
_ROOM = 0.04  # margin at both ends of an axis, as a share of its range
_FINER = 3  # the plane is drawn three times as large and reduced, for antialiasing
_LINE, _DOT = 1.2, 2.6  # width of a line and radius of a dot in pixels
# The lines of n trajectories have the opacity n ** -_FADING, but never less than _MIN_OPACITY.
_FADING, _MIN_OPACITY = 0.2, 0.3
# From violet-blue to amber, with rising lightness, which is legible without hues.
_COLORS = ((58, 28, 128), (40, 88, 156), (20, 138, 142), (88, 178, 92), (228, 182, 36))


@dataclass(frozen=True)
class Plane:
    """The axes of an environment's phase plane."""

    columns: tuple[int, int]  # of a recorded state: the x axis and its velocity
    width: int  # the length of a recorded state
    low: tuple[float, float]
    high: tuple[float, float]
    ticks: tuple[Sequence[float], Sequence[float]]
    labels: tuple[str, str] = ("position", "velocity")
    marks: dict[float, str] = field(default_factory=dict)  # vertical lines, such as the goal
    end: str = "steps to the goal"
    wraps: bool = False  # whether the x axis is an angle that wraps around

    @property
    def limits(self) -> np.ndarray:
        """The lower left and upper right corners of the plane, (2, 2) float64."""
        limits = np.array([self.low, self.high])
        return limits + np.diff(limits, axis=0) * [[-_ROOM], [_ROOM]]


_FALLEN = 12 * 2 * np.pi / 360  # the pole's angle at which a CartPole episode ends
_CARTPOLE = Plane(
    *((2, 3), 4, (-0.25, -3.5), (0.25, 3.5)),
    (np.arange(-2, 3) * 0.1, np.arange(-3, 4)),
    ("angle", "angular velocity"),
    {-_FALLEN: "", _FALLEN: "falls"},
    "steps",
)
PLANES = {
    **{
        car.id: Plane(
            *((0, 1), 2, (MIN_POSITION, -MAX_SPEED), (MAX_POSITION, MAX_SPEED)),
            (np.arange(-4, 3) * 0.3, np.arange(-2, 3) * 0.03),
            marks={car.goal_position: "goal"},
        )
        for car in MOUNTAIN_CARS.values()
    },
    "CartPole-v0": _CARTPOLE,
    "CartPole-v1": _CARTPOLE,
    "Pendulum-v1": Plane(
        *((0, 1), 2, (-np.pi, -8), (np.pi, 8)),
        (np.arange(-3, 4), np.arange(-2, 3) * 4),
        ("angle", "angular velocity"),
        {0.0: "upright"},
        "steps",
        wraps=True,
    ),
}


@dataclass(frozen=True)
class Trails:
    """The trajectories to draw."""

    # (trajectories, steps_max + 1, 2) float64, such as position and velocity, from the reset on.
    # Shorter trajectories repeat their last state.
    states: np.ndarray
    steps: np.ndarray  # (trajectories,) int64, to the goal
    total: int  # trajectories of the run, with reaches only the successful ones
    plane: Plane


def read_trails(paths: Sequence[Path], env: str) -> Trails:
    """Return the trajectories that reached the goal, at most MAX_TRAILS, evenly from the whole run.

    The choice does not depend on the sharding. Raises GoalreelError if the environment has no phase
    plane here, or no episode reached the goal.
    """
    plane = PLANES.get(env)
    if plane is None:
        raise GoalreelError(f"phase: There is no phase plane of {env}. {use(PLANES)}")
    reached = [np.flatnonzero(read_summary(path).episodes.reached) for path in paths]
    total = sum(map(len, reached))
    count = min(total, MAX_TRAILS)
    taken, first, episodes = np.arange(count) * total // max(count, 1), 0, []
    for rows, trajectories in zip(reached, map(read_trajectories, paths), strict=True):
        chosen = rows[taken[(taken >= first) & (taken < first + len(rows))] - first]
        first += len(rows)
        if trajectories.states.shape[1] != plane.width:
            raise GoalreelError(
                f"env_wrappers: Wrappers change the states of {env}. Film it without wrappers."
            )
        columns = list(plane.columns)
        episodes += [trajectories.episode(episode)[0][:, columns] for episode in chosen.tolist()]
    if not episodes:
        raise GoalreelError(
            "phase: No episode reached the goal. Film more attempts, or use a better policy."
        )
    steps = np.array([len(states) - 1 for states in episodes])
    rows = steps.max() + 1
    states = np.stack([np.pad(s, ((0, rows - len(s)), (0, 0)), mode="edge") for s in episodes])
    if plane.wraps:
        states[..., 0] = (states[..., 0] + np.pi) % (2 * np.pi) - np.pi
    return Trails(states, steps, total, plane)


def phase_frames(trails: Trails) -> Iterator[np.ndarray]:
    """Yield a frame per step, (400, 600, 3) uint8.

    Frame t shows every trajectory up to step t, with a dot at its end.
    """
    from PIL import Image, ImageDraw

    shown, total = len(trails.steps), f"{trails.total:,}"
    count = total if shown == trails.total else f"{shown:,} of {total}"
    noun = "trajectory" if trails.total == 1 else "trajectories"
    headlines = [f"{count} {noun} · step {step}" for step in range(trails.states.shape[1])]
    page, tops = _draw_page(trails, headlines)
    left, top, right, bottom = PLANE
    plane = page[top:bottom, left:right]
    canvas = Image.fromarray(plane.repeat(_FINER, axis=0).repeat(_FINER, axis=1))
    pen = ImageDraw.Draw(canvas, "RGBA")
    opacity = max(len(trails.steps) ** -_FADING, _MIN_OPACITY)
    width, radius = round(_LINE * _FINER), _DOT * _FINER
    radius *= (1 + opacity) / 2  # many dots are smaller
    inks = [tuple(ink) for ink in colors(trails.steps).tolist()]
    places = np.rint(_places(trails.states, trails.plane) * _FINER).astype(np.int64)
    # Draw no line across the plane where the angle wraps around.
    wrapped = np.abs(np.diff(trails.states[..., 0], axis=1)) > np.pi
    for step, headline in enumerate(tops):
        now = places[:, step].tolist()
        if step > 0:
            # Draw a line once, on the canvas of all later frames.
            growing = np.flatnonzero((step <= trails.steps) & ~wrapped[:, step - 1]).tolist()
            before = places[:, step - 1].tolist()
            for trail in growing:
                ink = (*inks[trail], round(255 * opacity))
                pen.line((*before[trail], *now[trail]), fill=ink, width=width)
        image = canvas.copy()
        dots = ImageDraw.Draw(image)
        for (x, y), ink in zip(now, inks, strict=True):
            dots.ellipse((x - radius, y - radius, x + radius, y + radius), fill=ink)
        frame = page.copy()
        frame[: headline.shape[0], : headline.shape[1]] = headline
        frame[top:bottom, left:right] = np.asarray(image.reduce(_FINER))
        yield frame


def colors(values: np.ndarray) -> np.ndarray:
    """Return a color for each of `values`, from the least to the greatest: (n, 3) uint8."""
    low, high = values.min(), values.max()
    place = (values - low) / max(high - low, 1) * (len(_COLORS) - 1)
    channels = [np.interp(place, range(len(_COLORS)), c) for c in zip(*_COLORS, strict=True)]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8)


def _places(states: np.ndarray, plane: Plane) -> np.ndarray:
    """Convert states, (..., 2), to pixels from the corner of the plane, (..., 2) float64."""
    left, top, right, bottom = PLANE
    low, high = plane.limits
    share = (states - low) / (high - low)
    return share * [right - left, top - bottom] + [0, bottom - top]


def _draw_page(trails: Trails, headlines: Iterable[str]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the frame without trajectories, (H, W, 3) uint8, and its top with each headline."""
    with plot_style():
        figure = Figure((SIZE[0] / _DPI, SIZE[1] / _DPI), dpi=_DPI, layout="none")
        _draw_axes(_add_axes(figure, *PLANE), trails.plane)
        _add_legend(figure, trails.steps, trails.plane.end)
        headline = _write(figure, 10, "", size=_LARGE)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[..., :3]
        page, empty, tops = pixels.copy(), canvas.copy_from_bbox(figure.bbox), []
        for text in headlines:
            canvas.restore_region(empty)
            headline.set_text(text)
            headline.draw(canvas.get_renderer())
            tops.append(pixels[: _HEADLINE[1], : _HEADLINE[0]].copy())
        return page, tops


def _draw_axes(axes, plane: Plane) -> None:
    """Draw the axes of the plane."""
    axes.set(xlim=plane.limits[:, 0], ylim=plane.limits[:, 1])
    axes.set(xticks=plane.ticks[0], yticks=plane.ticks[1])
    axes.tick_params(labelsize=_SMALL)
    axes.set_xlabel(plane.labels[0], size=_LARGE)
    axes.set_ylabel(plane.labels[1], size=_LARGE, labelpad=2)
    axes.grid(color=GRID, lw=0.5)
    axes.set_axisbelow(True)
    for place, text in plane.marks.items():
        mark_x(axes, place, text, size=_SMALL, lw=1)


def _add_legend(figure: Figure, steps: np.ndarray, end: str) -> None:
    """Add a color bar with its range of steps at the top right."""
    low, high = int(steps.min()), int(steps.max())
    left, right = (360, 440) if high > low else (431, 440)
    axes = _add_axes(figure, left, 16, right, 25)
    axes.set_axis_off()
    ramp = colors(np.linspace(low, high, right - left))
    axes.imshow(ramp[None], aspect="auto", interpolation="nearest")
    _write(figure, right + 6, f"{high} {end}", size=_SMALL)
    if high > low:
        _write(figure, left - 6, f"{low}", size=_SMALL, ha="right")


def _write(figure: Figure, x: float, text: str, **style):
    """Write a text in the top line, x pixels from the left, and return it."""
    return figure.text(x, SIZE[1] - 20, text, va="center_baseline", transform=None, **style)


def _add_axes(figure: Figure, left: int, top: int, right: int, bottom: int):
    """Return axes with edges at these pixels, counted from the top left."""
    width, height = SIZE
    sides = (right - left) / width, (bottom - top) / height
    return figure.add_axes((left / width, 1 - bottom / height, *sides))
