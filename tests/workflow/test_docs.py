"""README and docs/ hold the measured figures, working links, and code that runs.

The blocks of a page run in order in one folder, as a reader runs them. A program named `snakemake`,
which comes first in PATH, reduces the number of episodes.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
import yaml
from project import REPOSITORY

from benchmarks.write_tables import PAGES, filled
from goalreel.configuration.schema import read_options
from goalreel.environments import registry
from goalreel.workflow.config import load_config
from goalreel.workflow.stages import STAGES

MKDOCS = REPOSITORY / ".venv-docs" / "bin" / "mkdocs"
NAMES = [str(page.relative_to(REPOSITORY)) for page in PAGES]
# The beginnings of blocks that do not run here: they need the network, Docker, a cluster, a
# bucket, PyTorch or a tracker's server. Other tests run most of them.
NOT_RUN = ("make", ". .venv/bin/activate", "pip install ", "docker build", "envs = make_vec_env(")
NOT_RUN += ("import torch", "import jax.numpy")
NOT_RUN += ("snakemake stills all --workflow-profile profiles/s3",)
NOT_RUN += ("snakemake training_progress", "snakemake train", "for seed in", "env.save(")
NOT_RUN += ("snakemake --config policy=trained",)
NOT_RUN += ("snakemake -n --workflow-profile", "snakemake --workflow-profile")
# The package that a page's blocks need.
NEEDS = {"docs/tutorials/stable-baselines3.md": "stable_baselines3"}
ZOO = "env=pettingzoo."  # commands with it need PettingZoo
FEW = """
import os, re, sys

words = sys.argv[1:]
told = " ".join([*words, *(open(word).read() for word in words if os.path.isfile(word))])
episodes = re.search("episodes[=:] *[0-9]", told) or not re.search("reaches[=:] *[0-9]", told)
films = episodes and re.search("env[=:]", told)
chosen = any(word.startswith("seeds=") for word in words)
words += [] if "--config" in words else ["--config"]
end = words.index("--config") + 1
while end < len(words) and not words[end].startswith("-"):
    end += 1
words[end:end] = [] if chosen else ["episodes=2"] if films else ["reaches=20", "shard_size=5"]
os.execv(sys.executable, [sys.executable, "-m", "snakemake", *words])
"""


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def blocks(name: str) -> list[tuple[str, str]]:
    """Return the language and the content of each of a page's fenced blocks."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text_of(name), re.M | re.S)


def named(code: str) -> str:
    """Return the name of the file that a block contains, or ""."""
    first = re.match(r"# ([\w./]+\.(?:py|yaml))\n", code)
    return first[1] if first else ""


def lacks_zoo(code: str) -> bool:
    """Return whether commands need PettingZoo and it is not installed."""
    return ZOO in code and find_spec("pettingzoo") is None


def runs(name: str, language: str, code: str) -> bool:
    """Return whether a block runs here, or is a file for other blocks."""
    if name == "docs/contributing.md" and language == "python":
        return False  # test_new_view makes its view
    if name in NEEDS and find_spec(NEEDS[name]) is None or lacks_zoo(code):
        return False
    return language in ("sh", "python") and not code.startswith(NOT_RUN) or bool(named(code))


@pytest.mark.parametrize("name", NAMES)
def test_blocks_name_their_language_and_hold_valid_options(name):
    known = {"sh", "python", "yaml", "text"}
    assert {language for language, _ in blocks(name)} <= known
    for code in (code for language, code in blocks(name) if language == "yaml"):
        assert read_options(yaml.safe_load(code))[1] == {}


@pytest.mark.parametrize("name", sorted({*NAMES} - {"README.md", "docs/index.md"}))
def test_pages_have_a_description_and_one_title(name):
    text = re.sub(r"^```.*?^```$", "", text_of(name), flags=re.M | re.S)
    assert re.match(r"---\ndescription: .+\n---\n\n# .+\n", text)
    assert len(re.findall("^# ", text, re.M)) == 1


def pages() -> list:
    """Return the pages that have a block to run."""
    return [name for name in NAMES if any(runs(name, *block) for block in blocks(name))]


