"""Two runs in one folder: refused while both live; a lock whose run was killed holds up nobody."""

import os
import signal

import pytest
from conftest import hashes
from project import Project
from trials import BOUND, SMALL, ended, ends_right, noted, wait_for


def locked(project: Project):
    """Start a run and return it once it has locked its folder."""
    process = project.start("-j", "1", config=SMALL)
    lock = project.folder / ".snakemake" / "locks"
    assert wait_for(lambda: list(lock.glob("*.output.lock")))
    return process


def killed(project: Project) -> None:
    """Leave the lock of a run that was killed."""
    process = locked(project)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=BOUND)
    assert list((project.folder / ".snakemake" / "locks").glob("*.lock"))


def test_the_lock_of_a_killed_run_is_released(project, expected, record_property):
    killed(project)
    output = project.run("--dry-run", config=SMALL)
    assert "released the lock of a run that was killed" in output
    noted(record_property, "stale lock", ends_right(project, SMALL, expected))


@pytest.mark.slow
def test_a_lock_that_another_machine_may_hold_is_heeded(project, expected, record_property):
    killed(project)
    (project.folder / ".snakemake" / "goalreel.lock").write_text("another.example\n")
    for _ in range(2):
        output = project.fail(config=SMALL)
        assert "--unlock" in output and "Traceback" not in output
    project.run("--unlock", config=SMALL)
    outcome = ends_right(project, SMALL, expected)
    assert outcome == "the next run ends right"
    noted(record_property, "lock of another machine", "refused until `--unlock`")


def test_two_runs_at_once(project, expected, record_property):
    first = locked(project)
    os.kill(first.pid, signal.SIGSTOP)  # it lives, and does not hurry
    try:
        output = project.fail("-j", "1", config=SMALL)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert "cannot be locked" in output and "Traceback" not in output, output
    output = ended(first)
    assert first.returncode == 0, output
    assert hashes(project.folder / "results") == expected
    noted(record_property, "two runs in one folder", "the second is refused, the first ends right")
