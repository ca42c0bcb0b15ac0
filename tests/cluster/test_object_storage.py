"""With results on S3, the film is the same, nothing is made twice, and errors name addresses."""

import io
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest
from conftest import SMALL, hashes
from object_store import BUCKET, StoredProject, s3_server
from PIL import Image
from project import CLUSTER_BIN, job_counts, needs_cluster

pytestmark = [pytest.mark.slow, needs_cluster]
ADDRESS = f"s3://{BUCKET}/run/results"

# Two scripts that replace a scheduler of pods. A job starts in an empty folder, without the
# user's environment, and ends with a status.
SUBMIT = """\
#!/bin/sh
pod=$(mktemp -d {pods}/pod.XXXXXX); cp "$1" "$pod/job.sh"; cd "$pod"
(env -i PATH={programs}:/usr/bin:/bin HOME="$pod" sh job.sh > output 2>&1; echo $? > status) \\
    > /dev/null 2>&1 &
echo "$pod"
"""
STATUS = """\
#!/bin/sh
case $(cat "$1/status" 2> /dev/null) in '') echo running;; 0) echo success;; *) echo failed;; esac
"""
EVERY_RULE = ("simulate", "atlas", "coded_atlas", "render", "encode", "concat", "episodes")


@pytest.fixture(scope="module")
def pods(tmp_path_factory) -> Path:
    """Return a folder with the programs that submit a job and print its status."""
    folder = tmp_path_factory.mktemp("pods")
    for name, script in {"submit": SUBMIT, "status": STATUS}.items():
        (folder / name).write_text(script.format(pods=folder, programs=CLUSTER_BIN))
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def stored(tmp_path_factory, user_cache, pods) -> StoredProject:
    """Return a project with a finished film on a server, made by a job that shares no disk.

    The profile is that for Kubernetes, with another executor. A single job makes everything, so
    that Snakemake starts only once.
    """
    folder = tmp_path_factory.mktemp("stored")
    with s3_server(folder / "server.log") as address:
        (folder / "project").mkdir()
        project = StoredProject(folder / "project", user_cache, address)
        groups = ["--groups", *(f"{rule}=all" for rule in EVERY_RULE)]
        project.output = project.run(*in_pods(pods), *groups, profile="kubernetes", config=SMALL)
        yield project


def in_pods(pods: Path) -> list[str]:
    """Return the options that run jobs by the two programs, without a shared disk."""
    return [
        *("--executor", "cluster-generic", "--cluster-generic-submit-cmd", f"{pods}/submit"),
        *("--cluster-generic-status-cmd", f"{pods}/status", "--shared-fs-usage", "none"),
        *("--job-deploy-sources", "--seconds-between-status-checks", "1"),
    ]


def test_jobs_without_shared_disk_make_the_bytes_of_a_local_run(stored, filmed, pods):
    """The job, which starts in an empty folder, gets the files of the workflow from S3."""
    assert stored.hashes() == hashes(filmed.folder / "results")
    (pod,) = pods.glob("pod.*")
    assert (pod / "scripts" / "goalreel" / "environments" / "mountain_car.py").is_file()
    here = {path.name for path in files(stored.folder)}
    assert here == {"run.lock", "config.yaml"}  # no job needs it


def test_preflight_names_file_that_remote_jobs_would_lack(stored, pods):
    policy = "def act(observations):\n    return (observations[:, 1] > 0) * 2\n"
    (stored.folder / "mine.py").write_text(policy)  # not tracked by git
    config = SMALL | {"policy": "{name: python, file: mine.py}"}
    start = partial(stored.fail, "--forceall", *in_pods(pods), profile="kubernetes", config=config)
    untracked = start()
    assert "mine.py: Jobs on other machines get only files that git tracks" in untracked
    (stored.folder / "mine.py").write_text(f"{policy}#{10_000_000 * ' '}")
    subprocess.run(["git", "add", "mine.py"], cwd=stored.folder, check=True)
    large = start()
    assert "mine.py: Over 10 MB, so Snakemake does not send it" in large
    assert all(w not in untracked + large for w in ("Traceback", "Submitted job"))


