"""A wrong configuration stops with one short message that names every fault."""

import re
import sys
from pathlib import Path

import gymnasium
import pytest
import yaml
from conftest import CONTINUOUS, DISCRETE, of_shard
from message_form import rejection
from project import REPOSITORY

from docs.options import filled_page, options_page, schema_file
from goalreel.provenance.spec import canonical
from goalreel.training.settings import with_defaults
from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan

SCHEMA = REPOSITORY / "config/config.schema.yaml"
RANDOM = {"name": "random"}


def load(**given):
    return load_config(given)


def faults(**given) -> str:
    return rejection(given)


def test_config_yaml_holds_every_option_at_its_default():
    written = yaml.safe_load((REPOSITORY / "config.yaml").read_text(encoding="utf-8"))
    assert load(**written) == load() == load_config(written)
    options = set(yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))["properties"])
    assert set(written) == options
    for section in ("policy", "film", "render", "overlay", "clips", "grid", "train", "encode"):
        assert set(written[section]) == set(load()[section])
    commented = (REPOSITORY / "config.yaml").read_text(encoding="utf-8")
    for option in ("# force: 1.0", "# file:", "# function: act", "# algorithm: null"):
        assert option in commented, "an option that fits some policies only"


def test_schema_file_and_options_page_equal_the_models():
    assert SCHEMA.read_text(encoding="utf-8") == schema_file()
    page = (REPOSITORY / "docs/reference/options.md").read_text(encoding="utf-8")
    assert page == filled_page(page)


def test_options_page_describes_every_option():
    page = options_page()
    options = yaml.safe_load(schema_file())["properties"]
    for key, option in options.items():
        if "properties" in option:
            assert f"\n## {key}\n\n{option['description']}\n" in page
        for name, inner in option.get("properties", {"": option}).items():
            (row,) = re.findall(rf"^\| `{key}{name and '.'}{name}` \|.*", page, re.M)
            assert row.endswith(f"{inner['description']} |") and inner["description"][-1] == "."
    assert "| `film.fps` | `null` | an integer from 1 to 240 or `null` |" in page
    assert "| `policy.checkpoint` | `best` | `best`, `last` or a number of decisions |" in page


@pytest.mark.parametrize(
    ("env", "size"),
    [("MountainCar-v0", 250), ("MountainCarContinuous-v0", 250), ("CartPole-v1", 50)]
    + [
        ("LunarLander-v3", 15),
        ("BipedalWalker-v3", 15),
        ("CarRacing-v3", 5),
        ("ALE/Pong-v5", 10),
        ("ale_py:ALE/Pong-v5", 10),
        ("FrozenLake-v1", 100),
    ],
)
def test_shard_size_depends_on_environment_and_not_on_run(env, size):
    if "ALE" in env:
        pytest.importorskip("ale_py")
    policy = {"name": "pump" if "Mountain" in env else "random"}
    small, large = (load(env=env, policy=policy, reaches=reaches) for reaches in (1, 10_000))
    assert small["shard_size"] == large["shard_size"] == size
    assert load(env=env, policy=policy, shard_size="null") == load(env=env, policy=policy)
    assert load(env=env, policy=policy, shard_size=3)["shard_size"] == 3
    shard = [Plan(c, REPOSITORY / "scripts").spec("encode", of_shard(0)) for c in (small, large)]
    assert [f'"count":{n}' in spec for n, spec in zip((1, size), shard, strict=True)] == [True] * 2
    option = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))["properties"]["shard_size"]
    assert f"{size} for" in option["description"]


@pytest.mark.parametrize(
    ("env", "fps"),
    [("MountainCar-v0", 30), ("CartPole-v1", None), ("FrozenLake-v1", None)]
    + [("Hasty-v0", 240), ("Timeless-v0", 30)],
)
def test_film_fps_defaults_to_render_fps(env, fps, monkeypatch):
    monkeypatch.setattr(gymnasium.envs.registration, "registry", gymnasium.registry.copy())
    metadata = {"render_modes": ["rgb_array"]}
    for name, more in (("Hasty-v0", {"render_fps": 1000.0}), ("Timeless-v0", {})):
        maker = type(name, (gymnasium.Env,), {"metadata": metadata | more})
        gymnasium.register(name, maker)
    policy = {"name": "pump" if "Mountain" in env else "random"}
    expected = fps or gymnasium.make(env).metadata["render_fps"]
    assert load(env=env, policy=policy)["film"]["fps"] == expected
    assert load(env=env, policy=policy, film={"fps": "null"})["film"]["fps"] == expected
    assert load(env=env, policy=policy, film={"fps": 25})["film"]["fps"] == 25


