"""PPO's advantages are Stable-Baselines3's, DQN's targets those of the papers, on any network."""

import copy
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")

from goalreel.errors import OptionError  # noqa: E402
from goalreel.policies.torch_network import TorchNetwork, weights_for_acting  # noqa: E402
from goalreel.training.dqn import Dqn  # noqa: E402
from goalreel.training.envs import Envs, Step  # noqa: E402
from goalreel.training.ppo import Ppo, initialize  # noqa: E402
from goalreel.training.processes import Group  # noqa: E402
from goalreel.training.settings import Settings, with_defaults  # noqa: E402
from goalreel.workflow.config import load_config  # noqa: E402

ENVS, ACTIONS = 5, 3


class Noise(Envs):
    """Random observations and rewards, and episodes that end in both ways."""

    def __init__(self, shape=(4,)):
        self._rng, self._shape = np.random.default_rng(0), (ENVS, *shape)
        self.obs, self.steps = self._observed(), []

    def _observed(self) -> np.ndarray:
        if len(self._shape) == 4:
            return self._rng.integers(0, 256, self._shape, np.uint8)
        return self._rng.normal(size=self._shape).astype(np.float32)

    def step(self, actions):
        ends = self._rng.random((2, ENVS)) < 0.1
        rewards, next_obs = self._rng.normal(size=ENVS).astype(np.float32), self._observed()
        self.obs = np.where(ends.any(0).reshape(-1, *[1] * len(self._shape[1:])),
                            self._observed(), next_obs)  # fmt: skip
        self.steps.append(Step(rewards, ends[0], ends[1], next_obs))
        return self.steps[-1]


def learner(kind, shape=(4,), network=(16,), **options):
    """Return an algorithm that plays noise."""
    section = load_config({})["train"] | {"algorithm": kind.__name__.lower()} | options
    section = with_defaults(section, "")
    settings = Settings(**section | {"n_envs": ENVS})
    torch.manual_seed(0)
    made = TorchNetwork(shape, ACTIONS, network, np.float32(-1), np.float32(1))
    return kind(settings, made, Noise(shape), Group(), 0)


def test_advantages_are_those_of_stable_baselines3():
    buffers = pytest.importorskip("stable_baselines3.common.buffers", reason="takes SB3")
    from gymnasium.spaces import Box, Discrete

    ppo = learner(Ppo, n_steps=40)
    ppo._play()
    played = ppo._envs.steps
    buffer = buffers.RolloutBuffer(
        *(40, Box(-9, 9, (4,)), Discrete(ACTIONS), "cpu"),
        **{"gae_lambda": 0.95, "gamma": 0.99, "n_envs": ENVS},
    )
    rewards = np.stack([step.rewards for step in played])
    returns, running = [], np.zeros(ENVS)
    for step in played:
        running = 0.99 * running + step.rewards
        returns.append(running.copy())
        running[step.terminated | step.truncated] = 0
    rewards = rewards / np.std(returns)
    starts = np.ones(ENVS)
    for number, step in enumerate(played):
        cut = step.truncated & ~step.terminated
        if cut.any():
            with torch.no_grad():
                values = ppo.network(torch.from_numpy(step.next_obs[cut]))[1].numpy()
            rewards[number, cut] += 0.99 * values
        buffer.add(
            *(ppo._obs[number].numpy(), ppo._actions[number].numpy(), rewards[number], starts),
            *(ppo._values[number], ppo._logs[number]),
        )
        starts = step.terminated | step.truncated
    buffer.compute_returns_and_advantage(ppo._values[-1], starts)
    advantages, targets = ppo._advantages()
    theirs = buffer.advantages
    scaled = (theirs - theirs.mean()) / theirs.std()
    assert np.allclose(advantages.reshape(40, ENVS), scaled, atol=1e-4)
    assert np.allclose(targets.reshape(40, ENVS), buffer.returns, atol=1e-4)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("dueling", [False, True])
def test_targets_are_rewards_and_the_value_of_the_best_action(double, dueling):
    dqn = learner(Dqn, double=double, dueling=dueling, learning_starts=50, n_steps=1)
    dqn.iterate(0)
    batch = dqn.buffer.sample(200, torch.Generator().manual_seed(1))
    with torch.no_grad():
        online, target = (
            values - values.mean(1, keepdim=True) + state[:, None] if dueling else values
            for values, state in (dqn.network(batch.next_obs), dqn._target(batch.next_obs))
        )
    assert not torch.equal(online, target)
    best = target[torch.arange(200), online.argmax(1)] if double else target.max(1).values
    assert torch.allclose(dqn._targets(batch), batch.returns + batch.discounts * best)


