"""The table of stages and the rules agree; jobs ask for enough by measurement, and more each time."""

import csv
import re

import pytest
from project import REPOSITORY

from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan
from goalreel.workflow.stages import GYMNASIUM, STAGES

RULES = {
    name: text
    for path in (REPOSITORY / "Snakefile", *(REPOSITORY / "rules").glob("*.smk"))
    for name, text in re.findall(
        r"^rule (\w+):\n(.*?)(?=^\S|\Z)", path.read_text(encoding="utf-8"), re.M | re.S
    )
}
SHARDED = ("simulate", "render", "encode")
PLACES = {
    "TRAJECTORIES": "trajectories/{shard}.npz",
    "FRAMES": "frames/{shard}.npz",
    "SEGMENT": "segments/{shard}.mp4",
    "PART": "films/{part}.mp4",
    "SARSA_POLICY": "train/policy.npz",
    "DQN_POLICY": "train/{variant}/{seed}/policy.pt",
    "DQN_METRICS": "train/{variant}/{seed}/metrics.json",
}


def needs(**options) -> Plan:
    return Plan(load_config(options, REPOSITORY / "config.schema.yaml"), REPOSITORY / "scripts")


def test_every_rule_but_the_targets_is_a_stage_of_the_table():
    assert RULES.keys() - {"all", "training"} == STAGES.keys()


@pytest.mark.parametrize("rule", sorted(STAGES))
def test_a_rule_has_the_program_the_spec_the_needs_and_the_outputs_of_its_stage(rule):
    text = RULES[rule]
    assert f'"$SCRIPTS/{STAGES[rule].program or rule}.py"' in text
    for asked in ("spec=plan.spec", "mem_mb=plan.memory", "runtime=plan.minutes"):
        assert f'{asked}("{rule}")' in text
    (output,) = re.findall(r"^    output:\n((?:        .*\n)+)", text, re.M)
    paths = re.findall(r'f"{RESULTS}/([^"]+)"', output.replace("{{", "{").replace("}}", "}"))
    paths += [PLACES[name] for name in re.findall(r"\b[A-Z_]{4,}\b", output) if name in PLACES]
    # Where Gymnasium plays, a stage may leave more.
    assert sorted(paths) == sorted((STAGES | GYMNASIUM)[rule].outputs)


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
