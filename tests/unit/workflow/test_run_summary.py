"""The summary names a better size of shards, and only where that would help."""

import os

import pytest

from goalreel.workflow.run_summary import shard_summary

OLD, STARTED, NEW = 1000, 2000, 3000


def summary(results, seconds: dict, reaches, size, cores=4, per_file=None, made=NEW) -> str:
    """Return the line for stages whose jobs all took as many seconds."""
    for stage, each in seconds.items():
        folder = results / "benchmarks" / stage
        folder.mkdir(parents=True)
        for shard in range(-(-reaches // size)):
            path = folder / f"{shard:05d}.tsv"
            path.write_text(f"s\th:m:s\tmax_rss\n{each}\t0:00:00\t50.1\n")
            os.utime(path, (made, made))
    config = {"reaches": reaches, "seeds": None, "shard_size": size}
    config["film"] = {"reaches_per_file": per_file}
    return shard_summary(results, config, cores, STARTED)


BRIEF = {"simulate": 0.4, "encode": 0.3}
PROPOSED = [
    # 7 * 30 / 0.4 = 525, but 4 cores want 4 shards.
    (BRIEF, {"reaches": 1000, "size": 7}, "143 new ones, 0.4 s a job: shard_size=250 would take"),
    (BRIEF, {"reaches": 100_000, "size": 100}, "shard_size=7500 would take fewer jobs (now 100)"),
    # Two digits suffice: 7 * 30 / 0.9 = 233.
    ({"simulate": 0.1, "encode": 0.9}, {"reaches": 1000, "size": 7}, "0.9 s a job: shard_size=230"),
    # A file holds whole shards.
    (BRIEF, {"reaches": 1000, "size": 5, "per_file": 100}, "shard_size=100 would"),
    # 100 * 30 / 900 = 3.3
    (
        {"simulate": 900},
        {"reaches": 250, "size": 100},
        "3 new ones, 15 min a job: shard_size=3 would",
    ),
    ({"simulate": 1, "encode": 900}, {"reaches": 100, "size": 100}, "1 new one, 15 min a job"),
    # No more than 1,000 shards.
    ({"simulate": 900}, {"reaches": 5000, "size": 100}, "shard_size=5 would use more cores"),
]


@pytest.mark.parametrize(("seconds", "run", "line"), PROPOSED, ids=range(len(PROPOSED)))
def test_a_better_size_is_named(tmp_path, seconds, run, line):
    assert line in summary(tmp_path, seconds, **run)


NOTHING_TO_SAY = {
    "shards of some seconds": ({"simulate": 5}, {"reaches": 1000, "size": 7}),
    "one job of a shard takes long enough": (
        {"simulate": 0.1, "encode": 8},
        {"reaches": 1000, "size": 7},
    ),
    "two shards": ({"simulate": 0.9}, {"reaches": 14, "size": 7}),
    "little in all": (BRIEF, {"reaches": 100, "size": 7}),
    "made by an earlier run": (BRIEF, {"reaches": 1000, "size": 7, "made": OLD}),
    "encoded again": ({"encode": 0.3}, {"reaches": 1000, "size": 7}),
    "as many cores as shards": (BRIEF, {"reaches": 1000, "size": 7, "cores": 143}),
    "one reach is long": ({"simulate": 900}, {"reaches": 10, "size": 1}),
    "1,000 shards and more": ({"simulate": 900}, {"reaches": 9000, "size": 9}),
    "no benchmark": ({}, {"reaches": 1000, "size": 7}),
}


@pytest.mark.parametrize("name", NOTHING_TO_SAY)
def test_no_size_is_named_where_it_would_not_help(tmp_path, name):
    seconds, run = NOTHING_TO_SAY[name]
    assert summary(tmp_path, seconds, **run) == ""
