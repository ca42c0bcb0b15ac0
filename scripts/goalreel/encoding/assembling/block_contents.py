"""A film of drawn pictures as its frames' contents, by the macroblock of the film.

Pictures may be enlarged, with bands above and below them. Each distinct content has a number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.pictures.blocks import SIDE, Drawn, grid
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import Layer

# FFmpeg's decoder warns of more than 32 slices that begin within four rows of macroblocks.
_MOST_OF_A_ROW = 7
# Contents, and frames, that are told at a time; contents that are remembered at most, some 50 MB.
_NEW, _FRAMES, _CONTENTS = 1 << 13, 1 << 12, 1 << 16

# What a slice shows: contents of neighbours in a row, by their numbers, none for what was there.
Contents = tuple[int, ...]


class Change(NamedTuple):
    """A frame, and the contents that are new in it, with their first places, in raster order."""

    since: int  # frames since the episode's first, of which all rows are told
    shown: list[tuple[int, Contents]]


@dataclass
class _Band:
    """Rows of macroblocks above or below the pictures."""

    rows: range
    layers: list[Layer]
    seen: list[int] | None = None  # the patches that are shown


class FilmContents:
    """The frames as changes from one to the next, in macroblocks of the film."""

    def __init__(self, cache: FrameCache):
        """Begin before the first frame. Raises GoalreelError if layers lie over the pictures."""
        drawn, *layers = cache.layers
        height, width = cache.background.shape[:2]
        self._rows, self._columns = -(-height // SIDE), -(-width // SIDE)
        self.macroblocks = self._rows * self._columns
        self._drawn: Drawn = drawn
        self._places = self._places_of_blocks()
        # A canvas of whole macroblocks, for what is above and below the pictures.
        more = (0, self._rows * SIDE - height), (0, self._columns * SIDE - width), (0, 0)
        self._paper = np.pad(cache.background, more, "edge")
        self._canvas = self._paper.copy()
        self._bands = self._bands_of(layers, height)
        # The pictures' own contents, where a band begins within a macroblock.
        self._picture = np.full(self.macroblocks + 1, -1)
        # What is shown; the last one is beyond the frame's border.
        self._shown = np.full(self.macroblocks + 1, -1)
        self._group = -1  # the number of the group that is open
        self._count = 0  # of all contents
        self._forget()

    def _bands_of(self, layers: Sequence[Layer], height: int) -> list["_Band"]:
        """Return the bands above and below the pictures, each with its layers."""
        top, bottom = self._drawn.place[0].start, self._drawn.place[0].stop
        above = [n for n in layers if (n.patches.boxes[:, [0, 2]].sum(axis=1) <= top).all()]
        below = [n for n in layers if (n.patches.boxes[:, 0] >= bottom).all()]
        for name in {n.name for n in layers} - {n.name for n in (*above, *below)}:
            raise GoalreelError(
                f"the layer {name!r} lies over the pictures; set encode.encoder: x264"
            )
        bands = [_Band(range(top // SIDE), above)]
        if bottom < height:
            bands.append(_Band(range(bottom // SIDE, self._rows), below))
        return [band for band in bands if band.rows]

    def _forget(self) -> None:
        for band in self._bands:
            band.seen = None
        self._numbers: dict[bytes, int] = {}
        self._squares: dict[int, bytes] = {}
        # By whether they are of an episode's first frame: contents whose code was asked for, and
        # those whose code is asked for next.
        self._asked: dict[bool, set[Contents]] = {True: set(), False: set()}
        self._wanted: dict[bool, list[Contents]] = {True: [], False: []}

    def _places_of_blocks(self) -> np.ndarray:
        """Return the macroblocks, (blocks, scale * scale), of each place of a picture."""
        scale = self._drawn.scale
        rows, columns = grid(self._drawn.size)
        row = self._drawn.top // SIDE + np.arange(rows * scale).reshape(rows, 1, scale, 1)
        column = np.arange(columns * scale).reshape(1, columns, 1, scale)
        inside = (row < self._rows) & (column < self._columns)
        place = np.where(inside, row * self._columns + column, self.macroblocks)
        return place.reshape(rows * columns, -1)

    def batches(self, offsets: list[int]) -> Iterator[list[Change]]:
        """Yield the changes of all frames, many at a time."""
        changes: list[Change] = []
        for first, end in zip(offsets, offsets[1:], strict=False):
            for frame in range(first, end):
                if len(changes) >= _FRAMES or sum(map(len, self._wanted.values())) >= _NEW:
                    yield changes
                    changes = []
                    if frame == first and len(self._numbers) > _CONTENTS:
                        self._forget()  # all of the picture is told anew
                places = self._changed(frame)
                shown = self._slices_of(places) if frame > first else self._rows_of_all()
                new = {contents for _, contents in shown} - self._asked[frame == first]
                self._asked[frame == first] |= new
                self._wanted[frame == first] += sorted(new)
                changes.append(Change(frame - first, shown))
        yield changes

    def wanted(self) -> dict[bool, list[Contents]]:
        """Return the contents whose code is needed: of episodes' first frames, and of others."""
        wanted, self._wanted = self._wanted, {True: [], False: []}
        return wanted

    def squares(self, contents: list[Contents]) -> dict[int, np.ndarray]:
        """Return what contents are made of, (16, 16, 3) uint8, by their numbers."""
        numbers = sorted({number for each in contents for number in each})
        data = (np.frombuffer(self._squares[number], np.uint8) for number in numbers)
        return {n: d.reshape(SIDE, SIDE, 3) for n, d in zip(numbers, data, strict=True)}

    def _written(self, band: "_Band", frame: int, drawn: np.ndarray) -> np.ndarray:
        """Show a band, and return its places that change; drawn: those where the picture does."""
        first, end = band.rows.start * self._columns, band.rows.stop * self._columns
        seen = [int(layer.index[frame]) for layer in band.layers]
        if seen == band.seen and not ((drawn >= first) & (drawn < end)).any():
            return drawn[:0]
        band.seen = seen
        rows = slice(band.rows.start * SIDE, band.rows.stop * SIDE)
        self._canvas[rows] = self._paper[rows]
        bottom = self._drawn.place[0].stop
        if rows.start < bottom < rows.stop:  # within a macroblock
            numbers = self._picture[first : first + self._columns].tolist()
            squares = [self._squares[number] for number in numbers]
            part = np.frombuffer(b"".join(squares), np.uint8).reshape(-1, SIDE, SIDE, 3)
            part = part.swapaxes(0, 1).reshape(SIDE, -1, 3)
            self._canvas[rows.start : bottom] = part[: bottom - rows.start]
        for layer in band.layers:
            layer.paste(self._canvas, frame)
        shape = len(band.rows), SIDE, self._columns, SIDE, 3
        numbers = self._numbers_of(self._canvas[rows].reshape(shape).swapaxes(1, 2))
        changed = first + np.flatnonzero(self._shown[first:end] != numbers)
        self._shown[first:end] = numbers
        return changed

    def _rows_of_all(self) -> list[tuple[int, Contents]]:
        shown = self._shown[:-1].reshape(self._rows, self._columns).tolist()
        return [(self._columns * row, tuple(contents)) for row, contents in enumerate(shown)]

    def _slices_of(self, places: np.ndarray) -> list[tuple[int, Contents]]:
        """Return what changes at places, in raster order: macroblocks, or whole rows of them."""
        rows, shown, width = places // self._columns, self._shown, self._columns
        full = np.flatnonzero(np.bincount(rows, minlength=1) > _MOST_OF_A_ROW)
        alone = places[~np.isin(rows, full)] if len(full) else places
        numbers = zip(alone.tolist(), shown[alone].tolist(), strict=True)
        found = [(place, (number,)) for place, number in numbers]
        for first in (full * width).tolist():
            found.append((first, tuple(shown[first : first + width].tolist())))
        return sorted(found) if len(full) else found

    def _changed(self, frame: int) -> np.ndarray:
        """Return the places that change with a frame, (n,), in order."""
        number, picture = self._drawn.find(frame)
        if number != self._group:
            group = self._drawn.group(number)
            self._group, self._done, self._up_to = number, 0, group.up_to
            self._changes, self._contents = group.changes, self._contents_of(group.blocks)
        end = self._up_to(picture)
        _, blocks, contents = self._changes[:, self._done : end]
        self._done = end
        places, contents = self._places[blocks].ravel(), self._contents[contents].ravel()
        before = self._picture[places]
        self._picture[places] = contents  # of several changes of a place the last stays
        places = np.unique(places[self._picture[places] != before])
        places = places[places < self.macroblocks]
        told = [self._written(band, frame, places) for band in self._bands]
        for band in self._bands:
            first, end = band.rows.start * self._columns, band.rows.stop * self._columns
            places = places[(places < first) | (places >= end)]
        self._shown[places] = self._picture[places]
        return np.sort(np.concatenate([places, *told])) if any(map(len, told)) else places

    def _contents_of(self, blocks: np.ndarray) -> np.ndarray:
        """Return the numbers, (blocks, scale * scale), of what enlarged blocks show."""
        scale = self._drawn.scale
        large = blocks.repeat(scale, 2).repeat(scale, 1)
        squares = large.reshape(-1, scale, SIDE, scale, SIDE, 3).swapaxes(2, 3)
        return self._numbers_of(squares).reshape(len(blocks), scale * scale)

    def _numbers_of(self, squares: np.ndarray) -> np.ndarray:
        """Return the numbers of contents, (..., 16, 16, 3) uint8: (n,) int64."""
        data, size = squares.tobytes(), SIDE * SIDE * 3
        return np.array([self._number(data[i : i + size]) for i in range(0, len(data), size)])

    def _number(self, content: bytes) -> int:
        number = self._numbers.get(content)
        if number is None:
            number = self._numbers[content] = self._count
            self._squares[number] = content
            self._count += 1
        return number
