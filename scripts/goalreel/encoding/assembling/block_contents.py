"""Describe a film of rendered frames as the macroblocks that change from frame to frame.

Pictures may be enlarged and have bands with text above and below. `FilmContents` yields batches of
changes: arrays of frame, macroblock address and block number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from goalreel.environments.drawing.block_store import SIDE, BlockStore, grid
from goalreel.rendering.blocks import BlockLayer, enlarge_pixels
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import Layer

# FFmpeg warns about more than 32 slices that begin within four macroblock rows.
_MAX_SINGLE_BLOCKS = 7
# Limits of new blocks and changes per batch, and of blocks kept in memory (about 50 MB).
_MAX_NEW_BLOCKS, _MAX_CHANGES, _MAX_BLOCKS = 1 << 15, 1 << 18, 1 << 16

Keyed = tuple[np.ndarray, np.ndarray]  # sorted place * count + frame, and block numbers, (n,) each


class Changes(NamedTuple):
    """Changes of macroblocks. Each lasts until the next one at the same address."""

    frames: np.ndarray  # (n,) frame index in the batch
    places: np.ndarray  # (n,) address of the first macroblock
    blocks: np.ndarray  # block numbers in the store: (n, 1), or (n, columns) for rows


class ContentBatch(NamedTuple):
    """The changes of consecutive frames."""

    ordinals: np.ndarray  # (frames,) frame index in the episode. Frame 0 lists all rows.
    single: Changes  # single macroblocks
    rows: Changes  # whole rows in which many macroblocks change
    store: BlockStore  # a new store means that block numbers start again


@dataclass
class _Band:
    """Macroblock rows above or below the pictures."""

    rows: range
    layers: list[Layer]
    picture_blocks: np.ndarray  # (columns,) picture blocks in its first row
    last_patches: np.ndarray | None = None  # patch numbers of the last frame


class FilmContents:
    """The frames of a film as changes of macroblocks."""

    def __init__(self, cache: FrameCache):
        drawn, *layers = cache.layers
        height, width = cache.background.shape[:2]
        self._rows, self.columns = -(-height // SIDE), -(-width // SIDE)
        self.macroblocks = self._rows * self.columns
        self._drawn: BlockLayer = drawn
        # The macroblock addresses of each picture block, (blocks, scale * scale).
        rows, columns = grid(drawn.size)
        row = drawn.top // SIDE + np.arange(rows * drawn.scale).reshape(rows, 1, -1, 1)
        column = np.arange(columns * drawn.scale).reshape(1, columns, 1, -1)
        inside = (row < self._rows) & (column < self.columns)
        places = np.where(inside, row * self.columns + column, self.macroblocks)
        self._places = places.reshape(rows * columns, -1)
        # Canvas of whole macroblocks for the bands.
        padding = (0, self._rows * SIDE - height), (0, self.columns * SIDE - width), (0, 0)
        self._paper = np.pad(cache.background, padding, "edge")
        self._canvas = self._paper.copy()
        self._bands = self._bands_of(layers, height)
        self._reset()

    def _bands_of(self, layers: Sequence[Layer], height: int) -> list["_Band"]:
        """Return the bands above and below the pictures, each with its layers."""
        top, bottom = self._drawn.place[0].start, self._drawn.place[0].stop
        above, below = [], []
        for layer in layers:
            (above if layer.patches.boxes[:, 0].max() < top else below).append(layer)
        rows = range(top // SIDE), range(bottom // SIDE, self._rows if bottom < height else 0)
        bands = zip(rows, (above, below), strict=True)
        return [_Band(r, own, np.zeros(self.columns, np.int64)) for r, own in bands if r]

    def _reset(self) -> None:
        """Drop all blocks, so that the next frame lists all macroblocks."""
        for band in self._bands:
            band.last_patches = None
        self._store = BlockStore()
        # Current block of each macroblock, in the pictures and in the film.
        self._picture, self._shown = np.full((2, self.macroblocks), -1)
        self._coded = 0

    def batches(self, offsets: np.ndarray) -> Iterator[ContentBatch]:
        """Yield the changes of all frames in batches, given the (episodes + 1,) frame offsets."""
        batch_start, changes, num_changes = 0, [], 0
        groups = np.searchsorted(self._drawn.starts, self._drawn.index, "right") - 1
        # A group never spans two episodes.
        starts = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
        for first, end in zip(starts, starts[1:], strict=False):
            new = len(self._store) - self._coded
            if changes and (num_changes >= _MAX_CHANGES or new >= _MAX_NEW_BLOCKS):
                yield self._batch(np.arange(batch_start, first), offsets, changes)
                batch_start, changes, num_changes = first, [], 0
                if first in offsets and len(self._store) > _MAX_BLOCKS:
                    self._reset()  # the next frame lists all macroblocks
            changes.append(self._changes_of(groups[first], first, end))
            num_changes += len(changes[-1][0])
        yield self._batch(np.arange(batch_start, len(groups)), offsets, changes)

    def _changes_of(self, number: int, first: int, end: int) -> tuple[np.ndarray, ...]:
        """Return (frames, places, blocks), (n,) each, of the changes within one group."""
        group = self._drawn.group(number)
        shown = self._drawn.index[first:end] - self._drawn.starts[number]
        pictures, at, contents = group.changes[:, : group.ends[int(shown[-1])]]
        frames = first + np.searchsorted(shown, pictures)
        places, scale = self._places[at], self._drawn.scale
        large = enlarge_pixels(group.blocks, scale)
        blocks = large.reshape(-1, scale, SIDE, scale, SIDE, 3).swapaxes(2, 3)
        blocks = np.array(self._store.add_pixels(blocks)).reshape(-1, scale * scale)[contents]
        inside = places < self.macroblocks
        frames = np.broadcast_to(frames[:, None], places.shape)
        return frames[inside], places[inside], blocks[inside]

    def _batch(self, frames: np.ndarray, offsets: np.ndarray, changes: list) -> ContentBatch:
        """Return the batch of `frames` from the changes of their groups."""
        count, before = len(frames), self._shown.copy()
        at, places, blocks = map(np.concatenate, zip(*changes, strict=True))
        keys, blocks = self._differences(places * count + at - frames[0], blocks, count)
        for band in self._bands:
            keys, blocks = self._replace_band(band, keys, blocks, frames)
        places, at = np.divmod(keys, count)
        last = np.append(places[1:] != places[:-1], True)[: len(places)]
        self._shown[places[last]] = blocks[last]

        ordinals = frames - offsets[np.searchsorted(offsets, frames, "right") - 1]
        shape = count, self._rows
        rows = np.bincount(at * self._rows + places // self.columns, minlength=count * self._rows)
        whole = (rows.reshape(shape) > _MAX_SINGLE_BLOCKS) | (ordinals == 0)[:, None]
        in_row = whole[at, places // self.columns]
        frame, row = np.nonzero(whole)
        row_places = row[:, None] * self.columns + np.arange(self.columns)
        latest = np.searchsorted(keys, row_places * count + frame[:, None], "right")
        has_changed = np.append(-1, places)[latest] == row_places
        shown = np.where(has_changed, np.append(-1, blocks)[latest], before[row_places])
        self._coded = len(self._store)
        single = Changes(at[~in_row], places[~in_row], blocks[~in_row, None])
        rows = Changes(frame, row * self.columns, shown)
        return ContentBatch(ordinals, single, rows, self._store)

    def _differences(self, keys: np.ndarray, blocks: np.ndarray, count: int) -> Keyed:
        """Return the effective changes of the pictures, sorted; keys: place * count + frame."""
        order = np.argsort(keys, kind="stable")
        keys, blocks = keys[order], blocks[order]
        last = np.append(keys[1:] != keys[:-1], True)  # the last of several changes in a frame wins
        keys, blocks = keys[last], blocks[last]
        places = keys // count
        first = np.append(True, places[1:] != places[:-1])
        before = np.where(first, self._picture[places], np.append(-1, blocks[:-1]))
        last = np.append(first[1:], True)
        self._picture[places[last]] = blocks[last]
        changed = blocks != before
        return keys[changed], blocks[changed]

    def _replace_band(
        self, band: "_Band", keys: np.ndarray, blocks: np.ndarray, frames: np.ndarray
    ) -> Keyed:
        """Return sorted changes in which those of a band replace those of the pictures."""
        count = len(frames)
        first, end = band.rows.start * self.columns, band.rows.stop * self.columns
        bounds = np.array([first, first + self.columns, end])
        start, beyond, stop = np.searchsorted(keys, bounds * count)
        at, places = keys[start:beyond] % count, keys[start:beyond] // count - first
        under = blocks[start:beyond]
        patches = np.array([layer.index[frames] for layer in band.layers]).reshape(-1, count)
        moved = (np.diff(patches, axis=1, prepend=-1) != 0).any(axis=0)
        moved[0] = band.last_patches is None or (patches[:, 0] != band.last_patches).any()
        band.last_patches = patches[:, -1]
        parts = [(keys[:0], blocks[:0])]
        for frame in np.union1d(np.flatnonzero(moved), at).tolist():
            now = at == frame
            band.picture_blocks[places[now]] = under[now]
            numbers = np.array(self._store.add_pixels(self._composed(band, int(frames[frame]))))
            changed = first + np.flatnonzero(self._shown[first:end] != numbers)
            self._shown[first:end] = numbers
            parts.append((changed * count + frame, self._shown[changed]))
        merged = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(merged[0])
        keys = np.concatenate([keys[:start], merged[0][order], keys[stop:]])
        return keys, np.concatenate([blocks[:start], merged[1][order], blocks[stop:]])

    def _composed(self, band: "_Band", frame: int) -> np.ndarray:
        """Return the blocks of a band, (rows, columns, 16, 16, 3) uint8."""
        rows = slice(band.rows.start * SIDE, band.rows.stop * SIDE)
        self._canvas[rows] = self._paper[rows]
        bottom = self._drawn.place[0].stop
        if rows.start < bottom < rows.stop:  # the border cuts a macroblock
            part = self._store.pixels(band.picture_blocks).swapaxes(0, 1).reshape(SIDE, -1, 3)
            self._canvas[rows.start : bottom] = part[: bottom - rows.start]
        for layer in band.layers:
            layer.paste(self._canvas, frame)
        shape = len(band.rows), SIDE, self.columns, SIDE, 3
        return self._canvas[rows].reshape(shape).swapaxes(1, 2)
