"""Containers and conda have the files, packages and Python version of a local run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from project import REPOSITORY, SOURCES

CONTAINERFILE = (REPOSITORY / "envs/Containerfile").read_text(encoding="utf-8")
IGNORED = (REPOSITORY / "envs/Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()


def steps(name: str) -> list[list[str]]:
    """Return the words of each step of this name in the Containerfile."""
    joined = CONTAINERFILE.replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in joined.splitlines() if line.startswith(f"{name} ")]


def copied(folder: Path) -> None:
    """Copy the files that the Containerfile copies, with `folder` as the root of the image."""
    for *sources, target in steps("COPY"):
        for source in sources:
            sent = {f"!{path}" for path in (Path(source), *Path(source).parents)}
            assert sent.intersection(IGNORED), f".dockerignore keeps {source} from the image"
            path, place = REPOSITORY / source, folder / target.lstrip("/")
            if path.is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(path, place, ignore=ignore, dirs_exist_ok=True)
            else:
                assert target.endswith("/")
                place.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place / path.name)


def test_containers_and_conda_use_oldest_supported_python():
    (base,) = steps("FROM")
    oldest = re.search(r'requires-python = ">=([\d.]+)"', read("pyproject.toml"))[1]
    assert base == [f"python:{oldest}-slim"]
    for path in (REPOSITORY / "envs").glob("*.yaml"):
        given = yaml.safe_load(path.read_text(encoding="utf-8"))["dependencies"]
        assert f"python={oldest}" in given, path.name


def read(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def test_image_has_pinned_packages_and_no_root():
    (install,) = [words for words in steps("RUN") if "pip" in words]
    assert "--require-hashes" in install
    lock = install[install.index("--requirement") + 1]
    assert lock == "/goalreel/envs/locks/cluster.txt"
    assert all(int(user) > 0 for (user,) in steps("USER")) and steps("USER")


def test_image_plans_run_in_another_folder(tmp_path):
    copied(tmp_path)
    held = {path.name for path in (tmp_path / "goalreel").iterdir()}
    assert held == {*SOURCES}
    (tmp_path / "work").mkdir()
    (command,) = re.findall(r'^CMD \["snakemake", "--snakefile", "(.*)"\]$', CONTAINERFILE, re.M)
    completed = subprocess.run(
        [sys.executable, "-m", "snakemake", "--snakefile", tmp_path / command.lstrip("/"), "-n"],
        cwd=tmp_path / "work",
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stderr
    assert "simulate" in completed.stdout + completed.stderr
    assert {path.name for path in (tmp_path / "work").iterdir()} <= {".snakemake"}


# It answers Snakemake's questions before planning, and fails on any other call.
CONDA = """\
#!/bin/sh
case "$*" in
--version) echo 'conda 24.11.0';;
'info --json') echo '{"conda_version": "24.11", "platform": "linux-64", "conda_prefix": "/"}';;
'config --get channel_priority --json') echo '{"get": {"channel_priority": "strict"}}';;
*) exit 1;;
esac
"""
VIEWS = ("clips", "grid", "swarm", "stills", "report")


def test_conda_run_without_training_needs_two_environments(project, tmp_path):
    """The run is only planned, without making environments."""
    (tmp_path / "conda").write_text(CONDA)
    (tmp_path / "conda").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    stdout = project.run("all", *VIEWS, "--sdm", "conda", "-n", config={"reaches": 1}, PATH=path)
    planned = set(
        re.findall(r"Conda environment (?:\S*/)?envs/(\w+)\.yaml will be created", stdout)
    )
    assert planned == {"film", "report"}
