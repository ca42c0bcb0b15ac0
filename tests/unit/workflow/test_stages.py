"""The table of stages and the rules agree; jobs ask for enough by measurement, and more each time."""

import csv
import importlib.util
import inspect
import re

import pytest
from project import REPOSITORY

from goalreel import cli
from goalreel.stage_program import MAKERS
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
    "DQN_POLICY": "train/{variant}/{seed}/policy.npz",
    "PIXELS_POLICY": "pixels/policy.npz",
    "DQN_METRICS": "train/{variant}/{seed}/metrics.json",
}


def needs(**options) -> Plan:
    return Plan(load_config(options), REPOSITORY / "scripts")


def test_every_rule_but_the_targets_is_a_stage_of_the_table():
    assert RULES.keys() - {"all", "training"} == STAGES.keys()


@pytest.mark.parametrize("rule", sorted(STAGES))
def test_a_rule_has_the_program_the_spec_the_needs_and_the_outputs_of_its_stage(rule):
    text = RULES[rule]
    assert f'"$SCRIPTS/{rule}.py"' in text
    for asked in ("spec=plan.spec", "mem_mb=plan.memory", "runtime=plan.minutes"):
        assert f'{asked}("{rule}")' in text
    (output,) = re.findall(r"^    output:\n((?:        .*\n)+)", text, re.M)
    paths = re.findall(r'f"{RESULTS}/([^"]+)"', output.replace("{{", "{").replace("}}", "}"))
    paths += [PLACES[name] for name in re.findall(r"\b[A-Z_]{4,}\b", output) if name in PLACES]
    # Where Gymnasium plays, a stage may leave more.
    assert sorted(paths) == sorted((STAGES | GYMNASIUM)[rule].outputs)


@pytest.mark.parametrize("rule", sorted(STAGES))
def test_a_rule_gives_its_program_what_the_program_requires(rule, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.program(rule).main(["--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0 and "Snakemake runs this program" in told
    given = set(re.findall(r" --([a-z-]+) \{", RULES[rule]))
    usage = told[: told.index("\n\n")]
    offered, optional = (set(re.findall(rf"{mark}--([a-z-]+)", usage)) for mark in ("", r"\["))
    assert offered - optional <= given <= offered


@pytest.mark.parametrize("stage", sorted(STAGES.keys() - {"training_table", "verify"}))
def test_a_program_checks_every_input_of_the_table(stage):
    names = inspect.signature(cli.program(stage)).parameters
    checked = {maker for name in names for maker in MAKERS.get(name, (name,))}
    assert checked >= {*STAGES[stage].inputs}


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


# Package, rule, environment, options, and of a random policy the peak of a job's processes together,
# MiB, and its CPU time, milliseconds a frame.
DRAWN = [
    ("pygame", "simulate", "CartPole-v1", {"reaches": 20}, 67, 3),
    ("pygame", "encode", "CartPole-v1", {"reaches": 20}, 92, 3),
    ("Box2D", "simulate", "LunarLander-v3", {"reaches": 100, "shard_size": 100}, 106, 6),
    ("Box2D", "encode", "LunarLander-v3", {"reaches": 100, "shard_size": 100}, 97, 3),
    ("Box2D", "clips", "LunarLander-v3", {"reaches": 100, "shard_size": 100}, 145, 0),
    ("Box2D", "grid", "LunarLander-v3", {"reaches": 100, "shard_size": 100}, 385, 18),
    ("Box2D", "stills", "LunarLander-v3", {"reaches": 100, "shard_size": 100}, 151, 0),
    ("Box2D", "simulate", "CarRacing-v3", {"reaches": 4, "max_steps": 60}, 133, 40),
    ("Box2D", "encode", "CarRacing-v3", {"reaches": 4, "max_steps": 60}, 141, 6),
    ("ale_py", "simulate", "ALE/Pong-v5", {"reaches": 2, "max_steps": 400}, 52, 3),
    ("ale_py", "encode", "ALE/Pong-v5", {"reaches": 2, "max_steps": 400}, 77, 2),
    ("mujoco", "simulate", "HalfCheetah-v5", {"reaches": 4, "max_steps": 40}, 707, 180),
    ("mujoco", "encode", "HalfCheetah-v5", {"reaches": 4, "max_steps": 40}, 108, 5),
]


@pytest.mark.parametrize(("package", "rule", "env", "options", "peak", "ms"), DRAWN)
def test_what_gymnasium_draws_has_room_and_time_for_its_frames(
    package, rule, env, options, peak, ms
):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}: envs/locks/test.txt has it")
    plan = needs(env=env, success=0, policy={"name": "random"}, **options)
    assert plan.memory(rule)(None, 1) >= 1.05 * peak + 300
    frames = (options.get("max_steps") or 100) * plan.config["shard_size"]
    assert plan.minutes(rule)(None, 1) >= frames * ms / 60_000 + 1


def test_needs_follow_what_draws_and_how_many_episodes_verify_plays_at_once():
    def asked(env, rule="simulate", threads=1, **options):
        plan = needs(env=env, success=0, policy={"name": "random"}, reaches=700, **options)
        return [get(rule)(None, 1, threads) for get in (plan.memory, plan.minutes)]

    short, long = (asked("CartPole-v1", max_steps=steps) for steps in (10, 20_000))
    assert long[0] > short[0] and long[1] > short[1]
    assert asked("CartPole-v1") == asked("CartPole-v1", max_steps=500), "its own limit"
    one, many = (asked("CartPole-v1", "verify", threads) for threads in (1, 16))
    assert many[0] > one[0] + 1000 and many[1] < one[1] / 2
    assert asked("MountainCar-v0", "verify", 1) == asked("MountainCar-v0", "verify", 16)
