"""The workflow in a folder of its own, and runs of it as a user would start them."""

import compileall
import contextlib
import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import pytest
from forks import run_snakemake

REPOSITORY = Path(__file__).parents[2]
# Python with Snakemake's plugins for clusters and object storage, and a server of S3.
CLUSTER_BIN = Path(os.environ.get("GOALREEL_CLUSTER_BIN", REPOSITORY / ".venv-cluster" / "bin"))
needs_cluster = pytest.mark.skipif(
    not (CLUSTER_BIN / "moto_server").is_file(),
    reason="needs `make .venv-cluster/installed`, or its bin folder in GOALREEL_CLUSTER_BIN",
)
# Python as most users run it.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
SOURCES = ["Snakefile", "config.yaml", "config"]
SOURCES += ["scripts", "envs", "profiles", "docs", "examples"]


def _heed_ctrl_c() -> None:
    """Restore Ctrl-C, which background jobs of a shell ignore by inheritance."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _sources(cache: Path) -> Path:
    """Return a folder with the sources and their bytecode, made once for all projects.

    Otherwise the first jobs of thousands of projects would compile their imports.
    """
    made = cache / "sources"
    if not made.exists():
        own, ignore = cache / f"sources.{os.getpid()}", shutil.ignore_patterns("__pycache__")
        own.mkdir(parents=True)
        for name in SOURCES:
            if (source := REPOSITORY / name).is_dir():
                shutil.copytree(source, own / name, ignore=ignore)
            else:
                shutil.copyfile(source, own / name)
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(own, quiet=1, invalidation_mode=mode)
        with contextlib.suppress(OSError):  # another worker was faster
            own.rename(made)
    return made


def _copy(source: Path, target: Path, option: str) -> None:
    """Copy a folder or file ten times as fast as `shutil`."""
    subprocess.run(["cp", option, source, target], check=True)


def _words(options: Iterable[str], config: dict | None) -> list[str]:
    """Return the words of a command line with the results in results/. The options come last."""
    options = list(options)
    folder = {} if "--configfile" in options else {"results": "results"}
    values = [f"{key}={value}" for key, value in (folder | (config or {})).items()]
    return [*options, *(["--config", *values] if values else [])]


def job_counts(output: str) -> dict[str, int]:
    """Return the number of jobs of each rule in the output of a run, without `all`."""
    if "Nothing to be done" in output:
        return {}
    table = output[output.index("Job stats") :].partition("total")[0]
    rows = re.findall(r"^\s*(\w+(?: \w+)*)\s+(\d+)\s*$", table, re.M)
    counts = {rule.replace(" ", "_"): int(number) for rule, number in rows}
    return {rule: number for rule, number in counts.items() if rule != "all"}


class Project:
    """A copy of the workflow in a folder of its own, and its runs."""

    python = sys.executable  # tests of clusters and object storage use another one
    _started: ClassVar[list[subprocess.Popen]] = []

    def __init__(self, folder: Path, cache: Path):
        """Copy the sources to `folder`, for runs with `cache` as the user's cache folder."""
        self.folder, self.cache = folder, cache
        for name in SOURCES:
            self.restore(name)

    @classmethod
    def at(cls, folder: Path, cache: Path) -> "Project":
        """Return the project of a folder that already holds the workflow."""
        project = cls.__new__(cls)
        project.folder, project.cache = folder, cache
        return project

    def copied(self, folder: Path) -> "Project":
        """Return a copy with the results, their time stamps and Snakemake's metadata."""
        _copy(self.folder, folder, "-a")
        return Project.at(folder, self.cache)

    def restore(self, name: str) -> None:
        """Restore a source from the repository, with a new time stamp."""
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        _copy(_sources(self.cache) / name, target, "-R")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a piece of a source, which must contain it."""
        text = (self.folder / name).read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        edited = self.folder / f"{name}.edited"
        edited.write_text(text.replace(old, new, 1), encoding="utf-8")
        edited.replace(self.folder / name)  # atomic, as a run may be reading it

    def start(self, *options: str, config: dict | None = None, within=(), **environment: str):
        """Start Snakemake, by the command `within` if it is given, and return the process."""
        process = subprocess.Popen(
            [*within, str(self.python), "-m", "snakemake", *_words(options, config)],
            cwd=self.folder,
            env=_ENVIRONMENT | {"XDG_CACHE_HOME": str(self.cache)} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # a test's Ctrl-C goes only to this run
            preexec_fn=_heed_ctrl_c,
        )
        self._started.append(process)
        return process

    @classmethod
    def end_runs(cls) -> None:
        """End all processes of the project that still run, with their jobs."""
        while cls._started:
            with cls._started.pop() as process:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def _ended(self, *options: str, config: dict | None, **environment: str) -> tuple[int, str]:
        """Run Snakemake and return its exit status and its output."""
        if environment or self.python != sys.executable:  # these change how Python starts
            process = self.start(*options, config=config, **environment)
            output, _ = process.communicate()
            return process.returncode, output
        environment = _ENVIRONMENT | {"XDG_CACHE_HOME": str(self.cache)}
        return run_snakemake(self.folder, _words(options, config), environment)

    def run(self, *options: str, config: dict | None = None, **environment: str) -> str:
        """Run Snakemake, which must succeed, and return its output."""
        status, output = self._ended(*options, config=config, **environment)
        assert status == 0, output
        return output

    def fail(self, *options: str, config: dict | None = None, **environment: str) -> str:
        """Run Snakemake, which must fail, and return its output."""
        status, output = self._ended(*options, config=config, **environment)
        assert status != 0, output
        return output

    def replay(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run the program that replays an episode of the results."""
        command = [sys.executable, REPOSITORY / "scripts" / "replay.py", *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True)

    def jobs(self, *options: str, config: dict | None = None, **environment: str) -> dict:
        """Return the number of jobs of each rule in a dry run, without `all`."""
        return job_counts(self.run("--dry-run", *options, config=config, **environment))
