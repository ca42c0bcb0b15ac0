"""Imports in the package go one way, along the order of its rooms."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from project import REPOSITORY
from recordings import said_by

SCRIPTS = REPOSITORY / "scripts"
PACKAGE = SCRIPTS / "goalreel"
TOP = {"__init__", "arrays", "cli", "errors"}
OFFERED = {"sb3", "trackers", "vector"}  # modules of public names, as the package itself is
STARTS = {"__main__", "stage_program"}  # starts programs of all rooms
# A room imports from itself and from earlier ones. The modules at the top come first.
ROOMS = ["files", "mp4", "h264", "provenance", "environments", "policies", "simulation"]
ROOMS += ["rendering", "encoding", "films", "recorders", "views", "report", "verification"]
ROOMS += ["training", "configuration", "workflow"]
LEARNS = {"train"}  # the program that trains


def name_of(path: Path) -> str:
    """Return a module's full name, or a room's for its __init__.py."""
    return ".".join(path.relative_to(SCRIPTS).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(path: Path) -> set[str]:
    """Return the package's modules that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= full & MODULES.keys() or {node.module}
    return found & MODULES.keys()


def place(module: str) -> int:
    """Return a module's place in the order of the rooms."""
    parts = module.split(".")
    return -1 if len(parts) == 1 or parts[1] in TOP else ROOMS.index(parts[1])


def test_modules_are_in_rooms():
    assert {path.stem for path in PACKAGE.glob("*.py")} == TOP | OFFERED | STARTS
    folders = {path.parent.relative_to(PACKAGE).parts[0] for path in PACKAGE.glob("*/**/*.py")}
    assert folders == set(ROOMS)


def test_rooms_have_at_most_15_modules_and_a_docstring():
    for folder in {path.parent for path in PACKAGE.glob("*/**/*.py")}:
        modules = [path for path in folder.glob("*.py") if path.stem != "__init__"]
        assert len(modules) <= 15, folder
        purpose = ast.get_docstring(ast.parse((folder / "__init__.py").read_bytes()))
        assert purpose and len(purpose.splitlines()) <= 2, folder


def test_modules_import_only_earlier_rooms():
    pairs = [
        (name, other)
        for name, path in MODULES.items()
        if name.removeprefix("goalreel.") not in {"goalreel", *OFFERED, *STARTS}
        for other in imports(path)
    ]
    assert not [(name, other) for name, other in pairs if place(other) > place(name)]


def test_modules_have_no_circular_imports():
    try:
        TopologicalSorter({name: imports(path) for name, path in MODULES.items()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_only_training_imports_training():
    def learns(path: Path) -> bool:
        return any(name.startswith("goalreel.training") for name in imports(path))

    rooms = {name.split(".")[1] for name, path in MODULES.items() if learns(path)}
    programs = {path.stem for path in SCRIPTS.glob("*.py") if learns(path)}
    assert rooms <= {"training", "configuration", "workflow"} and programs <= LEARNS


def test_parsing_the_workflow_imports_nothing_heavy():
    program = """
import sys; from pathlib import Path
import goalreel.workflow.hooks
from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan
plan = Plan(load_config({}), Path(sys.argv[1]))
[plan.spec(stage, {"shard": "00000"}) for stage in ("encode", "render", "atlas")]
print(*{"numpy", "pandas", "pygame", "gymnasium", "PIL", "torch"} & set(sys.modules))
"""
    assert said_by(program, str(SCRIPTS)).strip() == ""
