"""The target train: what it rejects before it starts, what it reruns, and what its network plays."""

import contextlib
import csv
import json
import os
import re
import shutil
import signal

import numpy as np
import pytest
from conftest import of_shard
from gymnasium import spaces
from message_form import check_form, rejection
from project import REPOSITORY
from trials import wait_for

from goalreel.errors import GoalreelError
from goalreel.training.tasks import check_spaces
from goalreel.workflow import plan as planning
from goalreel.workflow.config import load_config
from goalreel.workflow.hooks import _with_trained_policy
from goalreel.workflow.plan import Plan
from goalreel.workflow.policy_errors import training_of
from goalreel.workflow.rules import Plans, memory_mb
from goalreel.workflow.run_checks import check_network
from goalreel.workflow.suite import expand

CART = {"env": "CartPole-v1", "policy": "trained"}
PONG = {"env": "ALE/Pong-v5", "policy": "trained"}
TIME = "gymnasium.wrappers:TimeAwareObservation"


def trains(**options) -> dict:
    return CART | {"train": options}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            CART | {"env": "Pendulum-v1"},
            "env: 'Pendulum-v1' has continuous actions. Training needs",
        ),
        (CART | {"env": "MountainCarContinuous-v0"}, "has continuous actions"),
        (
            trains(buffer_size=900, train_freq=4),
            "PPO has no buffer_size, train_freq. Remove it, or",
        ),
        (trains(algorithm="dqn", clip_range=0.1), "train.clip_range: DQN has no clip_range."),
        (
            trains(starts="failures"),
            "needs the snapshots of Super Mario Bros. Use reset for CartPo",
        ),
        (trains(pixels=True), "train.pixels: 'true' is only for MountainCar-v0."),
        (trains(n_envs=30, processes=4), "train.n_envs: '30' cannot be divided among 4 processes."),
        (trains(batch_size=255, processes=2), "Use a multiple of train.processes, such as 256."),
        (trains(batch_size=9999), "'9999' is more than the decisions between updates. Use at most"),
        (trains(network="natur"), "Unknown value 'natur'. Did you mean 'nature'?"),
        (
            trains(network="nature"),
            "'nature' is for frames, but CartPole-v1 has states. Use a list",
        ),
        (trains(screen_size=42), "train.screen_size: '42' is for frames, but CartPole-v1 has"),
        (trains(network="no_such:make"), "train.network: No module 'no_such' for 'no_such:make'."),
        (
            trains(network="numpy.py:make"),
            "train.network: 'numpy.py:make' names a file. Use numpy:make.",
        ),
        (
            trains(algorithm="dqn", total_timesteps=500),
            "train.learning_starts: '1000' decisions are the whole training. Use less than total_",
        ),
        (
            CART | {"env": "MountainCar-v0", "max_episode_steps": 12},
            "max_episode_steps: '12' cuts each episode after one decision, and DQN learns nothing",
        ),
        (trains(algorithm="sarsa"), "train.algorithm: 'sarsa' is not allowed. Use dqn or ppo."),
        (
            trains(checkpoints=[0, 500]) | {"policy": {"name": "trained", "checkpoint": 501}},
            "keeps no weights after 501 decisions. Add 501 to train.checkpoints, or use best or last.",
        ),
        (
            trains(checkpoints=[9**9]) | {"policy": {"name": "trained", "checkpoint": 9**9}},
            f"no weights after {9**9} decisions. Raise train.total_timesteps, or use best or last.",
        ),
    ],
)
def test_unsuitable_training_is_rejected_in_one_message(options, message):
    assert message in rejection(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"env_kwargs": {"frameskip": 4}},
            "env_kwargs.frameskip: '4' does not fit the policy 'tra",
        ),
        ({"env_kwargs": {"mode": 4}}, "env_kwargs.mode: A training from these frames ignores it."),
        ({"env_wrappers": [TIME]}, "env_wrappers: The policy 'trained' plays ALE/Pong-v5 without"),
    ],
)
def test_console_seen_differently_is_rejected(options, message):
    pytest.importorskip("ale_py")
    assert message in rejection(PONG | options)


PICTURE = spaces.Box(0, 255, (64, 64, 3), np.uint8)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 255, (84, 84, 4), np.uint8),
        spaces.Box(0, 255, (4, 84, 84), np.uint8),
        spaces.Dict({"speed": spaces.Box(-1, 1, (1,)), "camera": PICTURE}),
        spaces.Tuple([spaces.Dict({"left": PICTURE})]),
    ],
)
def test_pictures_that_no_network_takes_are_named(space):
    config = load_config(CART)
    config |= {"train": training_of(config)}
    check_spaces(config, PICTURE, spaces.Discrete(2))
    with pytest.raises(GoalreelError, match="env: 'CartPole-v1' has pictures of the shape"):
        check_spaces(config, space, spaces.Discrete(2))


