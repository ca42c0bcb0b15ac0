"""Helpers for ragged arrays stored as offsets, and for images."""

from collections.abc import Sequence

import numpy as np


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the ranges `arange(start, start + length)`, concatenated, as int64."""
    ends = np.cumsum(lengths)
    if len(ends) == 0:
        return np.zeros(0, np.int64)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)


def to_rgb(image: object) -> object:
    """Return an RGB image: without an alpha channel, and a gray one in three channels."""
    shape = getattr(image, "shape", ())
    if len(shape) == 2 or shape[2:] == (1,):
        return np.repeat(image.reshape(*shape[:2], 1), 3, axis=2)
    return image[..., :3] if shape[2:] == (4,) else image


def paste(canvas: np.ndarray, pixels: np.ndarray, top: int, left: int) -> np.ndarray:
    """Write (h, w, 3) pixels into an (H, W, 3) canvas and return the canvas."""
    canvas[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    return canvas


def spread(items: Sequence, count: int) -> list:
    """Return at most `count` items, evenly spaced from first to last; 1 gives the middle one."""
    if count >= len(items):
        return list(items)
    if count == 1:
        return [items[(len(items) - 1) // 2]]
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]
