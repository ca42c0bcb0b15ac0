"""Locks, pyproject.toml, environments and code agree."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from project import REPOSITORY
from recordings import said_by

import goalreel
from goalreel.provenance.fingerprint import modules
from goalreel.workflow.stages import STAGES

LOCKS = REPOSITORY / "envs" / "locks"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
CHOICES = {"run": PROJECT["project"]["dependencies"]}
CHOICES |= PROJECT["project"]["optional-dependencies"] | PROJECT["dependency-groups"]


def pins(name: str) -> dict[str, str]:
    """Return the pinned versions of a lock."""
    text = (LOCKS / f"{name}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M))


def chosen(name: str) -> set[str]:
    """Return the packages of pyproject.toml for a run, an extra or a group."""
    groups = [choice["include-group"] for choice in CHOICES[name] if isinstance(choice, dict)]
    named = {re.match(r"[\w-]+", choice)[0] for choice in CHOICES[name] if isinstance(choice, str)}
    return named.union(*map(chosen, groups))


def test_extras_and_groups_have_locks_unless_builds_differ():
    apart = {"environments", "train-test", "lerobot-test"}
    assert {path.stem for path in LOCKS.iterdir()} == CHOICES.keys() - apart


@pytest.mark.parametrize("path", sorted(LOCKS.iterdir()), ids=lambda path: path.stem)
def test_locks_pin_hashes_and_no_addresses(path):
    text = path.read_text(encoding="utf-8")
    assert chosen(path.stem) <= set(pins(path.stem))
    assert not re.search(r"https?:|file:|index-url", text)
    for block in re.split(r"\n(?=\S)", text.strip()):
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_test_lock_has_versions_of_run_lock():
    run, test = pins("run"), pins("test")
    assert {name: test.get(name) for name in run} == run


def test_cluster_lock_has_versions_of_run_lock():
    run, cluster = pins("run"), pins("cluster")
    # boto3, which the S3 plugin needs, accepts no newer version.
    apart = {name for name in run if cluster.get(name) != run[name]}
    assert apart <= {"python-dateutil"}
    tested = pins("cluster-test")
    assert {name: tested.get(name) for name in cluster} == cluster


DISTRIBUTIONS = {"PIL": "pillow", "pygame": "pygame-ce", "imageio_ffmpeg": "imageio-ffmpeg"}
DISTRIBUTIONS["yaml"] = "pyyaml"
# Users of models, datasets, Super Mario Bros and MuJoCo install these.
THEIRS = {"stable_baselines3", "onnxruntime", "minari", "stable_retro", "mujoco", "OpenGL"}
THEIRS |= {"pydantic_core", "typing_extensions"}  # they come with pydantic
THEIRS |= {"pettingzoo"}
# Imported by name if a game needs it, or by a film only for a network of the user's own.
BY_NAME = {"training": {"ale-py", "torch"}}


def imported_packages(paths: Iterable[Path]) -> set[str]:
    """Return the distributions that modules import."""
    names = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module.split(".")[0])
    return {DISTRIBUTIONS.get(n, n) for n in names - set(sys.stdlib_module_names) - {"goalreel"}}


def of_stage(stage: str) -> list[Path]:
    """Return the modules that a stage's program can import."""
    # A job imports none of the planning modules that the table of stages names.
    planning = "goalreel.environments.gymnasium_ids" if stage == "report" else ""
    found = modules(REPOSITORY / "scripts" / f"{stage}.py", [planning])
    # All stages import captions, which needs no matplotlib.
    return [path for name, path in found.items() if name != "goalreel.files.svg_plot"]


def test_dependencies_equal_the_imported_packages():
    imported = imported_packages((REPOSITORY / "scripts").rglob("*.py"))
    assert imported - chosen("train") - THEIRS | {"snakemake"} == chosen("run")


@pytest.mark.parametrize("environment", ["film", "report", "training"])
def test_conda_environments_pin_the_imports_of_their_stages(environment):
    text = (REPOSITORY / "envs" / f"{environment}.yaml").read_text(encoding="utf-8")
    packages = set(re.findall(r"^ {6}- (\S+)$", text, re.M))
    stages = [name for name, stage in STAGES.items() if stage.conda == environment]
    paths = {path for stage in stages for path in of_stage(stage)}
    # Snakemake itself runs where the workflow is planned.
    expected = imported_packages(paths) - THEIRS - {"torch", "snakemake"} | BY_NAME.get(
        environment, set()
    )
    assert {package.split("==")[0] for package in packages} == expected
    pinned = {f"{name}=={version}" for name, version in pins("train").items()}
    assert packages <= pinned


PUBLIC = {"GoalreelError", "RecordVideo", "check", "film", "open_cache", "read_trajectories"}


def test_package_offers_public_names_and_imports_lazily():
    program = """
import goalreel, rlcompleter
offered = rlcompleter.Completer(vars()).attr_matches("goalreel.")
print(*{name.removeprefix("goalreel.").rstrip("()") for name in offered if "__" not in name})
names = {}
exec("from goalreel import *", names)
print(*names.keys() - {"__builtins__"})
print(goalreel.open_cache.__name__)
"""
    completed, starred, looked_up = said_by(program).splitlines()
    assert set(completed.split()) == set(starred.split()) == PUBLIC
    assert looked_up == "open_cache"
    program = "import sys, goalreel; dir(goalreel); print('numpy' in sys.modules)"
    program += "; goalreel.open_cache; print('gymnasium' in sys.modules)"
    assert said_by(program) == "False\nFalse\n"


def test_changelog_begins_with_the_version():
    changes = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.M)[1] == goalreel.__version__
