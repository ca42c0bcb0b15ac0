"""Films by a real SLURM have the bytes of a local run, also after cancels, kills and edits."""

import shutil
import signal
from pathlib import Path

import pytest
from conftest import FEW, hashes
from project import CLUSTER_BIN, needs_cluster
from slurm_cluster import Cluster

pytestmark = [pytest.mark.slow, needs_cluster]
FILM = {"reaches": 200, "shard_size": 25}
# The profile as shipped, except for the polling interval and features that this SLURM lacks.
QUICK = ("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "10")
WITHOUT_ACCOUNTS = ("--slurm-no-account", "--slurm-status-command", "squeue")
SLURM = ("--workflow-profile", "profiles/slurm", *QUICK, *WITHOUT_ACCOUNTS)
TRAJECTORIES = "results/trajectories/00000.npz"


@pytest.fixture(scope="module")
def cluster():
    """Return a running SLURM."""
    started = Cluster()
    yield started
    started.stop()


@pytest.fixture
def project(project, cluster):
    """Return a fresh copy of the workflow, whose Snakemake has the cluster plugins."""
    project.python = CLUSTER_BIN / "python"
    return project


def start(project, cluster, *options, config):
    return project.start(*options, config=config, **cluster.environment)


def run(project, cluster, *options, config):
    return project.run(*options, config=config, **cluster.environment)


def compare(project, once, config, *options) -> None:
    """Compare all outputs with those of a local run, byte by byte."""
    name = f"local film of {config['reaches']}"
    local = once(name, lambda fresh: fresh.run("-j", "2", config=config))
    assert hashes(project.folder / "results") == hashes(local.folder / "results")
    assert project.jobs(*options, config=config) == {}, "a later run has nothing to do"
    assert not list((project.folder / "results").rglob(".*")), "no temporary files stay"


def test_slurm_film_after_cancellations_equals_local_film(project, cluster, once):
    options = (*SLURM, "--group-components", "shard=4")  # two jobs of four shards
    before = cluster.jobs()
    process = start(project, cluster, *options, config=FILM)
    made = project.folder / "results" / "trajectories"
    cluster.wait(lambda: list(made.glob("*.npz")), "a shard is simulated", process)
    first, second = cluster.jobs(but=before)
    cluster.command("scancel", first)
    others = [*before, first, second]
    again = cluster.wait(lambda: cluster.jobs(but=others), "it is tried again", process)
    assert cluster.facts(first)["JobState"] == "CANCELLED"
    asked = [int(cluster.facts(job)["MinMemoryNode"].rstrip("M")) for job in (first, again[0])]
    assert asked[1] == 2 * asked[0]
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode != 0, output
    cluster.wait(lambda: not cluster.jobs("pending,running,completing"), "its jobs are cancelled")
    run(project, cluster, *options, config=FILM)
    compare(project, once, FILM)


def timeless(results) -> dict[str, str]:
    """Return the hashes of the results of a suite without files that hold times."""
    files = hashes(results).items()
    kinds = {"report", "logs", "benchmarks"}
    return {name: digest for name, digest in files if not kinds & set(Path(name).parts)}


def test_slurm_suite_equals_local_suite(project, cluster, once):
    suite = {"suite": "{env: [MountainCar-v0, CartPole-v1], policy: [random, pump.py]}"}
    config = suite | {"episodes": 4, "shard_size": 2, "max_episode_steps": 20}

    def make(fresh):
        (fresh.folder / "pump.py").write_text(PUMP)
        return fresh.run("-j", "2", config=config)

    (project.folder / "pump.py").write_text(PUMP)
    before = cluster.jobs()
    run(project, cluster, *SLURM, config=config)
    assert len(cluster.jobs(but=before)) < 4 * (2 * 3 + 6), "the jobs of a shard are grouped"
    local = once("local suite", make)
    assert timeless(project.folder / "results") == timeless(local.folder / "results")
    assert project.jobs(*SLURM, config=config) == {}, "a later run has nothing to do"


def test_suite_survives_the_death_of_a_node(project, cluster, once):
    values = "{env: [MountainCar-v0, CartPole-v1], seed: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}"
    config = {"suite": values, "episodes": 4, "shard_size": 2, "max_episode_steps": 20}
    options = (*SLURM, "--group-components", "shard=1", "-j", "6")
    process = start(project, cluster, *options, config=config | {"policy": "random"})
    busy = ("squeue", "-h", "--nodelist=node2", "--states=running", "-o", "%i")
    lost = cluster.wait(lambda: cluster.command(*busy).split(), "node2 works", process)
    cluster.kill_node("node2")
    try:
        # SLURM 22.05 shows the node as down only if all of its cores were busy.
        requeued = lambda: all(cluster.facts(job)["Restarts"] == "1" for job in lost)  # noqa: E731
        cluster.wait(requeued, "the jobs of node2 are requeued", process)
        output, _ = process.communicate()
        assert process.returncode == 0, output
    finally:
        cluster.nodes["node2"] = cluster.start_node("node2")
    local = once(
        "local suite of 20",
        lambda fresh: fresh.run("-j", "2", config=config | {"policy": "random"}),
    )
    assert timeless(project.folder / "results") == timeless(local.folder / "results")


def test_preempted_jobs_run_again(project, cluster, once):
    options = (*SLURM, "--group-components", "shard=4")
    before = cluster.jobs()
    process = start(project, cluster, *options, config=FILM)
    made = project.folder / "results" / "trajectories"
    cluster.wait(lambda: list(made.glob("*.npz")), "a shard is simulated", process)
    lost = cluster.jobs("running", but=before)
    whole = ("--partition=urgent", "--nodes=3", "--exclusive", "--wait", "--wrap", "sleep 5")
    cluster.command("sbatch", "--output=/dev/null", *whole)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert lost and {cluster.facts(job)["Restarts"] for job in lost} == {"1"}
    compare(project, once, FILM)


def test_full_queue_only_delays_jobs(project, once):
    cluster = Cluster("MaxJobCount=3\nMinJobAge=20")
    log = cluster.folder / "slurmctld.log"
    try:
        run(project, cluster, *SLURM, "--group-components", "shard=1", config=FILM)
        assert "MaxJobCount" in log.read_text(), "a job waited for its submission"
    finally:
        cluster.stop()
    compare(project, once, FILM)


PUMP = "def act(observations):\n    return (observations[:, 1] > 0).astype(int)\n"
GREEDY = """
import time
import numpy as np

held = np.ones(450 * 2**17)  # 450 MiB
time.sleep(3)  # SLURM looks once a second


def act(observations):
    return (observations[:, 1] > 0) * 2
"""


def test_job_out_of_memory_is_retried_with_more(project, cluster):
    (project.folder / "greedy.py").write_text(GREEDY)
    config = FEW | {"policy": "{name: python, file: greedy.py}"}
    before = cluster.jobs()
    run(project, cluster, *SLURM, TRAJECTORIES, config=config)
    first, second = (cluster.facts(job) for job in cluster.jobs(but=before))
    assert first["JobState"] != "COMPLETED" == second["JobState"]
    assert (first["MinMemoryNode"], second["MinMemoryNode"]) == ("500M", "1000M")
    (log,) = (project.folder / ".snakemake" / "slurm_logs").rglob("*.log")
    assert "exceeded memory limit" in log.read_text(), "of the first attempt"
    assert (project.folder / TRAJECTORIES).is_file()


@pytest.mark.skipif(shutil.which("rsync") is None, reason="needs rsync (apt-get install rsync)")
def test_film_through_node_disks_equals_local_film(project, cluster, once, tmp_path):
    scratch = tmp_path / "node"
    options = ("--workflow-profile", "profiles/slurm-scratch", *QUICK, *WITHOUT_ACCOUNTS)
    options += ("--remote-job-local-storage-prefix", f"{scratch}/$SLURM_JOB_ID")
    run(project, cluster, *options, config=FEW)
    assert len(list(scratch.iterdir())) == 2, "a group of shards, and concat"
    assert not list(scratch.rglob("*.npz")) + list(scratch.rglob("*.mp4")), "nothing stays there"
    compare(project, once, FEW, *options)
