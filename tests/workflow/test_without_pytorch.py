"""Without PyTorch, training asks for it and checks its options, and all else works."""

import importlib.util
import sys

import pytest
from trained_policies import random_policy

TORCH = importlib.util.find_spec("torch") is not None


@pytest.mark.skipif(TORCH, reason="PyTorch is there")
@pytest.mark.parametrize("target", ["all", "training_progress", "report", "train"])
def test_training_without_pytorch_asks_for_it(project, target):
    output = project.fail("-n", target, config={"policy": "trained"})
    message = "This run needs the package torch. Install it: pip install "
    assert f"{message}'goalreel[train]'" in output and "Traceback" not in output


@pytest.mark.skipif(TORCH, reason="PyTorch is there")
def test_pixel_network_trains_with_and_plays_without_pytorch(project, tmp_path):
    output = project.fail("-n", config={"policy": "trained", "reaches": 4})
    assert f"Python: {sys.executable}" in output and "Traceback" not in output
    kept = random_policy(tmp_path / "policy.npz", "MountainCar-v0", 3)
    config = {"policy": f"{{name: trained, file: {kept}}}", "reaches": 4}
    assert project.jobs(config=config)["simulate"] == 1


def test_other_policies_plan_no_pytorch(project):
    jobs = project.jobs("all", "report", config={"reaches": 4})
    assert not jobs.keys() & {"train", "training_progress"}
