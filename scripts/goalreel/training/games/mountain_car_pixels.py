"""Observations of MountainCar-v0 from the atlas: each picture is drawn and warped once.

The atlas holds every picture that the environment can show, so an observation is a look-up by the
car's position. It is warped when it first occurs.
"""

import numpy as np

from goalreel.pictures.atlas import Atlas
from goalreel.pictures.styles import Style
from goalreel.training.games.warp import SIDE, Warp


class AtlasPixels:
    """The warped pictures of an environment."""

    def __init__(self, atlas: Atlas, style: Style, warp: Warp):
        """Reserve room for all pictures of an atlas."""
        self._atlas, self._style, self._warp = atlas, style, warp
        self._frames = np.empty((len(atlas.keys), SIDE, SIDE), np.uint8)
        self._warped = np.zeros(len(atlas.keys), bool)

    def warp_all(self) -> None:
        """Warp all pictures now, which takes some seconds."""
        self._warp_these(np.arange(len(self._warped)))

    def observe(self, positions: np.ndarray) -> np.ndarray:
        """Return the observations at positions, (n,) float64: (n, 84, 84) uint8."""
        keys = self._style.keys(positions)
        pictures = self._atlas.find(keys)
        self._warp_these(pictures)
        obs = np.take(self._frames, np.maximum(pictures, 0), axis=0)
        for lane in np.flatnonzero(pictures < 0):  # not in the atlas: see render_native
            background, drawn = self._style.draw(keys[lane : lane + 1])
            frame = background.copy()
            for top, left, pixels in drawn:
                frame[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
            obs[lane] = self._warp(frame)
        return obs

    def _warp_these(self, pictures: np.ndarray) -> None:
        """Warp those of the pictures that are not; -1 is none."""
        new = pictures[~self._warped[pictures]]
        for picture in np.unique(new[new >= 0]):
            frame = self._atlas.background.copy()
            self._atlas.patches.paste(frame, picture)
            self._frames[picture] = self._warp(frame)
            self._warped[picture] = True
