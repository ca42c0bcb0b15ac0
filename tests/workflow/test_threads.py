"""A run's own process stays small, however many jobs it starts."""

import time

import psutil
import pytest


@pytest.mark.parametrize("options", [(), ("--max-jobs-per-timespan", "1000/5s")])
def test_no_thread_is_left_for_each_job(project, options):
    running = project.start("-j", "2", *options, config={"reaches": 12, "shard_size": 1})
    snakemake, seen = psutil.Process(running.pid), [0]
    while running.poll() is None:
        try:
            seen.append(snakemake.num_threads())
        except psutil.Error:
            break
        time.sleep(0.05)
    assert running.wait() == 0
    assert (project.folder / "results" / "film.mp4").is_file()
    if options:  # the user's own limit is kept, and its timers are
        assert max(seen) > 15
    else:
        assert 2 < max(seen) < 15
