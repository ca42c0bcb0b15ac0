"""The learner's targets against sums by hand, and the scaling of its inputs."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")

from goalreel.policies.network import Network  # noqa: E402
from goalreel.training.dqn.learner import Learner, rescaled  # noqa: E402
from goalreel.training.dqn.playing import Transitions  # noqa: E402
from goalreel.training.dqn.settings import Settings  # noqa: E402

SMALL = Settings(hidden=(16, 16))
LOW, HIGH = np.array([-1.2, -0.07]), np.array([0.6, 0.07])


def some(count: int) -> Transitions:
    """Return transitions anywhere in the state space, every fourth terminated."""
    rng = np.random.default_rng(3)
    seen, after = rng.uniform(LOW, HIGH, (2, count, 2)).astype(np.float32)
    discounts = np.where(np.arange(count) % 4, 0.9, 0.0).astype(np.float32)
    actions, rewards = rng.integers(3, size=count), np.full(count, -1, np.float32)
    return Transitions(seen, actions, rewards, after, discounts)


def by_hand(model, target, batch: Transitions) -> float:
    """Return the loss by the formulas of Mnih, one transition at a time."""
    losses = []
    model, target = (lambda x, m=m: m(rescaled(x)).detach() for m in (model, target))
    for place in range(len(batch.actions)):
        after = batch.next_obs[place]
        best = float(target(after).max())
        wanted = float(batch.rewards[place]) + float(batch.discounts[place]) * best
        off = abs(float(model(batch.obs[place])[batch.actions[place]]) - wanted)
        losses.append(off**2 / 2 if off < 1 else off - 0.5)  # Huber's
    return sum(losses) / len(losses)


def test_loss_equals_the_formulas():
    learner, other = Learner(SMALL, 1), Learner(SMALL, 2)
    learner.model.load_state_dict(other.model.state_dict())  # the target keeps the old weights
    target = Learner(SMALL, 1).model
    batch = some(64)
    wanted = by_hand(learner.model, target, batch)
    assert learner.learn(batch) == pytest.approx(wanted, rel=1e-5)


def test_target_stays_until_its_update():
    learner, batch = Learner(SMALL, 1), some(64)
    old = Learner(SMALL, 1).model  # the target of the beginning
    for _ in range(5):
        learner.learn(batch)
    stays = by_hand(learner.model, old, batch)
    moves = by_hand(learner.model, learner.model, batch)
    assert abs(stays - moves) > 1e-3 * moves
    other = copy.deepcopy(learner)
    assert other.learn(batch) == pytest.approx(stays, rel=1e-5)
    learner.update_target()
    assert learner.learn(batch) == pytest.approx(moves, rel=1e-5)


@pytest.mark.filterwarnings("ignore:.*precision lowered")  # by Gymnasium's wrapper itself
def test_rescaled_observations_equal_gymnasium():
    import gymnasium as gym

    plain = gym.make("MountainCar-v0")
    wrapped = gym.wrappers.RescaleObservation(gym.make("MountainCar-v0"), -1.0, 1.0)
    learner = Learner(SMALL, 1)
    for seed in range(5):
        seen, theirs = plain.reset(seed=seed)[0], wrapped.reset(seed=seed)[0]
        with torch.no_grad():
            values = learner.model(torch.from_numpy(theirs.astype(np.float32))).numpy()
        assert learner.values(seen[None])[0] == pytest.approx(values, abs=1e-5)


def test_saved_weights_take_raw_observations():
    learner = Learner(SMALL, 1)
    learner.learn(some(64))
    seen = some(500).obs
    for dtype in (np.float64, np.float32):  # as simulate plays, and as a player's process does
        values = Network.of(learner.weights(), dtype).values(seen.astype(dtype))
        assert values.dtype == dtype
        assert values == pytest.approx(learner.values(seen), abs=1e-5)
