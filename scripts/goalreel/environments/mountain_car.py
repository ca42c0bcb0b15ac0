"""The ids and bounds of the two Mountain Cars, which goalreel computes itself.

How they move stands in physics, how they look in scene.

Source: gymnasium/envs/classic_control/mountain_car.py and continuous_mountain_car.py (1.4.0).
"""

NATIVE = ("MountainCar-v0", "MountainCarContinuous-v0")
MIN_POSITION, MAX_POSITION = -1.2, 0.6
MAX_SPEED = 0.07
GOAL_POSITIONS = dict(zip(NATIVE, (0.5, 0.45), strict=True))