def test_other_policies_accept_any_section_train():
    assert load_config(trains(batch_size=9999) | {"policy": "random"})["policy"]["name"] == "random"


@pytest.mark.parametrize(
    ("policy", "name"),
    [(None, "trained"), ({}, "trained"), ({"name": "null", "checkpoint": "last"}, "trained")]
    + [("random", "random"), ({"name": "pump"}, "pump"), ({"file": "a.zip"}, None)],
)
def test_target_train_chooses_policy_if_none_is_named(policy, name):
    chosen = _with_trained_policy({"policy": policy})["policy"]
    assert (chosen if isinstance(chosen, str) else chosen.get("name")) == name


@pytest.fixture
def spec_of(monkeypatch):
    """Return a function from options to the spec of a job, without PyTorch."""
    monkeypatch.setattr(planning, "_version", lambda tool: "1")

    def spec(options: dict, stage: str = "train") -> str:
        return Plan(load_config(options), REPOSITORY / "scripts").spec(stage, of_shard(0))

    return spec


def test_training_spec_depends_only_on_the_training(spec_of):
    film = {"episodes": 3, "success": 400, "seed": 5, "film": {"fps": 10}, "results": "elsewhere"}
    kept = {"policy": {"name": "trained", "checkpoint": "last"}, "train": {"attempts": 9}}
    assert spec_of(CART) == spec_of(CART | film) == spec_of(CART | kept)
    edits = trains(seed=8), CART | {"env_wrappers": [TIME]}, CART | {"max_episode_steps": 90}
    edits += trains(algorithm="dqn"), CART | {"env_kwargs": {"sutton_barto_reward": True}}
    assert len({spec_of(options) for options in (CART, *edits)}) == 6


@pytest.mark.parametrize(
    ("options", "targets", "message"),
    [
        ({}, (), None),
        ({"episodes": 3, "film": {"fps": 9}}, (), None),
        (
            trains(checkpoints=[0], total_timesteps=9000),
            (),
            "(total_timesteps '100000', now '9000')",
        ),
        (trains(checkpoints=[0], total_timesteps=9000), ("all", "train"), None),
        ({"max_episode_steps": 90}, (), "(max_episode_steps 'null', now '90')"),
        ({"policy": "random"}, (), None),
    ],
)
def test_film_does_not_replace_a_network(options, targets, message, spec_of, tmp_path):
    results = {"results": str(tmp_path)}
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "metrics.json").write_text(spec_of(trains(checkpoints=[0])))
    plan = Plan(load_config(trains(checkpoints=[0]) | options | results), REPOSITORY / "scripts")
    with contextlib.nullcontext() if message is None else pytest.raises(GoalreelError) as error:
        check_network(plan, targets)
    if message:
        assert message in str(error.value) and "train again: snakemake train" in str(error.value)
        check_form(str(error.value))


