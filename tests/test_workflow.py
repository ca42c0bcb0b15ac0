"""A run as a user sees it: what it makes, what it says, and what it writes where."""

import os
import subprocess
import sys

import pandas as pd
import pytest
from conftest import REPOSITORY


def test_summary_stands_at_the_end(filmed):
    last = filmed.said.rstrip().splitlines()[-4:]
    assert [line.split()[0] for line in last] == ["film", "shows", "tables", "seconds"]
    frames = pd.read_csv(filmed.folder / "results" / "episodes.csv")["frames"].sum()
    assert f"8 goal reaches in 8 episodes, {frames} frames" in last[1]
    for stage in ("simulate", "atlas", "render", "encode", "concat", "episodes"):
        assert stage in last[3]


def test_progress_is_short(filmed):
    assert len(filmed.said.splitlines()) < 40, filmed.said


def test_every_job_has_its_log_and_benchmark_and_nothing_is_written_elsewhere(filmed):
    results = filmed.folder / "results"
    rules, shards = ("simulate", "render", "encode"), ("00000", "00001")
    names = {f"{rule}/{shard}" for rule in rules for shard in shards}
    for kind in ("logs", "benchmarks"):
        found = {str(path.relative_to(results / kind)) for path in (results / kind).rglob("*.*")}
        assert {name[:-4] for name in found} == names | {"atlas", "concat", "episodes"}
    made = {path.name for path in filmed.folder.iterdir()}
    sources = {"Snakefile", "config.yaml", "config.schema.yaml", "scripts", "envs", "profiles"}
    assert made == sources | {"results", ".snakemake"}
    assert not list(results.rglob(".*")), "no temporary files stay"


@pytest.mark.parametrize("name", ['it\'s "here" – $HOME; é 雪 &', "deep/er/folder"])
def test_any_results_folder_works(project, name):
    config = {"results": name, "reaches": 2, "shard_size": 1}
    project.run(config=config)
    assert (project.folder / name / "film.mp4").is_file()
    assert project.jobs(config=config) == {}


def test_a_wrong_config_stops_before_any_job_with_one_message(project):
    said = project.fail(config={"reachs": 5, "encode": "{qp: 99}", "results": "a{b"})
    assert "the configuration has 3 faults" in said
    for part in ("did you mean 'reaches'?", "encode.qp: 99 is out of range", "wildcards"):
        assert part in said
    assert "Traceback" not in said
    assert not (project.folder / "results").exists()
    assert "Exception" not in said and len(said.splitlines()) < 10, said


def test_nested_values_on_the_command_line_get_their_types(filmed, project):
    assert project.jobs(config={"encode": "{qp: 31}", "policy": "{epsilon: 0.1}"})


def test_parsing_the_workflow_imports_nothing_heavy():
    code = (
        "import sys; sys.path.insert(0, 'scripts')\n"
        "import goalreel.workflow, goalreel.stages\n"
        "from goalreel.config import load_config; from pathlib import Path\n"
        "config = load_config({}, Path('config.schema.yaml'))\n"
        "goalreel.stages.Specs(config, 'scripts').atlas(None)\n"
        "print(*{'numpy', 'pandas', 'pygame', 'gymnasium', 'PIL'} & set(sys.modules))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == ""


@pytest.mark.skipif(os.name != "posix", reason="needs make")
def test_make_hands_its_options_to_snakemake():
    command = ["make", "--dry-run", "ARGS=--config reaches=20"]
    said = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert ".venv/bin/snakemake --config reaches=20" in said.stdout
