"""Layers of deduplicated patches pasted over a background, such as the car or a caption."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from goalreel.arrays import paste

NOTHING = -1  # the index of a frame without a patch


@dataclass(frozen=True)
class Patches:
    """Opaque boxes of pixels, stored end to end.

    Boxes start and end at even coordinates, except at the border of an odd frame, so that no 2x2
    pixels that share a chroma sample are split.
    """

    boxes: np.ndarray  # (patches, 4) int32: top, left, height, width
    pixels: np.ndarray  # (sum of height * width, 3) uint8, row by row

    def __len__(self) -> int:
        return len(self.boxes)

    @cached_property
    def offsets(self) -> np.ndarray:
        """The index of each patch's first pixel: (patches + 1,) int64."""
        sizes = self.boxes[:, 2].astype(np.int64) * self.boxes[:, 3]
        return np.concatenate([[0], np.cumsum(sizes)])

    def take(self, chosen: np.ndarray) -> "Patches":
        """Return the chosen patches, in the given order."""
        starts, ends = self.offsets[chosen].tolist(), self.offsets[np.asarray(chosen) + 1].tolist()
        parts = [self.pixels[a:b] for a, b in zip(starts, ends, strict=True)]
        return Patches(self.boxes[chosen], np.concatenate([self.pixels[:0], *parts]))

    def digests(self) -> list[bytes]:
        """Return a 16-byte hash of each patch's box and pixels."""
        boxes = self.boxes.astype("<i4")
        bounds = zip(self.offsets.tolist(), self.offsets[1:].tolist(), strict=False)
        return [
            hashlib.blake2b(self.pixels[a:b], digest_size=16, key=box.tobytes()).digest()
            for box, (a, b) in zip(boxes, bounds, strict=True)
        ]

    def paste(self, frame: np.ndarray, patch: int) -> None:
        """Write a patch into `frame`, (H, W, 3) uint8."""
        top, left, height, width = self.boxes[patch].tolist()
        pixels = self.pixels[self.offsets[patch] : self.offsets[patch + 1]]
        paste(frame, pixels.reshape(height, width, 3), top, left)


@dataclass(frozen=True)
class Layer:
    """Distinct patches, and the one that each frame shows."""

    name: str
    patches: Patches
    index: np.ndarray  # (frames,) int32, the patch of each frame, or NOTHING

    def paste(self, canvas: np.ndarray, frame: int) -> None:
        """Write the patch of a frame into `canvas`, (H, W, 3) uint8."""
        patch = int(self.index[frame])
        if patch != NOTHING:
            self.patches.paste(canvas, patch)


def join(parts: Iterable[Patches]) -> Patches:
    """Return the patches of all `parts` in order."""
    parts = list(parts)
    boxes, pixels = [p.boxes for p in parts], [p.pixels for p in parts]
    return Patches(np.concatenate(boxes), np.concatenate(pixels))


def cut_patches(background: np.ndarray, images: Iterable[tuple[int, int, np.ndarray]]) -> Patches:
    """Return the smallest even-aligned patches that turn `background` into each image.

    Images are (top, left, pixels (h, w, 3)) and equal the background outside of this box. An image
    that equals it everywhere gives an empty patch.
    """
    boxes, pixels = [], [np.zeros((0, 3), np.uint8)]
    for top, left, image in images:
        height, width = image.shape[:2]
        under = background[top : top + height, left : left + width]
        changed = image != under
        # Flatten rows first: reducing over the short last axis takes four times as long.
        rows = np.flatnonzero(changed.reshape(height, -1).any(axis=1))
        if len(rows) == 0:
            boxes.append((0, 0, 0, 0))
            continue
        columns = np.flatnonzero(changed[rows[0] : rows[-1] + 1].any(axis=0).any(axis=1))
        # Extend the box to even coordinates with pixels of the background.
        t, b = (top + rows[0]) & ~1, (top + rows[-1] + 2) & ~1
        lft, r = (left + columns[0]) & ~1, (left + columns[-1] + 2) & ~1
        patch = background[t:b, lft:r].copy()
        inner = image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        paste(patch, inner, top + rows[0] - t, left + columns[0] - lft)
        boxes.append((t, lft, *patch.shape[:2]))
        pixels.append(patch.reshape(-1, 3))
    return Patches(np.array(boxes, np.int32).reshape(-1, 4), np.concatenate(pixels))
