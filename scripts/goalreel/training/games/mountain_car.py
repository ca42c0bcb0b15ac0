"""MountainCar-v0 as pixels: all cars step at once, and observations are looked up in the atlas."""

import sys
from functools import cache

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.pictures.atlas import Atlas, draw_atlas
from goalreel.pictures.styles import GymnasiumStyle, Style
from goalreel.training.games.car_lanes import Lanes
from goalreel.training.games.lanes import Episode, PixelStep
from goalreel.training.games.settings import CAR_GAME, GameSettings
from goalreel.training.games.warp import SIDE, WARPS, Warp


class AtlasPixels:
    """The pictures that an environment can show, each warped when it first occurs.

    All are in the atlas, so an observation is a look-up by the car's position.
    """

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


@cache
def pixels(warp: str) -> AtlasPixels:
    """Return the pictures by a warp's name, which all lanes of a process share.

    Raises GoalreelError where pygame-ce is missing.
    """
    style = GymnasiumStyle(CAR_GAME)
    try:
        atlas = draw_atlas(style)
    except ModuleNotFoundError as error:
        raise GoalreelError(
            f"{CAR_GAME} is drawn with the packages of requirements.txt; {sys.executable} cannot "
            f"import them ({error})"
        ) from None
    return AtlasPixels(atlas, style, WARPS[warp])


class CarLanes:
    """Lanes of the car, a PixelLanes. A picture is Gymnasium's `render()`, warped."""

    actions = 3

    def __init__(self, settings: GameSettings, seed: int, lanes: int):
        """Draw the atlas, where that is not done, and reset all cars."""
        self._clip = settings.filled().clip_reward
        self._cars = Lanes(seed, lanes, settings.frame_skip)
        self._pixels = pixels(settings.warp)
        self.obs = self._pixels.observe(self._cars.positions)
        self._returns, self._furthest = np.zeros(lanes), self._cars.positions.copy()

    def step(self, actions: np.ndarray) -> PixelStep:
        """Repeat each action for `frame_skip` frames, or until its episode ends."""
        step = self._cars.step(actions)
        next_obs = self._pixels.observe(self._cars.reached)
        over = np.flatnonzero(step.terminated | step.truncated)
        self._returns += step.rewards
        np.maximum(self._furthest, self._cars.reached, out=self._furthest)
        # A frame of an episode gives -1, whatever happens in it.
        ended = tuple(
            Episode(lane, float(total), round(-total), float(self._furthest[lane]))
            for lane, total in zip(over.tolist(), self._returns[over].tolist(), strict=True)
        )
        self.obs = next_obs
        if len(over):
            self.obs = next_obs.copy()
            self.obs[over] = self._pixels.observe(self._cars.positions[over])
            self._returns[over] = 0.0
            self._furthest[over] = self._cars.positions[over]
        rewards = np.sign(step.rewards) if self._clip else step.rewards
        return PixelStep(
            step.frames,
            rewards.astype(np.float32),
            step.terminated,
            step.truncated,
            next_obs,
            ended,
        )

    def close(self) -> None:
        """Do nothing: nothing must be freed."""
