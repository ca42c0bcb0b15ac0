"""Runs that are killed or stopped at random moments: the next plain run ends as if undisturbed."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from conftest import hashes
from project import Project
from trials import (
    BOUND,
    BY_X264,
    SMALL,
    dice,
    ended,
    ends_right,
    noted,
    processes,
    sampled,
    trials,
    wait_for,
)

pytestmark = pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="finds them in /proc")
STAGES = ("simulate.py", "render.py", "encode.py", "atlas.py", "coded_atlas.py", "concat.py")
STAGES += ("episodes.py",)
JOBS = 10  # of a run by SMALL


def wait_for_a_moment(project: Project, process, random) -> None:
    """Wait until some number of jobs has begun, and for some part of a job's time more."""
    logs = project.folder / "results" / "logs"
    begun = random.randint(0, JOBS)
    wait_for(lambda: len(list(logs.rglob("*.log"))) >= begun or process.poll() is not None)
    time.sleep(random.uniform(0, 0.5 if begun else 3))


ENDINGS = {
    "`kill -9` of Snakemake and all its jobs": (signal.SIGKILL, os.killpg),
    "`kill -9` of Snakemake alone": (signal.SIGKILL, os.kill),
    "SIGTERM to Snakemake alone": (signal.SIGTERM, os.kill),
    "SIGTERM to Snakemake and all its jobs": (signal.SIGTERM, os.killpg),
    "SIGINT (Ctrl-C) to Snakemake and all its jobs": (signal.SIGINT, os.killpg),
}


@pytest.mark.parametrize("ending", sampled(ENDINGS))
@trials(sample=1, count=6)
def test_a_run_that_is_stopped(project, filmed, record_property, ending, trial):
    process = project.start("-j", "2", config=SMALL)
    wait_for_a_moment(project, process, dice(ending, trial))
    number, kill = ENDINGS[ending]
    if process.poll() is None:
        kill(process.pid, number)
    process.communicate(timeout=BOUND)
    outcome = ends_right(project, SMALL, hashes(filmed.folder / "results"))
    noted(record_property, ending, outcome)


@pytest.fixture(scope="module")
def encoded(once) -> Project:
    """Return a project with a finished film by x264."""
    return once("encoded", lambda fresh: fresh.run("-j", "2", config=BY_X264))


def killed_one(project, random, config, programs, option="") -> str:
    """Kill a process of these programs in a run; return what the run output."""
    process = project.start("-j", "2", config=config)

    def found():
        return processes(project, programs, option) or process.poll() is not None

    wait_for_a_moment(project, process, random)
    victims = wait_for(found)
    if victims is not True:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.kill(random.choice(victims), signal.SIGKILL)
    output = ended(process)
    assert process.returncode == 0 or "killed" in output, output
    return output


@trials(sample=1, count=10)
def test_a_stage_that_is_killed(project, filmed, record_property, trial):
    killed_one(project, dice("stage", trial), SMALL, STAGES)
    outcome = ends_right(project, SMALL, hashes(filmed.folder / "results"))
    noted(record_property, "`kill -9` of a stage", outcome)


@trials(sample=0, count=10)
def test_an_ffmpeg_that_is_killed(project, encoded, record_property, trial):
    killed_one(project, dice("ffmpeg", trial), BY_X264, ("ffmpeg",), "-i")
    outcome = ends_right(project, BY_X264, hashes(encoded.folder / "results"))
    noted(record_property, "`kill -9` of ffmpeg (x264)", outcome)
