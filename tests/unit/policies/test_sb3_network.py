"""The usual networks choose the actions of `model.predict`, without running code of the file."""

import io
import os
import pickle
import zipfile
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

from goalreel.environments.action_space import action_space
from goalreel.errors import GoalreelError
from goalreel.policies.sb3_network import Sb3Network, read_network, read_weights
from goalreel.policies.stable_baselines3 import Sb3Policy

sb3 = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")

import torch  # noqa: E402
from stable_baselines3.common.torch_layers import FlattenExtractor  # noqa: E402

IMAGES = Box(0, 255, (84, 84, 4), np.uint8)
VECTORS = Box(-1, 1, (8,), np.float32)
MOTORS = Box(np.array([-1, -2, 0], np.float32), np.array([1, 3, 9], np.float32))
RELU = {"policy_kwargs": {"activation_fn": torch.nn.ReLU, "net_arch": [100, 50]}}
CASES = [
    ("PPO", "MlpPolicy", VECTORS, Discrete(4), {}),
    ("A2C", "MlpPolicy", VECTORS, Discrete(2), RELU),
    ("A2C", "MlpPolicy", Discrete(16), Discrete(4), {}),
    ("PPO", "MlpPolicy", VECTORS, MOTORS, {}),
    ("DQN", "MlpPolicy", VECTORS, Discrete(4), {"buffer_size": 9}),
    ("SAC", "MlpPolicy", VECTORS, MOTORS, {"buffer_size": 9}),
    ("TD3", "MlpPolicy", VECTORS, MOTORS, {"buffer_size": 9}),
    ("PPO", "CnnPolicy", IMAGES, Discrete(6), {}),
    ("DQN", "CnnPolicy", IMAGES, Discrete(6), {"buffer_size": 9}),
]


class Own(FlattenExtractor):
    """A user's features."""


@dataclass
class Malicious:
    """An object whose pickle makes a folder."""

    folder: Path

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


class Spaces(gymnasium.Env):
    """An environment that only has spaces."""

    def __init__(self, observation_space, actions):
        self.observation_space, self.action_space = observation_space, actions


def saved(folder, algorithm, policy, observed, acted, options):
    """Return a model with random weights, and the path of its file."""
    model = getattr(sb3, algorithm)(
        policy, Spaces(observed, acted), seed=3, device="cpu", **options
    )
    model.save(folder / "model.zip")
    return model, str(folder / "model.zip")


def compare(model, network, observations) -> None:
    actions, _ = network.act(observations, action_space(model.action_space, "Spaces-v0"))
    theirs = np.array([model.predict(one, deterministic=True)[0] for one in observations])
    assert actions.dtype == theirs.dtype and np.array_equal(actions, theirs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case[:2]))
def test_actions_are_those_of_predict(case, tmp_path):
    torch.set_num_threads(1)
    model, path = saved(tmp_path, *case)
    model.observation_space.seed(1)
    count = 50 if case[2] is IMAGES else 1000
    observations = np.array([model.observation_space.sample() for _ in range(count)])
    compare(model, read_network(path), observations)


