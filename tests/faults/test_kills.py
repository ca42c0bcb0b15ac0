"""Runs that are killed or stopped at random moments: the next plain run ends as if undisturbed."""

import os
import signal
import time

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

_STAGES = ("simulate.py", "render.py", "encode.py", "atlas.py", "dictionary.py", "concat.py")
_STAGES += ("episodes.py",)


class Undisturbed:
    """A run that nothing disturbed: its outputs, and how long it took."""

    def __init__(self, folder, cache, config):
        """Run the workflow in `folder`."""
        folder.mkdir(exist_ok=True)
        project = Project(folder, cache)
        project.run("-j", "2", config=config)  # draws and codes what the user's cache lacks
        self.wanted = hashes(folder / "results")
        start = time.monotonic()
        project.run("-j", "2", "--forceall", config=config)
        self.seconds = time.monotonic() - start


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, user_cache):
    """Return the undisturbed run of each configuration."""
    made = {}

    def run(config):
        key = repr(config)
        if key not in made:
            made[key] = Undisturbed(tmp_path_factory.mktemp("undisturbed"), user_cache, config)
        return made[key]

    return run


def at_a_random_moment(project, undisturbed, config, trial, *what):
    """Start a run and return it at a random moment of its life."""
    process = project.start("-j", "2", config=config)
    time.sleep(dice(*what, trial).uniform(0, 1.05) * undisturbed(config).seconds)
    return process


def all_of_it(project, process):
    """Return the processes of a run, each of which is killed: Snakemake and its jobs."""
    return processes(project, "python", "bash", "ffmpeg", "snakemake") + [process.pid]


ENDINGS = {
    "`kill -9` of Snakemake and all its jobs": (signal.SIGKILL, True),
    "`kill -9` of Snakemake alone": (signal.SIGKILL, False),
    "SIGTERM to Snakemake": (signal.SIGTERM, False),
    "SIGTERM to Snakemake and all its jobs": (signal.SIGTERM, True),
    "SIGINT (Ctrl-C) to Snakemake and all its jobs": (signal.SIGINT, True),
}


@pytest.mark.parametrize("ending", ENDINGS)
@trials(sample=1, full=30)
def test_a_run_that_is_stopped(project, undisturbed, record_property, ending, trial):
    config = SMALL
    wanted = undisturbed(config).wanted
    process = at_a_random_moment(project, undisturbed, config, trial, ending)
    number, everyone = ENDINGS[ending]
    if process.poll() is None:
        (os.killpg if everyone else os.kill)(process.pid, number)
    process.communicate(timeout=BOUND)
    noted(record_property, ending, ends_right(project, config, wanted))


@trials(sample=1, full=30)
def test_a_stage_that_is_killed(project, undisturbed, record_property, trial):
    config = SMALL
    wanted = undisturbed(config).wanted
    process = at_a_random_moment(project, undisturbed, config, trial, "stage")
    kill_one(project, process, _STAGES)
    noted(record_property, "`kill -9` of a stage", ends_right(project, config, wanted))


@trials(sample=1, full=30)
def test_an_ffmpeg_that_is_killed(project, undisturbed, record_property, trial):
    config = BY_X264
    wanted = undisturbed(config).wanted
    process = at_a_random_moment(project, undisturbed, config, trial, "ffmpeg")
    said = kill_one(project, process, ("ffmpeg",))
    if process.returncode:
        assert "ffmpeg was killed by SIGKILL" in said or "ffmpeg does not run" in said, said
    noted(record_property, "`kill -9` of ffmpeg (x264)", ends_right(project, config, wanted))


def kill_one(project, process, programs):
    """Kill the first process of these programs that is seen; return what the run said."""
    victim = wait_for(lambda: processes(project, *programs) or process.poll() is not None)
    if victim is not True:
        try:
            os.kill(victim[0], signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended by itself
    return ended(process)
