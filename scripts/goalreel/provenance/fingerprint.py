"""A fingerprint of the code that a stage runs, found without importing any of it.

It covers the stage's script and every module of the package that it imports, directly or not. It
changes with the syntax tree only: not with comments, docstrings, layout or times, and it is the
same under every supported Python version.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

_PACKAGE = "goalreel"
# The package's __init__ forwards names to users, and no stage takes any there. input_checks
# refuses what a stage is given or lets it pass as it is.
_SHAPES_NOTHING = ("__init__.py", "provenance/input_checks.py")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def fingerprint(script: Path) -> str:
    """Return a sha256 over the script's syntax tree and those of the project's modules it uses."""
    files = {path.relative_to(script.parent).as_posix(): path for path in _reachable(script)}
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\n{_tree(files[name])}\n".encode())
    return digest.hexdigest()


def _reachable(script: Path) -> set[Path]:
    """Return the script and every module of the package reached by import statements."""
    found, queue = set(), [script]
    while queue:
        path = queue.pop()
        if path not in found:
            found.add(path)
            queue += _imported(path, script.parent)
    return found


@cache
def _imported(path: Path, root: Path) -> tuple[Path, ...]:
    """Return the files of the project's modules that a file imports; `root` holds the package."""
    found = set()
    for node in ast.walk(_parse(path)):
        if isinstance(node, ast.Import):
            found.update(_file(alias.name, root) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, path, root)
            found.add(_file(base, root))
            # `from goalreel.files import npz` names a module; `... npz import read` does not.
            inner = (f"{base}.{alias.name}" for alias in node.names)
            found.update(_file(name, root) for name in inner if _exists(name, root))
    return tuple(sorted(found - {None, *(root / _PACKAGE / name for name in _SHAPES_NOTHING)}))


def _base(node: ast.ImportFrom, path: Path, root: Path) -> str:
    """Return the full name of the module that is imported from."""
    if not node.level:
        return node.module
    parts = path.relative_to(root).parts[: -node.level]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _exists(name: str, root: Path) -> bool:
    path = root.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _file(name: str, root: Path) -> Path | None:
    """Return a project module's file, None for any other. Raises ImportError if it has none."""
    if name.split(".")[0] != _PACKAGE:
        return None
    path = root.joinpath(*name.split("."))
    if not _exists(name, root):
        raise ImportError(f"{name} is no module of the project")
    module = path.with_suffix(".py")
    return module if module.is_file() else path / "__init__.py"


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


@cache
def _tree(path: Path) -> str:
    return _text(_parse(path))


def _text(node: object) -> str:
    """Write a syntax tree so that every Python writes the same: empty fields are left out.

    ast.dump is no help: its form changed with Python 3.13, and new versions add fields.
    """
    if isinstance(node, ast.AST):
        fields = [(name, getattr(node, name, None)) for name in node._fields]
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            fields = [(n, value[1:] if n == "body" else value) for n, value in fields]
        shown = (f"{n}={_text(value)}" for n, value in fields if value not in (None, []))
        return f"{type(node).__name__}({','.join(shown)})"
    if isinstance(node, list):
        return f"[{','.join(map(_text, node))}]"
    return repr(node)
