"""An update of the pixel learner depends only on its batch, and is reproducible."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
torch.set_num_threads(1)  # the same sums, whatever the machine's cores

from pixel_batches import ACTIONS, batch, largest_difference, stacks  # noqa: E402
from pixel_policies import settings  # noqa: E402

from goalreel.policies.pixel_network import Actor  # noqa: E402
from goalreel.training.pixels import learner as pixel_learner  # noqa: E402
from goalreel.training.pixels.learner import PixelLearner, computes_in_half  # noqa: E402


def learned(learner: PixelLearner, part, rate_left: float = 1.0) -> dict[str, float]:
    """Make an update, and return its figures."""
    learner.learn(part, learner.target_values(part), rate_left)
    return learner.learned


def taught(learner: PixelLearner, updates: range) -> list:
    """Make some updates, and return their figures."""
    told = []
    for update in updates:
        told.append(learned(learner, batch(8, update)))
        if update % 2:
            learner.update_target()
    return told


def test_share_of_learning_rate_scales_the_step():
    """The first step of Adam is the learning rate, by the sign of the gradient."""
    moved = []
    for share in (1.0, 0.1):
        learner = PixelLearner(settings(learning_rate=1e-2), ACTIONS, 1)
        begun = learner.weights()
        learned(learner, batch(8, 1), share)
        moved.append(largest_difference(learner.weights(), begun))
    assert moved[0] == pytest.approx(1e-2, rel=1e-2)
    assert moved[1] == pytest.approx(1e-3, rel=1e-2)


def test_update_follows_gradient_of_huber_loss():
    part, learner = batch(8, 0), PixelLearner(settings(double=False), ACTIONS, 1)
    model, target = copy.deepcopy(learner.model), copy.deepcopy(learner.model)
    with torch.no_grad():
        wanted = part.returns + part.discounts * target(part.next_stacks).max(dim=1).values
    found = model(part.stacks).gather(1, part.actions[:, None]).squeeze(1)
    loss = torch.nn.functional.huber_loss(found, wanted)
    loss.backward()
    told = learned(learner, part)
    assert told["loss"] == pytest.approx(loss.item(), rel=1e-5)
    assert told["td_error"] == pytest.approx((found - wanted).abs().mean().item(), rel=1e-5)
    for (name, one), other in zip(
        learner.model.named_parameters(), model.parameters(), strict=True
    ):
        assert torch.allclose(one.grad, other.grad, atol=1e-6), name


@pytest.mark.parametrize("changes", [{}, {"double": False, "autocast": True, "max_grad_norm": 0.1}])
def test_same_seed_and_batches_give_same_weights(changes):
    one, again, other = (PixelLearner(settings(**changes), ACTIONS, seed) for seed in (1, 1, 2))
    assert largest_difference(one.weights(), other.weights()) > 0
    assert taught(one, range(3)) == taught(again, range(3))
    assert largest_difference(one.weights(), again.weights()) == 0


@pytest.mark.parametrize("autocast", [False, True])
def test_resumed_learner_equals_uninterrupted_one(autocast):
    """The learner is between two updates of the target, so that network and target differ."""
    whole, first, second = (PixelLearner(settings(autocast=autocast), ACTIONS, seed)
                            for seed in (1, 1, 9))  # fmt: skip
    taught(whole, range(3))
    taught(first, range(3))
    second.load(copy.deepcopy(first.state()))
    assert taught(second, range(3, 6)) == taught(whole, range(3, 6))
    assert largest_difference(second.weights(), whole.weights()) == 0
    assert second.updates == whole.updates == 6


def test_clipping_limits_the_gradient():
    found = []
    for limit in (0, 0.05):
        learner = PixelLearner(settings(max_grad_norm=limit), ACTIONS, 1)
        learned(learner, batch(8, 0))
        found.append(torch.cat([p.grad.flatten() for p in learner.model.parameters()]))
    norm = float(found[0].norm())
    assert norm > 0.06 and float(found[1].norm()) == pytest.approx(0.05, rel=1e-3)
    assert torch.allclose(found[0] * (0.05 / norm), found[1], atol=1e-6)


@pytest.mark.skipif(not computes_in_half(torch.device("cpu")), reason="takes bfloat16 in the CPU")
def test_autocast_stays_near_float32():
    both = (PixelLearner(settings(autocast=a), ACTIONS, 1) for a in (False, True))
    plain, half = (learned(learner, batch(8, 0)) for learner in both)
    for name in ("loss", "td_error"):
        assert half[name] == pytest.approx(plain[name], rel=0.02)
        assert half[name] != plain[name], "it ran in bfloat16"


def test_processor_without_bfloat16_learns_in_float32(monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_bf16": False})
    both = (PixelLearner(settings(autocast=a), ACTIONS, 1) for a in (False, True))
    plain, asked = (learned(learner, batch(8, 0)) for learner in both)
    assert asked == plain


def test_float16_is_scaled_and_overflow_changes_no_weight(monkeypatch):
    """The CPU's gradient scaler stands for that of a GPU."""
    monkeypatch.setitem(pixel_learner._HALF, "cpu", torch.float16)
    monkeypatch.setattr(pixel_learner, "computes_in_half", lambda device: True)
    part = batch(8, 0)
    plain = learned(PixelLearner(settings(), ACTIONS, 1), part)
    learner = PixelLearner(settings(autocast=True, max_grad_norm=0.5), ACTIONS, 1)
    state = copy.deepcopy(learner.state())
    begun, scale = learner.weights(), state["scaler"]["scale"]
    assert learned(learner, part)["loss"] == pytest.approx(plain["loss"], rel=0.02), "unscaled"
    assert largest_difference(learner.weights(), begun) > 0
    state["scaler"]["scale"] = 2.0**40
    learner.load(state)
    learned(learner, part)
    assert largest_difference(learner.weights(), begun) == 0
    assert learner.state()["scaler"]["scale"] == 2.0**39 > scale


def test_double_q_learning_uses_target_value_of_online_choice():
    part = batch(8, 3)
    learner = PixelLearner(settings(), ACTIONS, 1)
    with torch.no_grad():
        learner.model.values.bias[learner.model(part.stacks).mean(0).argmin()] += 1
    wanted = learner._targets(part, learner.target_values(part))
    after = part.next_stacks
    with torch.no_grad():
        chosen, values = learner.model(after).argmax(1), learner._target(after)
    best = values.numpy()[np.arange(8), chosen.numpy()]
    assert (chosen != values.argmax(1)).any(), "the two differ"
    expected = part.returns.numpy() + part.discounts.numpy() * best
    assert np.allclose(wanted.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"stack": 2}, {"dueling": True}])
def test_numpy_network_equals_pytorch_network(changes):
    learner, stack = PixelLearner(settings(**changes), ACTIONS, 1), changes.get("stack", 4)
    seen = stacks(5, np.random.default_rng(3), stack)
    with torch.no_grad():
        wanted = learner.model(torch.from_numpy(seen)).numpy()
    values = Actor.of(learner.weights()).values(seen)
    assert values.dtype == np.float32 and np.abs(values - wanted).max() < 1e-4
    assert np.abs(wanted).max() > 0.01
    alone = np.concatenate([Actor.of(learner.weights()).values(one[None]) for one in seen])
    assert np.abs(alone - values).max() < 1e-4, "in any company"
