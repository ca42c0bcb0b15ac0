"""What a network sees of Mountain Car: each picture of Gymnasium's, warped, whoever looks it up."""

import importlib.util

import gymnasium as gym
import numpy as np
import pytest
from conftest import DISCRETE, STYLES

from goalreel.errors import GoalreelError
from goalreel.training.games import warp
from goalreel.training.games.mountain_car_pixels import AtlasPixels

OPENCV = importlib.util.find_spec("cv2") is not None
NEEDS_OPENCV = pytest.mark.skipif(not OPENCV, reason="takes OpenCV, which is no requirement")


@pytest.mark.parametrize("name", [pytest.param("area", marks=NEEDS_OPENCV), "pillow", "slice"])
def test_it_is_gymnasiums_picture_warped(atlases, name):
    cars = AtlasPixels(atlases[DISCRETE], STYLES[DISCRETE], warp.WARPS[name])
    env = gym.make(DISCRETE, render_mode="rgb_array")
    env.action_space.seed(3)
    positions, wanted = [], []
    for seed in range(3):
        env.reset(seed=seed)
        for _ in range(60):
            env.step(env.action_space.sample())
            positions.append(float(env.unwrapped.state[0]))
            wanted.append(warp.WARPS[name](env.render()))
    env.close()
    seen = cars.observe(np.array(positions))
    assert seen.dtype == np.uint8 and np.array_equal(seen, np.stack(wanted))
    assert len(np.unique(seen, axis=0)) > 30, "the car is seen to move"


@NEEDS_OPENCV
def test_area_is_stable_baselines3s_warp():
    import cv2

    picture = np.random.default_rng(0).integers(0, 256, (400, 600, 3), np.uint8)
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    wanted = cv2.resize(grey, (84, 84), interpolation=cv2.INTER_AREA)
    assert np.array_equal(warp.area(picture), wanted)


def test_without_opencv_the_other_warps_are_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cv2", None)
    with pytest.raises(GoalreelError, match="needs OpenCV.*'pillow' and 'slice' need nothing"):
        warp.area(np.zeros((400, 600, 3), np.uint8))
