"""Warps: from a picture, (H, W, 3) uint8, to the (84, 84) uint8 that a network takes.

By name: `area` is what Stable-Baselines3's WarpFrame does, by OpenCV, which goalreel does not
require; `pillow` averages boxes too, by Pillow; `slice` takes single pixels in steps.
"""

import sys
from collections.abc import Callable

import numpy as np
from PIL import Image

from goalreel.errors import GoalreelError

SIDE = 84
Warp = Callable[[np.ndarray], np.ndarray]


def area(picture: np.ndarray) -> np.ndarray:
    """Grey as OpenCV weighs it, each pixel the mean of the area that it covers."""
    try:
        import cv2
    except ImportError as error:
        raise GoalreelError(
            f"the warp 'area' needs OpenCV, which {sys.executable} cannot import ({error}): "
            f"pip install opencv-python-headless; 'pillow' and 'slice' need nothing"
        ) from None
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    return cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA)


def pillow(picture: np.ndarray) -> np.ndarray:
    """Grey as Pillow weighs it (ITU-R 601), resized by its box filter."""
    grey = Image.fromarray(picture).convert("L")
    return np.asarray(grey.resize((SIDE, SIDE), Image.Resampling.BOX))


def sliced(picture: np.ndarray) -> np.ndarray:
    """Take the green of single pixels, evenly spaced."""
    rows, columns = (np.arange(SIDE) * size // SIDE for size in picture.shape[:2])
    return np.ascontiguousarray(picture[rows[:, None], columns, 1])


WARPS: dict[str, Warp] = {"area": area, "pillow": pillow, "slice": sliced}
