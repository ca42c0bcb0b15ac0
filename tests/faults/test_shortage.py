"""Without disk space, permission, memory or file handles a run fails with a short, exact message.

It prints no traceback. When the resource is available again, the next run ends as if undisturbed.
"""

import os
import subprocess

import pytest
from project import Project
from trials import SMALL, finished, generator, recover, trials

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def root_can(*command: str) -> bool:
    """Return whether this is root and a command succeeds."""
    return ROOT and subprocess.run(command, capture_output=True).returncode == 0


def failed(project: Project, within=(), **environment: str) -> str:
    """Run, which must fail without a traceback, and return its output."""
    process = project.start("-j", "2", config=SMALL, within=within, **environment)
    output = finished(process)
    assert process.returncode != 0, output
    return output


@pytest.mark.slow
@trials(6)
def test_run_with_full_disk_fails_and_recovers(project, expected, trial):
    results = project.folder / "results"
    results.mkdir()
    kilobytes = generator("disk", trial).choice([60, 200, 400, 1500, 1800, 2200])
    if not root_can("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(results)):
        pytest.skip("nothing can be mounted here: that takes root and its rights")
    try:
        output = failed(project)
        assert ": [Errno 28] No space left on device: " in output, output
        subprocess.run(["mount", "-o", "remount,size=64m", str(results)], check=True)
        recover(project, expected)
    finally:
        subprocess.run(["umount", str(results)], check=True)


@pytest.mark.slow
def test_run_without_write_permission_fails_and_recovers(project, expected):
    results = project.folder / "results"
    results.mkdir(mode=0o555)
    within = ()
    if ROOT:  # root that obeys permissions
        within = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
        if not root_can(*within, "true"):
            pytest.skip("takes setpriv, where root runs the tests")
    output = failed(project, within)
    assert "Permission denied: 'results" in output, output
    results.chmod(0o755)
    recover(project, expected)


MEMORY = [f"-v {1024 * megabytes}" for megabytes in (50, 70, 90, 110, 130)]  # address space


@pytest.mark.slow
@pytest.mark.parametrize("limit", [*MEMORY, "-n 6", "-n 7", "-n 8"])
def test_run_without_memory_or_handles_fails_and_recovers(project, expected, tmp_path, limit):
    """Each job's shell first limits the address space, which works on any system."""
    (tmp_path / "limit.sh").write_text(f"ulimit {limit}\n")
    output = failed(project, BASH_ENV=str(tmp_path / "limit.sh"))
    assert ("emory" if limit in MEMORY else "oo many open files") in output, output
    recover(project, expected)
