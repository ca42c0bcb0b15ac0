"""Draw what a policy said of its choices below the picture: bars of actions, and traces.

A row shows a signal with several numbers per step as bars, of which that of the taken action is
bright. It shows a signal with one number as the trace of the episode, with a mark at the current
step. Both are drawn from the least to the greatest value of their episode, and probabilities from
0 to 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from goalreel.arrays import ranges
from goalreel.rendering.layers import Layer, join
from goalreel.rendering.text import Canvas
from goalreel.simulation.trajectories import Trajectories

_LABEL = 0.7  # font size, as a share of the HUD's
_DIM, _CLEAR, _BRIGHT = 100, 150, 255  # shades of ink
_FINE = 4  # pixels of a drawn line per shown one, in each direction


def count_rows(trajectories: Trajectories) -> int:
    """Return the number of rows that the signals need."""
    is_vector = [array.ndim == 2 for array in trajectories.signals.values()]
    return max(sum(is_vector), len(is_vector) - sum(is_vector))


def signal_layers(
    canvas: Canvas, trajectories: Trajectories, top: int, height: int, size: float
) -> Iterator[Layer]:
    """Yield the layers of all rows, each `height` pixels high, from the pixel row `top` on.

    A layer has an index per state of the shard. The last state of an episode shows the last step.
    size: of the HUD's font
    """
    left = int(size) & ~1
    width = canvas.background.shape[1] - 2 * left
    vectors, numbers = (
        [name for name, array in trajectories.signals.items() if array.ndim == dimensions]
        for dimensions in (2, 1)
    )
    whole = _Panel(canvas, trajectories, top, left, height, width, size)
    for row in range(count_rows(trajectories)):
        panel = replace(whole, top=top + row * height)
        split = width // 3 & ~1 if row < len(vectors) and row < len(numbers) else 0
        if row < len(vectors):
            yield from replace(panel, width=split - left if split else width).bars(vectors[row])
        if row < len(numbers):
            yield from replace(panel, left=left + split, width=width - split).trace(numbers[row])


@dataclass(frozen=True)
class _Panel:
    """A part of a frame that shows a signal, in pixels."""

    canvas: Canvas
    trajectories: Trajectories
    top: int
    left: int
    height: int
    width: int
    size: float  # of the HUD's font

    @property
    def _head(self) -> int:
        """The height of the label."""
        return int(1.4 * self.size * _LABEL) & ~1

    @property
    def _tall(self) -> int:
        """The height below the label."""
        return (self.height - self._head - 4) & ~1

    def bars(self, name: str) -> Iterator[Layer]:
        """Yield the label of a signal with several numbers, and a layer for each of its bars."""
        values, taken = _scaled(self.trajectories, name)[0], self.trajectories.actions
        yield self._labels([name] * len(self.trajectories))
        count, shown = values.shape[1], self._shown_steps()
        heights = 2 + np.round(np.nan_to_num(values) * (self._tall - 2)).astype(int)
        is_taken = np.zeros_like(heights)
        if taken.ndim == 1 and taken.dtype.kind == "i":
            is_taken[np.arange(len(taken)), np.clip(taken, 0, count - 1)] = 1
        across = max(self.width // count & ~1, 4)
        for number in range(count):
            kinds = heights[:, number] * 2 + is_taken[:, number]
            kinds, index = np.unique(kinds, return_inverse=True)
            masks = np.zeros((len(kinds), self._tall, across - 2), np.uint8)
            for mask, kind in zip(masks, kinds.tolist(), strict=True):
                mask[self._tall - kind // 2 :] = _BRIGHT if kind % 2 else _DIM
            place = self.top + self._head, self.left + number * across
            patches = join(self.canvas.stamp(mask, *place) for mask in masks)
            yield Layer(f"{name}_{number}", patches, index[shown].astype(np.int32))

    def trace(self, name: str) -> Iterator[Layer]:
        """Yield the label of a signal with one number, the traces of episodes, and the mark."""
        values, limits = _scaled(self.trajectories, name)
        yield self._labels([f"{name} {low:.4g} to {high:.4g}" for low, high in limits])
        episodes, top = range(len(self.trajectories)), self.top + self._head
        lines = (
            _line(values[self.trajectories.steps(episode)], self.width, self._tall)
            for episode in episodes
        )
        traces = join(self.canvas.stamp(line, top, self.left) for line in lines)
        yield Layer(f"{name}_trace", traces, self._episodes())
        rule, last = np.full((self._tall, 2), _BRIGHT, np.uint8), self.width // 2 - 1
        marks = (self.canvas.stamp(rule, top, self.left + 2 * place) for place in range(last + 1))
        steps = np.diff(self.trajectories.offsets) - 1
        places = [np.minimum(np.arange(n + 1), n - 1) * last // max(n - 1, 1) for n in steps]
        yield Layer(f"{name}_mark", join(marks), np.concatenate(places).astype(np.int32))

    def _labels(self, texts: list[str]) -> Layer:
        """Return the layer of a label, given its text in each episode."""
        how = self.top, self.size * _LABEL, self.left, self.width
        patches = join(self.canvas.text(text, *how) for text in texts)
        return Layer(f"{texts[0].partition(' ')[0]}_label", patches, self._episodes())

    def _episodes(self) -> np.ndarray:
        """Return the episode of each state."""
        lengths = np.diff(self.trajectories.offsets)
        return np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)

    def _shown_steps(self) -> np.ndarray:
        """Return the row of the signals that each state shows."""
        lengths, episodes = np.diff(self.trajectories.offsets), self._episodes()
        steps = ranges(np.zeros(len(lengths), np.int64), lengths)
        firsts = self.trajectories.offsets[:-1] - np.arange(len(lengths))
        return firsts[episodes] + np.minimum(steps, lengths[episodes] - 2)


def _scaled(trajectories: Trajectories, name: str) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Return a signal from 0 to 1, and its least and greatest values in each episode."""
    values, limits = trajectories.signals[name].astype(np.float64), []
    for episode in range(len(trajectories)):
        own = values[trajectories.steps(episode)]  # a view
        known = own[np.isfinite(own)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        limits.append((low, high))
        if name == "probabilities":
            low, high = 0.0, 1.0
        own[...] = np.clip((own - low) / (high - low or 1), 0, 1)
    return values, limits


def _line(values: np.ndarray, width: int, height: int) -> np.ndarray:
    """Return a line through the known values from 0 to 1 as a mask, (height, width) uint8."""
    from PIL import Image, ImageDraw

    image = Image.new("L", (width * _FINE, height * _FINE))
    pen, across = ImageDraw.Draw(image), np.linspace(_FINE, (width - 1) * _FINE, len(values))
    down = (1.5 + (1 - values) * (height - 3)) * _FINE
    points = np.stack([across, down], axis=1)[~np.isnan(values)]
    pen.line(points.ravel().tolist(), _CLEAR, 2 * _FINE)
    return np.asarray(image.reduce(_FINE))