def test_bucket_holds_logs_and_benchmarks(stored, filmed):
    local = {str(path.relative_to(filmed.folder / "results")) for path in files(filmed.folder)}
    assert set(stored.names()) >= local - {"config.yaml", "logs/run.lock"}
    assert b" frames" in stored.read("logs/concat.log")
    assert stored.read("benchmarks/concat.tsv").startswith(b"s\th:m:s\t")


def files(folder: Path) -> list[Path]:
    return [path for path in (folder / "results").rglob("*") if path.is_file()]


def test_summary_names_the_address_of_the_film(stored):
    summary = addresses(stored.output)
    assert summary["concat"].startswith(f"{ADDRESS}/film.mp4")
    assert summary["episodes"].startswith(f"{ADDRESS}/episodes.csv")


def addresses(output: str) -> dict[str, str]:
    """Return the addresses in a run's summary, by rule."""
    return dict(re.findall(rf"^ *(\w+)  ({ADDRESS}/.*)$", output, re.M))


@pytest.fixture(scope="module")
def grown(stored) -> tuple[dict, str, str]:
    """Return the hashes before a rerun and a longer film, and the output of both.

    Both use another executor in the same folder.
    """
    before, rerun = stored.hashes(), stored.run(config=SMALL)
    return before, rerun, stored.run("all", "stills", "report", config=SMALL | {"reaches": 10})


def test_bucket_rerun_does_nothing_and_growth_adds_shards(stored, grown):
    before, rerun, output = grown
    assert "Nothing to be done" in rerun
    views = {"stills": 1, "plots": 1, "grid": 1, "swarm": 1, "report": 1}
    shard = {"simulate": 1, "render": 1, "encode": 3}  # title cards name the total
    assert job_counts(output) == shard | views | {"concat": 1, "episodes": 1}
    after = stored.hashes()
    kept = {name for name in before if re.search(r"(trajectories|frames)/0000[01]\.|atlas", name)}
    assert len(kept) == 6 and {n: after[n] for n in kept} == {n: before[n] for n in kept}
    # A directory is one object per file.
    assert after["report/film.mp4"] == after["film.mp4"] != before["film.mp4"]
    assert b"<html" in stored.read("report/index.html")
    assert Image.open(io.BytesIO(stored.read("stills/poster.png"))).width > 100
    summary = addresses(output)
    views = {"report": "report", "grid": "grid.mp4", "stills": "stills/poster.png"}
    for view, name in views.items():
        assert summary[view].startswith(f"{ADDRESS}/{name}")


def test_corrupt_object_is_named_deleted_and_rebuilt(stored, grown):
    config = SMALL | {"reaches": 10}
    before = stored.hashes()
    content = bytearray(stored.read("trajectories/00001.npz"))
    content[len(content) // 2] ^= 1
    stored.write("trajectories/00001.npz", bytes(content))
    stored.delete("segments/00000.mp4")
    stored.delete("film.mp4")
    output = stored.fail("--keep-going", config=config)
    last = output[output.index(" failed, ") :]
    assert f"{ADDRESS}/trajectories/00001.npz: It " in last, last
    assert f"the next run makes it again: {ADDRESS}/trajectories/00001.npz" in last, last
    assert "trajectories/00001.npz" not in stored.names()
    assert "Logging error" not in output
    stored.run(config=config)
    assert film_of(stored.hashes()) == film_of(before)


def test_lock_check_and_suite_find_their_tables_in_the_bucket(stored):
    stored.run("lock", config=SMALL)
    assert "goalreel.lock" in stored.names()
    stored.run("check", config=SMALL)
    assert "tables.json" in stored.names()
    suite = {"suite": "{policy: [pump, random]}", "episodes": 2, "max_episode_steps": 20}
    stored.run("all", "compare", config=suite)
    assert {"index.html", "compare/MountainCar-v0/compare.mp4"} <= {*stored.names()}
    assert "verify: Reads results on a disk. Start" in stored.fail("verify", config=SMALL)


def film_of(results: dict[str, str]) -> dict[str, str]:
    """Return the hashes of the film and its tables, which a plain run makes."""
    views = ("report", "plots", "stills", "grid.mp4", "swarm.mp4")
    return {name: sha for name, sha in results.items() if name.split("/")[0] not in views}
