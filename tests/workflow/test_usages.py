"""Other ways to use the workflow: a module, the catalog's layout, an installed wheel."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from functools import partial

import pytest
import yaml
from project import REPOSITORY

import goalreel

MODULE = """
configfile: "config.yaml"

module goalreel:
    snakefile: "{snakefile}"
    config: config

use rule * from goalreel{prefix}
"""
CONFIG = "reaches: 6\nshard_size: 3\n"


def run(*command, folder, **environment):
    """Run a command, which must succeed, and return its output."""
    outer = {k: v for k, v in os.environ.items() if not k.startswith("GOALREEL_")}
    environment = outer | environment
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout + completed.stderr


@pytest.fixture
def directly(tmp_path, user_cache):
    """Return the film of a run by `--snakefile workflow/Snakefile` in a folder of its own."""
    folder = tmp_path / "directly"
    folder.mkdir()
    snakemake = sys.executable, "-m", "snakemake", "-j", "2"
    snakefile = "--snakefile", REPOSITORY / "workflow" / "Snakefile"
    options = "--config", "reaches=6", "shard_size=3"
    run(*snakemake, *snakefile, *options, folder=folder, XDG_CACHE_HOME=str(user_cache))
    return folder / "results" / "MountainCar-v0-pump" / "film.mp4"


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "film_"])
def test_module_of_another_workflow_makes_same_film(tmp_path, user_cache, directly, prefix):
    """The module finds its programs and package, and its views are rules, also with a prefix."""
    renamed, snakefile = f" as {prefix}*" * bool(prefix), REPOSITORY / "workflow" / "Snakefile"
    text = MODULE.format(snakefile=snakefile, prefix=renamed)
    (tmp_path / "Snakefile").write_text(text)
    (tmp_path / "config.yaml").write_text(CONFIG)
    snakemake = sys.executable, "-m", "snakemake", "-j", "2"
    cache = {"folder": tmp_path, "XDG_CACHE_HOME": str(user_cache)}
    assert "not present" not in run(*snakemake, **cache)  # renamed local rules
    assert (tmp_path / "results/MountainCar-v0-pump/film.mp4").read_bytes() == directly.read_bytes()
    run(*snakemake, f"{prefix}clips", **cache)
    assert list((tmp_path / "results/MountainCar-v0-pump/clips").glob("*.mp4"))
    assert "Nothing to be done" in run(*snakemake, **cache)


def test_catalog_finds_its_files():
    """The README of github.com/snakemake/snakemake-workflow-catalog lists the files."""
    shown = yaml.safe_load((REPOSITORY / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert shown["software-stack-deployment"]["conda"] and shown["report"]
    assert (REPOSITORY / "config/README.md").is_file()
    names = ("config/config.yaml", "config.yaml")
    assert len({(REPOSITORY / name).read_text() for name in names}) == 1
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert citation["version"] == goalreel.__version__
    for path in (REPOSITORY / ".github").rglob("*.yml"):
        assert yaml.safe_load(path.read_text()), path


def test_actions_are_pinned_by_commit():
    for path in (REPOSITORY / ".github/workflows").iterdir():
        actions = re.findall(r"uses: *(\S+)", path.read_text())
        assert actions and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name) for name in actions)


@pytest.mark.slow
def test_wheel_films_and_serves_a_fetched_module(tmp_path, user_cache, directly):
    """Only hatchling comes from the network, all other packages from this environment."""
    source, python = tmp_path / "source", tmp_path / "venv" / "bin" / "python"
    ignore = shutil.ignore_patterns(".venv*", ".git", "results*", ".snakemake", "site")
    shutil.copytree(REPOSITORY, source, ignore=ignore, symlinks=True)
    run(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    place = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = run(python, "-c", place, folder=tmp_path).strip()
    path = sysconfig.get_path("purelib")
    (tmp_path / packages / "beneath.pth").write_text(f"{path}\n")
    built = run(python, "-m", "pip", "install", "--no-deps", source, folder=tmp_path)
    assert "Successfully installed goalreel" in built
    listing = "import importlib.metadata as m; print(*m.files('goalreel'), sep='\\n')"
    files = {*run(python, "-c", listing, folder=tmp_path).split()}
    held = {name for name in files if name.startswith("goalreel/") and "__pycache__" not in name}
    tracked = run("git", "ls-files", folder=REPOSITORY).split()
    includes = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    includes = includes["targets"]["wheel"]["force-include"] | {"scripts/goalreel": "goalreel"}
    assert held == {
        target + name.removeprefix(start)
        for name in tracked
        for start, target in includes.items()
        if f"{name}/".startswith(f"{start}/")
    }
    command = tmp_path / "venv" / "bin" / "goalreel"
    assert run(command, "--version", folder=tmp_path).strip() == goalreel.__version__
    empty = tmp_path / "empty"
    empty.mkdir()
    cache = {"XDG_CACHE_HOME": str(user_cache)}
    options = "--config", "reaches=6", "shard_size=3"
    run(command, "run", "-j", "2", *options, folder=empty, **cache)
    assert (empty / "results/MountainCar-v0-pump/film.mp4").read_bytes() == directly.read_bytes()
    make = "import goalreel; goalreel.film('MountainCar-v0', 'pump', reaches=3, to='small.mp4')"
    run(python, "-c", make, folder=empty, **cache)
    assert (empty / "small.mp4").stat().st_size

    git = "git", "-c", "user.name=nobody", "-c", "user.email=nobody@example.org"
    run("git", "init", "-q", "-b", "main", folder=source)
    run("git", "add", "-A", folder=source)
    run(*git, "commit", "-q", "-m", "all", folder=source)
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    snakefile = f"git+file://{source}/workflow/Snakefile@main"
    text = MODULE.format(snakefile=snakefile, prefix="")
    (fetched / "Snakefile").write_text(text)
    (fetched / "config.yaml").write_text(CONFIG)
    run(python, "-m", "snakemake", "-j", "2", folder=fetched, **cache)
    assert (fetched / "results/MountainCar-v0-pump/film.mp4").read_bytes() == directly.read_bytes()


def goalreel_command(folder, cache, *words, code=0):
    """Run a command of the package, which ends with this code, and return its messages."""
    environment = {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(REPOSITORY / "scripts")}
    ended = subprocess.run(
        [sys.executable, "-m", "goalreel", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    assert ended.returncode == code, ended.stderr
    return ended.stderr


CART = ["film", "CartPole-v1", "-j", "2", "-n", "4", "--set", "overlay.hud=true"]


def test_command_films_and_names_what_is_wrong(tmp_path, user_cache):
    command = partial(goalreel_command, tmp_path, user_cache)
    command(*CART, "--seed", "3", "-o", "cart.mp4", "--set", "film.fps=30")
    results = tmp_path / "results" / "CartPole-v1-random"
    assert (tmp_path / "cart.mp4").read_bytes() == (results / "film.mp4").read_bytes()
    options = yaml.safe_load((results / "config.yaml").read_text())
    assert (options["seed"], options["film"]["fps"], options["overlay"]["hud"]) == (3, 30, True)
    command("film", "CartPole-v1", "--set", "seeds=[7]", "-o", "one.gif")
    assert (results / "episodes.csv").read_text().count("\n") == 2
    assert "Did you mean 'CartPole-v1'?" in command("film", "CartPol-v1", code=1)
    assert "Name the folder of a run." in command("report", "nothing", code=1)
    assert "Use .mp4, .gif or .webp." in command(*CART, "-o", "cart.avi", code=1)
    assert "Write film.fps=VALUE." in command("film", "CartPole-v1", "--set", "film.fps", code=1)
    assert "invalid choice: 'flim'" in command("flim", code=2)


@pytest.mark.slow
def test_commands_report_compare_and_check(tmp_path, user_cache):
    command = partial(goalreel_command, tmp_path, user_cache)
    command(*CART)
    results = tmp_path / "results" / "CartPole-v1-random"
    command(*CART, "--set", "results=other", "--set", "max_episode_steps=9")
    command("report", str(results))
    assert (results / "report" / "index.html").is_file()
    different = command("compare", str(results), "other", code=1)
    assert "The runs differ in max_episode_steps" in different
    command(*CART, "--set", "results=same", "--seed", "2025")
    assert "4 seeds" in command("compare", str(results), "same", "-o", "compared")
    assert (tmp_path / "compared" / "compare" / "compare.mp4").is_file()
    command("run", "-j", "2", "lock", "--configfile", str(results / "config.yaml"))
    assert "4 of 4 episodes" in command("check")