@pytest.mark.parametrize(
    ("count", "seeds"), [(70, 3), pytest.param(500, 40, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("case", [case for case in CASES if case[3] is MOTORS], ids=lambda c: c[0])
def test_batched_actions_depend_on_their_row_only(case, count, seeds, tmp_path, monkeypatch):
    model, path = saved(tmp_path, *case)
    policy = Sb3Policy.load({"file": path, "batch": True})
    monkeypatch.setattr(Sb3Network, "_act_on", None)  # PyTorch is not needed
    space = action_space(model.action_space, "Spaces-v0")
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        observations = rng.normal(size=(count, 8)).astype(np.float32)
        theirs = model.predict(observations, deterministic=True)[0]
        actions, _ = policy.network.act(observations, space)
        assert actions.dtype == theirs.dtype
        np.testing.assert_allclose(actions, theirs, rtol=0, atol=3e-6)
        for rows in (slice(1), slice(5, 8), rng.permutation(count)):
            assert np.array_equal(policy.network.act(observations[rows], space)[0], actions[rows])


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case[:2]))
def test_signals_are_those_of_the_model(case, tmp_path):
    torch.set_num_threads(1)
    model, path = saved(tmp_path, *case)
    model.observation_space.seed(1)
    observations = np.array([model.observation_space.sample() for _ in range(20)])
    space = action_space(model.action_space, "Spaces-v0")
    actions, signals = read_network(path).act(observations, space)
    with torch.no_grad():
        given, policy = model.policy.obs_to_tensor(observations)[0], model.policy
        if case[0] == "DQN":
            expected = {"q": policy.q_net(given), "value": policy.q_net(given).max(1).values}
        elif case[0] in ("SAC", "TD3"):
            values = model.critic(given, torch.tensor(policy.scale_action(actions)))
            expected = {"value": torch.cat(values, 1).min(1).values}
        else:
            expected = {"value": policy.predict_values(given)[:, 0]}
            if isinstance(model.action_space, Discrete):
                expected["probabilities"] = policy.get_distribution(given).distribution.probs
    assert signals.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(signals[name], values.numpy(), rtol=1e-4, atol=1e-5)
    if case[0] in ("PPO", "A2C", "DQN"):  # the library plays them as well
        played = Sb3Policy({"file": path, "algorithm": case[0]}, None)
        for row, observation in enumerate(observations):
            for name, values in played._signals(observation).items():
                np.testing.assert_allclose(values[0], signals[name][row], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_million_close_decisions_are_those_of_predict(tmp_path):
    """Two of the actions differ so little that the next larger number often decides."""
    torch.set_num_threads(1)
    model, _ = saved(tmp_path, *CASES[0])
    with torch.no_grad():
        weight, bias = model.policy.action_net.weight, model.policy.action_net.bias
        weight[1] = weight[0] * (1 + 1e-6)
        bias[:2] = 1
    model.save(tmp_path / "close.zip")
    network, rng = read_network(str(tmp_path / "close.zip")), np.random.default_rng(0)
    for _ in range(100):
        compare(model, network, rng.uniform(-1, 1, (10_000, 8)).astype(np.float32))


@pytest.mark.parametrize("close", [1e-7, 1e-6, 1e-5, 1e-4])
@pytest.mark.parametrize("count", [60, pytest.param(5_000, marks=pytest.mark.slow)])
def test_close_decisions_from_images_are_those_of_predict(tmp_path, monkeypatch, close, count):
    torch.set_num_threads(1)
    model, _ = saved(tmp_path, *CASES[-1])
    with torch.no_grad():
        last = model.q_net.q_net[-1]
        last.weight[1:] = last.weight[0] + close * torch.randn(last.weight[1:].shape)
        last.bias[:] = 0.5
    model.save(tmp_path / "close.zip")
    network, alone = read_network(str(tmp_path / "close.zip")), []
    act = Sb3Network._act_on
    monkeypatch.setattr(Sb3Network, "_act_on", lambda *a: alone.append(1) or act(*a))
    rng = np.random.default_rng(0)
    compare(model, network, rng.integers(0, 256, (count, 84, 84, 4), np.uint8))
    assert len(alone) == count if close == 1e-7 else close < 1e-4 or len(alone) < count / 2


def test_actions_under_a_large_bias_are_those_of_predict(tmp_path):
    model, path = saved(tmp_path, *CASES[0])
    with torch.no_grad():
        model.policy.action_net.bias.add_(10_000)
    model.save(path)
    model.observation_space.seed(1)
    observations = np.array([model.observation_space.sample() for _ in range(1000)])
    compare(model, read_network(path), observations)


@pytest.mark.parametrize(
    "options",
    [
        {"policy_kwargs": {"normalize_images": False, "net_arch": [9]}},
        {"policy_kwargs": {"features_extractor_class": Own}},
        {"policy_kwargs": {"activation_fn": torch.nn.ELU}},
        {"policy_kwargs": {"activation_fn": type("ReLU", (torch.nn.ELU,), {})}},
    ],
    ids=["images", "extractor", "activation", "name"],
)
def test_other_networks_are_left_to_stable_baselines3(options, tmp_path):
    assert read_network(saved(tmp_path, *CASES[0][:4], options)[1]) is None
    assert read_network(saved(tmp_path, "PPO", "MlpPolicy", IMAGES, Discrete(2), {})[1]) is None


@pytest.mark.parametrize(
    ("policy", "space"), [("MultiInputPolicy", Dict(a=VECTORS)), ("MlpPolicy", MultiBinary(5))]
)
def test_other_observations_are_left_to_stable_baselines3(policy, space, tmp_path):
    assert read_network(saved(tmp_path, "PPO", policy, space, Discrete(2), {})[1]) is None


def replace_weights(path: str, content: bytes) -> None:
    """Replace the pickle of a model's weights."""
    weights = io.BytesIO()
    with zipfile.ZipFile(weights, "w") as archive:
        archive.writestr("archive/data.pkl", content)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (files | {"policy.pth": weights.getvalue()}).items():
            archive.writestr(name, data)


@pytest.mark.parametrize("content", [b"", b"0", b"garbage", pickle.dumps(7), b"\x80\x02}q\x00(."])
def test_damaged_weights_are_left_to_stable_baselines3(content, tmp_path):
    _, path = saved(tmp_path, *CASES[0])
    replace_weights(path, content)
    assert read_network(path) is None


def test_weights_run_no_code(tmp_path):
    _, path = saved(tmp_path, *CASES[0])

    replace_weights(path, pickle.dumps({"a": Malicious(tmp_path / "owned")}))
    with pytest.raises(pickle.UnpicklingError, match="mkdir"):
        read_weights(path)
    assert read_network(path) is None
    with pytest.raises(GoalreelError, match="^policy.safe: .* cannot be played without code"):
        Sb3Policy.load({"file": path, "algorithm": "PPO", "safe": True})
    assert not (tmp_path / "owned").exists()


def test_safe_policy_plays_usual_networks_and_rejects_others(tmp_path):
    _, path = saved(tmp_path, *CASES[0])
    section = {"file": path, "algorithm": "PPO", "safe": True}
    assert Sb3Policy.load(section).network is not None
    statistics = tmp_path / "vecnormalize.pkl"
    statistics.write_bytes(pickle.dumps(Malicious(tmp_path / "owned")))
    for more in ({"deterministic": False}, {"vecnormalize": str(statistics)}):
        with pytest.raises(
            GoalreelError, match="^policy.safe: .*(played|used) without code of its"
        ):
            Sb3Policy.load(section | more)
    assert not (tmp_path / "owned").exists()


def test_shared_layers_are_left_to_stable_baselines3(tmp_path, monkeypatch):
    _, path = saved(tmp_path, *CASES[0][:4], {})
    weights = {n: w for n, w in read_weights(path).items() if "policy_net" not in n}
    monkeypatch.setattr("goalreel.policies.sb3_network.read_weights", lambda _: weights)
    assert read_network(path) is None
