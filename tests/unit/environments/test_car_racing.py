"""CarRacing's scene gives the frames and observations of Gymnasium, whatever a driver does."""

import numpy as np
import pytest

from goalreel.environments.drawing.block_store import BlockFrame
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.environments.gymnasium_instance import Instance


def drives(env, seed: int):
    """Return a function from a step to an action: random, full gas with turns, or with brakes."""
    sample = env.action_space.sample
    env.action_space.seed(seed)
    drivers = (
        lambda step: sample(),
        lambda step: np.array([0.8 * np.sin(step / 9 + seed), 1, 0], np.float32),
        lambda step: np.array([0.3 * np.sin(step / 40), 1, 0.6 * (step % 50 > 44)], np.float32),
    )
    return drivers[seed % 3] if env.unwrapped.continuous else drivers[0]


def compare(environment, seed: int, steps: int, reads=lambda step: True, change=lambda env: None):
    """Compare frames, and the observations of some steps; return whether the scene drew them.

    `change` may change both environments before each frame.
    """
    instance, peer = Instance(environment, seed), environment.make()
    expected, drawn = peer.reset(seed=seed)[0], []
    act = drives(instance.env, seed)
    for step in range(steps):
        for env in (instance.env, peer):
            change(env.unwrapped)
        frame = environment.frame(instance.env, None)
        drawn.append(isinstance(frame, BlockFrame))
        pixels = frame.image() if drawn[-1] else frame
        assert np.array_equal(pixels, peer.render()), (seed, step)
        if reads(step):
            assert np.array_equal(instance.observation, expected), (seed, step)
        action = act(step)
        given = instance.step(np.asarray(action))
        expected, reward, *over, _ = peer.step(action)
        assert given == (float(reward), *over)
        if any(over):
            break
    peer.close()
    return drawn


@pytest.mark.parametrize(
    "kwargs",
    [{}, pytest.param({"domain_randomize": True, "continuous": False}, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    ("seeds", "steps"), [(3, 20), pytest.param(25, 1_000, marks=pytest.mark.slow)]
)
def test_car_racing_frames_and_observations_equal_gymnasium(kwargs, seeds, steps):
    environment = GymnasiumEnvironment("CarRacing-v3", kwargs)
    for seed in range(seeds):
        reads = (lambda step: True, lambda step: False, lambda step: step % 7 > 3)[seed % 3]
        assert all(compare(environment, seed, steps, reads))


def test_car_racing_far_out_or_fast_is_drawn():
    environment = GymnasiumEnvironment("CarRacing-v3")

    def leave(env):
        env.car.hull.position = 325.0, 330.0

    def speed(env):
        env.car.hull.linearVelocity = 230.0, 10.0

    assert all(compare(environment, 1, 8, lambda step: False, leave))
    assert not any(compare(environment, 2, 8, lambda step: False, speed))


def test_car_racing_observes_as_gymnasium_at_any_speed():
    environment = GymnasiumEnvironment("CarRacing-v3")
    instance, peer = Instance(environment, 3), environment.make()
    peer.reset(seed=3)
    for speed in (50.0, 250.0, 450.0):  # of the wheels, whose indicators leave the panel
        for env in (instance.env, peer):
            env.unwrapped.car.wheels[0].omega = speed
        action = np.array([0.1, 1, 0], np.float32)
        instance.step(action)
        assert instance.env.unwrapped.car.wheels[0].omega > 0.9 * speed
        assert np.array_equal(instance.observation, peer.step(action)[0]), speed
    peer.close()


def test_car_racing_steps_without_drawing(monkeypatch):
    environment = GymnasiumEnvironment("CarRacing-v3")
    instance = Instance(environment, 5)
    with monkeypatch.context() as patch:
        patch.setattr(type(instance.env.unwrapped), "_render_road", None)
        instance.step(np.array([0, 1, 0], np.float32))
    assert instance.observation.shape == (96, 96, 3)
