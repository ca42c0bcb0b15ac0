"""The project's files agree with one another."""

import re
import subprocess
import sys

import pytest
from project import REPOSITORY


def pins(name: str) -> dict[str, str]:
    """Return the pinned versions of a requirements file."""
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M))


def chosen(name: str) -> set[str]:
    """Return the packages that a requirements.in file names."""
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    return set(re.findall(r"^([a-zA-Z][\w-]+)", text, re.M))


# What training needs has no pins: PyTorch's builds differ by where they are installed from.
PINNED = sorted(
    path.stem for path in REPOSITORY.glob("*.in") if not path.stem.startswith("requirements-train")
)


@pytest.mark.parametrize("name", PINNED)
def test_every_choice_is_pinned_with_hashes_and_no_address(name):
    text = (REPOSITORY / f"{name}.txt").read_text(encoding="utf-8")
    assert chosen(f"{name}.in") <= set(pins(f"{name}.txt"))
    assert not re.search(r"https?:|file:|index-url", text)
    for block in re.split(r"\n(?=\S)", text.strip()):
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_the_tests_run_with_the_versions_of_a_run():
    run, test = pins("requirements.txt"), pins("requirements-test.txt")
    assert {name: test.get(name) for name in run} == run


def test_a_cluster_runs_with_the_versions_of_a_laptop():
    run, cluster = pins("requirements.txt"), pins("requirements-cluster.txt")
    # boto3, of the S3 plugin, takes no newer one.
    apart = {name for name in run if cluster.get(name) != run[name]}
    assert apart <= {"python-dateutil"}
    tested = pins("requirements-cluster-test.txt")
    assert {name: tested.get(name) for name in cluster} == cluster


def test_collectors_of_mario_have_the_same_versions_from_conda():
    text = (REPOSITORY / "envs" / "mario.yaml").read_text(encoding="utf-8")
    chosen_ones, pinned = chosen("requirements-mario.in"), pins("requirements-mario.txt")
    assert dict(re.findall(r"^ +- ([\w.-]+)==(\S+)$", text, re.M)) == {
        name: pinned[name] for name in chosen_ones
    }
    assert pinned["gymnasium"] == pins("requirements.txt")["gymnasium"]


def test_goalreel_can_be_imported_and_lists_what_it_offers(tmp_path):
    code = "import goalreel\nfor name in goalreel.__all__: print(getattr(goalreel, name).__name__)"
    environment = {"PYTHONPATH": str(REPOSITORY / "scripts")}
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert "open_cache" in said.stdout.split()


@pytest.mark.parametrize("script", [p.name for p in sorted((REPOSITORY / "scripts").glob("*.py"))])
def test_every_program_explains_itself(script):
    said = subprocess.run(
        [sys.executable, REPOSITORY / "scripts" / script, "--help"], capture_output=True, text=True
    )
    assert said.returncode == 0 and f"python scripts/{script}" in said.stdout


@pytest.mark.parametrize(
    ("page", "tables"),
    [
        ("README.md", "peers quality shards ablation wrappers training"),
        ("docs/training.md", "ablation environments wrappers pixels training"),
    ],
)
def test_the_tables_of_speeds_are_those_that_were_measured(page, tables):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    for name in tables.split():
        measured = (REPOSITORY / "benchmarks" / f"{name}.md").read_text(encoding="utf-8").strip()
        assert measured in text, name


def test_readme_has_no_gap_left_to_fill():
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert not re.search(r"@@|@[A-Z_]+@|TODO", readme)
    for link in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (REPOSITORY / link).exists(), link
