"""A run as a user sees it: its results, its output, and the places of its files."""

import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from conftest import FEW
from project import REPOSITORY, SOURCES

from goalreel.errors import GoalreelError
from goalreel.workflow.run_checks import check_results


def test_output_is_short_and_ends_with_the_summary(filmed):
    lines = filmed.output.rstrip().splitlines()
    assert len(lines) < 40, filmed.output
    *last, encoder = lines[-3:]
    table = pd.read_csv(filmed.folder / "results" / "episodes.csv")
    frames = (table["card_frames"] + table["frames"]).sum()
    size = (filmed.folder / "results" / "film.mp4").stat().st_size
    assert {line.strip() for line in last} == {
        f"concat  results/film.mp4, 0:00:{round(frames / 30):02d}, {size / 1e3:.0f} kB, {frames:,} frames",
        f"episodes  results/episodes.csv, 8 goal reaches in 8 episodes, {frames:,} frames",
    }
    assert encoder.split()[:2] == ["encoder", "assembled"]


def project_files(name: str) -> list[Path]:
    """Return a source's files, relative to the repository, except Python's caches."""
    path = REPOSITORY / name
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    return [f.relative_to(REPOSITORY) for f in files if f.is_file() and f.suffix != ".pyc"]


def test_jobs_write_logs_and_benchmarks_only_in_results(filmed):
    results = filmed.folder / "results"
    rules, shards = ("simulate", "render", "encode"), ("00000", "00001")
    names = {f"{rule}/{shard}" for rule in rules for shard in shards}
    for kind in ("logs", "benchmarks"):
        found = {str(path.relative_to(results / kind)) for path in (results / kind).rglob("*.*")}
        found.discard("run.lock")
        whole = {"atlas", "coded_atlas", "concat", "episodes"}
        assert {name[:-4] for name in found} == names | whole
    made = {path.relative_to(filmed.folder) for path in filmed.folder.rglob("*") if path.is_file()}
    made = {path for path in made if "__pycache__" not in path.parts}
    sources = {path for name in SOURCES for path in project_files(name)}
    assert {p for p in made if p.parts[0] not in ("results", ".snakemake")} == sources
    assert not list(results.rglob(".*")), "no temporary files stay"


def test_wrong_config_stops_before_jobs_with_one_message(project):
    output = project.fail(config={"reachs": 5, "encode": "{qp: 99}", "results": "a{b"})
    assert "The configuration has 3 errors" in output
    for part in ("Did you mean 'reaches'?", "encode.qp: '99' is not", "results: 'a{b' is not"):
        assert part in output
    assert "Traceback" not in output
    assert not (project.folder / "results").exists()
    assert "Exception" not in output and len(output.splitlines()) < 10, output


OWN = "holds goalreel's own files. Choose another folder"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        *((name, OWN) for name in ("docs", "scripts/goalreel", ".", "docs/../envs/x")),
        ("config.yaml", "is a file. Choose another folder"),
        ("s3://films/run", "is an address. .*default-storage-prefix"),
    ],
)
def test_results_never_stand_among_the_workflows_own_files(monkeypatch, name, problem):
    monkeypatch.chdir(REPOSITORY)
    with pytest.raises(GoalreelError, match=problem):
        check_results(name, REPOSITORY)


def test_results_do_not_replace_a_users_config_file(tmp_path):
    (tmp_path / "config.yaml").write_text("episodes: 3\n")
    with pytest.raises(GoalreelError, match=r"has a config.yaml that goalreel would replace. Move"):
        check_results(str(tmp_path), REPOSITORY)


@pytest.mark.parametrize(
    ("view", "needs"),
    [("swarm", "MountainCar-v0 or Mount"), ("training_progress", "policy=trained")],
)
def test_unavailable_view_names_its_requirements(project, view, needs):
    output = project.fail(view, config={"env": "CartPole-v1", "policy": "random"})
    assert f"{view}: Cannot be made of CartPole-v1 with the policy random. It needs " in output
    assert needs in output and "Traceback" not in output


def test_unknown_shard_is_an_error(project):
    output = project.fail("results/trajectories/00009.npz", config=FEW)
    assert "00009: No such shard. The last one is 00001" in output
    project.fail("results/trajectories/1.npz", config=FEW)


def test_run_for_single_file_makes_no_film(project):
    output = project.run("results/frames/00001.npz", config=FEW)
    assert "summary" not in output and "goal reaches in" not in output and "Error" not in output
    (project.folder / "results" / "film.mp4").write_bytes(b"rubbish")
    project.run("results/frames/00000.npz", config=FEW)


@pytest.mark.skipif(os.name != "posix", reason="needs make")
def test_make_passes_its_options_to_snakemake():
    command = ["make", "--dry-run", "ARGS=--config reaches=20"]
    completed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert ".venv/bin/snakemake --config reaches=20" in completed.stdout


def test_unplannable_run_gives_one_message(project):
    output = project.fail("--dry-run", IMAGEIO_FFMPEG_EXE="/no/such/ffmpeg")
    assert "goalreel: ffmpeg: Cannot be run" in output and "/no/such/ffmpeg" in output
    assert "Traceback" not in output
    project.edit("scripts/goalreel/simulation/reaches.py", "import numpy as np", "import numpy )")
    output = project.fail("--dry-run")
    assert "goalreel: " in output and "reaches.py: Cannot be read as Python" in output
    assert "Traceback" not in output
