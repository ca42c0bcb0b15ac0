"""No room, no right, no memory, no file handles: a short word that names the culprit, then the end.

Each run that lacks something fails without a traceback; as soon as it is there again, the next run
ends as if it had always been.
"""

import os
import subprocess

import pytest
from project import Project
from trials import SMALL, finished, generator, sampled, trials

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def root_can(*command: str) -> bool:
    """Return whether this is root, and whether a command does well."""
    return ROOT and subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture
def mounted():
    """Return a function that mounts something on a folder; it is undone at the end."""
    folders = []

    def mount(folder, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        if not root_can("mount", *options, str(folder)):
            pytest.skip("nothing can be mounted here: that takes root and its rights")
        folders.append(folder)

    yield mount
    for folder in reversed(folders):
        subprocess.run(["umount", str(folder)], check=True)


def failed(project: Project, *options: str, within=(), **environment: str) -> str:
    """Run, which must fail without a traceback, and return its output."""
    process = project.start("-j", "2", *options, config=SMALL, within=within, **environment)
    output = finished(process)
    assert process.returncode != 0, output
    return output


@trials(sample=1, count=6)
def test_the_disk_is_full(project, recovers, mounted, trial):
    results = project.folder / "results"
    kilobytes = generator("disk", trial).choice([60, 200, 400, 1500, 1800, 2200])
    mounted(results, "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs")
    output = failed(project)
    assert ": [Errno 28] No space left on device: " in output, output
    subprocess.run(["mount", "-o", "remount,size=64m", str(results)], check=True)
    recovers("disk full (results)", project)


@pytest.mark.slow
def test_the_results_folder_is_read_only(project, recovers, mounted):
    results = project.folder / "results"
    results.mkdir()
    mounted(results, "--bind", str(results))
    subprocess.run(["mount", "-o", "remount,bind,ro", str(results)], check=True)
    output = failed(project)
    assert "Read-only file system: 'results" in output, output
    subprocess.run(["mount", "-o", "remount,bind,rw", str(results)], check=True)
    recovers("read-only results folder", project)


@pytest.mark.slow
def test_the_results_folder_may_not_be_written(project, recovers):
    results = project.folder / "results"
    results.mkdir(mode=0o555)
    within = ()
    if ROOT:  # root without the right to pass over permissions
        within = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
        if not root_can(*within, "true"):
            pytest.skip("takes setpriv, where root runs the tests")
    output = failed(project, within=within)
    assert "Permission denied: 'results" in output, output
    results.chmod(0o755)
    recovers("no permission to write results", project)


def limited(tmp_path, limit: str) -> dict[str, str]:
    """Return the environment in which each job's shell sets a limit first."""
    script = tmp_path / "limit.sh"
    script.write_text(f"ulimit {limit}\n")
    return {"BASH_ENV": str(script)}


@trials(sample=0, count=6)
def test_memory_runs_out(project, recovers, tmp_path, trial):
    """Address space is the one memory that a process can be denied anywhere."""
    megabytes = generator("memory", trial).randrange(45, 140)
    output = failed(project, **limited(tmp_path, f"-v {megabytes * 1024}"))
    assert "emory" in output, output
    recovers("out of memory (a job)", project)


@pytest.mark.parametrize("handles", sampled([6, 7, 8], 0))
def test_file_handles_run_out(project, recovers, tmp_path, handles):
    output = failed(project, **limited(tmp_path, f"-n {handles}"))
    assert "oo many open files" in output, output
    recovers("too few file handles (a job)", project)