@pytest.mark.slow
@pytest.mark.parametrize("name", pages())
def test_blocks_of_a_page_run_in_order(name, project, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "few.py").write_text(FEW)
    snakemake = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {programs}/few.py "$@"\n'
    (programs / "snakemake").write_text(snakemake)
    (programs / "snakemake").chmod(0o755)
    path = [str(programs), os.path.dirname(sys.executable), os.environ["PATH"]]  # noqa: PTH120
    environment = os.environ | {
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(project.folder / "scripts"),  # pip install -e .
        "XDG_CACHE_HOME": str(project.cache),
    }
    for language, code in blocks(name):
        if not runs(name, language, code):
            continue
        if file := named(code):
            (project.folder / file).write_text(code, encoding="utf-8")
            continue
        start = (
            [sys.executable, "-c"] if language == "python" else ["bash", "-euo", "pipefail", "-c"]
        )
        done = subprocess.run(
            [*start, code],
            cwd=project.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{code}\n{done.stdout}"


@pytest.mark.slow
def test_make_installs_goalreel_and_films(tmp_path, user_cache):
    """The clone is new, and the packages come from the network."""
    clone, environment = tmp_path / "clone", os.environ | {"XDG_CACHE_HOME": str(user_cache)}
    ignore = shutil.ignore_patterns(".venv*", ".git", "results*", ".snakemake", "site")
    shutil.copytree(REPOSITORY, clone, ignore=ignore)

    def printed(*command, folder=tmp_path) -> str:
        return subprocess.run(
            command, cwd=folder, env=environment, check=True, text=True, capture_output=True
        ).stdout

    make = "make", f"PYTHON={sys.executable}", "ARGS=--config reaches=20"
    printed(*make, folder=clone)
    assert (clone / "results" / "MountainCar-v0-pump" / "film.mp4").exists()
    programs = clone / ".venv" / "bin"
    version = printed(programs / "python", "-c", "import goalreel; print(goalreel.__version__)")
    assert printed(programs / "goalreel", "--version") == version
    assert printed(*make, folder=clone) == ""  # nothing is installed


@pytest.mark.parametrize("name", NAMES)
def test_tables_and_figures_equal_the_results(name):
    assert filled(text_of(name)) == text_of(name), "run: make update-tables"


@pytest.mark.parametrize("name", [*NAMES, ".github/SECURITY.md", "CHANGELOG.md"])
def test_links_have_existing_targets(name):
    text = text_of(name)
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    for link in links + re.findall(r' src="([^":]+)"', text):
        assert ((REPOSITORY / name).parent / link).exists(), link


def test_environments_page_agrees_with_the_registry():
    row = re.compile(r"^\| (.*?) \| (\w+) \| .+? \| (\w+) \| (\d+) \|$", re.M)
    rows = row.findall(text_of("docs/how-to/environments.md"))
    named = {env: row for row in rows for env in re.findall(r"`(.+?)`", row[0]) or ["Other-v0"]}
    for env, (_, stepped, film, size) in named.items():
        traits = registry.describe(env)
        own = traits.computed or env in registry.CLASSIC_CONTROL
        kind = "atlas" if traits.has_atlas else "blocks" if traits.few_blocks else "x264"
        assert (stepped == "goalreel", film, int(size)) == (own, kind, traits.shard_size), env


def test_targets_page_names_every_target():
    named = set(re.findall(r"`(\w+)`", text_of("docs/reference/targets.md")))
    assert {*STAGES, "all"} <= named


def options_in_commands() -> list[tuple[str, dict]]:
    """Return the `--config` options of each command in the pages, by page."""
    found = []
    for name in NAMES:
        lines = [
            line for kind, block in blocks(name) if kind == "sh" for line in block.splitlines()
        ]
        # Commands with a file of options are tested where the block runs.
        for line in filter(re.compile("snakemake (?!.*--configfile).*--config ").match, lines):
            words = shlex.split(line.partition("--config ")[2], comments=True)
            pairs = (word.partition("=") for word in words)
            options = {key: yaml.safe_load(value) for key, _, value in pairs}
            policy = options.get("policy", {})  # policies whose files are missing here
            is_missing = "dataset" in policy or re.search(r"\.(zip|onnx)", str(policy))
            if not is_missing and not lacks_zoo(line):
                found.append((name, options))
    return found


@pytest.mark.parametrize(("name", "options"), options_in_commands())
def test_options_in_commands_are_valid(name, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _, code in blocks(name):
        if file := named(code):
            (tmp_path / file).write_text(code)
    load_config(options)


@pytest.mark.slow
@pytest.mark.skipif(not MKDOCS.exists(), reason="needs mkdocs: make docs")
def test_site_builds_without_warning(tmp_path):
    command = [MKDOCS, "build", "-f", "docs/mkdocs.yml", "-d", tmp_path / "site"]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    first = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'src="images/films.webp"' in first  # of README.md
    reference = tmp_path / "site" / "reference"
    options = (reference / "options" / "index.html").read_text(encoding="utf-8")
    api = (reference / "python-api" / "index.html").read_text(encoding="utf-8")
    assert "max_attempts_per_reach" in options
    assert "goalreel.recorders.record_video.RecordVideo" in api
