"""A fingerprint of the code that shapes a stage's result, found without importing any of it.

It covers the stage's program and every module of the package that it imports, directly or not,
but for plumbing, which carries results and shapes none, and for what the caller knows this run
does not use. It follows the syntax trees alone: comments, docstrings, layout and the texts of
raised errors are not in it, and every supported Python version finds the same.
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
_SHAPING = f"{_PACKAGE}.files.svg_plot"  # in a room of plumbing, but it says how plots look
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# What `_read` returns, by the sha256 of a file's content.
_TREES: dict[str, tuple[str, list[str]]] = {}


def fingerprint(script: Path, excluded: Collection[str] = ()) -> str:
    """Return a sha256 over the syntax trees of a program and of the modules that shape its result.

    Args:
        script: the program; the package is beside it.
        excluded: full names of modules and rooms that this run does not use.

    Raises:
        GoalreelError: a source is not Python, or imports a module that the package lacks.
    """
    files = modules(script, (*_PLUMBING, *excluded))
    digests = (f"{name} {_read(path)[0]}\n" for name, path in sorted(files.items()))
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def modules(script: Path, excluded: Collection[str] = ()) -> dict[str, Path]:
    """Return a program and the package's modules that it imports, directly or not, by name.

    Neither the modules and rooms of `excluded` nor what only they import is among them. Raises
    GoalreelError as `fingerprint`.
    """
    found, queue, root = {}, [(script.stem, script)], script.parent
    while queue:
        name, path = queue.pop()
        if name not in found:
            found[name] = path
            imported = (n for n in _read(path)[1] if not _is_left_out(n, excluded))
            queue += [(n, file) for n in imported if (file := _file(n, root))]
    return found


def _is_left_out(name: str, excluded: Collection[str]) -> bool:
    in_room = any(f"{name}.".startswith(f"{room}.") for room in excluded)
    return in_room and name != _SHAPING


@cache
def _file(name: str, root: Path) -> Path | None:
    """Return a module's file, None for a room or a name in a module. Raises GoalreelError."""
    path = root.joinpath(*name.split("."))
    if path.with_suffix(".py").is_file():
        return path.with_suffix(".py")
    if not path.is_dir() and not path.parent.with_suffix(".py").is_file():
        raise GoalreelError(f"{name}: Not a module of {root / _PACKAGE}. Correct the import.")
    return None


@cache
def _read(path: Path) -> tuple[str, frozenset[str]]:
    """Return a sha256 of a file's syntax tree, and the project's names that it imports."""
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
    """Keep what is read of each file in a folder, for later starts: it saves 0.2 s of each."""
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
    """Put a part of a syntax tree as every Python puts it, and add the full names that it imports.

    ast.dump changed with Python 3.13, and new versions add fields: empty ones are left out here.
    raised: whether this is part of an error, whose texts are left out.
    """
    kind = type(value)
    if isinstance(value, list):
        put(str(len(value)))
        for item in value:
            _write(item, put, imported, raised)
        return
    if not isinstance(value, ast.AST):
        put(repr(value))
        return
    if raised and (kind is ast.JoinedStr or _is_text(value)):
        put("text")
        return
    put(kind.__name__)
    if kind is ast.Import:
        imported.update(alias.name for alias in value.names)
    elif kind is ast.ImportFrom:
        if value.level:
            raise GoalreelError(f"line {value.lineno}: A relative import. Name the module in full.")
        imported.update((value.module, *(f"{value.module}.{alias.name}" for alias in value.names)))
    raised = raised or kind is ast.Raise or (kind is ast.Call and _is_error(value.func))
    for name, part in ast.iter_fields(value):
        if name == "body" and kind in _DOCUMENTED and part and _is_docstring(part[0]):
            part = part[1:]
        # An expression's context is said by its place in the tree.
        if part not in (None, []) and not isinstance(part, ast.expr_context):
            put(name)
            _write(part, put, imported, raised)
    put(")")


def _is_error(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id.endswith("Error")


def _is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and _is_text(statement.value)


def sources_as_noted(folder: Path) -> bool | None:
    """Return whether the sources are those that the workflow which started this job plans with.

    While all their bytes stay the same, so do all fingerprints: a job sees so within milliseconds
    that it runs what was planned. None where no workflow started this process.
    """
    noted = [plan.get("sources") for plan in plans().values()]
    return sources_hash(folder) in noted if any(noted) else None


def sources_hash(folder: Path) -> str:
    """Return a sha256 over the names and bytes of the programs in `folder` and of their package."""
    digest = hashlib.sha256()
    for path in sorted((*folder.glob("*.py"), *folder.glob(f"{_PACKAGE}/**/*.py"))):
        try:
            content = path.read_bytes()
        except OSError:  # an editor's lock, or a file just taken away
            content = b""
        digest.update(f"{path.relative_to(folder).as_posix()}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
