"""Cut pictures with patches into the macroblocks that the patches touch, for `inter`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.arrays import ranges

SIDE = 16  # of a macroblock, in luma samples
SIDES = (SIDE, SIDE // 2, SIDE // 2)  # in samples of Y, U and V
_CHUNK = 4096  # macroblocks per call, which bounds temporary memory

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]
# For each plane, its (row, column) slices and the samples to put there.
Patch = Sequence[tuple[tuple[slice, slice], np.ndarray]]


@dataclass(frozen=True)
class Region:
    """The macroblocks of a slice: whole rows of the picture, or part of one row."""

    top: int  # all fields are in macroblocks
    left: int
    height: int
    width: int
    columns: int  # width of the picture

    @property
    def first(self) -> int:
        """The address of the first macroblock, first_mb_in_slice."""
        return self.top * self.columns + self.left

    @property
    def size(self) -> int:
        """The number of macroblocks."""
        return self.height * self.width


@dataclass(frozen=True)
class Macroblocks:
    """The macroblocks that patches touch, picture by picture, each picture in raster order.

    A neighbor is an index into these arrays, SKIPPED if no patch touches it, or OUTSIDE if the
    region has none.
    """

    picture: np.ndarray  # (n,) index of the patch
    address: np.ndarray  # (n,) raster index in the region
    left: np.ndarray  # (n,) neighbor A
    above: np.ndarray  # (n,) neighbor B (6.4.11)
    source: Planes  # samples to code: Y (n, 16, 16), U and V (n, 8, 8), int16
    reference: Planes  # samples of the reference picture, same shapes


SKIPPED, OUTSIDE = -1, -2


def split(patches: Sequence[Patch]) -> Iterator[Sequence[Patch]]:
    """Split patches into chunks of about _CHUNK macroblocks."""
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
    """Return the macroblocks of a region that patches, one picture each, touch.

    The patches are pasted into the planes of `background`. It and `reference`, the decoded
    reference picture, are padded to whole macroblocks.
    """
    low = np.array([region.top, region.left])
    high = low + (region.height, region.width)
    places = [[(part.start, part.stop) for part in patch[0][0]] for patch in patches]
    starts, stops = np.array(places, np.int64).reshape(-1, 2, 2).transpose(2, 0, 1)
    # (top, left, bottom, right) of the macroblocks of the region that each patch touches.
    boxes = np.hstack([np.maximum(starts // SIDE, low), np.minimum(-(-stops // SIDE), high)])
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
    address = (top - region.top) * region.width + lft - region.left
    pasted = tuple(
        _pasted(plane, [patch[n] for patch in patches], boxes, side)
        for n, (plane, side) in enumerate(zip(background, SIDES, strict=True))
    )
    planes = zip(reference, SIDES, strict=True)
    shown = tuple(_squares(plane, side)[squares].astype(np.int16) for plane, side in planes)
    return Macroblocks(picture, address, left, above, pasted, shown)


def _pasted(under: np.ndarray, patches: Sequence, boxes: np.ndarray, side: int) -> np.ndarray:
    """Return a plane's macroblocks, (n, side, side) int16, with (place, samples) patches."""
    canvas, shown = under.copy(), [np.empty((0, side, side), np.int16)]
    for (place, samples), (t, lft, b, r) in zip(patches, (boxes * side).tolist(), strict=True):
        canvas[place] = samples
        shown.append(_squares(canvas[t:b, lft:r], side).astype(np.int16))
        canvas[place] = under[place]
    return np.concatenate(shown)


def _squares(plane: np.ndarray, side: int) -> np.ndarray:
    """Return the squares of a plane in raster order, (n, side, side)."""
    rows, columns = plane.shape[0] // side, plane.shape[1] // side
    return plane.reshape(rows, side, columns, side).swapaxes(1, 2).reshape(-1, side, side)
