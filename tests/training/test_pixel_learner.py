"""The learner of pixels: an update follows all of its batches, and the same updates come again."""

import copy
import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)  # the same sums, whatever the machine's cores

from pixel_batches import ACTIONS, batch, joined, largest_difference, settings, stacks  # noqa: E402

from goalreel.policies.pixel_network import Actor  # noqa: E402
from goalreel.training.pixels import learner as pixel_learner  # noqa: E402
from goalreel.training.pixels.learner import Learned, PixelLearner, computes_in_half  # noqa: E402
from goalreel.training.pixels.network import PixelNetwork, TorchActor  # noqa: E402


def learned(learner: PixelLearner, batches: list) -> Learned:
    """Make an update; return what is told of it."""
    learner.learn([learner.prepared(one) for one in batches])
    return learner.learned


def taught(learner: PixelLearner, updates: range, batches: int = 2, size: int = 8) -> list:
    """Have a learner make some updates; return what it told of them."""
    told = []
    for update in updates:
        told.append(learned(learner, [batch(size, 100 * update + n) for n in range(batches)]))
        if update % 2:
            learner.update_target()
    return told


def test_a_share_of_the_rate_moves_weights_by_that_share():
    """The first step of Adam is the learning rate, by the sign of the gradient."""
    moved = []
    for share in (1.0, 0.1):
        learner = PixelLearner(settings(**COARSE), ACTIONS, 1)
        begun = learner.weights()
        learner.learn([learner.prepared(batch(8, 1))], share)
        moved.append(largest_difference(learner.weights(), begun))
    assert moved[0] == pytest.approx(1e-2, rel=1e-2)
    assert moved[1] == pytest.approx(1e-3, rel=1e-2)


# A rate at which an update changes weights by a thousand times of what is allowed for rounding.
COARSE = {"normalise": False, "double": False, "learning_rate": 1e-2}


def test_accumulated_batches_equal_one_of_all_their_steps():
    parts = [batch(count, count) for count in (5, 11, 2)]
    whole = PixelLearner(settings(**COARSE), ACTIONS, 1)
    begun, expected = whole.weights(), learned(whole, [joined(parts)])
    assert largest_difference(whole.weights(), begun) > 9e-3
    for chosen, same in ((parts, True), (parts[:-1], False), (parts[1:], False)):
        learner = PixelLearner(settings(**COARSE), ACTIONS, 1)
        told = learned(learner, chosen)
        assert (largest_difference(learner.weights(), whole.weights()) < 1e-5) == same
        assert (vars(told) == pytest.approx(vars(expected), rel=1e-5)) == same


def test_each_batch_is_normalised_by_itself():
    """As PyTorch's own BatchNorm does it: the gradients of the batches, each alone, add up."""
    parts = [batch(8, number) for number in range(3)]
    learner = PixelLearner(settings(double=False), ACTIONS, 1)
    model, target = copy.deepcopy(learner.model), copy.deepcopy(learner.model).eval()
    for part in parts:
        with torch.no_grad():
            wanted = part.returns + part.discounts * target(part.next_stacks).max(dim=1).values
        found = model(part.stacks).gather(1, part.actions[:, None]).squeeze(1)
        (torch.nn.functional.huber_loss(found, wanted) / len(parts)).backward()
    learned(learner, parts)
    for (name, one), other in zip(
        learner.model.named_parameters(), model.parameters(), strict=True
    ):
        assert torch.allclose(one.grad, other.grad, atol=1e-5), name


