"""The swarm: all successful attempts of a run on one track at the same time, as translucent cars.

All cars start together, and each stays at the goal. `count_cars` counts, shard by shard, how many
cars show each image of the atlas at a step. `Swarm.frame` blends them, in a time that does not
depend on the number of cars.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from goalreel.arrays import ranges
from goalreel.errors import GoalreelError
from goalreel.films.render import find_images
from goalreel.rendering.atlas import Atlas, state_keys
from goalreel.rendering.layers import Patches
from goalreel.rendering.text import draw_text
from goalreel.simulation.trajectories import Trajectories

_MIN_OPACITY = 0.04  # 10 of 255 levels, so that a single car stays visible
_MIN_VISIBLE = 1e-4  # share of the background below which it is hidden
_STRIP, _MARGIN, _SIZE, _INK = 34, 12, 16, 24  # the counter's rows, margin, font size and gray


@dataclass(frozen=True)
class Swarm:
    """The images and counts of a swarm. `frame` renders a step of it."""

    background: np.ndarray  # (H, W, 3) uint8, the empty track
    places: list[tuple[int, int]]  # top and left of each image
    shapes: list[np.ndarray]  # (h, w, 4) uint8 of each image: pixels, and 1 unless background
    counts: np.ndarray  # (frames, images) int32, how many cars show an image at a step
    arrived: np.ndarray  # (frames,) int64, how many cars have reached the goal by a step

    @property
    def cars(self) -> int:
        """The number of cars, all of which have arrived in the last frame."""
        return int(self.arrived[-1])

    def frame(self, step: int) -> np.ndarray:
        """Return the frame of a step, (H, W, 3) uint8.

        n cars over a pixel hide 1 - (1 - opacity) ** n of the background and show the mean of their
        colors, which is the mean over all orders of painting them.
        """
        # Integer sums are exact, and so equal in any order.
        sums = np.zeros((*self.background.shape[:2], 4), np.int64)
        for image in np.flatnonzero(self.counts[step]).tolist():
            (top, left), shape = self.places[image], self.shapes[image]
            area = sums[top : top + shape.shape[0], left : left + shape.shape[1]]
            area += shape * np.int64(self.counts[step, image])
        covered = sums[..., 3] > 0
        colors, cars = sums[covered, :3], sums[covered, 3]
        clear = _clear(opacity(self.cars))
        visible = clear[np.minimum(cars, len(clear) - 1), None]
        frame = self.background.copy()
        mixed = visible * frame[covered] + (1 - visible) * colors / cars[:, None]
        frame[covered] = np.rint(mixed)
        _write_counter(frame, int(self.arrived[step]), self.cars, step)
        return frame


def opacity(cars: int) -> float:
    """Return the opacity of each car: 1 for a single car, less for more cars."""
    return max(1 / math.sqrt(cars), _MIN_OPACITY)


def _clear(alpha: float) -> np.ndarray:
    """Return the visible share of the background behind 0, 1, 2, ... cars, down to 0: float64."""
    # It multiplies, because the last bit of a power differs between machines.
    left = [1.0]
    while left[-1] > _MIN_VISIBLE:
        left.append(left[-1] * (1 - alpha))
    return np.array([*left[:-1], 0.0])


def count_cars(shards: Iterable[Trajectories], atlas: Atlas, env: str) -> Swarm:
    """Return the swarm of all successful episodes. Raises GoalreelError if there are none."""
    # The change in the number of cars that show each image, from frame to frame.
    changes, steps = np.zeros((0, len(atlas.keys)), np.int32), [np.zeros(0, np.int64)]
    for shard in shards:
        reached = shard.episodes.reached
        lengths = np.diff(shard.offsets)[reached]
        rows = ranges(shard.offsets[:-1][reached], lengths)
        frames = ranges(np.zeros(len(lengths), np.int64), lengths)
        leaves = frames < np.repeat(lengths - 1, lengths)
        images, atlas = find_images(state_keys(shard, env)[rows], atlas, env)
        longer = max(int(lengths.max(initial=0)) - len(changes), 0)
        changes = np.pad(changes, ((0, longer), (0, len(atlas.keys) - changes.shape[1])))
        np.add.at(changes, (frames, images), 1)
        np.subtract.at(changes, (frames[leaves] + 1, images[leaves]), 1)
        steps.append(lengths - 1)
    steps = np.concatenate(steps)
    if len(steps) == 0:
        fix = "Film more attempts, or use a better policy."
        raise GoalreelError(f"swarm: No episode reached the goal. {fix}")
    counts = np.cumsum(changes, axis=0, dtype=np.int32)
    used = np.flatnonzero(counts.any(axis=0))
    arrived = np.cumsum(np.bincount(steps))
    places = [(top, left) for top, left, _, _ in atlas.patches.boxes[used].tolist()]
    shapes = [_shape(atlas.background, atlas.patches, image) for image in used.tolist()]
    return Swarm(atlas.background, places, shapes, counts[: len(arrived), used], arrived)


def _shape(background: np.ndarray, patches: Patches, image: int) -> np.ndarray:
    """Return an image's pixels and 1 where it differs from the background: (h, w, 4) uint8."""
    top, left, height, width = patches.boxes[image].tolist()
    box, frame = np.s_[top : top + height, left : left + width], background.copy()
    patches.paste(frame, image)
    pixels, under = frame[box], background[box]
    inside = (pixels != under).any(axis=2, keepdims=True)
    return np.concatenate([pixels, np.ones_like(inside, np.uint8)], axis=2) * inside


def _write_counter(frame: np.ndarray, arrived: int, cars: int, step: int) -> None:
    """Write the number of arrived cars over the top of `frame`."""
    texts = f"{arrived:,}", f" of {cars:,} arrived · step {step}", f"{cars:,}"
    count, label, total = (draw_text(text, _SIZE, 255, 0) for text in texts)
    # Right-align the number, so that the text after it stays in place.
    line = np.hstack([np.zeros_like(total)[:, count.shape[1] :], count, label])
    top = (_STRIP - len(line)) // 2
    area = frame[top : top + len(line), _MARGIN : _MARGIN + line.shape[1]]
    shares = line[..., None] / np.float32(255)
    area[:] = np.rint(area + shares * (_INK - area.astype(np.float32)))
