"""A fingerprint of the code that affects a stage's result.

It covers the stage's program and the package's modules that it imports, directly or not. Modules
that only move results, or that this run does not use, are not in it. It is computed from syntax
trees without importing the code, so comments, docstrings, layout and the texts of errors do not
change it. All supported Python versions compute the same fingerprint.
"""

import ast
import atexit
import contextlib
import hashlib
import json
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path

from goalreel.cli import plans
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing

_PACKAGE = "goalreel"
_PLUMBING = tuple(
    f"{_PACKAGE}.{name}"
    for name in ("errors", "cli", "stage_program", "files", "provenance", "workflow")
)
_SHAPING = f"{_PACKAGE}.files.svg_plot"  # in an excluded room, but it affects plots
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Results of `_read` by the sha256 of a file's content.
_TREES: dict[str, tuple[str, list[str]]] = {}


def fingerprint(script: Path, excluded: Collection[str] = ()) -> str:
    """Return the sha256 of the syntax trees of a program and its modules.

    `excluded` has the full names of modules and rooms that this run does not use. Raises
    GoalreelError if a source is not Python.
    """
    files = modules(script, (*_PLUMBING, *excluded))
    digests = (f"{name} {_read(path)[0]}\n" for name, path in sorted(files.items()))
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def modules(script: Path, excluded: Collection[str] = ()) -> dict[str, Path]:
    """Return the files of a program and of the modules that it imports, directly or not, by name.

    Modules of `excluded`, and those that only they import, are skipped. Raises GoalreelError as
    `fingerprint` does.
    """
    found, queue, root = {}, [(script.stem, script)], script.parent
    rooms = tuple(f"{name}." for name in excluded)
    while queue:
        name, path = queue.pop()
        if name not in found:
            found[name] = path
            used = (n for n in _read(path)[1] if n == _SHAPING or not f"{n}.".startswith(rooms))
            queue += [(n, file) for n in used if (file := _file(n, root))]
    return found


@cache
def _file(name: str, root: Path) -> Path | None:
    """Return a module's file, None for a package or a name in a module."""
    path = root.joinpath(*name.split(".")).with_suffix(".py")
    return path if path.is_file() else None


@cache
def _read(path: Path) -> tuple[str, frozenset[str]]:
    """Return the sha256 of a file's syntax tree, and the names that it imports from goalreel."""
    try:
        content = path.read_bytes()
        key = hashlib.sha256(content).hexdigest()
        if key in _TREES:
            return _TREES[key][0], frozenset(_TREES[key][1])
        tree = ast.parse(content)
    except (OSError, SyntaxError, ValueError) as error:  # ValueError: a null byte, in Python 3.11
        raise GoalreelError(f"{path}: Cannot be read as Python ({error}).") from None
    parts: list[str] = []
    imported: set[str] = set()
    _write(tree, parts.append, imported, False)
    own = frozenset(name for name in imported if name.split(".")[0] == _PACKAGE)
    _TREES[key] = hashlib.sha256("\n".join(parts).encode()).hexdigest(), sorted(own)
    return _TREES[key][0], own


def remember_trees(folder: Path) -> None:
    """Cache results of `_read` in a folder, which saves 0.2 s of each start."""
    own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    path = folder / f"syntax-trees-{own[:16]}.json"
    with contextlib.suppress(OSError, ValueError):
        _TREES.update(json.loads(path.read_text(encoding="ascii")))

    def save(known: int = len(_TREES)) -> None:
        if len(_TREES) > known:
            with contextlib.suppress(OSError), replacing(path) as temporary:
                temporary.write_text(json.dumps(_TREES), encoding="ascii")

    atexit.register(save)


def _write(value: object, put: Callable[[str], None], imported: set[str], raised: bool) -> None:
    """Write a part of a syntax tree with `put`, and add the full names that it imports."""
    # The text is the same for all Python versions: it skips empty fields, which new ones add.
    # raised: whether the part belongs to an error, whose texts are skipped
    kind = type(value)
    if isinstance(value, list):
        put(str(len(value)))
        for item in value:
            _write(item, put, imported, raised)
        return
    if not isinstance(value, ast.AST):
        put(repr(value))
        return
    is_text = kind is ast.Constant and isinstance(value.value, str)
    if raised and (kind is ast.JoinedStr or is_text):
        put("text")
        return
    put(kind.__name__)
    if kind is ast.Import:
        imported.update(alias.name for alias in value.names)
    elif kind is ast.ImportFrom:
        if value.level:
            raise GoalreelError(f"line {value.lineno}: A relative import. Name the module in full.")
        imported.update((value.module, *(f"{value.module}.{alias.name}" for alias in value.names)))
    is_error = kind is ast.Call and getattr(value.func, "id", "").endswith("Error")
    raised = raised or kind is ast.Raise or is_error
    for name, part in ast.iter_fields(value):
        is_body = name == "body" and kind in _DOCUMENTED
        if is_body and ast.get_docstring(value, clean=False) is not None:
            part = part[1:]
        # The place in the tree determines an expression's context.
        if part not in (None, []) and not isinstance(part, ast.expr_context):
            put(name)
            _write(part, put, imported, raised)
    put(")")


def sources_as_noted(folder: Path) -> bool | None:
    """Return whether the sources are as the workflow planned this job, None without a workflow."""
    # It takes milliseconds, and equal bytes have equal fingerprints.
    noted = [plan.get("sources") for plan in plans().values()]
    return sources_hash(folder) in noted if any(noted) else None


def sources_hash(folder: Path) -> str:
    """Return the sha256 of the names and bytes of the programs in `folder` and their package."""
    digest = hashlib.sha256()
    for path in sorted((*folder.glob("*.py"), *folder.glob(f"{_PACKAGE}/**/*.py"))):
        try:
            content = path.read_bytes()
        except OSError:  # an editor's lock file, or a file that was just deleted
            content = b""
        digest.update(f"{path.relative_to(folder).as_posix()}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
