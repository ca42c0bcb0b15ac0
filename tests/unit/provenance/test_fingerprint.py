"""A code fingerprint changes only with code that shapes a result."""

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from project import REPOSITORY

from goalreel.cli import packed
from goalreel.errors import GoalreelError
from goalreel.provenance.fingerprint import (
    _file,
    _read,
    fingerprint,
    sources_as_noted,
    sources_hash,
)
from goalreel.stage_program import check_spec

SCRIPT = "from goalreel import one\nfrom goalreel.two import helper\n\nprint(helper(one))\n"
ONE = '"""About one."""\n\nLIMIT = 5\n'
TWO = """'About two.'


def helper(x):
    \"\"\"Help.\"\"\"
    import goalreel.three
    if x is None:
        raise ValueError(f"no {x}: give " "another")
    return x


def fault(x):
    return KeyError("no key", x)
"""


@pytest.fixture
def small(tmp_path):
    """Return a small project whose script reaches three modules of four."""
    package = tmp_path / "goalreel"
    package.mkdir()
    (tmp_path / "stage.py").write_text(SCRIPT)
    (package / "__init__.py").write_text("")
    for name, text in {"one": ONE, "two": TWO, "three": "X = '1'\n", "four": "Y = 1\n"}.items():
        (package / f"{name}.py").write_text(text)
    return tmp_path


def fingerprint_of(folder: Path) -> str:
    for function in (_file, _read):
        function.cache_clear()
    return fingerprint(folder / "stage.py")


CHANGES = [
    ("goalreel/one.py", "LIMIT = 5", "LIMIT = 6"),
    ("goalreel/one.py", "LIMIT = 5", "LIMIT = 5.0"),
    ("goalreel/one.py", "LIMIT", "BOUND"),
    ("goalreel/two.py", "return x", "return -x"),
    ("goalreel/two.py", "raise ValueError", "raise TypeError"),
    ("goalreel/two.py", '"no key", x', '"no key", -x'),
    ("goalreel/three.py", "'1'", "'2'"),
    ("stage.py", "print(helper(one))", "print(one)"),
]
WORDS = [  # layout, and what is not used
    ("goalreel/one.py", "About one.", "Something else."),
    ("goalreel/one.py", "LIMIT = 5", "# why five\nLIMIT = (\n    5\n)  # so\n\n\n"),
    ("goalreel/two.py", "Help.", "Help, really.\n\n    With more words.\n    "),
    ("goalreel/two.py", '    """Help."""\n', ""),
    ("goalreel/two.py", 'f"no {x}: give " "another"', '"nothing"'),
    ("goalreel/two.py", '"no key"', 'f"no key {1}"'),
    ("goalreel/four.py", "Y = 1", "Y = 2"),
]


@pytest.mark.parametrize(("name", "old", "new"), CHANGES + WORDS)
def test_fingerprint_changes_with_code_and_not_with_comments(small, name, old, new):
    before = fingerprint_of(small)
    text = (small / name).read_text()
    assert old in text
    (small / name).write_text(text.replace(old, new))
    assert (fingerprint_of(small) != before) == ((name, old, new) in CHANGES)


@pytest.mark.parametrize(
    "statement",
    [
        "import goalreel.sub.inner",
        "from goalreel.sub import inner",
        "from goalreel.sub.inner import Z",
    ],
)
def test_fingerprint_follows_every_kind_of_import(small, statement):
    package = small / "goalreel"
    (package / "sub").mkdir()
    (package / "sub" / "__init__.py").write_text("")
    (package / "sub" / "inner.py").write_text("Z = 1\n")
    (package / "three.py").write_text(f"{statement}\n")
    before = fingerprint_of(small)
    (package / "sub" / "inner.py").write_text("Z = 2\n")
    assert fingerprint_of(small) != before


def test_fingerprint_rejects_relative_imports(small):
    (small / "goalreel" / "three.py").write_text("from . import four\n")
    with pytest.raises(GoalreelError, match="relative import"):
        fingerprint_of(small)


STAGES = sorted(path.stem for path in (REPOSITORY / "scripts").glob("*.py"))


def other_pythons() -> list[str]:
    """Return other supported Python interpreters of this machine."""
    roots = [Path(sys.base_prefix).parent, Path(sysconfig.get_config_var("prefix"), "bin")]
    found = {p for root in roots for p in root.glob("3.1[1-9]*/bin/python3.1[1-9]")}
    found |= {Path("/usr/bin", f"python3.{minor}") for minor in range(11, 20)}
    mine = f"python3.{sys.version_info.minor}"
    return sorted(str(p) for p in found if p.exists() and p.name != mine)


@pytest.mark.skipif(not other_pythons(), reason="no other supported Python on this machine")
@pytest.mark.parametrize("python", other_pythons())
def test_fingerprint_is_the_same_under_every_python(python):
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, 'scripts')\n"
        "from goalreel.provenance.fingerprint import fingerprint\n"
        f"for s in {STAGES}: print(fingerprint(Path('scripts', s + '.py')))"
    )
    said = subprocess.run([python, "-c", code], cwd=REPOSITORY, capture_output=True, text=True)
    mine = [fingerprint(REPOSITORY / "scripts" / f"{stage}.py") for stage in STAGES]
    assert said.stdout.split() == mine, said.stderr


def planned_with(sources: str) -> str:
    return packed({"/results": {"sources": sources}})


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """Return a copy of the scripts."""
    monkeypatch.delenv("GOALREEL_PLANS", raising=False)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "scripts", tmp_path / "scripts", ignore=ignore)
    return tmp_path / "scripts"


@pytest.mark.parametrize(
    "name", ["render.py", "goalreel/rendering/layers.py", "goalreel/new/module.py"]
)
def test_fingerprint_sees_any_change_of_a_source(scripts, monkeypatch, name):
    assert sources_as_noted(scripts) is None
    (scripts / ".#render.py").symlink_to("nowhere")  # as Emacs locks a file
    monkeypatch.setenv("GOALREEL_PLANS", planned_with(sources_hash(scripts)))
    assert sources_as_noted(scripts)
    path = scripts / name
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as source:
        source.write("# a comment\n")
    assert sources_as_noted(scripts) is False


def test_job_rejects_spec_of_other_code_without_noted_sources(monkeypatch):
    """The check by syntax trees is skipped only if the bytes are the planned ones."""
    scripts = REPOSITORY / "scripts"
    spec = json.dumps({"stage": "atlas", "config": {}, "code": "0" * 64})
    for noted in (None, "f" * 64):
        if noted:
            monkeypatch.setenv("GOALREEL_PLANS", planned_with(noted))
        with pytest.raises(GoalreelError, match="changed after the run started"):
            check_spec(spec, "atlas")
    monkeypatch.setenv("GOALREEL_PLANS", planned_with(sources_hash(scripts)))
    assert check_spec(spec, "atlas").code == "0" * 64
