"""Without PyTorch, training asks for it and checks its options, and all else works."""

import importlib.util
import sys

import pytest
from trained_policies import random_policy

TORCH = importlib.util.find_spec("torch") is not None


@pytest.mark.skipif(TORCH, reason="PyTorch is there")
@pytest.mark.parametrize("target", ["all", "train"])
def test_training_without_pytorch_asks_for_it(project, target):
    output = project.fail("-n", target, config={"policy": "trained"})
    message = "This run needs the package torch. Install it: pip install "
    assert f"{message}'goalreel[train]'" in output and "Traceback" not in output
    assert f"Python: {sys.executable}" in output


@pytest.mark.skipif(TORCH, reason="PyTorch is there")
def test_pixel_network_plays_without_pytorch(project, tmp_path):
    kept = random_policy(tmp_path / "policy.npz", "MountainCar-v0", 3)
    config = {"policy": f"{{name: trained, file: {kept}}}", "reaches": 4}
    assert project.jobs(config=config)["simulate"] == 1
