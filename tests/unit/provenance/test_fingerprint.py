"""A code fingerprint changes with what the code does, and with nothing else."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from project import REPOSITORY

from goalreel.provenance.fingerprint import _imported, _parse, _tree, fingerprint

SCRIPT = "from goalreel import one\nfrom goalreel.two import helper\n\nprint(helper(one))\n"
ONE = '"""About one."""\n\nLIMIT = 5\n'
TWO = """'About two.'


def helper(x):
    \"\"\"Help.\"\"\"
    import goalreel.three
    return x
"""


@pytest.fixture
def project(tmp_path):
    """Return a small project whose script reaches three modules of four."""
    package = tmp_path / "goalreel"
    package.mkdir()
    (tmp_path / "stage.py").write_text(SCRIPT)
    (package / "__init__.py").write_text("")
    for name, text in {"one": ONE, "two": TWO, "three": "X = 1\n", "four": "Y = 1\n"}.items():
        (package / f"{name}.py").write_text(text)
    return tmp_path


def fingerprint_of(folder: Path) -> str:
    for function in (_imported, _parse, _tree):
        function.cache_clear()
    return fingerprint(folder / "stage.py")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("goalreel/one.py", "LIMIT = 5", "LIMIT = 6"),
        ("goalreel/one.py", "LIMIT = 5", "LIMIT = 5.0"),
        ("goalreel/one.py", "LIMIT", "BOUND"),
        ("goalreel/two.py", "return x", "return -x"),
        ("goalreel/three.py", "X = 1", "X = None"),
        ("stage.py", "print(helper(one))", "print(one)"),
    ],
)
def test_code_changes_it(project, name, old, new):
    before = fingerprint_of(project)
    text = (project / name).read_text()
    assert old in text
    (project / name).write_text(text.replace(old, new))
    assert fingerprint_of(project) != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("goalreel/one.py", "About one.", "Something else."),
        ("goalreel/one.py", "LIMIT = 5", "# why five\nLIMIT = (\n    5\n)  # so\n\n\n"),
        ("goalreel/two.py", "Help.", "Help, really.\n\n    With more words.\n    "),
        ("goalreel/two.py", '    """Help."""\n', ""),
        ("goalreel/four.py", "Y = 1", "Y = 2"),
    ],
)
def test_words_layout_and_unused_modules_do_not(project, name, old, new):
    before = fingerprint_of(project)
    text = (project / name).read_text()
    assert old in text
    (project / name).write_text(text.replace(old, new))
    assert fingerprint_of(project) == before


@pytest.mark.parametrize(
    "statement",
    [
        "from . import four",
        "from .four import Y",
        "import goalreel.sub.inner",
        "from goalreel.sub import inner",
        "from goalreel.sub.inner import Z",
        "from .sub.inner import Z",
    ],
)
def test_every_kind_of_import_is_followed(project, statement):
    package = project / "goalreel"
    (package / "sub").mkdir()
    (package / "sub" / "__init__.py").write_text("")
    (package / "sub" / "inner.py").write_text("Z = 1\n")
    (package / "three.py").write_text(f"{statement}\n")
    before = fingerprint_of(project)
    for name in ("four.py", "sub/inner.py"):
        text = (package / name).read_text()
        (package / name).write_text(text.replace("1", "2"))
    assert fingerprint_of(project) != before


def test_an_import_of_no_module_is_an_error(project):
    (project / "goalreel" / "three.py").write_text("import goalreel.nothing\n")
    with pytest.raises(ImportError, match=r"goalreel\.nothing"):
        fingerprint_of(project)


def test_it_does_not_depend_on_where_the_project_stands(project, tmp_path):
    moved = tmp_path / "elsewhere"
    before = fingerprint_of(project)
    moved.mkdir()
    (project / "stage.py").rename(moved / "stage.py")
    (project / "goalreel").rename(moved / "goalreel")
    assert fingerprint_of(moved) == before


STAGES = ["simulate", "atlas", "render", "coded_atlas", "encode", "concat", "episodes", "films"]
STAGES += ["train", "learning", "clips", "grid", "swarm", "phase", "stills", "plots", "report"]
STAGES += ["verify", "dqn", "training_table", "pixels"]


def other_pythons() -> list[str]:
    """Return other supported Python interpreters of this machine."""
    roots = [Path(sys.base_prefix).parent, Path(sysconfig.get_config_var("prefix"), "bin")]
    found = {p for root in roots for p in root.glob("3.1[1-9]*/bin/python3.1[1-9]")}
    found |= {Path("/usr/bin", f"python3.{minor}") for minor in range(11, 20)}
    mine = f"python3.{sys.version_info.minor}"
    return sorted(str(p) for p in found if p.exists() and p.name != mine)


@pytest.mark.skipif(not other_pythons(), reason="no other supported Python on this machine")
def test_it_is_the_same_under_every_python():
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, 'scripts')\n"
        "from goalreel.provenance.fingerprint import fingerprint\n"
        f"for s in {STAGES}: print(fingerprint(Path('scripts', s + '.py')))"
    )
    mine = [fingerprint(REPOSITORY / "scripts" / f"{stage}.py") for stage in STAGES]
    for python in other_pythons():
        said = subprocess.run([python, "-c", code], cwd=REPOSITORY, capture_output=True, text=True)
        assert said.stdout.split() == mine, (python, said.stderr)
