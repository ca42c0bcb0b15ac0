"""A failed or stopped run reports the cause and keeps its files, and the next run finishes it."""

import fcntl
import re

import numpy as np
import pytest
from conftest import FEW, simulated
from trials import BOUND, wait_for

import goalreel

RESUME = "Run the same command again to continue. Snakemake's log: "


def test_same_command_finishes_failed_run(project):
    """The run prints the cause even with --quiet, and keeps finished files."""
    config = {"reaches": 3, "shard_size": 1, "policy": "{epsilon: 0.45}"}
    options = ["-j", "2", "--quiet", "all", "--keep-going"]
    output = project.fail(*options, config=config | {"max_attempts_per_reach": 1})
    cause, _, log, resume = output.rstrip().splitlines()[-4:]
    assert "failed in all 1 attempts" in cause and "Raise max_attempts_per_reach" in cause
    assert re.search(r"log: results/logs/simulate/0000\d\.log$", log) and resume.startswith(RESUME)
    results = project.folder / "results"
    complete = len(list((results / "trajectories").glob("*.npz")))
    assert 0 < complete < 3, "the test needs reaches with more than one attempt"
    assert not (results / "film.mp4").exists()
    assert project.jobs(config=config)["simulate"] == 3 - complete
    project.run(*options, config=config)
    assert (results / "film.mp4").is_file()


@pytest.mark.slow
def test_code_edited_during_run_is_not_recorded_as_planned(project):
    config = {"reaches": 4, "shard_size": 1}
    process = project.start("-j", "1", config=config)
    trajectories = project.folder / "results" / "trajectories"
    wait_for(lambda: list(trajectories.glob("[0-9]*.npz")), seconds=120)
    project.edit("scripts/goalreel/environments/mountain_car.py", "0.001,", "0.002,")
    output, _ = process.communicate(timeout=BOUND)
    assert process.returncode != 0 and "changed after the run started" in output
    project.restore("scripts")
    project.run(config=config)
    shards = [goalreel.read_trajectories(path) for path in sorted(trajectories.glob("*.npz"))]
    expected = simulated(reaches=range(4), seed=2025)
    assert np.array_equal(np.concatenate([shard.states for shard in shards]), expected.states)


@pytest.mark.slow
def test_read_only_user_cache_costs_only_time(project, tmp_path):
    project.cache = tmp_path / "own cache"
    project.cache.mkdir()
    (project.cache / "goalreel").write_text("a file where a folder is needed")
    project.run(config=FEW | {"encode": "{encoder: x264}"})
    assert "not kept" in (project.folder / "results" / "logs" / "atlas.log").read_text()


@pytest.mark.slow
def test_sigterm_while_the_scheduler_notes_a_job_ends_the_run(project, tmp_path):
    """Snakemake holds its scheduler's lock there, and its handler of the signal takes it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if 'snakemake' in sys.orig_argv:\n"
        "    from snakemake.persistence import PersistenceBase\n"
        "    noted = PersistenceBase.finished\n"
        "    def finished(*arguments, **options):\n"
        "        PersistenceBase.finished = noted\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        return noted(*arguments, **options)\n"
        "    PersistenceBase.finished = finished\n"
    )
    process = project.start("-j", "1", config=FEW, PYTHONPATH=str(tmp_path))
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode != 0 and RESUME in output
    project.run(config=FEW)


@pytest.mark.slow
def test_second_run_in_same_results_stops_by_name(project):
    """The message is goalreel's, because Snakemake's lock is in another folder."""
    results = project.folder / "results"
    lock = results / "logs" / "run.lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write("process 7 on node, started in /other\n")
        other.flush()
        for more in ((), ("all", "--delete-all-output")):
            said = project.fail(*more, config={"reaches": 2})
            assert "That run: process 7 on node, started in /other" in said
            assert "Traceback" not in said
    assert [path for path in results.rglob("*") if path.is_file()] == [lock]
    project.run(config={"reaches": 2})
    assert (results / "film.mp4").is_file()
    assert f"started in {project.folder}" in lock.read_text()
    project.run("all", "--delete-all-output", config={"reaches": 2})
    assert not (results / "film.mp4").exists()
