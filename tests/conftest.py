"""What several test modules share: shards made in process, and the workflow run as a user would."""

import fcntl
import hashlib
import importlib.util
import os
import py_compile
import re
import shutil
import signal
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import av
import pytest
from planner import planned

from goalreel import ffmpeg
from goalreel.atlas import draw_atlas
from goalreel.frame_cache import FrameCache
from goalreel.physics import ENVIRONMENTS
from goalreel.policies import make_policy
from goalreel.reaches import simulate_reaches
from goalreel.render import render_states
from goalreel.seal import LENGTH, write_seal
from goalreel.segment import encode_segment
from goalreel.spec import canonical
from goalreel.styles import make_style
from goalreel.trajectories import Trajectories, write_trajectories

os.environ["SDL_VIDEODRIVER"] = "dummy"
REPOSITORY = Path(__file__).parents[1]
# Python as most users run it, which would write its caches if the workflow let it.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
SOURCES = [
    "Snakefile",
    "config.yaml",
    "config.schema.yaml",
    "rules",
    "scripts",
    "envs",
    "profiles",
    "docs",
]
DISCRETE, CONTINUOUS = "MountainCar-v0", "MountainCarContinuous-v0"
PUMP = {"name": "pump", "epsilon": 0.0}
QP = {"encoder": "x264", "preset": "ultrafast", "qp": 23}
FEW = {"reaches": 6, "shard_size": 3}
GYMNASIUM = {"style": "gymnasium", "width": 600, "height": 400, "palette": "light"}
STYLES = {env: make_style(env, GYMNASIUM) for env in (DISCRETE, CONTINUOUS)}
LOSSLESS = QP | {"qp": 0}
HARSH = 'it\'s a "film" $(x) é #;=\\ 雪'


def of_shard(shard: int) -> SimpleNamespace:
    """Return the wildcards that Snakemake hands to the function of a shard's spec."""
    return SimpleNamespace(shard=f"{shard:05d}")


def resealed(path: Path) -> None:
    """Give a zip archive that a test has forged a seal that fits it."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = bytes(LENGTH)
    write_seal(path)


@pytest.fixture(scope="session")
def atlases():
    """Return the atlas of each environment."""
    return {env: draw_atlas(style) for env, style in STYLES.items()}


def simulated(env=DISCRETE, reaches=range(3), policy=PUMP, seed=7, show="reaches", attempts=100):
    """Return a shard's trajectories."""
    spec = canonical({"config": {"env": env}})
    policy = make_policy(policy)
    return simulate_reaches(reaches, seed, ENVIRONMENTS[env], policy, attempts, show, spec)


def rendered(trajectories: Trajectories, atlases, env=DISCRETE) -> FrameCache:
    """Return a shard's frames."""
    return render_states(trajectories, atlases[env], STYLES[env], "{}")


def decoded(path):
    """Return all frames of a video as yuv420p, (H * 3 / 2, W) uint8 each."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray() for frame in container.decode(video=0)]


def shard(tmp_path, atlases, number, reaches, encode=QP, fps=30):
    """Return a shard's trajectory file and segment."""
    trajectories = simulated(reaches=reaches)
    paths = tmp_path / f"{number:05d}.npz", tmp_path / f"{number:05d}.mp4"
    write_trajectories(paths[0], trajectories)
    comment = canonical({"source": trajectories.digest()})
    encode_segment(rendered(trajectories, atlases), paths[1], fps, encode, comment)
    return paths


@pytest.fixture(scope="session")
def cache(atlases) -> FrameCache:
    """Return the frames of three reaches."""
    return rendered(simulated(), atlases)


def hashes(results: Path) -> dict[str, str]:
    """Return the sha256 of everything made, without the logs and benchmarks, which hold times."""
    files = [path for path in results.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.relative_to(results).parts[0] not in ("logs", "benchmarks")
    }


