"""The policy dqn in the workflow: it is trained first, plays exactly, reruns what it changes."""

import importlib.util
import json
import sys

import numpy as np
import pytest
from conftest import hashes

from goalreel.trajectories import read_trajectories

TORCH = importlib.util.find_spec("torch") is not None
NEEDS_TORCH = pytest.mark.skipif(not TORCH, reason="takes PyTorch, which is no requirement")
BASE = {
    **{"reaches": 4, "shard_size": 2, "success": -200, "max_steps": 60},
    **{"policy": "{name: dqn}", "dqn": "{frames: 6000}"},
}
SIMULATE = {"simulate": 2, "render": 2, "encode": 2, "concat": 1, "episodes": 1}
TRAIN = SIMULATE | {"dqn": 1}


@pytest.fixture(scope="module")
def driven(once):
    """Return a project with a finished film of a policy that was trained shortly."""
    return once("driven", lambda fresh: fresh.run("-j", "2", config=BASE))


@NEEDS_TORCH
def test_what_was_trained_drives(driven):
    from goalreel.dqn.policy_file import read_checkpoints

    folder = driven.folder / "results" / "train" / "fast" / "7"
    kept = read_checkpoints(folder / "policy.pt")
    network = kept.network(kept.choose("best"))
    for shard in ("00000", "00001"):
        path = driven.folder / "results" / "trajectories" / f"{shard}.npz"
        played = read_trajectories(path)
        last = np.zeros(len(played.states), bool)
        last[played.offsets[1:] - 1] = True
        seen = played.states[~last].astype(np.float32)
        assert np.array_equal(network.act(seen), played.actions)
    told = json.loads((folder / "metrics.json").read_text())
    assert told["stage"] == "dqn" and told["metrics"]["variant"] == "fast"
    assert told["metrics"]["frames"] >= 6000 and told["metrics"]["fps"] > 0


@NEEDS_TORCH
@pytest.mark.parametrize(
    ("edit", "jobs"),
    [
        ({}, {}),
        ({"policy": "{name: dqn, checkpoint: best}"}, {}),
        ({"policy": "{name: dqn, checkpoint: last}"}, SIMULATE),
        ({"policy": "{name: dqn, variant: baseline}"}, TRAIN),
        ({"policy": "{name: dqn, epsilon: 0.5}"}, SIMULATE),
        ({"dqn": "{frames: 7000}"}, TRAIN),
        ({"train": "{seed: 8}"}, TRAIN),
        ({"train": "{attempts: 1}"}, {}),
        ({"seed": 1}, SIMULATE),
    ],
    ids=str,
)
def test_config_edit(driven, edit, jobs):
    assert driven.jobs(config=BASE | edit) == jobs


@NEEDS_TORCH
def test_a_trained_policy_is_no_part_of_other_runs(filmed):
    assert filmed.jobs(config={"reaches": 8, "shard_size": 4, "dqn": "{frames: 5000}"}) == {}


@NEEDS_TORCH
def test_the_shard_size_changes_no_trajectory(driven, project):
    """A network's values could differ in a last bit with the number of lanes."""
    project.run("-j", "2", config=BASE | {"shard_size": 4})
    path = project.folder / "results" / "trajectories" / "00000.npz"
    whole = read_trajectories(path)
    parts = [
        read_trajectories(driven.folder / "results" / "trajectories" / f"0000{n}.npz")
        for n in range(2)
    ]
    assert np.array_equal(whole.states, np.concatenate([part.states for part in parts]))
    trained = "train/fast/7/policy.pt"
    one, other = (hashes(p.folder / "results")[trained] for p in (project, driven))
    assert one == other, "trained anew, it is the same"


@NEEDS_TORCH
def test_bad_checkpoints_are_named(driven, tmp_path):
    project = driven.copied(tmp_path / "project")
    said = project.fail(config=BASE | {"policy": "{name: dqn, checkpoint: 17}"})
    assert "policy.checkpoint: 17 is none of the training's; allowed: best, last, 50" in said
    (project.folder / "results" / "train" / "fast" / "7" / "policy.pt").write_bytes(b"nothing")
    said = project.fail(config=BASE | {"seed": 5})
    assert "policy.pt: could not be used and is deleted: truncated or corrupt" in said
    project.run(config=BASE | {"seed": 5})


def test_misspelt_variants_are_corrected(project):
    said = project.fail("-n", config={"policy": "{name: dqn, variant: basline}"})
    assert "policy.variant" in said and "baseline" in said and "Traceback" not in said
    said = project.fail("-n", config={"policy": "{name: dqn, checkpoint: beste}"})
    assert "did you mean 'best'? (allowed: best, last); or an age in frames" in said


@pytest.mark.skipif(TORCH, reason="PyTorch is there")
def test_without_pytorch_it_is_asked_for(project):
    said = project.fail("-n", config={"policy": "{name: dqn}"})
    told = f"the package torch is not installed for {sys.executable}; install it: pip install -r"
    assert f"{told} requirements-train.in" in said and "Traceback" not in said
