"""ONNX networks choose the actions that onnx's own evaluator computes, and misfits are named."""

import gymnasium
import numpy as np
import pytest

from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.errors import GoalreelError
from goalreel.policies.onnx_policy import OnnxPolicy

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

FLOAT, INT64, UINT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8
CARTPOLE, PENDULUM = GymnasiumEnvironment("CartPole-v1"), GymnasiumEnvironment("Pendulum-v1")


class Several(gymnasium.Env):
    """An environment that only has spaces: a Dict of observations and a MultiDiscrete action."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space = gymnasium.spaces.Dict(
        {
            "image": gymnasium.spaces.Box(0, 255, (6, 5, 3), np.uint8),
            "speed": gymnasium.spaces.Box(-1, 1, (2,)),
        }
    )
    action_space = gymnasium.spaces.MultiDiscrete([2, 3], start=[0, 10])

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


gymnasium.register("Several-v0", Several, max_episode_steps=9)
SEVERAL = GymnasiumEnvironment("Several-v0")


def saved(path, nodes, inputs, outputs, weights=None):
    """Write a network. inputs, outputs: the type and shape of each by its name."""
    infos = (
        [helper.make_tensor_value_info(name, *of) for name, of in group.items()]
        for group in (inputs, outputs)
    )
    kept = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "policy", *infos, kept)
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), path)
    return str(path)


def linear(path, rows, columns, output=(FLOAT, ["N", None]), after=()):
    """Write a network of one layer with random weights, with more nodes after it."""
    rng = np.random.default_rng(5)
    weights = {"w": rng.normal(size=(rows, columns)).astype(np.float32)}
    nodes = [helper.make_node("MatMul", ["obs", "w"], ["y"]), *after]
    name = nodes[-1].output[0]
    return saved(path, nodes, {"obs": (FLOAT, ["N", rows])}, {name: output}, weights)


def played(path, environment, count=64):
    """Return observations, the actions of the policy, and what onnx computes from each of them."""
    policy, obs = OnnxPolicy.load(path), environment.sample_observations(count)
    policy.check(environment)
    rows = [obs[row] for row in range(count)]
    actions, *_ = policy.act(rows, environment, policy.generators(np.arange(count)))
    evaluator = ReferenceEvaluator(path)
    theirs = [evaluator.run(None, {"obs": row[None].astype(np.float32)})[0][0] for row in rows]
    return actions, np.stack(theirs)


def test_greatest_value_or_whole_number_is_the_action(tmp_path):
    actions, values = played(linear(tmp_path / "logits.onnx", 4, 2), CARTPOLE)
    assert actions.tolist() == values.argmax(1).tolist() and 0 < actions.mean() < 1
    best = helper.make_node("ArgMax", ["y"], ["action"], axis=1, keepdims=0)
    path = linear(tmp_path / "whole.onnx", 4, 2, (INT64, ["N"]), [best])
    assert played(path, CARTPOLE)[0].tolist() == actions.tolist()
    hot = [
        helper.make_node("ArgMax", ["y"], ["best"], axis=1, keepdims=0),
        helper.make_node("OneHot", ["best", "depth", "levels"], ["hot"]),
    ]
    weights = {"depth": np.array(2), "levels": np.array([0, 1], np.float32)}
    first = onnx.load(tmp_path / "logits.onnx").graph
    weights["w"] = numpy_helper.to_array(first.initializer[0])
    nodes = [*first.node, *hot]
    inputs, outputs = {"obs": (FLOAT, ["N", 4])}, {"hot": (FLOAT, ["N", 2])}
    path = saved(tmp_path / "hot.onnx", nodes, inputs, outputs, weights)
    assert played(path, CARTPOLE)[0].tolist() == actions.tolist()


def test_continuous_actions_are_clipped_to_the_space(tmp_path):
    actions, values = played(linear(tmp_path / "mean.onnx", 3, 1), PENDULUM)
    assert np.allclose(actions, np.clip(values, -2, 2), atol=1e-6)
    assert 0 < (np.abs(actions) == 2).sum() < len(actions)


def test_dict_observations_go_to_the_inputs_of_their_names(tmp_path):
    """The channels of the image come first. The numbers 10 to 12 are the second part's actions."""
    nodes = [
        helper.make_node("Cast", ["image"], ["pixels"], to=FLOAT),
        helper.make_node("ReduceMean", ["pixels", "axes"], ["channels"], keepdims=0),
        helper.make_node("Concat", ["speed", "channels"], ["values"], axis=1),
    ]
    inputs = {"image": (UINT8, ["N", 3, 6, 5]), "speed": (FLOAT, ["N", 2])}
    outputs, weights = {"values": (FLOAT, ["N", 5])}, {"axes": np.array([2, 3])}
    policy = OnnxPolicy.load(saved(tmp_path / "dict.onnx", nodes, inputs, outputs, weights))
    policy.check(SEVERAL)
    obs = SEVERAL.sample_observations(20)
    rows = [{name: array[row] for name, array in obs.items()} for row in range(20)]
    actions, *_ = policy.act(rows, SEVERAL, policy.generators(np.arange(20)))
    assert actions[:, 0].tolist() == obs["speed"].argmax(1).tolist()
    assert actions[:, 1].tolist() == (10 + obs["image"].mean((1, 2)).argmax(1)).tolist()


