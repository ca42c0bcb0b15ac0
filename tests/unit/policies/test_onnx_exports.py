"""The exports in docs/how-to/policies.md play as the networks that they were made from."""

import re

import numpy as np
import pytest
from project import REPOSITORY

from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.policies.onnx_policy import OnnxPolicy

PAGE = (REPOSITORY / "docs" / "how-to" / "policies.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## ONNX\n")[2].partition("\n## ")[0]
SB3, JAX, RLLIB = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
COUNT = 500

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def actions(env):
    """Return random observations, and the actions of policy.onnx in the working directory."""
    environment, policy = GymnasiumEnvironment(env), OnnxPolicy.load("policy.onnx")
    policy.check(environment)
    obs = environment.sample_observations(COUNT)
    return obs, policy.act(list(obs), environment, policy.generators(np.arange(COUNT)))[0]


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_stable_baselines3_model_plays_as_predict(env, tmp_path, monkeypatch):
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    sb3 = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    monkeypatch.chdir(tmp_path)
    model = sb3.PPO("MlpPolicy", env, seed=1, device="cpu")
    model.policy.action_net.weight.data *= 100  # which differ more than by rounding
    model.save("model.zip")
    exec(SB3, {})  # noqa: S102
    obs, played = actions(env)
    theirs = np.stack([model.predict(one, deterministic=True)[0] for one in obs])
    assert np.allclose(played, theirs, atol=1e-5) and len(np.unique(played)) > 1


def test_cleanrl_network_plays_its_greatest_value(tmp_path, monkeypatch):
    """The network is that of CleanRL's dqn.py."""
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(3)
    layers = [torch.nn.Linear(8, 120), torch.nn.ReLU(), torch.nn.Linear(120, 84), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(84, 4))
    torch.onnx.export(network, (torch.zeros(1, 8),), "policy.onnx", input_names=["obs"])
    obs, played = actions("LunarLander-v3")
    with torch.no_grad():
        values = np.stack([network(torch.tensor(one[None]))[0].numpy() for one in obs])
    assert played.tolist() == values.argmax(1).tolist() and len(np.unique(played)) > 1


def test_jax_network_plays_its_greatest_logit(tmp_path, monkeypatch):
    pytest.importorskip("jax2onnx", reason="jax2onnx is not installed")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    np.save("first.npy", rng.normal(size=(4, 32)).astype(np.float32))
    np.save("second.npy", rng.normal(size=(32, 2)).astype(np.float32))
    made = {}
    exec(JAX, made)  # noqa: S102
    obs, played = actions("CartPole-v1")
    theirs = [np.asarray(made["network"](one[None]))[0].argmax() for one in obs]
    assert played.tolist() == theirs and len(np.unique(played)) > 1


def test_rllib_module_plays_its_greatest_logit(tmp_path, monkeypatch):
    """The module is built as RLlib's documentation does, without a cluster of Ray."""
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    pytest.importorskip("ray.rllib", reason="ray[rllib] is not installed")
    import gymnasium
    import torch
    from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
    from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    monkeypatch.chdir(tmp_path)
    env = gymnasium.make("CartPole-v1")
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    model = DefaultModelConfig(fcnet_hiddens=[32])
    module = DefaultPPOTorchRLModule(**spaces, model_config=model, catalog_class=PPOCatalog)
    folder = "/path/to/checkpoint/learner_group/learner/rl_module/default_policy"
    module.save_to_path(tmp_path / "module")
    exec(RLLIB.replace(folder, str(tmp_path / "module")), {})  # noqa: S102
    obs, played = actions("CartPole-v1")
    with torch.no_grad():
        logits = module.forward_inference({"obs": torch.from_numpy(obs)})["action_dist_inputs"]
    assert played.tolist() == logits.argmax(1).tolist()
