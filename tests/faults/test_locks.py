"""The second run in a folder stops, and the next run removes the lock of a killed one."""

import os
import signal

import pytest
from conftest import hashes
from project import Project
from trials import BOUND, SMALL, finished, wait_for


def locked(project: Project):
    """Start a run, and return it when it has locked its folder."""
    process = project.start("-j", "1", config=SMALL)
    lock = project.folder / ".snakemake" / "locks"
    assert wait_for(lambda: list(lock.glob("*.output.lock")))
    return process


@pytest.mark.parametrize(
    "elsewhere", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["here", "elsewhere"]
)
def test_next_run_removes_lock_of_killed_run(project, expected, elsewhere):
    process, noted = locked(project), project.folder / "results" / "logs" / "run.lock"
    assert wait_for(lambda: noted.is_file() and noted.read_text().endswith("\n"))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=BOUND)
    if elsewhere:  # it may still run there
        noted.write_text(f"process {process.pid} on another, started in {project.folder}\n")
        output = project.fail(config=SMALL)
        assert "--unlock" in output and "Traceback" not in output
        project.run("--unlock", config=SMALL)
    output = project.run(config=SMALL)
    assert ("The last run here was killed. This run continues it." in output) != elsewhere
    assert hashes(project.folder / "results") == expected


@pytest.mark.slow
def test_next_run_continues_a_killed_suite(project):
    config = {"suite": "{policy: [pump, random]}", "episodes": 6, "shard_size": 2}
    process = project.start("-j", "1", config=config)
    assert wait_for(lambda: [*project.folder.glob("results/*/trajectories/*.npz")])
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=BOUND)
    assert "The last run here was killed. This run continues it." in project.run(config=config)


def test_second_run_stops_while_first_continues(project, expected):
    first = locked(project)
    os.kill(first.pid, signal.SIGSTOP)  # alive but stopped
    try:
        output = project.fail("-j", "1", config=SMALL)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert "cannot be locked" in output and "Traceback" not in output, output
    output = finished(first)
    assert first.returncode == 0, output
    project.run(config=SMALL)  # the second one left no lock
    assert hashes(project.folder / "results") == expected
