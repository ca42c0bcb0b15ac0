"""Sub-environments of CartPole, Acrobot and Pendulum step bit for bit like Gymnasium's."""

import gymnasium
import numpy as np
import pytest

from goalreel.environments.classic_control import ClassicControl
from goalreel.environments.environment import make_environment

SEEDS = np.array([0, 1, 12345, (1 << 31) + 7, (1 << 53) - 1, *range(40, 75)])
CASES = [
    {"env": "CartPole-v0"},
    {"env": "CartPole-v1"},
    {"env": "CartPole-v1", "env_kwargs": {"sutton_barto_reward": True}, "max_episode_steps": 60},
    {"env": "Acrobot-v1"},
    {"env": "Acrobot-v1", "max_episode_steps": 1200},
    {"env": "Pendulum-v1"},
    {"env": "Pendulum-v1", "env_kwargs": {"g": 9.81}, "max_episode_steps": 30},
]


def chosen(name: str, obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return actions that balance carts, swing arms up, and apply torques beyond the bounds."""
    num_envs, noise = len(obs), rng.random(len(obs))
    if name == "Pendulum-v1":
        return rng.uniform(-2.5, 2.5, (num_envs, 1)).astype(np.float32)
    if name == "Acrobot-v1":
        return np.where(noise < 0.1, rng.integers(0, 3, num_envs), np.where(obs[:, 4] > 0, 0, 2))
    return np.where(noise < 0.35, rng.integers(0, 2, num_envs), obs[:, 2] + 0.5 * obs[:, 3] > 0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_steps_equal_gymnasium(case):
    environment, rng, name = make_environment(case), np.random.default_rng(3), case["env"]
    assert isinstance(environment, ClassicControl)
    kwargs = case.get("env_kwargs", {})
    limit = case.get("max_episode_steps")
    envs = [gymnasium.make(name, max_episode_steps=limit, **kwargs) for _ in SEEDS]
    sub_envs, going, ended = environment.sub_envs(SEEDS), np.ones(len(SEEDS), bool), 0
    played = [env.reset(seed=int(seed))[0] for env, seed in zip(envs, SEEDS, strict=True)]
    while going.any():
        obs, states = sub_envs.observations(), np.array(sub_envs.states())
        assert obs.dtype == played[0].dtype and obs.flags.c_contiguous
        assert np.array_equal(obs, played)
        assert np.array_equal(states.T, [env.unwrapped.state for env in envs])
        actions = chosen(name, obs, rng)
        rewards, terminated, truncated = sub_envs.step(actions)
        steps = [
            env.step(environment.actions.to_gymnasium(action))
            for env, action in zip(envs, actions, strict=True)
        ]
        played = [step[0] for step in steps]
        assert rewards.tolist() == [float(step[1]) for step in steps]
        assert terminated.tolist() == [step[2] for step in steps]
        assert truncated.tolist() == [step[3] for step in steps]
        going = ~(terminated | truncated)
        ended += np.count_nonzero(terminated)
        if not going.all():
            sub_envs = sub_envs.take(going)
            envs, played = (
                [item for item, goes in zip(items, going, strict=True) if goes]
                for items in (envs, played)
            )
            going = going[going]
    assert ended > 5 or name == "Pendulum-v1" or case.get("max_episode_steps") == 60
