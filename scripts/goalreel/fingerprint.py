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
            queue += _imported(path, script.parent / _PACKAGE)
    return found


@cache
def _imported(path: Path, package: Path) -> tuple[Path, ...]:
    names = set()
    for node in ast.walk(_parse(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from goalreel import npz` and `from goalreel.npz import read` both name a module.
            names.update([node.module or "", *(f"{node.module}.{a.name}" for a in node.names)])
    # The package's __init__ is left out: it forwards names to users, and no stage takes any there.
    parts = [name.split(".") for name in names if name.startswith(f"{_PACKAGE}.")]
    modules = {package / f"{part[1]}.py" for part in parts}
    return tuple(sorted(path for path in modules if path.is_file()))


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