def test_edit_of_own_network_trains_and_plays_again(spec_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layers.py").write_text("WIDTH = 32\n")
    (tmp_path / "my_network.py").write_text("import layers\n")
    options = trains(network="my_network:make")
    before = spec_of(options), spec_of(options, "simulate")
    (tmp_path / "layers.py").write_text("WIDTH = 33\n")
    after = spec_of(options), spec_of(options, "simulate")
    assert all(a != b for a, b in zip(before, after, strict=True))


def test_console_film_plays_what_was_trained(spec_of):
    pytest.importorskip("ale_py")
    assert load_config(PONG)["film"]["fps"] == 60
    for stage in ("train", "simulate"):
        kwargs = json.loads(spec_of(PONG, stage))["config"]["env_kwargs"]
        assert kwargs["frameskip"] == 1 and kwargs["obs_type"] == "grayscale"


def test_training_requests_a_core_per_thread_and_its_buffer():
    pytest.importorskip("ale_py")
    size = {"algorithm": "dqn", "buffer_size": 10**6, "processes": 2, "threads": 2}
    plan = Plan(load_config(PONG | {"train": size}), REPOSITORY / "scripts")
    assert plan.threads("train") == 4
    assert memory_mb("train", plan.run) > 2000 + 10**6 * 84 * 84 / 1e6


def test_training_seeds_of_a_suite_train_a_network_each():
    sb3 = "logs/{training_seed}.zip"
    suite = {"training_seed": [1, 2], "policy": {"ours": "trained", "theirs": sb3}}
    runs = expand({"suite": suite, "train": {"gamma": 0.9}, "env": "CartPole-v1"})
    assert runs["2-ours"].options["train"] == {"gamma": 0.9, "seed": 2}
    assert runs["2-theirs"].options["train"] == {"gamma": 0.9}
    assert {run.training_seed for run in runs.values()} == {"1", "2"}
    assert {(run.row, run.column) for run in runs.values()} == {
        ("CartPole-v1", "ours"),
        ("CartPole-v1", "theirs"),
    }
    runs = expand({"suite": {"train.seed": [3, 4]}, "policy": "trained", "env": "CartPole-v1"})
    assert [(run.row, run.training_seed) for run in runs.values()] == [
        ("CartPole-v1", "3"),
        ("CartPole-v1", "4"),
    ]
    with pytest.raises(GoalreelError, match="so all trainings are the same") as error:
        expand({"suite": {"training_seed": [1, 2]}, "policy": "random"})
    check_form(str(error.value))


def test_target_train_trains_each_network_of_a_suite():
    suite_runs = expand({"suite": {"training_seed": [1, 2]}, "policy": "trained"})
    configs = {name: load_config(run.options) for name, run in suite_runs.items()}
    plans = Plans(configs, suite_runs, REPOSITORY / "scripts", 0)
    assert {file for file in plans.targets["train"] if file.endswith("policy.npz")} == {
        "results/1/train/policy.npz",
        "results/2/train/policy.npz",
    }


OWN = {"env": "own_environment:Catch-v0", "episodes": 3, "shard_size": 3}
OWN["train"] = (
    "{network: 'my_network:make', total_timesteps: 512, eval_freq: 256, checkpoints: [0],"
    " n_envs: 4, n_steps: 32, batch_size: 64, processes: 2, n_eval_episodes: 3}"
)
NETWORK = """
from torch import nn


def make(shape):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(32), nn.Tanh())
"""


@pytest.fixture(scope="module")
def learned(once):
    """Return a project with a training and a film of an own environment with an own network."""
    pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")

    def make(fresh):
        shutil.copy(REPOSITORY / "examples" / "own_environment.py", fresh.folder)
        (fresh.folder / "my_network.py").write_text(NETWORK)
        return fresh.run("train", "all", "training_progress", "-j", "2", config=OWN)

    return once("learned", make)


@pytest.mark.slow
def test_train_films_own_environment_and_network(learned):
    results = learned.folder / "results"
    names = {"curve.svg", "metrics.json", "policy.npz", "progress.csv"}
    assert {path.name for path in (results / "train").iterdir()} == names
    metrics = json.loads((results / "train" / "metrics.json").read_text())
    assert metrics["stage"] == "train" and metrics["config"]["train"]["processes"] == 2
    with (results / "training_progress.csv").open(newline="") as stream:
        assert {int(row["checkpoint_step"]) for row in csv.DictReader(stream)} >= {0}
    assert (results / "film.mp4").is_file()
    assert "512 of 512 decisions" in (results / "logs" / "train.log").read_text()


@pytest.mark.slow
def test_only_options_of_the_training_train_again(learned, tmp_path):
    project = learned.copied(tmp_path / "project")
    trained = OWN | {"policy": "trained"}
    assert project.jobs("all", "training_progress", config=trained) == {}
    assert "train" not in project.jobs(config=trained | {"episodes": 4})
    assert project.jobs("train", config=trained | {"max_episode_steps": 50}) == {"train": 1}
    assert "train" in project.run("verify", "-j", "2", config=trained)
    project.edit("my_network.py", "32", "16")
    assert project.jobs("train", config=OWN) == {"train": 1}


@pytest.mark.slow
def test_same_seed_gives_same_network_on_any_number_of_cores(learned, tmp_path):
    project = learned.copied(tmp_path / "project")
    before = (project.folder / "results" / "train" / "policy.npz").read_bytes()
    shutil.rmtree(project.folder / "results")
    project.run("train", "-j", "1", config=OWN)
    assert (project.folder / "results" / "train" / "policy.npz").read_bytes() == before


@pytest.mark.slow
def test_sigterm_of_snakemake_saves_a_training(project):
    pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
    config = {"env": "CartPole-v1", "train": "{total_timesteps: 2000000, processes: 1}"}
    process = project.start("train", "-j", "1", config=config)
    logs = project.folder / "results" / "logs"
    assert wait_for(lambda: any("decisions" in log.read_text() for log in logs.glob("train.log")))
    os.kill(process.pid, signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.search("Saved after [0-9,]* of 2,000,000 decisions in .*checkpoint.pt", output)
