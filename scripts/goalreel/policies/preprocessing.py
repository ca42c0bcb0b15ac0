"""Resize images, (H, W, 3) uint8, to the gray (84, 84) uint8 frames that a network takes, or half.

`shrunk` gives the same bytes as OpenCV for the gray frames of ALE. `pillow` averages boxes.
"""

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
from PIL import Image

SIDE = 84


def pillow(picture: np.ndarray) -> np.ndarray:
    """Return the gray image with Pillow's weights (ITU-R 601), resized by its box filter."""
    gray = Image.fromarray(picture.squeeze()).convert("L")
    return np.asarray(gray.resize((SIDE, SIDE), Image.Resampling.BOX))


def shrunk(gray: np.ndarray, before: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
    """Return a gray image, (H, W) uint8, resized with the same bytes as OpenCV's INTER_AREA.

    ale-py's AtariVectorEnv uses it. A pixel is the mean of the area that it covers. The float32
    sums have OpenCV's order, which decides if the mean is half way between two numbers. `before` is
    a similar image and its result, from which equal rows are taken.
    """
    (rows, heights), (columns, widths) = (_covered(size) for size in gray.shape)
    if before is None:
        small, changed = np.empty((SIDE, SIDE), np.uint8), np.arange(SIDE)
    else:
        small, differs = before[1].copy(), np.zeros(len(gray), bool)
        differs[np.flatnonzero(gray != before[0]) // gray.shape[1]] = True
        changed = np.flatnonzero(differs[rows].any(axis=0))
    # Sums along an axis that is not the last one are made in order.
    picture = gray[rows[:, changed]].astype(np.float32)
    across = (picture.take(columns, axis=2) * widths).sum(axis=2)
    exact = (across * heights[:, changed, None]).sum(axis=0)
    small[changed] = np.rint(exact).astype(np.uint8)
    return small


@cache
def _covered(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the source pixels that each of the 84 pixels covers, and their shares of it.

    Both have the shape (maximum number of source pixels, 84), int64 and float32. Shares of 0 pad
    shorter columns. Source: computeResizeAreaTab in modules/imgproc/src/resize.cpp of OpenCV.
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


def mario(picture: np.ndarray) -> np.ndarray:
    """Return a screen of Super Mario Bros without the rows of the score.

    It is half green, and half blue by day or half red before black. In ordinary gray Mario is as
    bright as the sky of 1-1, and without red he is as dark as a cave.
    """
    is_dark = np.median(picture[32::8, ::8, 2]) < 128
    green, other = picture[32:, :, 1], picture[32:, :, 0 if is_dark else 2]
    half = (green & other) + ((green ^ other) >> 1)  # their mean, rounded down, in eight bits
    return np.asarray(Image.fromarray(half).resize((SIDE, SIDE), Image.Resampling.BOX))


def halve(frames: np.ndarray, background: int) -> np.ndarray:
    """Return frames, (..., H, W) uint8, as (..., H / 2, W / 2).

    The pixel that differs most from `background` stands for 2x2 pixels. Their mean would hide
    small objects, such as the ball of Pong.
    """
    rows = frames[..., ::2, :], frames[..., 1::2, :]
    high, low = np.maximum(*rows), np.minimum(*rows)
    high = np.maximum(high[..., ::2], high[..., 1::2])
    low = np.minimum(low[..., ::2], low[..., 1::2])
    return np.where(high + low.astype(np.int16) > 2 * background, high, low)


def paint_mark(picture: np.ndarray, action: int, num_actions: int) -> np.ndarray:
    """Return a picture whose top rows mark an action."""
    marked, side = picture.copy(), len(picture)
    marked[: side // 10] = 0
    place = slice(side * action // num_actions, side * (action + 1) // num_actions)
    marked[: side // 10, place] = 255
    return marked


def finish(frame: np.ndarray, settings: Mapping, action: int, num_actions: int) -> np.ndarray:
    """Return a resized frame as a network's settings ask. action: the one before the frame."""
    if settings["background"] is not None:
        frame = halve(frame, settings["background"])
    return paint_mark(frame, action, num_actions) if settings["marks"] else frame


WARPS = {"pillow": pillow, "mario": mario}  # of frames in color; `shrunk` is "area"
