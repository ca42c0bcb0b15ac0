"""Shared fixtures: shards made in process, and projects that run the workflow as a user would."""

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import pytest
from browser import chromium
from project import Project
from reruns import Sources

from goalreel.encoding import ffmpeg
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.environments.gymnasium_instance import Instance, close_instance
from goalreel.environments.mountain_car import ENVIRONMENTS
from goalreel.errors import GoalreelError
from goalreel.films.render import render_states
from goalreel.films.segment import encode_segment
from goalreel.policies.policy import make_policy
from goalreel.provenance.spec import NO_SPEC, canonical, parse_spec
from goalreel.rendering.atlas import draw_atlas
from goalreel.rendering.frame_cache import FrameCache
from goalreel.simulation.reaches import simulate_reaches
from goalreel.simulation.trajectories import Trajectories, write_trajectories

os.environ["SDL_VIDEODRIVER"] = "dummy"
DISCRETE, CONTINUOUS = "MountainCar-v0", "MountainCarContinuous-v0"
PUMP = {"name": "pump", "epsilon": 0.0}
QP = {"encoder": "x264", "preset": "ultrafast", "qp": 23}
FEW = {"reaches": 6, "shard_size": 3}
LOSSLESS = QP | {"qp": 0}
VIEWS = ("clips", "grid", "swarm", "stills", "figures", "model_card", "report")
TARGETS = ("all", *VIEWS)
VIEWED = {"reaches": 4, "shard_size": 2}
SMALL = {"reaches": 8, "shard_size": 4}
HARSH = 'it\'s a "film" $(x) é #;=\\ 雪'


def of_shard(shard: int) -> dict[str, str]:
    """Return the wildcards that Snakemake passes to the function of a shard's spec."""
    return {"shard": f"{shard:05d}"}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let schedule.py distribute the tests of xdist."""
    from schedule import ByModule

    return ByModule(config, log)


@pytest.fixture(scope="session")
def atlases():
    """Return the atlas of each environment."""
    return {env: draw_atlas(env) for env in (DISCRETE, CONTINUOUS)}


def simulated(
    env=DISCRETE, reaches=range(3), policy=PUMP, seed=7, attempts=100, show_failures=False
):
    """Return a shard's trajectories."""
    spec = parse_spec(canonical({"config": {"env": env}}))
    policy = make_policy(policy)
    return simulate_reaches(reaches, seed, ENVIRONMENTS[env], policy, attempts, show_failures, spec)


def rendered(trajectories: Trajectories, atlases, env=DISCRETE) -> FrameCache:
    """Return a shard's frames."""
    return render_states(trajectories, atlases[env], env, NO_SPEC)


def decoded(path):
    """Return all frames of a video as yuv420p, (H * 3 / 2, W) uint8 each."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray() for frame in container.decode(video=0)]


def shard(tmp_path, atlases, number, reaches):
    """Return a shard's trajectory file and segment."""
    trajectories = simulated(reaches=reaches)
    paths = tmp_path / f"{number:05d}.npz", tmp_path / f"{number:05d}.mp4"
    write_trajectories(paths[0], trajectories)
    comment = canonical({"source": trajectories.digest()})
    encode_segment(rendered(trajectories, atlases), paths[1], 30, QP, comment)
    return paths


@pytest.fixture(scope="session")
def cache(atlases) -> FrameCache:
    """Return the frames of three reaches."""
    return rendered(simulated(), atlases)


def hashes(results: Path) -> dict[str, str]:
    """Return the sha256 of all results, except options, logs and benchmarks, which hold times."""
    files = [path for path in results.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.relative_to(results).parts[0] not in ("logs", "benchmarks", "config.yaml")
    }


def fake_ffmpeg(tmp_path, monkeypatch, script: str) -> None:
    """Replace ffmpeg by a shell script, in which $REAL is the original."""
    program = tmp_path / "fake ffmpeg"
    program.write_text(f"#!/bin/sh\nREAL='{ffmpeg.executable()}'\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(ffmpeg, "executable", lambda: str(program))


@pytest.fixture(scope="session")
def common(tmp_path_factory) -> Path:
    """Return a folder that all workers of a test run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def user_cache(common) -> Path:
    """Return a user's cache folder, so that the atlas is drawn once for all runs."""
    folder = common / "cache"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def once(common, user_cache) -> Callable[[str, Callable[[Project], str]], Project]:
    """Return a function that returns the shared project of a name.

    The first worker that asks makes the project, by a function of a fresh copy of the workflow that
    returns the output. Tests only read the project. Each name stands for one such function in all
    test modules.
    """

    def made(name: str, make: Callable[[Project], str]) -> Project:
        folder, output = common / name, common / f"{name}.output"
        with (common / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not output.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                output.write_text(make(Project(folder, user_cache)), encoding="utf-8")
        project = Project.at(folder, user_cache)
        project.output = output.read_text(encoding="utf-8")
        return project

    return made


@pytest.fixture
def project(tmp_path, user_cache) -> Project:
    """Return a fresh copy of the workflow."""
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder, user_cache)


@pytest.fixture(scope="session")
def opengl() -> None:
    """Skip the tests where MuJoCo cannot draw."""
    try:
        instance = Instance(GymnasiumEnvironment("Reacher-v5"), 0)
        instance.render()
        close_instance(instance.env)
    except (ImportError, GoalreelError):
        pytest.skip("MuJoCo cannot draw with egl: needs Debian's libegl1 and libgl1-mesa-dri")


@pytest.fixture(autouse=True)
def _runs_end() -> Iterator[None]:
    """End the runs that a failed test leaves, also hanging ones."""
    yield
    Project.end_runs()


@pytest.fixture(scope="session")
def filmed(once) -> Project:
    """Return a read-only project with a finished film of 8 reaches in 2 shards."""
    return once("filmed", lambda fresh: fresh.run("-j", "2", config=SMALL))


@pytest.fixture
def done(filmed, tmp_path) -> Project:
    """Return a copy of the project with that film, which a test may change."""
    return filmed.copied(tmp_path / "project")


@pytest.fixture(scope="session")
def viewed(once) -> Project:
    """Return a read-only project with a finished film of 4 reaches and all views."""
    return once("viewed", lambda fresh: fresh.run("-j", "2", *TARGETS, config=VIEWED))


@pytest.fixture(scope="session")
def expected(filmed) -> dict[str, str]:
    """Return the hashes of the results of that film, made without a disturbance."""
    return hashes(filmed.folder / "results")


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Return a browser."""
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Iterator[Sources]:
    """Return an editable copy of the workflow's sources, from which specs are planned."""
    with pytest.MonkeyPatch.context() as patch:
        yield Sources(tmp_path_factory.mktemp("sources"), patch)
