"""Datasets of Minari's DataCollector replay exactly, or an error names the difference."""

import json
import os
import re
import shutil

import gymnasium
import numpy as np
import pandas as pd
import pytest
from message_form import rejection
from recordings import decoded_rgb

minari = pytest.importorskip("minari", reason="takes minari, which is no requirement")
h5py = pytest.importorskip("h5py", reason="takes h5py, which is no requirement")

from goalreel.environments.environment import make_environment  # noqa: E402
from goalreel.errors import GoalreelError  # noqa: E402
from goalreel.provenance.spec import NO_SPEC  # noqa: E402
from goalreel.simulation.recorded_episodes import play_recording, read_minari  # noqa: E402

SEEDS = [7, 2**64 - 1, 2**63 + 5, 2**53 + 1, 9]
WRAPPED = "gymnasium.wrappers:TimeAwareObservation"


@pytest.fixture(autouse=True)
def datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def collect(dataset, env, seeds=SEEDS, kind="hdf5"):
    """Record episodes of random actions, and return the observations and rewards."""
    collector, given = minari.DataCollector(env, data_format=kind), []
    for seed in seeds:
        # The collector passes a seed on, and np_random of gymnasium.Env takes all of its bits.
        observations, rewards = [collector.reset(seed=seed)[0]], []
        collector.action_space.seed(seed % 1000)
        for _ in range(40):
            observation, reward, *ends, _ = collector.step(collector.action_space.sample())
            observations.append(observation)
            rewards.append(float(reward))
            if any(ends):
                break
        given.append((observations, rewards))
    collector.create_dataset(
        dataset, algorithm_name="random", author="nobody", author_email="nobody@example.org",
        code_permalink="https://example.org", description="of a test",
    )  # fmt: skip
    collector.close()
    return given


def run(project, dataset, *options, **config):
    """Run the workflow on a dataset, and return the output."""
    config |= {"policy": f"{{name: minari, dataset: {dataset}}}"}
    folder = os.environ["MINARI_DATASETS_PATH"]
    return project.run("-j", "2", *options, config=config, MINARI_DATASETS_PATH=folder)


@pytest.mark.parametrize("kind", ["hdf5", "arrow"])
@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", "FrozenLake-v1", "Pendulum-v1"])
def test_dataset_replays_exactly(name, kind):
    given = collect("some/set-v0", gymnasium.make(name), kind=kind)
    environment = make_environment({"env": name})
    for episodes in range(5), range(1, 4):
        recorded = read_minari("some/set-v0", episodes)
        made = play_recording(recorded, environment, NO_SPEC, None)
        assert made.episodes.seed.tolist() == SEEDS[episodes.start : episodes.stop]
        assert made.episodes.reach.tolist() == list(episodes)
        for place, episode in enumerate(episodes):
            assert made.episode(place)[2].tolist() == given[episode][1]


