"""After a run is killed or stopped at a random moment, the next plain run ends as if undisturbed."""

import contextlib
import os
import random
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
    finished,
    generator,
    processes,
    recover,
    sampled,
    trials,
    wait_for,
)

pytestmark = pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="finds them in /proc")
STAGES = ("simulate", "render", "encode", "atlas", "coded_atlas", "concat", "episodes")
JOBS = 10  # jobs of a run of SMALL


def wait_for_a_moment(project: Project, process, rng: random.Random) -> None:
    """Wait until some jobs have started, and for a part of a job's time."""
    logs = project.folder / "results" / "logs"
    begun = rng.randint(0, JOBS)
    wait_for(lambda: len(list(logs.rglob("*.log"))) >= begun or process.poll() is not None)
    time.sleep(rng.uniform(0, 0.5 if begun else 3))


ENDINGS = {
    "`kill -9` of Snakemake and all its jobs": (signal.SIGKILL, os.killpg),
    "`kill -9` of Snakemake alone": (signal.SIGKILL, os.kill),
    "SIGTERM to Snakemake alone": (signal.SIGTERM, os.kill),
    "SIGTERM to Snakemake and all its jobs": (signal.SIGTERM, os.killpg),
    "SIGHUP (a closed terminal) to Snakemake and all its jobs": (signal.SIGHUP, os.killpg),
    "SIGINT (Ctrl-C) to Snakemake and all its jobs": (signal.SIGINT, os.killpg),
}


@pytest.mark.parametrize("ending", sampled(ENDINGS))
@trials(6)
def test_stopped_run_recovers(project, expected, ending, trial):
    process = project.start("-j", "2", config=SMALL)
    wait_for_a_moment(project, process, generator(ending, trial))
    number, kill = ENDINGS[ending]
    if process.poll() is None:
        kill(process.pid, number)
    process.communicate(timeout=BOUND)
    recover(project, expected)


DRAWN = {"env": "CartPole-v1", "episodes": 6, "shard_size": 2}
OTHER = {  # other runs than a Mountain Car film, and their targets
    "an environment that is drawn": (DRAWN, ()),
    "one that Gymnasium steps": (DRAWN | {"env": "FrozenLake-v1"}, ()),
    "views": (SMALL, ("all", "clips", "grid", "swarm", "stills", "model_card")),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", OTHER)
@trials(4)
def test_killed_run_of_other_kinds_recovers(project, once, kind, trial):
    config, targets = OTHER[kind]
    made = once(f"killed: {kind}", lambda fresh: fresh.run("-j", "2", *targets, config=config))
    process = project.start("-j", "2", *targets, config=config)
    wait_for_a_moment(project, process, generator(kind, trial))
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=BOUND)
    recover(project, hashes(made.folder / "results"), config, targets=targets)


@pytest.mark.slow
@trials(6)
def test_killed_run_does_not_harm_shared_user_cache(project, tmp_path, expected, trial):
    """One run is killed and the other continues. Both end with the right results."""
    rng = generator("two folders", trial)
    project.cache = tmp_path / "cold cache"
    other = project.copied(tmp_path / "other")
    processes = [one.start("-j", "2", config=SMALL) for one in (project, other)]
    wait_for_a_moment(project, processes[0], rng)
    if processes[0].poll() is None:
        os.killpg(processes[0].pid, signal.SIGKILL)
    processes[0].communicate(timeout=BOUND)
    output = finished(processes[1])
    assert processes[1].returncode == 0, output
    recover(other, expected)
    recover(project, expected)
    assert not list(project.cache.rglob(".*.tmp*")), "what the killed one was writing is gone"


def kill_one(project, rng, config, programs, option="") -> None:
    """Kill one process of these programs in a run, which fails unless it had ended."""
    process = project.start("-j", "2", config=config)
    wait_for_a_moment(project, process, rng)
    victims = wait_for(lambda: processes(project, programs, option) or process.poll() is not None)
    if victims is not True:
        with contextlib.suppress(ProcessLookupError):  # it had ended
            os.kill(rng.choice(victims), signal.SIGKILL)
    output = finished(process)
    assert process.returncode == 0 or "killed" in output, output


@pytest.mark.slow
@trials(10)
def test_run_with_killed_stage_recovers(project, expected, trial):
    programs = tuple(f"{stage}.py" for stage in STAGES)
    kill_one(project, generator("stage", trial), SMALL, programs)
    recover(project, expected)


@pytest.mark.slow
@trials(10)
def test_run_with_killed_ffmpeg_recovers(project, once, trial):
    kill_one(project, generator("ffmpeg", trial), BY_X264, ("ffmpeg",), "-i")
    encoded = once("encoded", lambda fresh: fresh.run("-j", "2", config=BY_X264))
    recover(project, hashes(encoded.folder / "results"), BY_X264)
