"""What jobs ask of a cluster: enough by measurement, more at each attempt, and by every rule."""

import csv
import re

import pytest
from project import REPOSITORY

from goalreel.encoding.choice import choose
from goalreel.workflow.config import load_config
from goalreel.workflow.resources import Needs

RULES = {
    name: text
    for path in (REPOSITORY / "Snakefile", *(REPOSITORY / "rules").glob("*.smk"))
    for name, text in re.findall(
        r"^rule (\w+):\n(.*?)(?=^\S|\Z)", path.read_text(encoding="utf-8"), re.M | re.S
    )
}
SHARDED = ("simulate", "render", "encode")


def needs(**options) -> Needs:
    config = load_config(options, REPOSITORY / "config.schema.yaml")
    return Needs(config, choose(config))


@pytest.mark.parametrize("rule", sorted(RULES.keys() - {"all"}))
def test_every_rule_asks_for_its_own_memory_and_time(rule):
    if "shell:" in RULES[rule] and "needs." in RULES[rule]:
        assert f'mem_mb=needs.memory("{rule}")' in RULES[rule]
        assert f'runtime=needs.minutes("{rule}")' in RULES[rule]
    else:
        assert rule in local_rules(), "it asks for nothing, so it must run where Snakemake does"


def local_rules() -> set[str]:
    """Return the names after all `localrules:`, those of a cluster's job included."""
    text = (REPOSITORY / "rules" / "cluster.smk").read_text(encoding="utf-8")
    blocks = re.findall(r"^ *localrules:\n((?: +\w+,\n)+)", text, re.M)
    return set(re.findall(r"\w+", "".join(blocks)))


def test_a_clusters_job_runs_every_rule_itself():
    """Else the SLURM plugin starts srun and one more Snakemake for it."""
    assert local_rules() >= RULES.keys()


@pytest.mark.parametrize("rule", SHARDED)
def test_an_attempt_asks_for_twice_as_much_as_the_one_before(rule):
    for asked in (needs().memory(rule), needs().minutes(rule)):
        first = asked(None, attempt=1)
        assert [asked(None, attempt=n) for n in (2, 3)] == [2 * first, 4 * first]


@pytest.mark.parametrize("rule", SHARDED)
def test_a_shards_needs_grow_with_its_size_and_not_with_the_film(rule):
    def asked(**options):
        return [get(rule)(None, 1) for get in (needs(**options).memory, needs(**options).minutes)]

    small, large = (asked(reaches=10**6, shard_size=size) for size in (250, 10000))
    assert large[0] > small[0] and large[1] >= small[1]
    assert asked(reaches=4 * 10**6, shard_size=250) == small


def measured() -> list[tuple[str, dict, float]]:
    """Return the steps of benchmarks/results/scale.csv: rule, its run's options, its peak in MiB."""
    with (REPOSITORY / "benchmarks" / "results" / "scale.csv").open(encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table) if row["step"] in RULES]
    return [
        (
            row["step"],
            {"reaches": int(row["reaches"]), "shard_size": int(row["shard size"])},
            float(row["peak, MiB"]),
        )
        for row in rows
    ]


@pytest.mark.parametrize(("rule", "options", "peak"), measured(), ids=str)
def test_the_first_attempt_has_room_for_what_was_measured(rule, options, peak):
    """And for the Snakemake beside it, whose own peak, all plugins loaded, was 180 MiB."""
    assert needs(**options).memory(rule)(None, 1) >= 1.05 * peak + 300