DEEP: list = []
for _ in range(1000):
    DEEP = [DEEP]
WHOLE = "is not allowed. Use an integer from 1 to 1000000000."
FOLDER = "is not allowed. Use a folder's path without {, } or <name>"
TIME, STACK = (f"gymnasium.wrappers:{name}Observation" for name in ("TimeAware", "FrameStack"))
CART = {"env": "CartPole-v1", "policy": RANDOM}


def trigger(value) -> dict:
    return {"clips": {"episode_trigger": value}}


def wrapped(*wrappers) -> dict:
    return CART | {"env_wrappers": list(wrappers)}


FAULTS = [
    ({"reachs": 5}, "reachs: Unknown option. Did you mean 'reaches'?"),
    ({"reaches": 0}, f"reaches: '0' {WHOLE}"),
    ({"reaches": "many"}, f"reaches: 'many' {WHOLE}"),
    ({"reaches": "٣"}, f"reaches: '٣' {WHOLE}"),
    ({"reaches": True}, f"reaches: 'true' {WHOLE}"),
    ({"reaches": float("inf")}, f"reaches: 'Infinity' {WHOLE}"),
    ({"reaches": 3, "episodes": 3}, "reaches: Cannot be combined with episodes. Set only one"),
    ({"seeds": "9-3"}, "seeds: '9-3' ends before it begins. Use a range"),
    ({"seeds": [3, 3]}, "seeds: '[3, 3]' is not allowed. Use a list of different values"),
    ({"check": {"mode": "statistical"}}, "check.tolerance: The mode 'statistical' needs a"),
    ({"seeds": 5}, "seeds: '5' is not allowed. Use a list of different values, each an"),
    ({"seeds": [2**53]}, "seeds.0: '9007199254740992' is not allowed. Use an integer from 0 to"),
    ({"seeds": "0-9"} | trigger("failed"), "clips.episode_trigger: 'failed' is "),
    ({"env": "MountianCar-v0"}, "env: Unknown id 'MountianCar-v0'. Did you mean 'MountainCar-"),
    ({"env": "no_such_module:X-v0"}, "env: No module 'no_such_module' for 'no_such_module:X-v0'"),
    ({"train": {"screen_size": 64}}, "train.screen_size: '64' is not allowed. Use a multiple of"),
    ({"policy": "pmup"}, "policy.name: Unknown value 'pmup'. Did you mean 'pump'?"),
    ({"policy": 3}, "policy: '3' is not allowed. Use a mapping such as {name: value}."),
    (
        {"policy": {"force": 0.5}},
        f"policy.force: The policy 'pump' has no such option in '{DISCRETE}'",
    ),
    ({"env": CONTINUOUS, "policy": "near_optimal"}, f"'near_optimal' does not play '{CONTINUOUS}'"),
    (
        CART | {"policy": "pump"},
        "policy.name: 'pump' does not play 'CartPole-v1'. Use random, trained",
    ),
    ({"env": CONTINUOUS, "policy": {"force": 0}}, "policy.force: '0.0' is not allowed. Use a num"),
    ({"policy": {"name": "python"}}, "policy.file: The policy 'python' needs a file."),
    ({"policy": {"name": "python", "file": "x.py"}}, "policy.file: 'x.py' cannot be read (No such"),
    ({"policy": {"checkpoint": -1}}, "policy.checkpoint: '-1' is not allowed. Use best, last or"),
    ({"render": {"scale": 3}}, "render.scale: '3' is not allowed for Mountain"),
    ({"render": {"camera": "track"}}, "render.camera: 'track' is only for Gymnasium's MuJoCo"),
    ({"render": {"quality": "draft"}}, "render.quality: 'draft' is only for"),
    ({"render": {"scale": 1.5}}, "render.scale: '1.5' is not allowed. Use an integer from"),
    ({"reaches": 10**7, "shard_size": 1000}, "Make several runs of at most 7,895,160."),
    ({"reaches": 10**9}, "shard_size: '250' gives 4,000,000 shards"),
    ({"overlay": {"caption": "{rech}"}}, "overlay.caption: Unknown field 'rech'. Did you mean 're"),
    ({"grid": {"caption": "{sede}"}}, "grid.caption: Unknown field 'sede'. Did you mean 'seed'?"),
    (trigger("faled"), "clips.episode_trigger: Unknown value 'faled'. Did you mean 'failed'?"),
    (trigger({"evry": 2}), "clips.episode_trigger.evry: Unknown option. Did you mean 'every'?"),
    (trigger({"best": 2, "worst": 2}), "Use exactly one key besides by."),
    ({"clips": {"step_trigger": {"every": 0}}}, "clips.step_trigger.every: '0' is not allowed"),
    ({"clips": {"step_trigger": [3, -1]}}, "clips.step_trigger.1: '-1' is not allowed. Use an"),
    ({"clips": {"name_prefix": "a\nb"}}, r"clips.name_prefix: 'a\nb' is not allowed. Use 1 to"),
    ({"overlay": {"hud": "maybe"}}, "overlay.hud: 'maybe' is not allowed. Use true or false."),
    *(({"results": name}, f"results: {name!r} {FOLDER}") for name in ("{b}", "<a>/b", "-x", "~/x")),
    ({"env_wrappers": [TIME]}, f"env_wrappers: Not supported for {DISCRETE}, which goalreel steps"),
    (
        {"sticky_actions": 0.25},
        f"sticky_actions: Not supported for {DISCRETE}, which goalreel steps",
    ),
    ({"sticky_actions": 2}, "sticky_actions: '2.0' is not allowed. Use a number from 0 to 1"),
    (wrapped("x"), "env_wrappers.0: 'x' is not allowed. Use module:callable"),
    (wrapped(TIME, f"{STACK}s"), "No callable 'FrameStackObservations' in gymnasium.wrappers."),
    (wrapped("no_such:X"), "env_wrappers.0: No module 'no_such' for 'no_such:X'"),
    (wrapped({STACK: {"stack": 4}}), f"Unknown argument of {STACK}. Did you mean 'stack_size'?"),
    (wrapped(STACK), f"env_wrappers: '{STACK}' cannot be made."),
    (wrapped({STACK: {"stack_size": float("inf")}}), "wrappers.0.stack_size: 'Infinity' is not"),
    ({"env_kwargs": {"gravity": 1}}, f"env_kwargs.gravity: Unknown argument of {DISCRETE}"),
    ({"env_kwargs": {"goal_velocity": 0.08}}, "env_kwargs.goal_velocity: '0.08' is not allowed"),
    (CART | {"env_kwargs": {"gravity": 1}}, "env_kwargs.gravity: Unknown argument of CartPole-v1."),
    ({"stills": {"episode_trigger": DEEP}}, "stills.episode_trigger.0: 'list' is not allowed. Use"),
]


