"""Step CartPole, Acrobot and Pendulum in batches, bit for bit like Gymnasium 1.4.0.

The order of operations is that of gymnasium/envs/classic_control/{cartpole,acrobot,pendulum}.py.
NumPy computes sines, cosines and remainders equally for scalars and arrays. A scalar's `** 2`,
however, calls the C library's `pow`, which is not always the exact square. On arrays only
`np.float_power` calls it. As in Gymnasium, the C library decides the last bits.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.environments.mountain_car import ComputedEnvs, Transition
from goalreel.environments.seeding import uniform

# States have shape (width, num_envs), with one row for each number of Gymnasium's `state`.


def _pow2(x: np.ndarray) -> np.ndarray:
    """Return x ** 2 as NumPy computes it for float64 scalars."""
    return np.float_power(x, 2.0)


def _step_cartpole(states: np.ndarray, actions: np.ndarray, kwargs: Mapping) -> Transition:
    """Step CartPole by actions (num_envs,) of 0 (push left) and 1 (push right)."""
    gravity, pole_mass, length, tau = 9.8, 0.1, 0.5, 0.02
    mass, moment = pole_mass + 1.0, pole_mass * length
    x, x_dot, theta, theta_dot = states
    force = np.where(actions == 1, 10.0, -10.0)
    cos, sin = np.cos(theta), np.sin(theta)
    pull = (force + moment * np.square(theta_dot) * sin) / mass
    turn = (gravity * sin - cos * pull) / (length * (4.0 / 3.0 - pole_mass * np.square(cos) / mass))
    push = pull - moment * turn * cos / mass
    after = states + tau * np.stack([x_dot, push, theta_dot, turn])
    fallen = (np.abs(after[0]) > 2.4) | (np.abs(after[2]) > 12 * 2 * math.pi / 360)
    rewards = 0.0 - fallen if kwargs.get("sutton_barto_reward") else np.ones(len(fallen))
    return after, rewards, fallen


_SPEED_1, _SPEED_2 = 4 * math.pi, 9 * math.pi  # the greatest speeds of Acrobot's joints


def _step_acrobot(states: np.ndarray, actions: np.ndarray, kwargs: Mapping) -> Transition:
    """Step Acrobot-v1 by actions (num_envs,) of 0, 1 and 2 for torques of -1, 0 and 1."""
    torque, step = np.array([-1.0, 0.0, 1.0])[actions], 0.2
    before = states.astype(np.float64)  # reset states are float32
    k1 = _acrobot_change(before, torque)
    k2 = _acrobot_change(before + step / 2.0 * k1, torque)
    k3 = _acrobot_change(before + step / 2.0 * k2, torque)
    k4 = _acrobot_change(before + step * k3, torque)
    theta1, theta2, speed1, speed2 = before + step / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
    theta1, theta2 = _wrap_angles(theta1), _wrap_angles(theta2)
    speed1, speed2 = np.clip(speed1, -_SPEED_1, _SPEED_1), np.clip(speed2, -_SPEED_2, _SPEED_2)
    terminated = -np.cos(theta1) - np.cos(theta2 + theta1) > 1.0
    after = np.stack([theta1, theta2, speed1, speed2])
    return after, np.where(terminated, 0.0, -1.0), terminated


def _acrobot_change(states: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """Return the derivatives of Acrobot's states, (4, num_envs); all masses and lengths are 1."""
    half, moment, g = 0.5, 1.0, 9.8  # a link's center of mass, its moment of inertia, gravity
    theta1, theta2, speed1, speed2 = states
    cos2, sin2 = np.cos(theta2), np.sin(theta2)
    d1 = half**2 + (1.0 + half**2 + 2 * half * cos2) + moment + moment
    d2 = half**2 + half * cos2 + moment
    phi2 = half * g * np.cos(theta1 + theta2 - math.pi / 2.0)
    phi1 = (
        -half * _pow2(speed2) * sin2
        - 2 * half * speed2 * speed1 * sin2
        + (half + 1.0) * g * np.cos(theta1 - math.pi / 2)
        + phi2
    )
    inertia = half**2 + moment - _pow2(d2) / d1
    turn2 = (torque + d2 / d1 * phi1 - half * _pow2(speed1) * sin2 - phi2) / inertia
    turn1 = -(d2 * turn2 + phi1) / d1
    return np.stack([speed1, speed2, turn1, turn2])