@pytest.mark.parametrize("published", [True, False], ids=["published", "to the target"])
def test_the_network_that_plays_is_the_one_that_is_trained(published):
    """With BatchNorm: the same greedy actions but for 1%, though averages once ran far behind."""
    learner = PixelLearner(settings(learning_rate=1e-3), ACTIONS, 1)
    for update in range(40):
        learned(learner, [batch(64, update)])
    seen = batch(64, 39).stacks
    with torch.no_grad():
        wanted = copy.deepcopy(learner.model).train()(seen)  # normalised by its own statistics
        if published:
            values = Actor.of(learner.weights()).values(seen.numpy())
        else:
            learner.update_target()
            values = learner._target(seen).numpy()
    same = values.argmax(axis=1) == wanted.numpy().argmax(axis=1)
    assert same.mean() >= 0.99 and np.abs(values - wanted.numpy()).max() < 1e-3
    assert len(set(values.argmax(axis=1).tolist())) > 1


@pytest.mark.parametrize("changes", [{}, {"double": False, "autocast": True, "gradient_clip": 0.1}])
def test_the_same_seed_and_batches_give_the_same_weights(changes):
    one, again, other = (PixelLearner(settings(**changes), ACTIONS, seed) for seed in (1, 1, 2))
    assert largest_difference(one.weights(), other.weights()) > 0
    assert taught(one, range(3)) == taught(again, range(3))
    assert largest_difference(one.weights(), again.weights()) == 0


@pytest.mark.parametrize("autocast", [False, True])
def test_a_resumed_learner_equals_an_uninterrupted_one(autocast):
    """Between two updates of the target, so that network and target differ."""
    whole, first, second = (PixelLearner(settings(autocast=autocast), ACTIONS, seed)
                            for seed in (1, 1, 9))  # fmt: skip
    taught(whole, range(3))
    taught(first, range(3))
    state = first.state()
    kept = copy.deepcopy(state)
    taught(first, range(3, 4))  # what happens later does not change a state
    second.load(state)
    assert taught(second, range(3, 6)) == taught(whole, range(3, 6))
    assert largest_difference(second.weights(), whole.weights()) == 0
    assert second.updates == whole.updates == 6
    assert torch.equal(state["network"]["values.bias"], kept["network"]["values.bias"])


def test_clipping_holds_the_gradient_and_tells_its_norm():
    free, held = (PixelLearner(settings(gradient_clip=limit), ACTIONS, 1) for limit in (0, 0.05))
    parts = [batch(8, 0)]
    norms = learned(free, parts).gradient_norm, learned(held, parts).gradient_norm
    assert norms[0] == norms[1] > 0.05, "before it is clipped"
    found = [
        torch.cat([parameter.grad.flatten() for parameter in learner.model.parameters()])
        for learner in (free, held)
    ]
    assert float(found[0].norm()) == pytest.approx(norms[0], rel=1e-3)
    assert float(found[1].norm()) == pytest.approx(0.05, rel=1e-3)
    assert torch.allclose(found[0] * (0.05 / norms[0]), found[1], atol=1e-6)


@pytest.mark.skipif(not computes_in_half(torch.device("cpu")), reason="takes bfloat16 in the CPU")
def test_autocast_stays_near_float32():
    parts = [batch(8, number) for number in range(4)]
    both = (PixelLearner(settings(autocast=a), ACTIONS, 1) for a in (False, True))
    plain, half = (learned(learner, parts) for learner in both)
    for name in ("loss", "td_error", "gradient_norm"):
        assert getattr(half, name) == pytest.approx(getattr(plain, name), rel=0.02)
        assert getattr(half, name) != getattr(plain, name), "it ran in bfloat16"


