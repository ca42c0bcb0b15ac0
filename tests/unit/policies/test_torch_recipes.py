"""The functions in docs/how-to/policies.md play as the networks and policies that they load."""

import re
from pathlib import Path

import numpy as np
import pytest
from project import REPOSITORY

from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.policies.user_function import load_policy

PAGE = (REPOSITORY / "docs" / "how-to" / "policies.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## TorchScript and Tianshou\n")[2].partition("\n## ")[0]
SCRIPTED, TIANSHOU = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
COUNT = 200

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def actions(code):
    """Return random observations of CartPole, and the actions of a policy's file."""
    Path("recipe.py").write_text(code)
    environment, policy = GymnasiumEnvironment("CartPole-v1"), load_policy("recipe.py", "act", True)
    policy.check(environment)
    obs = environment.sample_observations(COUNT)
    return obs, policy.act(list(obs), environment, policy.generators(np.arange(COUNT)))[0]


def test_torchscript_network_plays_its_greatest_value(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    network[2].bias.data[:] = 0
    torch.jit.trace(network, torch.zeros(1, 4)).save("network.pt")
    obs, played = actions(SCRIPTED)
    theirs = network(torch.from_numpy(obs)).argmax(1)
    assert played.tolist() == theirs.tolist() and len(np.unique(played)) > 1


@pytest.mark.parametrize("samples", [False, True])
def test_tianshou_policy_plays_without_exploration(samples, tmp_path, monkeypatch):
    pytest.importorskip("tianshou", reason="tianshou is not installed")
    import gymnasium
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
    from tianshou.utils.net.common import Net
    from tianshou.utils.net.discrete import DiscreteActor

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(2)
    env = gymnasium.make("CartPole-v1")
    space = {"action_space": env.action_space, "observation_space": env.observation_space}
    if samples:
        hidden = Net(state_shape=(4,), hidden_sizes=[32])
        network = DiscreteActor(preprocess_net=hidden, action_shape=2, softmax_output=False)
        policy = DiscreteActorPolicy(actor=network, **space)
    else:
        network = Net(state_shape=(4,), action_shape=2, hidden_sizes=[32])
        policy = DiscreteQLearningPolicy(model=network, eps_training=1.0, **space)
    torch.save(policy, "policy.pth")
    obs, played = actions(TIANSHOU)
    values, _ = network(obs)
    assert played.tolist() == values.argmax(1).tolist()
