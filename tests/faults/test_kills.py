"""Runs that are killed or stopped at random moments: the next plain run ends as if undisturbed."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from conftest import Project, hashes
from trials import (
    BOUND,
    BY_X264,
    SMALL,
    dice,
    ended,
    ends_right,
    noted,
    processes,
    trials,
    wait_for,
)

pytestmark = pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="finds them in /proc")
STAGES = ("simulate.py", "render.py", "encode.py", "atlas.py", "dictionary.py", "concat.py")
STAGES += ("episodes.py",)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, user_cache):
    """Return a configuration's outputs and seconds of a run that nothing disturbed."""
    known = {}

    def run(config: dict) -> tuple[dict, float]:
        if repr(config) not in known:
            project = Project(tmp_path_factory.mktemp("undisturbed"), user_cache)
            project.run("-j", "2", config=config)  # draws and codes what the user's cache lacks
            start = time.monotonic()
            project.run("-j", "2", "--forceall", config=config)
            seconds = time.monotonic() - start
            known[repr(config)] = hashes(project.folder / "results"), seconds
        return known[repr(config)]

    return run


ENDINGS = {
    "`kill -9` of Snakemake and all its jobs": (signal.SIGKILL, os.killpg),
    "`kill -9` of Snakemake alone": (signal.SIGKILL, os.kill),
    "SIGTERM to Snakemake alone": (signal.SIGTERM, os.kill),
    "SIGTERM to Snakemake and all its jobs": (signal.SIGTERM, os.killpg),
    "SIGINT (Ctrl-C) to Snakemake and all its jobs": (signal.SIGINT, os.killpg),
}


@pytest.mark.parametrize("ending", ENDINGS)
@trials(sample=1, full=30)
def test_a_run_that_is_stopped(project, undisturbed, record_property, ending, trial):
    wanted, seconds = undisturbed(SMALL)
    process = project.start("-j", "2", config=SMALL)
    time.sleep(dice(ending, trial).uniform(0, seconds))
    number, kill = ENDINGS[ending]
    if process.poll() is None:
        kill(process.pid, number)
    process.communicate(timeout=BOUND)
    noted(record_property, ending, ends_right(project, SMALL, wanted))


VICTIMS = {
    "`kill -9` of a stage": (STAGES, "", SMALL),
    "`kill -9` of ffmpeg (x264)": (("ffmpeg",), "-i", BY_X264),
}


@pytest.mark.parametrize("fault", VICTIMS)
@trials(sample=1, full=30)
def test_a_stage_or_ffmpeg_that_is_killed(project, undisturbed, record_property, fault, trial):
    programs, option, config = VICTIMS[fault]
    wanted, seconds = undisturbed(config)
    process = project.start("-j", "2", config=config)

    def found():
        return processes(project, programs, option) or process.poll() is not None

    wait_for(found)
    time.sleep(dice(fault, trial).uniform(0, seconds / 2))  # about what Snakemake's start leaves
    victims = wait_for(found)
    if victims is not True:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.kill(victims[0], signal.SIGKILL)
    said = ended(process)
    assert process.returncode == 0 or "killed" in said, said
    noted(record_property, fault, ends_right(project, config, wanted))
