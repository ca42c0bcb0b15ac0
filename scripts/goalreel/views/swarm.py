"""The swarm: all reaches of a run on one track at the same time, as translucent cars.

All cars start at once, and each stays where it reached the goal. A frame is a function of how many
cars show each picture of the atlas, so the shards are counted first, and drawing costs the same
for a thousand cars as for a million.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from goalreel.arrays import ranges
from goalreel.errors import GoalreelError
from goalreel.films.render import find_pictures
from goalreel.rendering.atlas import Atlas, Style, state_keys
from goalreel.rendering.layers import Patches
from goalreel.rendering.text import draw_text
from goalreel.simulation.trajectories import Trajectories

_MIN_OPACITY = 0.04  # the least opacity, 10 of 255 levels, so that a single car can be seen
_MIN_SHINE = 1e-4  # of the background; where less of it shines through, none does
_STRIP, _MARGIN, _LETTERS = 34 / 400, 12 / 400, 16 / 400  # the counter's, in frame heights
_MIN_SIZE = 8  # pixels of its letters
_DARK, _LIGHT = 24, 236  # its ink on a light and on a dark background
_LUMINANCE = (0.2126, 0.7152, 0.0722)  # Rec. ITU-R BT.709-6, 3.2


@dataclass(frozen=True)
class Swarm:
    """What a swarm's frames are made of."""

    background: np.ndarray  # (H, W, 3) uint8, the empty track
    places: list[tuple[int, int]]  # of each picture that is shown, its top and left
    # Of each, (h, w, 4) uint8: its pixels, and 1 where it differs from the background, else 0.
    shapes: list[np.ndarray]
    counts: np.ndarray  # (frames, pictures) int32, how many cars show a picture at a step
    arrived: np.ndarray  # (frames,) int64, how many cars have reached the goal by a step

    def __len__(self) -> int:
        """Return the number of frames: one per step, the reset first."""
        return len(self.counts)

    @property
    def cars(self) -> int:
        """The number of cars, all of which have arrived in the last frame."""
        return int(self.arrived[-1])

    def frame(self, step: int) -> np.ndarray:
        """Return the frame of a step, (H, W, 3) uint8.

        n cars over a pixel hide 1 - (1 - opacity) ** n of the background, and show the mean of
        their colors: the mean over all orders in which they could be painted one on another.
        """
        # Sums of integers: they are exact, and so the same in any order.
        sums = np.zeros((*self.background.shape[:2], 4), np.int64)
        for picture in np.flatnonzero(self.counts[step]).tolist():
            (top, left), shape = self.places[picture], self.shapes[picture]
            area = sums[top : top + shape.shape[0], left : left + shape.shape[1]]
            area += shape * np.int64(self.counts[step, picture])
        covered = sums[..., 3] > 0
        colors, cars = sums[covered, :3], sums[covered, 3]
        clear = _clear(opacity(self.cars))
        shine = clear[np.minimum(cars, len(clear) - 1), None]
        frame = self.background.copy()
        mixed = shine * frame[covered] + (1 - shine) * colors / cars[:, None]
        frame[covered] = np.rint(mixed)
        _write_counter(frame, int(self.arrived[step]), self.cars, step)
        return frame

    def frames(self) -> Iterator[np.ndarray]:
        """Yield all frames."""
        return map(self.frame, range(len(self)))


def opacity(cars: int) -> float:
    """Return how opaque a car of a swarm is: 1 if it is alone, less among many."""
    return max(1 / math.sqrt(cars), _MIN_OPACITY)


def _clear(alpha: float) -> np.ndarray:
    """Return what shines through 0, 1, 2, ... cars, until nothing does: (n,) float64.

    By products, since a power's last bit differs from machine to machine.
    """
    left = [1.0]
    while left[-1] > _MIN_SHINE:
        left.append(left[-1] * (1 - alpha))
    return np.array([*left[:-1], 0.0])


def count_cars(shards: Iterable[Trajectories], atlas: Atlas, style: Style) -> Swarm:
    """Return the swarm of all episodes that reached the goal; the shards are read one at a time.

    Raises:
        GoalreelError: if a file cannot be used, or no episode reached the goal.
    """
    # How many cars more, or fewer, show each picture than on the frame before.
    changes, steps = np.zeros((0, len(atlas.keys)), np.int32), [np.zeros(0, np.int64)]
    for shard in shards:
        reached = shard.episodes.reached
        lengths = np.diff(shard.offsets)[reached]
        rows = ranges(shard.offsets[:-1][reached], lengths)
        frames = ranges(np.zeros(len(lengths), np.int64), lengths)
        leaves = frames < np.repeat(lengths - 1, lengths)
        keys = state_keys(shard, style)[rows]
        pictures, atlas = find_pictures(keys, atlas, style)
        longer = max(int(lengths.max(initial=0)) - len(changes), 0)
        changes = np.pad(changes, ((0, longer), (0, len(atlas.keys) - changes.shape[1])))
        np.add.at(changes, (frames, pictures), 1)
        np.subtract.at(changes, (frames[leaves] + 1, pictures[leaves]), 1)
        steps.append(lengths - 1)
    steps = np.concatenate(steps)
    if len(steps) == 0:
        raise GoalreelError("no episode reached the goal, so there is no car to show")
    counts = np.cumsum(changes, axis=0, dtype=np.int32)
    used = np.flatnonzero(counts.any(axis=0))
    arrived = np.cumsum(np.bincount(steps))
    places = [(top, left) for top, left, _, _ in atlas.patches.boxes[used].tolist()]
    shapes = [_shape(atlas.background, atlas.patches, picture) for picture in used.tolist()]
    return Swarm(atlas.background, places, shapes, counts[: len(arrived), used], arrived)


def _shape(background: np.ndarray, patches: Patches, picture: int) -> np.ndarray:
    """Return a picture's pixels and 1 where it differs from the background: (h, w, 4) uint8."""
    top, left, height, width = patches.boxes[picture].tolist()
    box, frame = np.s_[top : top + height, left : left + width], background.copy()
    patches.paste(frame, picture)
    pixels, under = frame[box], background[box]
    inside = (pixels != under).any(axis=2, keepdims=True)
    return np.concatenate([pixels, np.ones_like(inside, np.uint8)], axis=2) * inside


def _write_counter(frame: np.ndarray, arrived: int, cars: int, step: int) -> None:
    """Write how many cars have arrived over the top of `frame`, whatever is there."""
    height, width = frame.shape[:2]
    scale = min(height, width * 2 / 3)  # as Mountain Car's scene is scaled
    size, margin = max(scale * _LETTERS, _MIN_SIZE), round(scale * _MARGIN)
    texts = f"{arrived:,}", f" of {cars:,} arrived · step {step}", f"{cars:,}"
    count, rest, whole = (draw_text(text, size, 255, 0) for text in texts)
    # The number ends at one place, so that what follows it stands still.
    line = np.hstack([np.zeros_like(whole)[:, count.shape[1] :], count, rest])
    if line.shape[1] > width - 2 * margin:
        line = draw_text(texts[0] + texts[1], size, 255, 0, width - 2 * margin)
    top = max((round(scale * _STRIP) - len(line)) // 2, 0)
    area = frame[top : top + len(line), margin : margin + line.shape[1]]
    ink = _DARK if area.mean(axis=(0, 1)) @ _LUMINANCE > 127 else _LIGHT
    shares = line[..., None] / np.float32(255)
    area[:] = np.rint(area + shares * (ink - area.astype(np.float32)))
