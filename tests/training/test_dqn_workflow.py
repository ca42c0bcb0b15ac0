"""The policy dqn in the workflow: trained first, played exactly, with the right reruns."""

import json
import re
import shutil

import av
import numpy as np
import pytest

from goalreel.policies.network import Network
from goalreel.policies.network_file import read_checkpoints
from goalreel.simulation.trajectories import read_trajectories

pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
pytestmark = pytest.mark.slow
BASE = {
    **{"reaches": 4, "shard_size": 4, "success": -200, "max_episode_steps": 60},
    **{"policy": "{name: dqn}", "dqn": "{total_timesteps: 1000}"},
}
SIMULATE = {"simulate": 1, "render": 1, "encode": 1, "concat": 1, "episodes": 1}
TRAIN = SIMULATE | {"dqn": 1}
SHARD = "results/trajectories/00000.npz"


@pytest.fixture(scope="module")
def driven(once):
    """Return a project with a finished film of a policy with a short training."""
    return once("driven", lambda fresh: fresh.run("-j", "2", config=BASE))


def test_trained_policy_reaches_the_goal(driven):
    folder = driven.folder / "results" / "train"
    kept = read_checkpoints(folder / "policy.npz")
    network = Network.of(kept.weights[kept.choose("best")])
    played = read_trajectories(driven.folder / SHARD)
    last = np.zeros(len(played.states), bool)
    last[played.offsets[1:] - 1] = True
    seen = played.states[~last].astype(np.float32)
    assert np.array_equal(network.act(seen), played.actions)
    told = json.loads((folder / "metrics.json").read_text())
    assert told["stage"] == "dqn" and told["config"]["variant"] == "fast"
    assert told["metrics"]["decisions"] >= 1000 and told["metrics"]["cpu_seconds"] > 0


@pytest.mark.parametrize(
    ("edit", "jobs"),
    [
        ({"policy": "{name: dqn, checkpoint: best}", "train": "{attempts: 1}"}, {}),
        ({"policy": "{name: dqn, checkpoint: last}"}, SIMULATE),
        ({"dqn": "{total_timesteps: 1001}"}, TRAIN),
    ],
    ids=str,
)
def test_config_edit(driven, edit, jobs):
    assert driven.jobs(config=BASE | edit) == jobs


VIEWS = {"training_progress": 1, "plots": 1, "swarm": 1, "grid": 1, "report": 1}
TARGETS = ("all", "training_progress", "report")


@pytest.fixture(scope="module")
def progressed(once, driven):
    """Return a project with the film of the training."""

    def make(fresh):
        shutil.rmtree(fresh.folder)
        return driven.copied(fresh.folder).run(*TARGETS, "-j", "2", config=BASE)

    return once("progressed", make)


def test_report_shows_learning_film_and_training_verifies(progressed, tmp_path):
    project = progressed.copied(tmp_path / "project")
    results = project.folder / "results"
    page = (results / "report" / "index.html").read_text(encoding="utf-8")
    assert "Training progress" in page and "training_progress.mp4" in page
    with av.open(str(results / "training_progress.mp4")) as film:
        title = film.chapters()[0]["metadata"]["title"]
    assert re.match(r"After [\d,]+ decisions · attempt 1 of 4 · ", title)
    output = project.run("verify", "-j", "2", config=BASE)
    verified = re.findall(r"^ *(dqn|training_progress) +\d+ .* ok", output, re.M)
    assert set(verified) == {"dqn", "training_progress"}
    log = results / "train" / "log.csv"
    log.write_text(log.read_text() + "1\n")
    output = project.fail("verify", "-j", "2", config=BASE)
    assert re.search(r"log\.csv.*(sha256|damaged|differs)", output), output


def test_edited_training_code_reruns_the_training(progressed, tmp_path):
    project = progressed.copied(tmp_path / "project")
    project.edit("scripts/goalreel/training/dqn/learner.py", "_CLIP = 10.0", "_CLIP = 9.0")
    assert project.jobs(*TARGETS, config=BASE) == TRAIN | VIEWS


def test_unknown_checkpoint_is_named(driven, tmp_path):
    project = driven.copied(tmp_path / "project")
    said = project.fail(SHARD, config=BASE | {"policy": "{name: dqn, checkpoint: 17}"})
    assert "policy.checkpoint: '17' is not a checkpoint of this policy" in said
    (project.folder / "results" / "train" / "policy.npz").write_bytes(b"nothing")
    said = project.fail(SHARD, config=BASE | {"seed": 5})
    assert "policy.npz: It is " in said and "goalreel deleted it" in said
    jobs = project.jobs(SHARD, config=BASE | {"seed": 5})
    assert jobs == {"dqn": 1, "simulate": 1}, "it is trained again"
