"""The end of a failed run as a user sees it, and runs that are refused."""

import fcntl

from conftest import DISCRETE


def test_the_same_command_finishes_a_failed_run(project):
    """Also where Snakemake itself is to say nothing; the cause says what to raise."""
    config = {"reaches": 4, "shard_size": 1, "env": DISCRETE, "policy": "{epsilon: 0.45}"}
    options = ["-j", "2", "--quiet", "all", "--keep-going"]
    output = project.fail(*options, config=config | {"max_attempts": 1})
    assert "simulate 0" in output and "max_attempts" in output
    last = output.rstrip().splitlines()[-1]
    assert last.startswith("Run the same command again to continue. Snakemake's log: ")
    project.run(*options, config=config)
    assert (project.folder / "results" / "film.mp4").is_file()


def test_a_second_run_in_the_same_results_is_refused_by_name(project):
    """By its own message, since Snakemake's lock is in another folder."""
    results = project.folder / "results"
    lock = results / "logs" / "run.lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write("process 7 on node, started in /other\n")
        other.flush()
        for more in ((), ("all", "--delete-all-output")):
            said = project.fail(*more, config={"reaches": 2})
            assert "another run is at work in it (process 7 on node, started in /other)" in said
            assert "Traceback" not in said
    assert [path for path in results.rglob("*") if path.is_file()] == [lock]
    project.run(config={"reaches": 2})
    assert (results / "film.mp4").is_file()
    assert f"started in {project.folder}" in lock.read_text()
    project.run("all", "--delete-all-output", config={"reaches": 2})
    assert not (results / "film.mp4").exists()