def test_dataset_film_has_environment_and_seeds(project, datasets):
    """The dataset also sets wrapper, arguments and time limit. All results keep seeds of 64 bits."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=30, render_mode="rgb_array")
    given = collect("cart/wrapped-v0", gymnasium.wrappers.TimeAwareObservation(env))
    run(project, "cart/wrapped-v0", "all", "report", shard_size=2)
    results = project.folder / "results"
    config = (results / "config.yaml").read_text()
    assert "TimeAwareObservation" in config and "max_episode_steps: 30" in config
    rows = pd.read_csv(results / "episodes.csv", dtype=str)
    assert rows["seed"].tolist() == list(map(str, SEEDS))
    assert rows["steps"].astype(int).tolist() == [len(rewards) for _, rewards in given]
    data = (results / "report/data.js").read_text()
    assert f'"{2**64 - 1}"' in data and f'"{2**53 + 1}"' in data
    content = (results / "film.mp4").read_bytes()
    assert all(str(seed).encode() in content for seed in SEEDS)  # of the chapters
    frames = decoded_rgb(results / "film.mp4")
    assert len(frames) == int(rows["first_frame"].iloc[-1]) + int(rows["frames"].iloc[-1])
    folder = os.environ["MINARI_DATASETS_PATH"]
    again = "-n", "--configfile", "results/config.yaml"
    assert "Nothing to be done" in project.run(*again, MINARI_DATASETS_PATH=folder)
    shutil.rmtree(datasets / "cart/wrapped-v0")  # a new dataset reruns the film
    collect("cart/wrapped-v0", gymnasium.wrappers.TimeAwareObservation(env), seeds=[1, 2, 3, 4, 5])
    assert "simulate" in project.run(*again, MINARI_DATASETS_PATH=folder)


def change(datasets, dataset, what):
    """Change the file of a dataset by a function."""
    with h5py.File(datasets / dataset / "data/main_data.hdf5", "r+") as file:
        what(file)


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", "Taxi-v4"])
@pytest.mark.parametrize(
    ("place", "row", "message"),
    [
        ("episode_1/observations", 0, "the observation after step 0."),
        ("episode_1/observations", 7, "the observation after step 7."),
        ("episode_1/observations", -1, "the observation after step {last}."),
        ("episode_1/rewards", 3, "the reward of step 4."),
        ("episode_1/terminations", -1, "terminated."),
    ],
)
def test_differing_replay_is_named(datasets, name, place, row, message):
    given = collect("some/set-v0", gymnasium.make(name), seeds=[3, 2**64 - 2, 5])

    def damage(file):
        value = file[place][row]
        file[place][row] = ~value if value.dtype == bool else value + 1

    change(datasets, "some/set-v0", damage)
    environment = make_environment({"env": name})
    with pytest.raises(GoalreelError) as error:
        play_recording(read_minari("some/set-v0", range(3)), environment, NO_SPEC, None)
    assert str(error.value).startswith("policy.dataset: 'some/set-v0', episode 1: ")
    assert f"seed: {2**64 - 2}" in str(error.value)
    assert message.format(last=len(given[1][1])) in str(error.value)
    play_recording(read_minari("some/set-v0", range(1)), environment, NO_SPEC, None)


def test_episodes_without_seeds_are_rejected_by_number(datasets):
    collect("some/set-v0", gymnasium.make("CartPole-v1"))
    change(datasets, "some/set-v0", lambda file: file["episode_1"].attrs.pop("seed"))
    change(datasets, "some/set-v0", lambda file: file["episode_3"].attrs.pop("seed"))
    with pytest.raises(GoalreelError, match=r"'some/set-v0': .* without a known seed: 1, 3\."):
        read_minari("some/set-v0", range(5))
    assert len(read_minari("some/set-v0", range(1))) == 1


def edited(datasets, dataset, **changes):
    path = datasets / dataset / "data/metadata.json"
    metadata = json.loads(path.read_text())
    spec = json.loads(metadata["env_spec"]) | changes
    metadata["env_spec"] = json.dumps(spec) if changes else None
    path.write_text(json.dumps(metadata))


def test_unplayable_dataset_gives_one_message(tmp_path, datasets):
    collect("cart/some-v0", gymnasium.make("CartPole-v1"), seeds=[1])
    for dataset, options, parts in [
        ("cart/sone-v0", {}, ["policy.dataset: No dataset ", "Did you mean 'cart/some-v0'?"]),
        ("cart/some-v0", {"env": "Acrobot-v1"}, ["env: The dataset was recorded with 'CartPole"]),
        ("cart/some-v0", {"episodes": 2}, ["episodes: The dataset has only 1 episode."]),
        ("cart/some-v0", {"seeds": "0-3"}, ["seeds: A recording has its own seeds"]),
    ]:
        told = rejection({"policy": {"name": "minari", "dataset": dataset}, **options})
        assert all(part in told for part in parts), told
    robot = {"id": "AdroitHandDoor-v1", "entry_point": "gymnasium_robotics.envs.adroit_hand:A"}
    for changes, message in [
        (robot, r"env: 'AdroitHandDoor-v1' needs the package gymnasium-robotics.*pip install"),
        ({"id": "CartPole-v9"}, r"env: Unknown id 'CartPole-v9'.*CartPole-v1"),
        (
            {"additional_wrappers": [{"name": "W", "entry_point": WRAPPED, "kwargs": None}]},
            r"the wrapper W has no arguments",
        ),
        ({}, r"policy.dataset: 'cart/some-v0' does not say how(.|\n)*there is no env_spec"),
    ]:
        shutil.copytree(datasets / "cart/some-v0", tmp_path / "kept")
        edited(datasets, "cart/some-v0", **changes)
        told = rejection({"policy": {"name": "minari", "dataset": "cart/some-v0"}})
        assert re.search(message, told), told
        shutil.rmtree(datasets / "cart/some-v0")
        (tmp_path / "kept").rename(datasets / "cart/some-v0")


def test_jpeg_observations_are_not_compared(project):
    """In JPEG datasets goalreel compares only rewards and endings."""
    env = gymnasium.wrappers.AddRenderObservation(
        gymnasium.make("CartPole-v1", render_mode="rgb_array"), render_only=True
    )
    given = collect("cart/seen-v0", env, seeds=[1, 2])
    stored = next(minari.load_dataset("cart/seen-v0").iterate_episodes([0])).observations
    assert not np.array_equal(stored, np.stack(given[0][0]))
    run(project, "cart/seen-v0")
    rows = pd.read_csv(project.folder / "results/episodes.csv")
    assert rows["steps"].tolist() == [len(rewards) for _, rewards in given]
