"""Frames as the encoder takes them: planar yuv420p, BT.709, limited range.

Every patch is converted once, so that a frame costs a few small copies. Chroma is the mean of
each 2x2 block, sited in its centre. Source of the matrix: Rec. ITU-R BT.709-6, 3 and 4; integer
arithmetic, so that every machine rounds alike.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from goalreel.arrays import ranges
from goalreel.environments.drawing.block_store import SIDE, grid
from goalreel.rendering.blocks import Drawn
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import NOTHING, Layer, Patches

_KR, _KB = 0.2126, 0.0722
_KG = 1 - _KR - _KB
_BITS = 22  # of the fixed-point coefficients: 255 and its rounding stay below 2**31
_LUMA = np.array([_KR, _KG, _KB]) * 219 / 255
_BLUE = np.array([-_KR, -_KG, 1 - _KB]) / (2 * (1 - _KB)) * 224 / 255
_RED = np.array([1 - _KR, -_KG, -_KB]) / (2 * (1 - _KR)) * 224 / 255
# Pixels that are converted at a time, so that the temporaries stay in the CPU's cache.
_CHUNK = 1 << 15
_SHARES = 1, 2, 2  # rows of a frame, and columns, that a sample of Y, U and V covers
_PAIRS = (0, 0), (0, 1), (1, 1)  # of two neighbours in a row or column, those whose mean is taken


class Yuv420p:
    """A frame cache's frames in yuv420p: `view[i]` is (H * 3 / 2, W) uint8, planes Y, U, V.

    size: (width, height) in pixels
    """

    def __init__(self, cache: FrameCache):
        """Convert the background and every patch of `cache`, whose frames have even sides."""
        height, width = cache.background.shape[:2]
        self.size = (width, height)
        self._cache = cache
        self._shape = (height * 3 // 2, width)
        self._background = planar(cache.background).reshape(-1)
        self._drawn = next((layer for layer in cache.layers if isinstance(layer, Drawn)), None)
        self._layers = [layer for layer in cache.layers if isinstance(layer, Layer)]
        self._patches = [patch_planes(layer.patches) for layer in self._layers]

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._cache)

    def __getitem__(self, frame: int) -> np.ndarray:
        """Return one frame, an array of its own."""
        number = range(len(self))[frame]
        return next(self.frames(range(number, number + 1))).copy()

    def frames(self, which: range | None = None) -> Iterator[np.ndarray]:
        """Yield frames in one buffer that is written anew for each: use it before the next."""
        buffer = self._background.copy()
        canvas = planes(buffer.reshape(self._shape))
        clean = planes(self._background.reshape(self._shape))  # the frame without patches
        drawn = _DrawnPlanes(self._drawn, canvas) if self._drawn else None
        before = [NOTHING] * len(self._patches)
        indices = [layer.index.tolist() for layer in self._layers]
        for frame in which if which is not None else range(len(self)):
            now = [index[frame] for index in indices]
            if drawn:
                drawn.show(frame)
            if now != before:
                for parts in self._parts(before):
                    for plane, below, (place, _) in zip(canvas, clean, parts, strict=True):
                        plane[place] = below[place]
                for parts in self._parts(now):
                    for plane, (place, samples) in zip(canvas, parts, strict=True):
                        plane[place] = samples
                before = now
            yield buffer.reshape(self._shape)

    def _parts(self, numbers: Sequence[int]) -> list[tuple]:
        """Return a frame's patches, given each layer's number."""
        layers = zip(self._patches, numbers, strict=False)
        return [patches[number] for patches, number in layers if number != NOTHING]


class _DrawnPlanes:
    """A layer of drawn pictures, kept in planes from frame to frame: only changes are pasted."""

    def __init__(self, layer: Drawn, canvas: Sequence[np.ndarray]):
        """Begin without a picture; canvas: the frame's planes, in which pictures are shown."""
        self._layer, self._repeats = layer, _repeats(layer.scale)
        rows, columns = grid(layer.size)
        sides = [SIDE * layer.scale // share for share in _SHARES]
        whole = [np.empty((rows * side, columns * side), np.uint8) for side in sides]
        self._tiles = [
            plane.reshape(rows, side, columns, side).swapaxes(1, 2)
            for plane, side in zip(whole, sides, strict=True)
        ]
        # The picture is the upper left part of whole blocks, and a part of the frame.
        self._shown = []
        for plane, target, share in zip(whole, canvas, _SHARES, strict=True):
            shown = target[tuple(slice(s.start // share, s.stop // share) for s in layer.place)]
            self._shown.append((shown, plane[: shown.shape[0], : shown.shape[1]]))
        self._number = -1  # of the group that is shown

    def _open(self, number: int) -> None:
        group = self._layer.group(number)
        self._number, self._group, self._done = number, group, 0
        self._blocks = block_planes(group.blocks, self._layer.scale)
        self._places = np.divmod(group.changes[1], self._tiles[0].shape[1])

    def show(self, frame: int) -> None:
        """Show a frame's picture: paste what changes up to it."""
        number, picture = self._layer.find(frame)
        if number != self._number:
            self._open(number)
        end = self._group.up_to(picture)
        if end == self._done:
            return
        changes = slice(self._done if end > self._done else 0, end)
        row, column = (part[changes] for part in self._places)
        shown = self._group.changes[2, changes]
        for tiles, blocks, repeats in zip(self._tiles, self._blocks, self._repeats, strict=True):
            part = blocks[shown]
            if repeats is not None:
                part = part.repeat(repeats, 2).repeat(repeats, 1)
            tiles[row, column] = part  # of several changes of a place the last stays
        self._done = end
        first, last = int(row.min()), int(row.max()) + 1
        for (target, plane), tiles in zip(self._shown, self._tiles, strict=True):
            rows = slice(first * tiles.shape[2], last * tiles.shape[2])
            target[rows] = plane[rows]


def planar(frame: np.ndarray) -> np.ndarray:
    """Return an RGB frame, (H, W, 3) uint8, H and W even, as (H * 3 / 2, W) uint8 in yuv420p."""
    height, width = frame.shape[:2]
    box = np.array([[0, 0, height, width]], np.int32)
    flat = np.concatenate(_convert(Patches(box, frame.reshape(-1, 3))))
    return flat.reshape(height * 3 // 2, width)


def patch_planes(patches: Patches) -> list[tuple]:
    """Return each patch, sides even, in yuv420p: its (place, samples) in each of Y, U and V.

    place: two slices of the plane; samples: (h, w) uint8.
    """
    parts, (luma, blue, red) = [], _convert(patches)
    bounds = itertools.pairwise(patches.offsets.tolist())
    for (top, left, height, width), (start, end) in zip(
        patches.boxes.tolist(), bounds, strict=True
    ):
        place = (slice(top, top + height), slice(left, left + width))
        half = (slice(top // 2, (top + height) // 2), slice(left // 2, (left + width) // 2))
        small, quarter = (height // 2, width // 2), slice(start // 4, end // 4)
        parts.append(
            (
                (place, luma[start:end].reshape(height, width)),
                (half, blue[quarter].reshape(small)),
                (half, red[quarter].reshape(small)),
            )
        )
    return parts


def block_planes(blocks: np.ndarray, scale: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (m, 16, 16, 3) blocks, enlarged, in yuv420p, with what is alike told once.

    `_repeats` says how many times each row and column of the three comes, (m, h, w) uint8 each.
    """
    kinds = [kind for kind, times in zip(_PAIRS, _times(scale), strict=True) if times]
    # A slice, where it will do, takes less time than numbers.
    first, second = (
        slice(ends[0], None, 2)
        if len(ends) == 1
        else np.add.outer(np.arange(0, SIDE, 2), ends).ravel()
        for ends in zip(*kinds, strict=True)
    )
    count, half = len(blocks), SIDE // 2 * len(kinds)
    luma = np.empty((count, SIDE, SIDE), np.uint8)
    blue, red = np.empty((2, count, half, half), np.uint8)
    step = _CHUNK // SIDE**2
    for start in range(0, count, step):
        part = slice(start, start + step)
        channels = _channels(blocks[part].reshape(-1, 3))
        luma[part] = _weighted(channels, _LUMA, 16, 1).reshape(-1, SIDE, SIDE)
        rows = channels.reshape(3, -1, SIDE, SIDE)
        pairs = rows[:, :, first] + rows[:, :, second]
        quads = (pairs[..., first] + pairs[..., second]).reshape(3, -1)
        blue[part] = _weighted(quads, _BLUE, 128, 4).reshape(-1, half, half)
        red[part] = _weighted(quads, _RED, 128, 4).reshape(-1, half, half)
    return luma, blue, red


def _times(scale: int) -> tuple[int, int, int]:
    """Return how many chroma samples two neighbours give: of the one, of both, of the other."""
    return scale // 2, scale % 2, scale // 2


def _repeats(scale: int) -> list[np.ndarray | None]:
    """Return how many times each row or column of a block's planes comes, None for once each."""
    if scale == 1:
        return [None] * 3
    chroma = np.tile([times for times in _times(scale) if times], SIDE // 2)
    return [np.full(SIDE, scale), chroma, chroma]


def planes(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return views of a yuv420p picture, (H * 3 / 2, W): (H, W) and two (H / 2, W / 2)."""
    height, width = picture.shape[0] * 2 // 3, picture.shape[1]
    luma, blue, red = np.split(picture.reshape(-1), np.array([4, 5]) * (height * width // 4))
    chroma = (height // 2, width // 2)
    return luma.reshape(height, width), blue.reshape(chroma), red.reshape(chroma)


def joined(luma: np.ndarray, blue: np.ndarray, red: np.ndarray) -> np.ndarray:
    """Return (H, W) and two (H / 2, W / 2) uint8 planes as a picture, (H * 3 / 2, W) uint8."""
    flat = np.concatenate([luma.reshape(-1), blue.reshape(-1), red.reshape(-1)])
    return flat.reshape(-1, luma.shape[1])


def rows(picture: np.ndarray, top: int, bottom: int) -> np.ndarray:
    """Return rows `top` to `bottom`, even, of a yuv420p picture, a picture of its own."""
    luma, blue, red = planes(picture)
    half = slice(top // 2, bottom // 2)
    return joined(luma[top:bottom], blue[half], red[half])


def pad16(picture: np.ndarray) -> np.ndarray:
    """Return a yuv420p picture, (H * 3 / 2, W), both even, with sides that are multiples of 16.

    The last row and column are repeated below and to the right, where a decoder crops.
    """
    luma, *chroma = planes(picture)
    down, across = -luma.shape[0] % 16, -luma.shape[1] % 16
    half = ((0, down // 2), (0, across // 2))
    padded = np.pad(luma, ((0, down), (0, across)), "edge")
    return joined(padded, *(np.pad(plane, half, "edge") for plane in chroma))


def _convert(patches: Patches) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return patches in yuv420p, end to end: luma of h * w, blue and red of a quarter of that."""
    heights, widths = patches.boxes[:, 2:].astype(np.int64).T
    luma = _weigh(patches.pixels, _LUMA, 16, 1)
    # Widths are even, so that neighbours in the flat array are neighbours in a row ...
    pairs = patches.pixels[0::2].astype(np.uint16) + patches.pixels[1::2]
    # ... and each pair of rows is an upper and a lower run of width / 2 sums.
    runs = np.repeat(widths // 2, heights // 2)
    pair = ranges(np.zeros_like(heights), heights // 2)  # 0, 1, ... in each patch
    steps, starts = (np.repeat(n, heights // 2) for n in (widths, patches.offsets[:-1] // 2))
    first = ranges(starts + pair * steps, runs)
    blocks = pairs[first] + pairs[first + np.repeat(runs, runs)]
    return luma, _weigh(blocks, _BLUE, 128, 4), _weigh(blocks, _RED, 128, 4)


def _weigh(pixels: np.ndarray, weights: np.ndarray, offset: int, share: int) -> np.ndarray:
    """Return round(pixels @ weights / share + offset) of (n, 3) integers as (n,) uint8."""
    samples = np.empty(len(pixels), np.uint8)
    for start in range(0, len(pixels), _CHUNK):
        part = slice(start, start + _CHUNK)
        samples[part] = _weighted(_channels(pixels[part]), weights, offset, share)
    return samples


def _channels(pixels: np.ndarray) -> np.ndarray:
    """Return (n, 3) pixels as (3, n) int32, whose rows are added faster."""
    return pixels.T.astype(np.int32, order="C")


def _weighted(channels: np.ndarray, weights: np.ndarray, offset: int, share: int) -> np.ndarray:
    """Return what `_weigh` does, of `_channels`, as int32."""
    fixed = np.round(weights * (1 << _BITS) / share).astype(np.int32)
    bias = np.int32((offset << _BITS) + (1 << (_BITS - 1)))
    products = channels * fixed[:, None]
    total = products[0] + products[1]
    total += products[2]
    total += bias
    return total >> _BITS
