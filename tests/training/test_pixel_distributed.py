"""Learning in two processes: what one would learn, by gloo on the CPU as by NCCL on GPUs."""

import os
import signal
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
pytest.importorskip("torch.distributed", reason="takes PyTorch with its distributed package")
if not torch.distributed.is_available():
    pytest.skip("this PyTorch has no distributed package", allow_module_level=True)

from pixel_batches import ACTIONS, batch, joined, largest_difference, settings  # noqa: E402

from goalreel.errors import GoalreelError  # noqa: E402
from goalreel.training.pixels.distributed import make_learner  # noqa: E402
from goalreel.training.pixels.learner import PixelLearner  # noqa: E402

COARSE = {"learning_rate": 1e-2}  # changes weights a thousand times as much as rounding may


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_two_processes_with_half_the_batch_each_learn_as_one_with_all():
    """Weights, what is told, and the same after a state is loaded."""
    halves = [[batch(8, 2 * n), batch(8, 2 * n + 1)] for n in range(4)]
    plain = settings(accumulation=2, normalise=False, **COARSE)
    one = PixelLearner(plain, ACTIONS, 1)
    with make_learner(plain, ACTIONS, 1, ranks=2) as two:
        for number, parts in enumerate(halves):
            wanted, told = one.learn([joined(parts)]), two.learn(parts)
            assert vars(told) == pytest.approx(vars(wanted), rel=1e-4)
            if number == 1:
                one.update_target(), two.update_target()
        assert largest_difference(one.weights(), two.weights()) < 1e-5
        fresh = PixelLearner(plain, ACTIONS, 2)
        for learner in (one, two):
            learner.load(fresh.state())
            learner.learn(halves[0])
        assert largest_difference(one.weights(), two.weights()) < 1e-5
        assert largest_difference(fresh.weights(), two.weights()) > 5e-3, "it learned"


@pytest.fixture(scope="module")
def pair():
    """Yield a learner of two processes, with BatchNorm."""
    with make_learner(settings(**COARSE), ACTIONS, 1, ranks=2) as two:
        yield two


def test_with_batchnorm_batches_are_normalised_as_in_one_process(pair):
    """4 batches, 2 for each of 2 processes; the running averages are the mean of both."""
    parts = [batch(8, number) for number in range(4)]
    one, *halves = (PixelLearner(settings(**COARSE), ACTIONS, 1) for _ in range(3))
    one.learn(parts), halves[0].learn(parts[:2]), halves[1].learn(parts[2:])
    pair.learn(parts)
    networks = [learner.state()["network"] for learner in (pair, one, *halves)]
    for name, found in networks[0].items():
        whole, first, second = (network[name] for network in networks[1:])
        if "running" in name:
            assert torch.allclose(found, (first + second) / 2, atol=1e-5)
        elif "num_batches" not in name:
            assert float((found - whole).abs().max()) < 1e-5


def test_a_process_that_ends_is_named(pair):
    """Also when what it is told has nobody to read it; all that it shared is given up then."""
    (other,), shares = pair._others, Path(pair._folder)
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    with pytest.raises(
        GoalreelError, match="process 1 of the learner has ended .killed by SIGKILL"
    ):
        pair.learn([batch(8, number) for number in range(4)])
    assert shares.is_dir()
    pair.close()
    assert not shares.exists() and not torch.distributed.is_initialized()


def test_batches_that_cannot_be_shared_out_are_refused():
    with (
        pytest.raises(GoalreelError, match="4 batches .* to 3 GPUs; allowed: a multiple of 3"),
        make_learner(settings(), ACTIONS, 1, ranks=3),
    ):
        pass


def test_one_device_needs_no_other_process():
    with make_learner(settings(), ACTIONS, 1, ranks=1) as learner:
        assert type(learner) is PixelLearner
