"""Collectors' own computation of the network, without PyTorch, gives PyTorch's values."""

import subprocess
import sys

import numpy as np
import pytest
from project import REPOSITORY

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")

from pixel_batches import ACTIONS, batch, settings, stacks  # noqa: E402

from goalreel.training.pixels.learner import PixelLearner  # noqa: E402
from goalreel.training.pixels.numpy_network import Actor  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("normalise", "stack"), [(True, 4), (False, 4), (True, 2)])
def test_it_is_the_network_in_evaluation(normalise, stack):
    learner = PixelLearner(settings(normalise=normalise, stack=stack), ACTIONS, 1)
    seen = stacks(5, np.random.default_rng(3), stack)
    with torch.no_grad():  # averages, gains and shifts as a training leaves them
        for module in learner.model.convolutions:
            if isinstance(module, torch.nn.BatchNorm2d):
                module.train(), module.weight.uniform_(0.5, 2), module.bias.uniform_(-1, 1)
                module.momentum = 0.5
        learner.model(torch.from_numpy(seen))
        wanted = learner.model.eval()(torch.from_numpy(seen)).numpy()
    values = Actor.of(learner.weights()).values(seen)
    assert values.dtype == np.float32 and np.abs(values - wanted).max() < 1e-4
    assert np.abs(wanted).max() > 0.1
    alone = np.concatenate([Actor.of(learner.weights()).values(one[None]) for one in seen])
    assert np.abs(alone - values).max() < 1e-4, "in any company"


def test_weights_keep_their_names_and_shapes():
    """As shared memory takes them."""
    learner = PixelLearner(settings(), ACTIONS, 1)
    before = learner.weights()
    learner.learn([batch(8, 0)])
    after = learner.weights()
    assert {name: array.shape for name, array in before.items()} == {
        name: array.shape for name, array in after.items()
    }
    for name, array in after.items():
        assert array.dtype == np.float32 and array.flags.c_contiguous
        assert not np.shares_memory(array, before[name])


def test_collectors_import_no_pytorch():
    code = "import sys, goalreel.training.pixels.numpy_network; print(sorted({'torch', 'cv2'} & set(sys.modules)))"
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(REPOSITORY / "scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "[]"
