"""Compiling the network: what it computes stays, and where there is no compiler it goes on."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")

from pixel_batches import ACTIONS, batch, largest_difference, settings  # noqa: E402

from goalreel.training.pixels.learner import PixelLearner  # noqa: E402
from goalreel.training.pixels.network import PixelNetwork  # noqa: E402


@pytest.fixture(autouse=True)
def apart():
    """One thread, and nothing that another test has compiled."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.compiler.reset()
    yield
    torch.compiler.reset()
    torch.set_num_threads(before)


def test_without_a_compiler_it_says_so_and_goes_on(monkeypatch, tmp_path, capfd):
    import torch._inductor.config as inductor

    monkeypatch.setattr(inductor.cpp, "cxx", ("/nowhere/g++",))
    monkeypatch.setattr(inductor, "force_disable_caches", True)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    learner, plain = (PixelLearner(settings(compile=c), ACTIONS, 1) for c in (True, False))
    said = [
        line for line in capfd.readouterr().err.splitlines() if line.startswith("torch.compile")
    ]
    assert len(said) == 1 and "torch.compile: continuing without (" in said[0]
    assert "compiler" in said[0]
    assert learner.learn([batch(8, 0)]) == plain.learn([batch(8, 0)])
    assert largest_difference(learner.weights(), plain.weights()) == 0


def test_a_compiled_learner_learns_the_same(monkeypatch):
    """By PyTorch's backend that traces as the default one does, and takes no compiler."""
    traced = functools.partialmethod(torch.nn.Module.compile, backend="aot_eager")
    monkeypatch.setattr(PixelNetwork, "compile", traced)
    learner, plain = (PixelLearner(settings(compile=c), ACTIONS, 1) for c in (True, False))
    assert learner.model._compiled_call_impl is not None
    assert largest_difference(learner.weights(), plain.weights()) == 0, "trying it changes nothing"
    for number in range(2):
        told, wanted = (one.learn([batch(8, number)]) for one in (learner, plain))
        assert vars(told) == pytest.approx(vars(wanted), rel=1e-4)
        learner.update_target(), plain.update_target()
    assert largest_difference(learner.weights(), plain.weights()) < 1e-5
    assert learner.state()["network"].keys() == plain.state()["network"].keys()
    plain.load(learner.state())
