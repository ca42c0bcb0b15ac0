"""Warps: from a picture, (H, W, 3) uint8, to the (84, 84) uint8 that a network takes.

By name: `area` is what Stable-Baselines3's WarpFrame does by OpenCV, byte for byte; `pillow`
averages boxes too, by Pillow. `shrunk` is the second half of `area`.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from PIL import Image

SIDE = 84
Warp = Callable[[np.ndarray], np.ndarray]


def area(picture: np.ndarray) -> np.ndarray:
    """Grey as OpenCV weighs it, each pixel the mean of the area that it covers."""
    red, green, blue = np.moveaxis(picture.astype(np.int32), 2, 0)
    grey = (9798 * red + 19235 * green + 3735 * blue + (1 << 14)) >> 15
    return shrunk(grey.astype(np.uint8))


def pillow(picture: np.ndarray) -> np.ndarray:
    """Grey as Pillow weighs it (ITU-R 601), resized by its box filter."""
    grey = Image.fromarray(picture).convert("L")
    return np.asarray(grey.resize((SIDE, SIDE), Image.Resampling.BOX))


def shrunk(grey: np.ndarray) -> np.ndarray:
    """Return a grey picture, (H, W) uint8, as OpenCV's INTER_AREA makes it smaller: byte for byte.

    So ale-py's AtariVectorEnv does. A pixel is the mean of the area that it covers; where that is
    half way between two numbers, the order of OpenCV's float32 sums decides, which is kept.
    """
    (rows, heights), (columns, widths) = (_covered(size) for size in grey.shape)
    picture = grey.astype(np.float32)
    across = np.zeros((len(grey), SIDE), np.float32)
    for column, width in zip(columns, widths, strict=True):
        across += picture[:, column] * width
    small = np.zeros((SIDE, SIDE), np.float32)
    for row, height in zip(rows, heights, strict=True):
        small += across[row] * height[:, None]
    return np.rint(small).astype(np.uint8)


@cache
def _covered(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels of `size` that each of 84 covers, and their shares of it.

    Both are (pixels covered at most, 84), int64 and float32, with shares of 0 where it covers
    fewer. Source: computeResizeAreaTab in modules/imgproc/src/resize.cpp of OpenCV.
    """
    scale, covered = size / SIDE, []
    for place in range(SIDE):
        start, end = place * scale, place * scale + scale
        whole, last = math.ceil(start), min(math.floor(end), size - 1)
        cell, whole = min(scale, size - start), min(whole, last)
        shares = [(whole - 1, (whole - start) / cell)] if whole - start > 1e-3 else []
        shares += [(pixel, 1 / cell) for pixel in range(whole, last)]
        shares += [(last, min(end - last, 1.0, cell) / cell)] if end - last > 1e-3 else []
        covered.append(shares)
    most = max(map(len, covered))
    table = np.array([shares + [(0, 0.0)] * (most - len(shares)) for shares in covered])
    return table[:, :, 0].T.astype(np.int64), table[:, :, 1].T.astype(np.float32)


WARPS: dict[str, Warp] = {"area": area, "pillow": pillow}