def fake_ffmpeg(tmp_path, monkeypatch, script: str) -> None:
    """Put a shell script in ffmpeg's place; $REAL is the true one."""
    program = tmp_path / "fake ffmpeg"
    program.write_text(f"#!/bin/sh\nREAL='{ffmpeg.executable()}'\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(ffmpeg, "executable", lambda: str(program))


def _heed_ctrl_c() -> None:
    """Undo what a shell does to its background jobs, which inherit that they ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _lend_bytecode(folder: Path, cache: Path) -> None:
    """Put the sources' bytecode beside them, which is made once and tells by itself if it fits.

    The workflow writes none, so that each of thousands of jobs would compile what it imports.
    """
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    for source in folder.rglob("*.py"):
        kept = cache / "bytecode" / f"{hashlib.sha256(source.read_bytes()).hexdigest()}.pyc"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            own = kept.with_suffix(f".{os.getpid()}")
            py_compile.compile(str(source), str(own), invalidation_mode=mode)
            own.replace(kept)
        target = Path(importlib.util.cache_from_source(str(source)))
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(kept, target)


class Project:
    """A copy of the workflow in a folder of its own, and runs of it.

    python: the interpreter that they use; tests of clusters and of object storage have their own.
    """

    python = sys.executable

    def __init__(self, folder: Path, cache: Path):
        """Copy the sources to `folder`; `cache` stands for the user's cache folder."""
        self.folder = folder
        self.cache = cache
        for name in SOURCES:
            self.restore(name)

    @classmethod
    def at(cls, folder: Path, cache: Path) -> "Project":
        """Return the project of a folder that holds the workflow already."""
        project = cls.__new__(cls)
        project.folder, project.cache = folder, cache
        return project

    def copied(self, folder: Path) -> "Project":
        """Return a copy with its results, their time stamps and Snakemake's notes of them."""
        shutil.copytree(self.folder, folder)
        return Project.at(folder, self.cache)

    def restore(self, name: str) -> None:
        """Bring one of the sources back to what the repository has, with a new time stamp."""
        source, target = REPOSITORY / name, self.folder / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, target, ignore=ignore, copy_function=shutil.copyfile)
            _lend_bytecode(target, self.cache)
        else:
            shutil.copyfile(source, target)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a piece of a source, which must be there."""
        text = (self.folder / name).read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        edited = self.folder / f"{name}.edited"
        edited.write_text(text.replace(old, new, 1), encoding="utf-8")
        edited.replace(self.folder / name)  # at once, also for a run that is reading it

    def _words(self, *options: str, config: dict | None) -> list[str]:
        """Return the words of a command line, the configuration's last."""
        values = [f"{key}={value}" for key, value in (config or {}).items()]
        return [*options, *(["--config", *values] if values else [])]

    def _environment(self, environment: dict[str, str]) -> dict[str, str]:
        return _ENVIRONMENT | {"XDG_CACHE_HOME": str(self.cache)} | environment

    def start(self, *options: str, config: dict | None = None, within=(), **environment: str):
        """Start Snakemake, by the command `within` if there is one, and return the process."""
        return subprocess.Popen(
            [*within, str(self.python), "-m", "snakemake", *self._words(*options, config=config)],
            cwd=self.folder,
            env=self._environment(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # a test's Ctrl-C goes to this run alone
            preexec_fn=_heed_ctrl_c,
        )

    def run(self, *options: str, config: dict | None = None, **environment: str) -> str:
        """Run Snakemake, which must succeed, and return all that it says."""
        process = self.start(*options, config=config, **environment)
        said, _ = process.communicate()
        assert process.returncode == 0, said
        return said

    def fail(self, *options: str, config: dict | None = None, **environment: str) -> str:
        """Run Snakemake, which must fail, and return all that it says."""
        process = self.start(*options, config=config, **environment)
        said, _ = process.communicate()
        assert process.returncode != 0, said
        return said

    def jobs(self, *options: str, config: dict | None = None, **environment: str) -> dict:
        """Return how many jobs of each rule a run would have, `all` left out."""
        if environment or self.python != sys.executable:  # which shape how Python starts
            said = self.run("--dry-run", *options, config=config, **environment)
        else:
            words = self._words("--dry-run", *options, config=config)
            status, said = planned(self.folder, words, self._environment({}))
            assert status == 0, said
        if "Nothing to be done" in said:
            return {}
        table = said[said.index("Job stats") : said.index("total")]
        rows = re.findall(r"^\s*(\w+(?: \w+)*)\s+(\d+)\s*$", table, re.M)
        counts = {rule.replace(" ", "_"): int(number) for rule, number in rows}
        return {rule: number for rule, number in counts.items() if rule != "all"}


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
    """Return a function that gives the project of a name, which the first worker to ask makes.

    It takes what makes it of a fresh copy of the workflow and returns what was said; tests only
    read it. A name stands for one way to make it, in all test modules.
    """

    def made(name: str, make: Callable[[Project], str]) -> Project:
        folder, said = common / name, common / f"{name}.said"
        with (common / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not said.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                said.write_text(make(Project(folder, user_cache)), encoding="utf-8")
        project = Project.at(folder, user_cache)
        project.said = said.read_text(encoding="utf-8")
        return project

    return made


@pytest.fixture
def project(tmp_path, user_cache) -> Project:
    """Return a fresh copy of the workflow."""
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder, user_cache)


@pytest.fixture(scope="session")
def filmed(once) -> Project:
    """Return a project with a finished film of 8 reaches in 2 shards; tests only read it."""

    def make(fresh):
        for lent in list(fresh.folder.rglob("__pycache__")):  # what is written there is seen
            shutil.rmtree(lent)
        return fresh.run("-j", "2", config={"reaches": 8, "shard_size": 4})

    return once("filmed", make)
