"""Convert RGB frames to planar yuv420p, BT.709, limited range.

Every patch of a frame cache is converted only once, so that a frame costs a few small copies.
Chroma is the mean of each 2x2 block, sited in its center. Integer arithmetic gives the same
samples on every machine.
Source: Rec. ITU-R BT.709-6, 3 and 4 (matrix).
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from goalreel.environments.drawing.block_store import SIDE, grid
from goalreel.h264.macroblocks import Patch, Planes
from goalreel.rendering.blocks import BlockLayer, enlarge_pixels
from goalreel.rendering.frame_cache import FrameCache
from goalreel.rendering.layers import NOTHING, Layer, Patches

_KR, _KB = 0.2126, 0.0722
_KG = 1 - _KR - _KB
_BITS = 22  # fraction bits of the coefficients: 255 plus the rounding stays below 2**31
_LUMA = np.array([_KR, _KG, _KB]) * 219 / 255
_BLUE = np.array([-_KR, -_KG, 1 - _KB]) / (2 * (1 - _KB)) * 224 / 255
_RED = np.array([1 - _KR, -_KG, -_KB]) / (2 * (1 - _KR)) * 224 / 255
_CHUNK = 1 << 17  # samples per step, so that temporaries stay in the CPU cache
_SHARES = 1, 2, 2  # pixels per sample of Y, U and V in each direction


class Yuv420p:
    """The frames of a frame cache, of (width, height) `size`, as yuv420p (H * 3 / 2, W) uint8."""

    def __init__(self, cache: FrameCache):
        """Convert the background and every patch of `cache`, whose frames have even sides."""
        self._cache, self.size = cache, cache.background.shape[1::-1]
        self._background = planar(cache.background)
        self._drawn = next((layer for layer in cache.layers if isinstance(layer, BlockLayer)), None)
        self._layers = [layer for layer in cache.layers if isinstance(layer, Layer)]
        self._patches = [patch_planes(layer.patches) for layer in self._layers]

    def frames(self, which: range | None = None) -> Iterator[np.ndarray]:
        """Yield frames in one reused buffer: use each frame before the next."""
        buffer = self._background.copy()
        canvas, clean = planes(buffer), planes(self._background)  # clean: without patches
        drawn = _DrawnPlanes(self._drawn, canvas) if self._drawn else None
        last_numbers = [NOTHING] * len(self._patches)
        which = range(len(self._cache)) if which is None else which
        indices = [layer.index[which].tolist() for layer in self._layers]
        for number, frame in enumerate(which):
            numbers = [index[number] for index in indices]
            if drawn:
                drawn.show(frame)
            if numbers != last_numbers:
                for parts in self._patches_of(last_numbers):
                    for plane, below, (place, _) in zip(canvas, clean, parts, strict=True):
                        plane[place] = below[place]
                for parts in self._patches_of(numbers):
                    for plane, (place, samples) in zip(canvas, parts, strict=True):
                        plane[place] = samples
                last_numbers = numbers
            yield buffer

    def _patches_of(self, numbers: Sequence[int]) -> list[tuple]:
        """Return the patches of a frame from the patch number of each layer."""
        layers = zip(self._patches, numbers, strict=False)
        return [patches[number] for patches, number in layers if number != NOTHING]


class _DrawnPlanes:
    """The planes of a rendered layer, updated by pasting only the blocks that change."""

    def __init__(self, layer: BlockLayer, canvas: Sequence[np.ndarray]):
        """Start without a picture. The pictures are pasted into `canvas`, the planes of a frame."""
        self._layer = layer
        rows, columns = grid(layer.size)
        sides = [SIDE * layer.scale // share for share in _SHARES]
        whole = [np.empty((rows * side, columns * side), np.uint8) for side in sides]
        self._tiles = [
            plane.reshape(rows, side, columns, side).swapaxes(1, 2)
            for plane, side in zip(whole, sides, strict=True)
        ]
        # The picture is the top left part of the whole blocks, and a part of the frame.
        self._shown = []
        for plane, target, place in zip(whole, canvas, _places(layer.place), strict=True):
            shown = target[place]
            self._shown.append((shown, plane[: shown.shape[0], : shown.shape[1]]))
        self._number = -1  # number of the current group

    def _open(self, number: int) -> None:
        """Convert the blocks of a group and make it the current one."""
        group = self._layer.group(number)
        self._number, self._group, self._done = number, group, 0
        self._blocks = block_planes(enlarge_pixels(group.blocks, self._layer.scale))
        self._places = np.divmod(group.changes[1], self._tiles[0].shape[1])

    def show(self, frame: int) -> None:
        """Paste the changes up to the picture of a frame."""
        number, picture = self._layer.find(frame)
        if number != self._number:
            self._open(number)
        end = self._group.ends[picture]
        if end == self._done:
            return
        changes = slice(self._done if end > self._done else 0, end)
        row, column = (part[changes] for part in self._places)
        shown = self._group.changes[2, changes]
        for tiles, blocks in zip(self._tiles, self._blocks, strict=True):
            tiles[row, column] = blocks[shown]  # the last change of a block wins
        self._done = end
        first, last = int(row.min()), int(row.max()) + 1
        for (target, plane), tiles in zip(self._shown, self._tiles, strict=True):
            rows = slice(first * tiles.shape[2], last * tiles.shape[2])
            target[rows] = plane[rows]


def planar(frame: np.ndarray) -> np.ndarray:
    """Convert an RGB frame, (H, W, 3) uint8 with even sides, to yuv420p, (H * 3 / 2, W) uint8."""
    samples = np.concatenate([plane.reshape(-1) for plane in block_planes(frame[None])])
    return samples.reshape(-1, frame.shape[1])


def planes(picture: np.ndarray) -> Planes:
    """Return Y, U and V of a yuv420p picture, (H * 3 / 2, W), as views."""
    height, width = picture.shape[0] * 2 // 3, picture.shape[1]
    luma, blue, red = np.split(picture.reshape(-1), np.array([4, 5]) * (height * width // 4))
    chroma = (height // 2, width // 2)
    return luma.reshape(height, width), blue.reshape(chroma), red.reshape(chroma)


def whole_planes(frame: np.ndarray) -> Planes:
    """Convert an RGB frame, (H, W, 3) with even sides, to planes padded by `pad_planes`."""
    return pad_planes(planes(planar(frame)))


def pad_planes(picture: Planes) -> Planes:
    """Repeat the last row and column of planes, (..., h, w) each, to whole macroblocks."""
    down, across = (-length % SIDE for length in picture[0].shape[-2:])
    others = [(0, 0)] * (picture[0].ndim - 2)
    shown = zip(picture, _SHARES, strict=True)
    return tuple(np.pad(p, [*others, (0, down // n), (0, across // n)], "edge") for p, n in shown)


def cut_rows(picture: Planes, top: int, bottom: int) -> Planes:
    """Return views of the rows `top` to `bottom` of a picture, both even."""
    return tuple(plane[top // n : bottom // n] for plane, n in zip(picture, _SHARES, strict=True))


def patch_planes(patches: Patches) -> list[Patch]:
    """Convert patches with even sides to yuv420p."""
    converted, boxes = [()] * len(patches), patches.boxes.tolist()
    numbers_of: dict[tuple[int, int], list[int]] = {}
    for number, (_, _, *size) in enumerate(boxes):
        numbers_of.setdefault(tuple(size), []).append(number)
    for size, numbers in numbers_of.items():  # convert patches of one size together
        pixels = patches.take(numbers).pixels.reshape(len(numbers), *size, 3)
        for number, *samples in zip(numbers, *block_planes(pixels), strict=True):
            top, left, height, width = boxes[number]
            place = slice(top, top + height), slice(left, left + width)
            converted[number] = list(zip(_places(place), samples, strict=True))
    return converted


def paste_patches(picture: Planes, box: tuple[slice, slice], patches: Iterable[Patch]) -> Patch:
    """Return a box of a picture with patches pasted into it, as one patch."""
    canvases = [plane.copy() for plane in picture]
    for patch in patches:
        for canvas, (place, samples) in zip(canvases, patch, strict=True):
            canvas[place] = samples
    shown = zip(canvases, _places(box), strict=True)
    return [(place, canvas[place].copy()) for canvas, place in shown]


def block_planes(blocks: np.ndarray) -> Planes:
    """Convert (m, h, w, 3) RGB blocks with even sides to Y (m, h, w), U and V (m, h/2, w/2)."""
    step = max(_CHUNK // max(blocks[:1].size, 1), 1)
    if len(blocks) > step:
        parts = [block_planes(blocks[n : n + step]) for n in range(0, len(blocks), step)]
        return tuple(map(np.concatenate, zip(*parts, strict=True)))
    channels = np.moveaxis(blocks, -1, 0).astype(np.uint16, "C")  # contiguous rows are added faster
    pairs = channels[:, :, 0::2] + channels[:, :, 1::2]
    quads = pairs[..., 0::2] + pairs[..., 1::2]
    return _weigh(channels, _LUMA, 16, 1), _weigh(quads, _BLUE, 128, 4), _weigh(quads, _RED, 128, 4)


def _places(box: Sequence[slice]) -> list[tuple[slice, slice]]:
    """Return an even box of a frame as slices of each plane."""
    return [tuple(slice(s.start // n, s.stop // n) for s in box) for n in _SHARES]


def _weigh(channels: np.ndarray, weights: np.ndarray, offset: int, share: int) -> np.ndarray:
    """Return round(weights @ channels / share + offset) for (3, ...) integers, (...) uint8."""
    fixed = np.round(weights * (1 << _BITS) / share).astype(np.int32)[:, None]
    bias = np.int32((offset << _BITS) + (1 << (_BITS - 1)))
    total = (channels.reshape(3, -1) * fixed).sum(axis=0, dtype=np.int32)
    total += bias
    total >>= _BITS
    return total.astype(np.uint8).reshape(channels.shape[1:])
