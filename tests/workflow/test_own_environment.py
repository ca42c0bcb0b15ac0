"""A user's environment is filmed and reruns after edits, and is marked if it ignores seeds."""

import json
import re
import subprocess
import sys

import pandas as pd
import pytest
from project import REPOSITORY

MODULE = (REPOSITORY / "examples" / "own_environment.py").read_text(encoding="utf-8")


def test_own_environment_reruns_after_edits(project):
    (project.folder / "my_env.py").write_text(MODULE)
    config = {"env": "my_env:Catch-v0", "episodes": 2, "shard_size": 2}
    project.run("-j", "2", config=config)
    assert project.jobs(config=config) == {}
    (project.folder / "my_env.py").write_text(MODULE.replace("[24, 32, 48]", "[24, 32, 49]"))
    assert project.jobs(config=config)["simulate"] == 1


@pytest.mark.slow
def test_unchecked_film_of_many_sizes_is_marked_and_shown(project):
    """Its seeds determine the ends of episodes and the width of a step, but not the rewards."""
    played = "np.random.default_rng().random(), self.np_random.random() < 0.3,"
    module = MODULE.replace("reward, bool(landed),", played)
    wide = "repeat(CELL, 1)[:, : 100 + 8 * self.np_random.integers(9)]"
    module = module.replace("repeat(CELL, 1)", wide)
    (project.folder / "my_env.py").write_text(module)
    config = {"env": "my_env:Catch-v0", "max_episode_steps": 4, "reaches": 12, "shard_size": 2}
    assert "check_determinism=false" in project.fail(config=config)
    config["check_determinism"] = "false"
    said = project.run("-j", "2", "report", "stills", config=config)
    assert re.search(r"frames of \d+x180 to (\d+x180) pixels, padded with black to \1", said), said
    results = project.folder / "results"
    for table in ("episodes.csv", "attempts.csv"):
        assert not pd.read_csv(results / table)["reproducible"].any()
    assert "<strong>Not reproducible</strong>" in (results / "report/index.html").read_text()
    assert "ok, not reproducible" in project.run("verify", config=config)
    said = project.fail("clips", config=config | {"clips": "{episode_trigger: failed}"})
    assert "An attempt was not filmed, and check_determinism=false forbids" in said
    project.run("clips", config=config | {"clips": "{episode_trigger: {best: 1, by: steps}}"})
    told = project.replay("0", "--results", str(results))
    assert "Not reproducible, because the run has check_determinism=false" in told.stderr
    for cache in (results / "frames").iterdir():
        cache.unlink()
    (results / "film.mp4").unlink()
    assert "To encode again: rm -r results/segments" in project.fail(config=config)


@pytest.mark.parametrize("changed", ["mine.py", "my_env.py"])
def test_user_file_edited_during_run_is_noticed(tmp_path, changed):
    (tmp_path / "my_env.py").write_text(MODULE)
    (tmp_path / "mine.py").write_text("def act(obs):\n    return [1] * len(obs)\n")
    config = {"env": "my_env:Catch-v0", "seed": 1, "film.show_failures": True, "success": 0}
    config["policy"] = {"name": "python", "file": "mine.py", "function": "act"}
    spec = {"stage": "simulate", "config": config, "shard": {"first": 0, "count": 1}}
    command = [sys.executable, REPOSITORY / "scripts" / "simulate.py"]
    command += ["--trajectories", "t.npz", "--spec"]
    for files, message in (({changed: "0" * 64}, f"{changed}: The file changed"), ({}, "")):
        text = json.dumps(spec | {"files": files})
        said = subprocess.run([*command, text], cwd=tmp_path, capture_output=True, text=True)
        assert (said.returncode, message in said.stderr) == (1 if message else 0, True)
