"""The table of stages fits its programs, and jobs request enough, more with each attempt."""

import csv
import importlib.util
import inspect

import pytest
from project import REPOSITORY

from goalreel import cli
from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan
from goalreel.workflow.rules import Rule
from goalreel.workflow.stages import STAGES, sources

RUNS = [
    {},
    {"episodes": 10},
    {"encode": {"encoder": "x264"}},
    {"policy": "trained"},
    {"env": "CartPole-v1"},
    {"env": "CartPole-v1", "film": {"select": {"worst": 5}}},
]


def plan_of(**options) -> Plan:
    return Plan(load_config(options), REPOSITORY / "scripts")


def resources(plan: Plan, stage: str) -> dict:
    """Return the functions of a single run's job that give its memory and its run time."""
    return Rule(stage, stage, {"": plan}, plan.results).resources()


@pytest.mark.parametrize("options", RUNS, ids=str)
def test_stages_pass_exactly_the_required_arguments(options):
    plan = plan_of(**options)
    for stage in plan.stages:
        planned = STAGES[stage]
        given = {*sources(stage, plan.run), *planned.present(plan.run)}
        given |= {*planned.saves, *planned.limits, *(("threads",) if planned.threads > 1 else ())}
        offered = dict(list(inspect.signature(cli.program(stage)).parameters.items())[1:])
        needed = {name for name, one in offered.items() if one.default is one.empty}
        assert needed <= given <= {*offered}, stage


@pytest.mark.parametrize("rule", ["simulate", "render", "encode"])
def test_resources_double_per_attempt_and_scale_with_shard(rule):
    def asked(attempt=1, reaches=10**6, shard_size=250):
        needs = resources(plan_of(reaches=reaches, shard_size=shard_size), rule)
        return [need({}, attempt) for need in needs.values()]

    assert asked(3) == [2 * need for need in asked(2)] == [4 * need for need in asked()]
    assert asked()[0] < asked(shard_size=10_000)[0] and asked()[1] <= asked(shard_size=10_000)[1]
    assert asked() == asked(reaches=4 * 10**6)


def measured() -> list[tuple[str, dict, float]]:
    """Return the steps of benchmarks/results/scale.csv: rule, its run's options, its peak in MiB."""
    with (REPOSITORY / "benchmarks" / "results" / "scale.csv").open(encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table) if row["step"] in STAGES]
    names = {"reaches": "reaches", "shard_size": "shard size"}
    options = [{option: int(row[name]) for option, name in names.items()} for row in rows]
    return [(r["step"], o, float(r["peak, MiB"])) for r, o in zip(rows, options, strict=True)]


@pytest.mark.parametrize(("rule", "options", "peak"), measured(), ids=str)
def test_first_attempt_requests_measured_resources(rule, options, peak):
    """It includes the Snakemake process next to it, whose peak with all plugins was 180 MiB."""
    assert resources(plan_of(**options), rule)["mem_mb"]({}, 1) >= 1.05 * peak + 300


# Package, rule, environment, options, and for a random policy the peak of all processes of a job
# in MiB and its CPU time in milliseconds per frame.
DRAWN = [
    ("pygame", "encode", "CartPole-v1", {"reaches": 20}, 92, 3),
    ("Box2D", "simulate", "LunarLander-v3", {"reaches": 100, "shard_size": 100}, 106, 6),
    ("Box2D", "grid", "LunarLander-v3", {"reaches": 100, "shard_size": 100}, 385, 18),
    ("Box2D", "simulate", "CarRacing-v3", {"reaches": 4, "max_episode_steps": 60}, 133, 40),
    ("ale_py", "simulate", "ALE/Pong-v5", {"reaches": 2, "max_episode_steps": 400}, 52, 3),
    ("mujoco", "simulate", "HalfCheetah-v5", {"reaches": 4, "max_episode_steps": 40}, 707, 180),
]


@pytest.mark.parametrize(("package", "rule", "env", "options", "peak", "ms"), DRAWN)
def test_rendering_by_gymnasium_gets_memory_and_time(package, rule, env, options, peak, ms):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}: envs/locks/test.txt has it")
    plan = plan_of(env=env, success=0, policy={"name": "random"}, **options)
    assert resources(plan, rule)["mem_mb"]({}, 1) >= 1.05 * peak + 300
    frames = (options.get("max_episode_steps") or 100) * plan.config["shard_size"]
    assert resources(plan, rule)["runtime"]({}, 1) >= frames * ms / 60_000 + 1


def test_resources_depend_on_renderer_and_verify_batch():
    def asked(env, rule="simulate", threads=1, **options):
        plan = plan_of(env=env, success=0, policy={"name": "random"}, reaches=700, **options)
        return [asked({}, 1, threads) for asked in resources(plan, rule).values()]

    short, long = (asked("CartPole-v1", max_episode_steps=steps) for steps in (10, 20_000))
    assert long[0] > short[0] and long[1] > short[1]
    assert asked("CartPole-v1") == asked("CartPole-v1", max_episode_steps=500), "its own limit"
    one, many = (asked("CartPole-v1", "verify", threads) for threads in (1, 16))
    assert many[0] > one[0] + 1000 and many[1] < one[1] / 2
    assert asked("MountainCar-v0", "verify", 1) == asked("MountainCar-v0", "verify", 16)
