"""A film shows all episodes with their outcomes, and the results keep the options of the run.

The tests replay the recorded seeds and actions in Gymnasium.
"""

import csv
import json
import shlex
import shutil
import statistics

import gymnasium
import pandas as pd
import pytest

import goalreel
from goalreel.report.page_rows import write_rows
from goalreel.verification.replay import find_episode, replay

CONFIG = {"env": "CartPole-v1", "max_episode_steps": 20, "policy": "random", "shard_size": 4}
CONFIG |= {"film": "{fps: 50}"}


@pytest.fixture(scope="session")
def played(once):
    """Return a project with a film of six episodes, some of which the time limit ends."""
    return once("episodes", lambda fresh: fresh.run(config=CONFIG | {"episodes": 6}))


def rows(project, name="episodes.csv") -> list[dict]:
    with (project.folder / "results" / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def replayed(seed: int, actions) -> dict:
    """Return the row of an episode, replayed in Gymnasium's CartPole."""
    env = gymnasium.make(CONFIG["env"], max_episode_steps=CONFIG["max_episode_steps"])
    env.reset(seed=seed)
    returned, ending = 0.0, (False, False)
    for action in actions.tolist():
        assert not any(ending)
        _, reward, *ending, _ = env.step(action)
        returned += reward
    return {"return": str(returned), "terminated": str(ending[0]), "truncated": str(ending[1])}


def test_film_shows_episodes_of_any_outcome(played):
    table, results = rows(played), played.folder / "results"
    assert list(table[0])[:5] == ["episode", "seed", "env", "steps", "return"]
    assert not {"reach", "attempt", "reached"} & set(table[0])
    assert [int(row["episode"]) for row in table] == list(range(6))
    assert not (results / "attempts.csv").exists()
    shards = [goalreel.read_trajectories(results / f"trajectories/{i:05d}.npz") for i in range(2)]
    actions = [shard.episode(i)[1] for shard in shards for i in range(len(shard))]
    for row, taken in zip(table, actions, strict=True):
        assert int(row["steps"]) == len(taken)
        again = replayed(int(row["seed"]), taken)
        assert {key: row[key] for key in again} == again
    endings = {(row["terminated"], row["truncated"]) for row in table}
    assert {("True", "False"), ("False", "True")} <= endings, "the test shows but one outcome"


def test_summary_has_the_statistics_of_the_table(played):
    table, results = rows(played), played.folder / "results"
    summary = json.loads((results / "summary.json").read_text(encoding="utf-8"))
    returns = [float(row["return"]) for row in table]
    assert summary["return"]["mean"] == statistics.fmean(returns)
    assert summary["return"]["std"] == pytest.approx(statistics.pstdev(returns), rel=1e-5)
    assert summary["return"]["low"] < summary["return"]["mean"] < summary["return"]["high"]
    assert summary["success"]["criterion"] == gymnasium.spec(CONFIG["env"]).reward_threshold
    assert summary["versions"]["gymnasium"] == gymnasium.__version__
    worst = summary["worst"]
    assert [row["return"] for row in worst] == sorted(returns)[:5]
    process = played.replay(*worst[0]["replay"].split()[2:])
    assert f"seed {worst[0]['seed']}: {worst[0]['steps']} steps" in process.stderr


def test_chapters_and_title_say_episode_and_outcome(played):
    import av

    with av.open(str(played.folder / "results" / "film.mp4")) as film:
        titles = [chapter["metadata"]["title"] for chapter in film.chapters()]
        assert film.metadata["title"] == "CartPole-v1: 6 episodes"
    for row, title in zip(rows(played), titles, strict=True):
        outcome = "terminated" if row["terminated"] == "True" else "truncated"
        expected = f"Episode {row['episode']} · seed {row['seed']} · {row['steps']} steps · return "
        assert title == f"{expected}{float(row['return']):g} · {outcome}"


@pytest.mark.slow
def test_seeds_above_2_53_are_exact_everywhere(project):
    first = 2**53
    said = project.run(config=CONFIG | {"seeds": f"{first}-{first + 2}", "shard_size": 2})
    assert "episodes.csv, 3 episodes, return " in said and "reach" not in said
    seeds = [first, first + 1, first + 2]
    assert [row["seed"] for row in rows(project)] == [str(seed) for seed in seeds]
    results = project.folder / "results"
    film = (results / "film.mp4").read_bytes()  # its chapters
    assert all(f"seed {seed} ".encode() in film for seed in seeds)
    page = project.folder / "data.js"
    write_rows(page, pd.read_csv(results / "episodes.csv"), 50, "episode")
    # As JavaScript reads.
    assert f'"seed":[{first},"{first + 1}","{first + 2}"]' in page.read_text()
    env = gymnasium.make(CONFIG["env"])
    for number, seed in enumerate(seeds):
        config, name, episode = find_episode(results, number, None)
        env.reset(seed=seed)
        assert episode.seed == seed
        assert episode.states[0].tolist() == env.unwrapped.state.tolist()
        assert len(replay(config, name, episode)) == len(episode.states)


def test_view_uses_the_saved_options_of_the_run(played, tmp_path):
    project = played.copied(tmp_path / "project")
    options = ["clips", "stills", "--configfile", "results/config.yaml"]
    assert project.jobs(*options) == {"clips": 1, "stills": 1}
    assert "results/clips, " in project.run(*options)
    clips = rows(project, "clips/clips.csv")
    assert list(clips[0]) == ["file", "episode", "seed", "start", "frames"]
    assert [row["episode"] for row in clips] == ["0", "1"]  # as save_video chooses


def test_run_rejects_folder_of_another_run(played, tmp_path):
    project = played.copied(tmp_path / "project")
    # Newer than the run, as after a git pull.
    project.edit("config.yaml", "seed: 2025", "seed: 2026")
    said = project.fail("clips")  # without options the command is for Mountain Car
    assert "Job stats" not in said
    first, replaces, resumes = said[said.index("goalreel: ") :].splitlines()
    assert first == (
        "goalreel: results: 'results' already holds a CartPole-v1 run of the policy random. "
        "Choose another folder: results=results-MountainCar-v0"
    )
    assert replaces == "  To replace it: rm -r results"
    command = resumes.removeprefix("  To continue it: ")
    assert project.jobs(*shlex.split(command)[1:]) == {"clips": 1}
    shutil.rmtree(project.folder / "results" / "trajectories")  # without one it holds no run
    assert project.jobs(config={"reaches": 2})["simulate"] == 1