def test_recurrent_state_starts_at_zero_in_each_episode(tmp_path):
    """The network adds up its observations, and acts on the sum."""
    nodes = [
        helper.make_node("Add", ["obs", "h_in"], ["h_out"]),
        helper.make_node("Slice", ["h_out", "from", "to", "axis"], ["values"]),
    ]
    inputs = {"obs": (FLOAT, ["N", 4]), "h_in": (FLOAT, ["N", 4])}
    outputs = {"h_out": (FLOAT, ["N", 4]), "values": (FLOAT, ["N", 2])}
    weights = {"from": np.array([0]), "to": np.array([2]), "axis": np.array([1])}
    policy = OnnxPolicy.load(saved(tmp_path / "sum.onnx", nodes, inputs, outputs, weights))
    obs = CARTPOLE.sample_observations(12)
    states, total = policy.generators(np.arange(3)), np.zeros((3, 4))
    for step in range(4):
        rows = list(obs[3 * step : 3 * step + 3])
        actions, states, _ = policy.act(rows, CARTPOLE, states)
        total += rows
        assert actions.tolist() == total[:, :2].argmax(1).tolist()
    kept = states.take(np.array([False, False, True]))
    assert np.allclose(kept[0]["h_in"], total[2:], atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "columns", "environment", "parts"),
    [
        (8, 2, CARTPOLE, ["'obs' takes float32 of shape (8,)", "is float32 of shape (4,)"]),
        (4, 5, CARTPOLE, ["'y' has 5 numbers (float32)", "takes 2 values, or 1 whole numbers"]),
        (3, 2, PENDULUM, ["'y' has 2 numbers (float32)", "takes 1 numbers"]),
        (4, 2, SEVERAL, ["no 'obs', an input of the network. Use image or speed."]),
    ],
)
def test_network_that_does_not_fit_is_named_before_the_run(
    rows, columns, environment, parts, tmp_path
):
    policy = OnnxPolicy.load(linear(tmp_path / "agent.onnx", rows, columns))
    with pytest.raises(GoalreelError) as caught:
        policy.check(environment)
    assert str(caught.value).startswith(f"policy.file: {tmp_path / 'agent.onnx'}: ")
    assert all(part in str(caught.value) for part in parts), caught.value


def test_network_without_actions_is_named(tmp_path):
    nodes = [helper.make_node("Relu", ["h_in"], ["h_out"])]
    shapes = {"obs": (FLOAT, [1, 4]), "h_in": (FLOAT, [1, 4])}, {"h_out": (FLOAT, [1, 4])}
    policy = OnnxPolicy.load(saved(tmp_path / "agent.onnx", nodes, *shapes))
    with pytest.raises(GoalreelError, match="All its outputs are states. Export it with the act"):
        policy.check(CARTPOLE)


def test_network_for_several_rows_is_named(tmp_path):
    nodes = [helper.make_node("Relu", ["obs"], ["y"])]
    shapes = {"obs": (FLOAT, [8, 4])}, {"y": (FLOAT, [8, 4])}
    policy = OnnxPolicy.load(saved(tmp_path / "agent.onnx", nodes, *shapes))
    with pytest.raises(GoalreelError, match=r"has the shape \(8, 4\)\. Export it for a batch"):
        policy.check(CARTPOLE)


def test_damaged_network_is_named(tmp_path):
    path = linear(tmp_path / "agent.onnx", 4, 2)
    whole = (tmp_path / "agent.onnx").read_bytes()
    for content in (b"", b"not a network", whole[: len(whole) // 2]):
        (tmp_path / "agent.onnx").write_bytes(content)
        with pytest.raises(GoalreelError, match="cannot be loaded by onnxruntime"):
            OnnxPolicy.load(path)