@pytest.mark.parametrize(("given", "message"), FAULTS)
def test_error_names_key_value_and_allowed_values(given, message):
    said = faults(**given)
    assert message in said.splitlines()[0]


def test_all_errors_are_reported_at_once():
    said = faults(reachs=1, seed=-1, encode={"qp": 99, "preset": "fats"}, policy={"name": "x"})
    assert "has 5 errors" in said and len(said.splitlines()) == 6
    said = faults(env="CartPoll-v1", seed=-1)
    assert "has 2 errors" in said, "a policy is not held against an environment that is not known"
    continuous = {"env": "MountainCarContinuous-v0", "encode": {"qp": 99}}
    said = faults(policy={"name": "near_optimal"}, **continuous)
    assert "near_optimal" in said and "encode.qp: '99'" in said


SPELLINGS = [
    ({"reaches": "200", "seed": "7"}, {"reaches": 200, "seed": 7}),
    ({"reaches": 1e3}, {"reaches": 1000}),
    ({"encode": {"qp": "1e1", "crf": "null"}}, {"encode": {"qp": 10}}),
    ({"encode": {"crf": 20}}, {"encode": {"crf": "20.0"}}),
    ({"policy": {"epsilon": 0}}, {"policy": {"epsilon": "-0.0"}}),
    ({"success": "475"}, {"success": 475.0}),
    ({"max_episode_steps": "null"}, {}),
    ({"film": None, "policy": {}}, {}),
    ({"overlay": {"caption": "none"}}, {"overlay": {"caption": ""}}),
    ({"overlay": {"caption": "null"}}, {}),
    ({"overlay": {"hud": "True"}}, {"overlay": {"hud": True}}),
    ({"results": 2025}, {"results": "2025"}),
    ({"policy": "random"}, {"policy": {"name": "random"}}),
    ({"clips": {"step_trigger": ["5", 7.0]}}, {"clips": {"step_trigger": [5, 7]}}),
    (trigger({"best": "5"}), trigger({"best": 5})),
    (trigger("null"), trigger(None)),
    (
        {"env": "FrozenLake-v1", "env_kwargs": {"is_slippery": "false", "desc": ("SF", "HG")}},
        {"env": "FrozenLake-v1", "env_kwargs": {"is_slippery": False, "desc": ["SF", "HG"]}},
    ),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_equal_options_have_one_spelling(one, other):
    assert canonical(load(**one)) == canonical(load(**other))


def test_policy_parameters_get_defaults_if_they_apply():
    config = load(env="MountainCarContinuous-v0")
    assert config["policy"] == {"name": "pump", "epsilon": 0.0, "force": 1.0}
    assert "force" not in load()["policy"]
    # epsilon: 0.0 of config.yaml stays when a user names another policy, without an error.
    merged = load(env="CartPole-v1", policy={"name": "random", "epsilon": 0.0, "file": None})
    assert merged["policy"] == {"name": "random"}


@pytest.mark.parametrize("env", ["MountainCar-v0", "CartPole-v1", "LunarLander-v3", "Pong"])
@pytest.mark.parametrize("algorithm", ["dqn", "ppo"])
def test_training_preset_reads_back_as_it_was_written(env, algorithm):
    """A run file holds the preset, and must not start another training."""
    section = with_defaults(
        {**load()["train"], "algorithm": algorithm}, env.replace("Pong", "ALE/")
    )
    again = load(train=yaml.safe_load(yaml.safe_dump(section)))["train"]
    assert canonical(again) == canonical(section)


def test_spec_normalizes_wrappers_and_watches_own_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_wrapper.py").write_text("def wrap(env, by=1):\n    return env\n")

    def spec(*wrappers):
        config = load(env="CartPole-v1", policy=RANDOM, env_wrappers=list(wrappers))
        return Plan(config, REPOSITORY / "scripts").spec("simulate", of_shard(0))

    assert spec(TIME) == spec({TIME: None}) == spec({TIME: {}}) != spec()
    assert spec({STACK: {"stack_size": 4}}) == spec({STACK: {"stack_size": "4"}})
    assert spec({STACK: {"stack_size": 4}}) != spec({STACK: {"stack_size": 3}})
    own = spec("own_wrapper:wrap")
    (tmp_path / "own_wrapper.py").write_text("def wrap(env, by=2):\n    return env\n")
    assert spec("own_wrapper:wrap") != own


def test_missing_stable_baselines3_names_the_installation(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    said = faults(policy={"name": "sb3", "file": str(SCHEMA), "algorithm": "PPO"})
    assert "needs the package stable-baselines3" in said and "pip install" in said


def test_run_without_options_gets_policy_and_folder_of_its_env(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my agent.py").write_text("def act(obs):\n    return obs.argmax(1)\n", encoding="ascii")
    chosen = {
        "MountainCar-v0": ("pump", "results/MountainCar-v0-pump"),
        "CartPole-v1": ("random", "results/CartPole-v1-random"),
        "gymnasium:MountainCar-v0": ("random", "results/gymnasium-MountainCar-v0-random"),
    }
    for env, (name, folder) in chosen.items():
        config = load(env=env)
        assert (config["policy"]["name"], config["results"]) == (name, folder)
    config = load(env="CartPole-v1", policy="my agent.py")
    assert config["policy"] | {"extra_files": []} == {
        **{"name": "python", "file": "my agent.py", "function": "act"},
        **{"extra_files": [], "batch": None},
    }
    assert config["results"] == "results/CartPole-v1-my-agent"
    assert load(results="elsewhere")["results"] == "elsewhere"