def test_learning_follows_the_options():
    dqn = learner(Dqn, learning_starts=100, train_freq=8, gradient_steps=3, buffer_size=1000)
    dqn.iterate(0)
    assert dqn.updates == (dqn.decisions - 100) * 3 // 8
    ppo = learner(Ppo, n_steps=40, batch_size=50, n_epochs=3)
    ppo.iterate(0)
    assert ppo.updates == 3 * 4 and all(map(np.isfinite, ppo.figures.values()))


@pytest.mark.parametrize("kind", [Dqn, Ppo])
def test_gradients_have_no_limit_at_0(kind):
    changes = []
    for limit in (0, 1e-9):
        algorithm = learner(kind, max_grad_norm=limit, learning_starts=20)
        before = algorithm.network.actions.weight.clone()
        algorithm.optimizer = torch.optim.SGD(algorithm.network.parameters(), 1e-3)
        algorithm.iterate(0)
        changes.append((algorithm.network.actions.weight - before).abs().max().item())
    assert changes[0] > 1e3 * changes[1]


@pytest.mark.parametrize("kind", [Dqn, Ppo])
def test_saved_state_continues_with_the_same_updates(kind):
    options = {"n_steps": 3, "batch_size": 8, "learning_starts": 20}
    one, other = learner(kind, **options), learner(kind, **options)
    one.iterate(0)
    other.network.load_state_dict(one.network.state_dict())
    other.optimizer.load_state_dict(copy.deepcopy(one.optimizer.state_dict()))
    other.load(one.state())
    other._envs = one._envs
    assert other.updates == one.updates > 0
    if kind is Ppo:  # DQN's buffer forgets how the running episodes go on
        for algorithm in (one, other):
            algorithm._envs = Noise()
            algorithm._discounted = torch.zeros(ENVS)  # of games that began
            algorithm.iterate(1000)
        pairs = zip(one.network.parameters(), other.network.parameters(), strict=True)
        assert all(torch.equal(*pair) for pair in pairs)


@pytest.mark.parametrize(
    ("shape", "network"),
    [
        *(((4, 84, 84), "small"), ((4, 84, 84), "narrow"), ((2, 84, 84), "nature")),
        *(((4, 42, 42), "tiny"), ((4,), [8, 8])),
    ],
)
@pytest.mark.parametrize("dueling", [False, True])
def test_weights_for_films_give_the_same_values(shape, network, dueling):
    from goalreel.policies.numpy_network import NumpyNetwork

    torch.manual_seed(1)
    low, high = (np.float32(90), np.float32(270)) if len(shape) == 3 else (np.full(4, -3), 5)
    made = TorchNetwork(shape, ACTIONS, network, low, high)
    initialize(made)
    obs = Noise(shape).obs
    before = obs.copy()
    with torch.no_grad():
        values, state = made(torch.from_numpy(obs))
    if dueling:
        values = values - values.mean(1, keepdim=True) + state[:, None]
    ours = NumpyNetwork(weights_for_acting(made, dueling), strides=made.strides)
    assert np.allclose(ours.evaluate(obs)[0], values.numpy(), atol=1e-4)
    assert np.array_equal(obs, before), "a network leaves observations as they are"


def test_a_users_network_is_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "bodies.py").write_text(
        "from torch import nn\n"
        "def good(shape): return nn.Sequential(nn.Linear(shape[0], 9), nn.Tanh())\n"
        "def flat(shape): return nn.Flatten(0)\n"
    )
    made = TorchNetwork((4,), ACTIONS, "bodies:good", np.float32(-1), np.float32(1))
    assert made(torch.zeros(2, 4))[0].shape == (2, ACTIONS)
    assert "body.0.weight" in weights_for_acting(made)
    for name, message in {
        "bodies:flat": "'bodies:flat' gives \\(8,\\) for 2 observations. Return features",
        "bodies:none": "cannot be made \\(AttributeError.*\\). Correct it, or its name.",
        "absent:body": "cannot be made \\(ModuleNotFoundError",
    }.items():
        with pytest.raises(OptionError, match=f"train.network: .*{message}"):
            TorchNetwork((4,), ACTIONS, name, np.float32(-1), np.float32(1))
    sys.modules.pop("bodies")