def _wrap_angles(angles: np.ndarray) -> np.ndarray:
    """Return angles wrapped to [-pi, pi] by adding or subtracting one turn at a time."""
    turn = math.pi - -math.pi
    while (over := angles > math.pi).any():
        angles = np.where(over, angles - turn, angles)
    while (under := angles < -math.pi).any():
        angles = np.where(under, angles + turn, angles)
    return angles


def _step_pendulum(states: np.ndarray, actions: np.ndarray, kwargs: Mapping) -> Transition:
    """Step Pendulum-v1 by actions (num_envs, 1) float32, torques that are clipped to [-2, 2]."""
    # Mass and length are 1. Products with the torque stay float32.
    g, step = kwargs.get("g", 10.0), 0.05
    theta, speed = states
    torque = torques(actions)
    squared = np.array([scalar**2 for scalar in torque])  # scalars call the C library's `powf`
    angle = (theta + np.pi) % (2 * np.pi) - np.pi
    costs = _pow2(angle) + 0.1 * _pow2(speed) + 0.001 * squared
    faster = speed + (3 * g / (2 * 1.0) * np.sin(theta) + 3.0 / (1.0 * 1.0**2) * torque) * step
    faster = np.clip(faster, -8, 8)
    return np.stack([theta + faster * step, faster]), -costs, np.zeros(len(theta), bool)


def torques(actions: np.ndarray) -> np.ndarray:
    """Return Pendulum's `last_u`, (n,) float32, for actions of shape (n, 1) float32."""
    return np.clip(actions, -2.0, 2.0)[:, 0]


@dataclass(frozen=True)
class Rules:
    """The reset and the step of an environment."""

    step: Callable[[np.ndarray, np.ndarray, Mapping], Transition]
    reach: tuple[float, ...]  # reset states are uniform in [-reach, reach]
    angles: int = 0  # leading numbers of a state that are observed as cosine and sine
    reset_dtype: type = np.float64  # the dtype of reset states; later states are float64


_CARTPOLE = Rules(_step_cartpole, (0.05,) * 4)
_RULES = {
    "CartPole-v0": _CARTPOLE,
    "CartPole-v1": _CARTPOLE,
    "Acrobot-v1": Rules(_step_acrobot, (0.1,) * 4, 2, np.float32),
    "Pendulum-v1": Rules(_step_pendulum, (np.pi, 1.0), 1),
}


class ClassicControl(GymnasiumEnvironment):
    """A Gymnasium environment that goalreel steps itself, and whose full state it records."""

    max_envs: ClassVar = 1 << 12

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rules = _RULES[self.id]
        self.width = len(self.rules.reach)  # the number of values in a state

    def sub_envs(self, seeds: np.ndarray) -> ComputedEnvs:
        """Return sub-environments in the state after `env.reset(seed=seed)`."""
        import gymnasium

        high, limit = np.array(self.rules.reach), gymnasium.spec(self.id).max_episode_steps
        states = uniform(seeds, -high, high).astype(self.rules.reset_dtype)
        step = partial(self.rules.step, kwargs=self.kwargs)
        return ComputedEnvs(states, self.observe, step, self.max_episode_steps or limit)

    def observe(self, states: np.ndarray) -> np.ndarray:
        """Return the observations, (num_envs, numbers) float32, of states (width, num_envs)."""
        angles, others = np.split(states, [self.rules.angles])
        circular = [f(angle) for angle in angles for f in (np.cos, np.sin)]
        return np.stack([*circular, *others], axis=1, dtype=np.float32, casting="same_kind")

    def recorded_state(self, env, observation: object) -> np.ndarray:
        """Return the state of a Gymnasium instance, (width,) float64."""
        return np.array(env.unwrapped.state, np.float64)

    def batch(self, observations) -> np.ndarray:
        """Return observations as one array, (num_envs, numbers) float32."""
        return np.asarray(observations)
