"""The second run in a folder stops, and --unlock removes the lock of a killed run."""

import os
import signal

import pytest
from conftest import hashes
from project import Project
from trials import BOUND, SMALL, finished, recover, wait_for


def locked(project: Project):
    """Start a run, and return it when it has locked its folder."""
    process = project.start("-j", "1", config=SMALL)
    lock = project.folder / ".snakemake" / "locks"
    assert wait_for(lambda: list(lock.glob("*.output.lock")))
    return process


@pytest.mark.slow
def test_unlock_removes_lock_of_killed_run(project, expected):
    process = locked(project)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=BOUND)
    output = project.fail(config=SMALL)
    assert "--unlock" in output and "Traceback" not in output
    recover(project, expected)


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