def test_a_processor_without_bfloat16_learns_in_float32(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_bf16": False})
    parts = [batch(8, number) for number in range(4)]
    both = (PixelLearner(settings(autocast=a), ACTIONS, 1) for a in (False, True))
    plain, asked = (learned(learner, parts) for learner in both)
    assert asked == plain


def test_float16_is_scaled_and_an_overflow_changes_no_weight(monkeypatch):
    """As on a GPU; this is the CPU's gradient scaler."""
    monkeypatch.setitem(pixel_learner._HALF, "cpu", torch.float16)
    monkeypatch.setattr(pixel_learner, "computes_in_half", lambda device: True)
    parts = [batch(8, number) for number in range(4)]
    plain = learned(PixelLearner(settings(), ACTIONS, 1), parts)
    learner = PixelLearner(settings(autocast=True, gradient_clip=0.5), ACTIONS, 1)
    state = learner.state()
    begun, scale = learner.weights(), state["scaler"]["scale"]
    told = learned(learner, parts)
    assert told.gradient_norm == pytest.approx(plain.gradient_norm, rel=0.02), "it is unscaled"
    assert largest_difference(learner.weights(), begun) > 0
    state["scaler"]["scale"] = 2.0**40
    learner.load(state)
    parameters = [parameter.detach().clone() for parameter in learner.model.parameters()]
    assert not np.isfinite(learned(learner, parts).gradient_norm)
    for before, after in zip(parameters, learner.model.parameters(), strict=True):
        assert torch.equal(before, after)
    assert learner.state()["scaler"]["scale"] == 2.0**39 > scale


def test_double_q_learning_takes_the_targets_value_of_the_networks_choice():
    part = batch(8, 3)
    learner = PixelLearner(settings(normalise=False), ACTIONS, 1)
    with torch.no_grad():
        learner.model.values.bias[learner.model(part.stacks).mean(0).argmin()] += 1
    wanted, after = learner._targets(*learner.prepared(part)), part.next_stacks
    with torch.no_grad():
        chosen, values = learner.model(after).argmax(1), learner._target(after)
    best = values.numpy()[np.arange(8), chosen.numpy()]
    assert (chosen != values.argmax(1)).any(), "the two differ"
    expected = part.returns.numpy() + part.discounts.numpy() * best
    assert np.allclose(wanted.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"stack": 2}, {"normalise": False, "dueling": True}])
def test_the_network_of_numpy_is_that_of_pytorch_in_evaluation(changes):
    learner, stack = PixelLearner(settings(**changes), ACTIONS, 1), changes.get("stack", 4)
    seen = stacks(5, np.random.default_rng(3), stack)
    with torch.no_grad():  # averages, gains and shifts as a training leaves them
        for module in learner.model.convolutions:
            if isinstance(module, torch.nn.BatchNorm2d):
                module.train(), module.weight.uniform_(0.5, 2), module.bias.uniform_(-1, 1)
        learner.model(torch.from_numpy(seen))
        wanted = learner.model.eval()(torch.from_numpy(seen)).numpy()
    values = Actor.of(learner.weights()).values(seen)
    assert values.dtype == np.float32 and np.abs(values - wanted).max() < 1e-4
    assert np.abs(wanted).max() > 0.01
    alone = np.concatenate([Actor.of(learner.weights()).values(one[None]) for one in seen])
    assert np.abs(alone - values).max() < 1e-4, "in any company"
    assert np.allclose(TorchActor(learner.weights()).values(seen), wanted, atol=1e-4)


@pytest.fixture
def apart():
    """Keep what other tests have compiled away."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.slow
def test_a_compiled_learner_learns_the_same(apart, monkeypatch):
    """By PyTorch's backend that traces as the default one does, and takes no compiler."""
    traced = functools.partialmethod(torch.nn.Module.compile, backend="aot_eager")
    monkeypatch.setattr(PixelNetwork, "compile", traced)
    learner, plain = (PixelLearner(settings(compile=c), ACTIONS, 1) for c in (True, False))
    assert learner.model._compiled_call_impl is not None
    assert largest_difference(learner.weights(), plain.weights()) == 0, "trying it changes nothing"
    for number in range(2):
        told, wanted = (learned(one, [batch(8, number)]) for one in (learner, plain))
        assert vars(told) == pytest.approx(vars(wanted), rel=1e-4)
        learner.update_target(), plain.update_target()
    assert largest_difference(learner.weights(), plain.weights()) < 1e-5
    assert learner.state()["network"].keys() == plain.state()["network"].keys()
    plain.load(learner.state())
