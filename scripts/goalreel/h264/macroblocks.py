"""Macroblocks: what patches change of a picture, cut into the squares that H.264 codes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.arrays import ranges

SIDE = 16  # of a macroblock, in luma samples
_SIDES = (SIDE, SIDE // 2, SIDE // 2)  # in the samples of each plane
_CHUNK = 4096  # macroblocks that are coded at a time, so that the temporaries stay small

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]
# A patch: for each plane the place in it, as two slices, and the samples there.
Patch = Sequence[tuple[tuple[slice, slice], np.ndarray]]


@dataclass(frozen=True)
class Region:
    """The macroblocks of a slice: whole rows of the picture, or a part of one row."""

    top: int  # all in macroblocks
    left: int
    height: int
    width: int
    columns: int  # the picture's width

    @property
    def first(self) -> int:
        """The address of the first macroblock (first_mb_in_slice)."""
        return self.top * self.columns + self.left

    @property
    def size(self) -> int:
        """The number of macroblocks."""
        return self.height * self.width


@dataclass(frozen=True)
class Macroblocks:
    """Macroblocks of several pictures, picture by picture, in raster order of each one's box.

    A neighbour is a number here, SKIPPED for one that is not here, OUTSIDE for none in the region.
    """

    picture: np.ndarray  # (n,) each one's picture
    address: np.ndarray  # (n,) its number in the region
    left: np.ndarray  # (n,) its neighbour there
    above: np.ndarray  # (n,)
    wanted: Planes  # Y, U and V, (n, 16, 16) and twice (n, 8, 8) int16
    reference: Planes  # as wanted


SKIPPED, OUTSIDE = -1, -2


def chunks(patches: Sequence[Patch]) -> Iterator[Sequence[Patch]]:
    """Yield patches by the chunk, about _CHUNK macroblocks each."""
    start, size = 0, 0
    for number, patch in enumerate(patches):
        height, width = patch[0][1].shape
        size += (height // SIDE + 2) * (width // SIDE + 2)
        if size > _CHUNK:
            yield patches[start : number + 1]
            start, size = number + 1, 0
    if start < len(patches):
        yield patches[start:]


def cut(
    reference: Planes, background: Planes, patches: Sequence[Patch], region: Region
) -> Macroblocks:
    """Return the macroblocks that patches touch in a region.

    reference: the planes that a decoder holds, whole macroblocks in size; background: those that
    the patches are pasted into.
    """
    boxes = np.array([_box(patch[0][0], region) for patch in patches], np.int64).reshape(-1, 4)
    heights, widths = np.maximum(boxes[:, 2:] - boxes[:, :2], 0).T
    counts = heights * widths
    picture = np.repeat(np.arange(len(patches)), counts)
    row, column = np.divmod(ranges(np.zeros_like(counts), counts), widths[picture])
    top, lft = boxes[picture, 0] + row, boxes[picture, 1] + column
    number = np.arange(len(picture))
    outside = np.where(lft == region.left, OUTSIDE, SKIPPED)
    left = np.where(column > 0, number - 1, outside)
    outside = np.where(top == region.top, OUTSIDE, SKIPPED)
    above = np.where(row > 0, number - widths[picture], outside)
    squares = top * region.columns + lft
    return Macroblocks(
        picture,
        (top - region.top) * region.width + lft - region.left,
        left,
        above,
        tuple(
            _pasted(plane, [patch[n] for patch in patches], boxes, side)
            for n, (plane, side) in enumerate(zip(background, _SIDES, strict=True))
        ),
        tuple(
            _squares(plane, side).reshape(-1, side, side)[squares].astype(np.int16)
            for plane, side in zip(reference, _SIDES, strict=True)
        ),
    )


def _box(place: tuple[slice, slice], region: Region) -> tuple[int, int, int, int]:
    """Return top, left, bottom and right, in macroblocks, of what a region shows of a patch."""
    rows, columns = place
    return (
        max(rows.start // SIDE, region.top),
        max(columns.start // SIDE, region.left),
        min(-(-rows.stop // SIDE), region.top + region.height),
        min(-(-columns.stop // SIDE), region.left + region.width),
    )


def _pasted(under: np.ndarray, patches: Sequence, boxes: np.ndarray, side: int) -> np.ndarray:
    """Return boxes of a plane with patches in them as far as they reach: (n, side, side) int16.

    patches: (place, samples) of each; boxes: (patches, 4) in macroblocks
    """
    shown = []
    for ((rows, columns), samples), (t, lft, b, r) in zip(
        patches, (boxes * side).tolist(), strict=True
    ):
        if b <= t or r <= lft:
            continue
        plane = under[t:b, lft:r].copy()
        first, last = max(t, rows.start), min(b, rows.stop)
        start, stop = max(lft, columns.start), min(r, columns.stop)
        plane[first - t : last - t, start - lft : stop - lft] = samples[
            first - rows.start : last - rows.start, start - columns.start : stop - columns.start
        ]
        shown.append(_squares(plane, side).reshape(-1, side, side))
    return np.concatenate([np.empty((0, side, side), np.int16), *shown], dtype=np.int16)


def _squares(plane: np.ndarray, side: int) -> np.ndarray:
    """Return a view of a plane's squares: (rows, columns, side, side)."""
    rows, columns = plane.shape[0] // side, plane.shape[1] // side
    return plane.reshape(rows, side, columns, side).swapaxes(1, 2)
