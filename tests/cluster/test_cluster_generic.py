"""Films by a command that submits job scripts, here a qsub with an empty environment."""

import pytest
from conftest import FEW, SMALL, hashes
from project import CLUSTER_BIN, needs_cluster

import goalreel

pytestmark = [pytest.mark.slow, needs_cluster]
PROFILE = ("--workflow-profile", "profiles/cluster-generic", "--latency-wait", "10")

# Two runs in one workflow.
TWO = """
module cars:
    snakefile: "{snakefile}"
    config: {{"reaches": 2, "results": "cars"}}

use rule * from cars as cars_*

module poles:
    snakefile: "{snakefile}"
    config: {{"env": "CartPole-v1", "episodes": 2, "results": "poles"}}

use rule * from poles as poles_*

rule both:
    default_target: True
    input:
        "cars/trajectories/00000.npz",
        "poles/trajectories/00000.npz",
"""

# Options as for Grid Engine, with the job script last. It prints the job's id.
QSUB = """#!/bin/sh
echo "$@" >> '{folder}/submitted'
for script; do :; done
{before}
env -i PATH=/usr/bin:/bin HOME='{folder}' sh "$script" > '{folder}/output' 2>&1 &
echo $!
"""


@pytest.fixture
def project(project):
    """Return a fresh copy of the workflow, whose Snakemake has the cluster plugins."""
    project.python = CLUSTER_BIN / "python"
    return project


def with_qsub(tmp_path, before=":") -> dict:
    """Return the environment in which `qsub` is a script that runs `before` and then the job."""
    qsub = tmp_path / "bin" / "qsub"
    qsub.parent.mkdir()
    qsub.write_text(QSUB.format(folder=tmp_path, before=before))
    qsub.chmod(0o755)
    return {"PATH": f"{qsub.parent}:/usr/bin:/bin"}


def test_qsub_film_equals_local_film(project, tmp_path, filmed):
    project.run(*PROFILE, config=SMALL, **with_qsub(tmp_path))
    assert hashes(project.folder / "results") == hashes(filmed.folder / "results")
    assert project.jobs(config=SMALL) == {}
    submitted = (tmp_path / "submitted").read_text().splitlines()
    asked = "-l h_vmem=700M -l h_rt=00:18:00"  # the memory of encode, and the time of simulate, render and encode, twice
    assert len(submitted) == 2 and asked in submitted[0], submitted


@pytest.mark.parametrize(
    ("name", "edit", "what"),
    [
        ("config.yaml", "s/^seed: .*/seed: 7/", "configuration"),
        ("scripts/goalreel/environments/mountain_car.py", "s/0.001,/0.002,/", "code"),
    ],
)
def test_job_rejects_edits_after_its_submission(project, tmp_path, name, edit, what):
    """Otherwise its result would carry the planned spec."""
    environment = with_qsub(tmp_path, f"sed -i '{edit}' '{project.folder}/{name}'")
    target = "results/trajectories/00000.npz"
    project.fail(*PROFILE, "--retries", "0", target, config=FEW, **environment)
    log = (tmp_path / "output").read_text()
    assert f"The {what} changed after the run started" in log
    assert "Traceback" not in log
    assert not (project.folder / target).exists()


def test_jobs_of_two_modules_find_their_own_plan(project, tmp_path):
    (tmp_path / "Snakefile").write_text(TWO.format(snakefile=project.folder / "Snakefile"))
    project.run(*PROFILE, "-s", "../Snakefile", **with_qsub(tmp_path))
    assert (tmp_path / "submitted").read_text().count("\n") == 2
    for results, env in (("cars", "MountainCar-v0"), ("poles", "CartPole-v1")):
        made = goalreel.read_trajectories(project.folder / results / "trajectories" / "00000.npz")
        assert made.spec.config["env"] == env
