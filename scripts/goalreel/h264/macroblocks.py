"""Macroblocks: what patches change of a picture, cut into the squares that H.264 codes.

How they are predicted stands in prediction, how they become bits in inter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError

SIDE = 16  # of a macroblock, in luma samples
_CHUNK = 4096  # macroblocks that are coded at a time, so that the temporaries stay small

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]
# A patch: for each plane the place in it, as two slices, and the samples there.
Patch = Sequence[tuple[tuple[slice, slice], np.ndarray]]


@dataclass(frozen=True)
class Region:
    """The macroblocks of a slice: whole rows of the picture, or a part of one row.

    top, left, height, width: in macroblocks; columns: the picture's width in macroblocks
    """

    top: int
    left: int
    height: int
    width: int
    columns: int

    def __post_init__(self) -> None:
        """Refuse what no slice can be."""
        if self.height != 1 and self.width != self.columns:
            raise GoalreelError(f"{self} is no run of macroblocks")

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

    picture: (n,) each one's picture; address: (n,) its number in the region
    left, above: (n,) the number of the neighbour here, SKIPPED for one that is not here, OUTSIDE
    for none in the region
    wanted, reference: Y, U and V, (n, 16, 16) and twice (n, 8, 8) int16
    """

    picture: np.ndarray
    address: np.ndarray
    left: np.ndarray
    above: np.ndarray
    wanted: Planes
    reference: Planes


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
    boxes = [_box(patch[0][0], region) for patch in patches]
    counts = [max(b - t, 0) * max(r - lft, 0) for t, lft, b, r in boxes]
    total, start = sum(counts), 0
    address, left, above = np.empty((3, total), np.int64)
    sides = (SIDE, SIDE // 2, SIDE // 2)
    wanted, under = (tuple(np.empty((total, s, s), np.int16) for s in sides) for _ in range(2))
    for patch, (t, lft, b, r), count in zip(patches, boxes, counts, strict=True):
        if not count:
            continue
        here, width = slice(start, start + count), r - lft
        numbers = np.arange(start, start + count).reshape(b - t, width)
        rows, columns = np.arange(t, b)[:, None] - region.top, np.arange(lft, r) - region.left
        address[here] = (rows * region.width + columns).ravel()
        left[here] = _neighbours(numbers, lft == region.left).ravel()
        above[here] = _neighbours(numbers.T, t == region.top).T.ravel()
        for number, (place, samples) in enumerate(patch):
            side = sides[number]
            box = (slice(t * side, b * side), slice(lft * side, r * side))
            shown = _pasted(background[number], box, place, samples)
            wanted[number][here] = _squares(shown, side)
            under[number][here] = _squares(reference[number][box], side)
        start += count
    picture = np.repeat(np.arange(len(patches)), counts)
    return Macroblocks(picture, address, left, above, wanted, under)


def _box(place: tuple[slice, slice], region: Region) -> tuple[int, int, int, int]:
    """Return top, left, bottom and right, in macroblocks, of what a region shows of a patch."""
    rows, columns = place
    return (
        max(rows.start // SIDE, region.top),
        max(columns.start // SIDE, region.left),
        min(-(-rows.stop // SIDE), region.top + region.height),
        min(-(-columns.stop // SIDE), region.left + region.width),
    )


def _neighbours(numbers: np.ndarray, at_border: bool) -> np.ndarray:
    """Return the number one column before each one."""
    outside = OUTSIDE if at_border else SKIPPED
    return np.pad(numbers[:, :-1], ((0, 0), (1, 0)), constant_values=outside)


def _pasted(under: np.ndarray, box: tuple, place: tuple, samples: np.ndarray) -> np.ndarray:
    """Return a box of a plane, int16, with a patch in it as far as it reaches."""
    shown = under[box].astype(np.int16)
    cuts = [
        (max(b.start, p.start), min(b.stop, p.stop), b.start, p.start)
        for b, p in zip(box, place, strict=True)
    ]
    target = tuple(slice(start - b, stop - b) for start, stop, b, _ in cuts)
    source = tuple(slice(start - p, stop - p) for start, stop, _, p in cuts)
    shown[target] = samples[source]
    return shown


def _squares(plane: np.ndarray, side: int) -> np.ndarray:
    """Return a plane as its squares in raster order: (n, side, side)."""
    rows, columns = plane.shape[0] // side, plane.shape[1] // side
    return plane.reshape(rows, side, columns, side).swapaxes(1, 2).reshape(-1, side, side)
