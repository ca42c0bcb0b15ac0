"""Snakemake's process keeps few threads, however many jobs it starts."""

import pytest

COUNTED = """
onsuccess:
    import threading
    print("timers:", sum(isinstance(t, threading.Timer) for t in threading.enumerate()))
"""


LIMIT = "--max-jobs-per-timespan", "1000/60s"


@pytest.mark.parametrize("options", [(), pytest.param(LIMIT, marks=pytest.mark.slow)])
def test_jobs_leave_no_threads(project, options):
    with (project.folder / "Snakefile").open("a") as snakefile:
        snakefile.write(COUNTED)
    said = project.run("results/trajectories/00000.npz", *options, config={"reaches": 1})
    assert "timers: " in said
    assert ("timers: 0" in said) == (not options)  # a user's limit stays, with its timers
