"""A wrong configuration stops with one short message that names every fault."""

import hashlib
import subprocess
import sys
from importlib.util import find_spec

import pytest
import yaml
from conftest import of_shard
from hypothesis import given, settings
from hypothesis import strategies as st
from project import REPOSITORY

from goalreel.errors import GoalreelError
from goalreel.policies.policy import make_policy
from goalreel.policies.stable_baselines3 import ALGORITHMS
from goalreel.provenance.spec import canonical
from goalreel.training.dqn.settings import VARIANTS
from goalreel.workflow.config import load_config
from goalreel.workflow.options_table import options_table
from goalreel.workflow.specs import Specs

SCHEMA = REPOSITORY / "config.schema.yaml"
RANDOM = {"name": "random"}


def load(**given):
    return load_config(given, SCHEMA)


def faults(**given) -> str:
    with pytest.raises(GoalreelError) as error:
        load(**given)
    return str(error.value)


def test_config_yaml_holds_every_option_at_its_default():
    written = yaml.safe_load((REPOSITORY / "config.yaml").read_text(encoding="utf-8"))
    assert load(**written) == load() == load_config(written, SCHEMA)
    options = set(yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))["properties"])
    assert set(written) == options
    for section in ("policy", "film", "render", "overlay", "clips", "grid", "train", "encode"):
        assert set(written[section]) == set(load()[section])
    commented = (REPOSITORY / "config.yaml").read_text(encoding="utf-8")
    for option in ("# force: 1.0", "# file:", "# function: act", "# algorithm: PPO"):
        assert option in commented, "an option that fits some policies only"


def test_the_table_of_options_has_a_row_for_each():
    rows = options_table(SCHEMA).splitlines()[2:]
    names = {row.split("`")[1] for row in rows}
    written = yaml.safe_load((REPOSITORY / "config.yaml").read_text(encoding="utf-8"))
    for key, value in written.items():
        nested = isinstance(value, dict) and value
        assert names >= ({f"{key}.{option}" for option in value} if nested else {key})


def test_defaults_are_those_of_the_film():
    config = load()
    assert (config["reaches"], config["env"]) == (1000, "MountainCar-v0")
    assert 1000 % config["shard_size"] == 0
    assert config["policy"] == {"name": "pump", "epsilon": 0.0}
    ours = {"encoder": "auto", "quality": "balanced"}
    assert config["encode"] == ours | {"preset": None, "qp": None, "crf": None}


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({"reachs": 5}, ["reachs: unknown key", "did you mean 'reaches'?"]),
        ({"encode": {"pq": 5}}, ["encode.pq: unknown key", "qp"]),
        ({"encode": {"size": "tiny"}}, ["encode.size: unknown key"]),
        ({"reaches": 0}, ["reaches: 0 is out of range", "1 to 1000000000"]),
        ({"reaches": -1}, ["reaches: -1 is out of range"]),
        ({"reaches": 10**12}, ["reaches: 1000000000000 is out of range"]),
        ({"reaches": "many"}, ["reaches: 'many' is a text", "a whole number"]),
        ({"reaches": 1.5}, ["reaches: 1.5 is a fraction", "a whole number"]),
        ({"reaches": True}, ["reaches: true is true or false"]),
        ({"reaches": None}, ["reaches: null is nothing"]),
        ({"reaches": [3]}, ["reaches: [3] is a list"]),
        ({"shard_size": 0}, ["shard_size: 0"]),
        ({"seed": 2**53}, ["seed: 9007199254740992 is out of range"]),
        ({"env": "MountianCar-v0"}, ["env: unknown value", "did you mean 'MountainCar-v0'?"]),
        ({"policy": "pump"}, ["policy: 'pump' is a text", "a mapping"]),
        ({"policy": {"name": "pmup"}}, ["policy.name: unknown value 'pmup'", "'pump'"]),
        ({"policy": {"epsilon": 1.5}}, ["policy.epsilon: 1.5 is out of range", "0 to 1"]),
        ({"policy": {"force": 0.5}}, ["policy.force", "MountainCar-v0", "epsilon"]),
        (
            {"env": "MountainCarContinuous-v0", "policy": {"name": "near_optimal"}},
            ["'near_optimal' does not play MountainCarContinuous-v0", "pump, random"],
        ),
        (
            {"env": "MountainCarContinuous-v0", "policy": {"force": 0}},
            ["policy.force: 0.0 is out of range", "more than 0"],
        ),
        ({"encode": {"preset": "placebo"}}, ["encode.preset", "veryslow"]),
        ({"encode": {"qp": 99}}, ["encode.qp: 99 is out of range", "0 to 51"]),
        ({"encode": {"qp": "high"}}, ["encode.qp: 'high' is a text"]),
        ({"film": {"fps": 0}}, ["film.fps: 0"]),
        ({"film": {"show": "all"}}, ["film.show", "reaches, attempts"]),
        (
            {"film": {"reaches_per_file": 300}},
            ["film.reaches_per_file: 300", "such as 250, or null"],
        ),
        (
            {"reaches": 10**7, "shard_size": 1000},
            ["film.reaches_per_file: null", "170,000,000 frames", "up to 7895160"],
        ),
        ({"overlay": {"caption": "{rech}"}}, ["overlay.caption: unknown name 'rech'", "'reach'?"]),
        ({"overlay": {"caption": "{reach"}}, ["overlay.caption: '{reach' is no template"]),
        ({"overlay": {"caption": "é"}}, ["overlay.caption: 'é' holds a character", "ASCII"]),
        ({"clips": {"episode_trigger": "faled"}}, ["unknown value 'faled'", "'failed'", "all"]),
        ({"clips": {"episode_trigger": {"evry": 2}}}, ["episode_trigger.evry", "'every'"]),
        (
            {"clips": {"episode_trigger": {"best": 2, "worst": 2}}},
            ["names best and worst", "exactly one of every, best, worst, median"],
        ),
        ({"clips": {"episode_trigger": {"by": "steps"}}}, ["names none; allowed: exactly one"]),
        ({"clips": {"step_trigger": {"every": 0}}}, ["clips.step_trigger.every: 0", "1 to"]),
        ({"clips": {"step_trigger": [3, -1]}}, ["clips.step_trigger.1: -1 is out of range"]),
        ({"clips": {"step_trigger": "all"}}, ["clips.step_trigger: 'all' is a text", "a list"]),
        ({"clips": {"name_prefix": "a/b"}}, ["clips.name_prefix: 'a/b' cannot begin"]),
        ({"grid": {"rows": 0}}, ["grid.rows: 0 is out of range", "1 to 20"]),
        ({"grid": {"columns": 10_000}}, ["grid.columns: 10000 is out of range", "1 to 20"]),
        ({"grid": {"caption": "{sede}"}}, ["grid.caption: unknown name 'sede'", "'seed'?"]),
        ({"train": {"checkpoints": []}}, ["train.checkpoints: [] is empty", "a list of whole"]),
        ({"train": {"checkpoints": [5, 5]}}, ["train.checkpoints: [5, 5] names a value twice"]),
        ({"train": {"checkpoints": [0]}}, ["train.checkpoints.0: 0 is out of range"]),
        ({"overlay": {"hud": "maybe"}}, ["overlay.hud: 'maybe' is a text", "true or false"]),
        ({"overlay": {"title_card": -1}}, ["overlay.title_card: -1.0 is out of range", "0 to 60"]),
        ({"render": {"style": "vectr"}}, ["render.style", "did you mean 'vector'?"]),
        (
            {"render": {"width": 1920}},
            ["render.width: 1920", "style gymnasium", "allowed there: 600", "render.style: vector"],
        ),
        (
            {"env": "CartPole-v1", "policy": RANDOM, "render": {"style": "vector"}},
            ["render.style: 'vector' draws the Mountain Cars alone", "CartPole-v1: gymnasium"],
        ),
        (
            {"success": "foo"},
            ["success: unknown value 'foo'", "terminated, truncated; or a number"],
        ),
        ({"render": {"height": 600}}, ["render.height: 600", "allowed there: 400"]),
        ({"render": {"palette": "dark"}}, ["render.palette: 'dark'", "allowed there: light"]),
        (
            {"render": {"style": "vector", "width": 855}},
            ["render.width: 855 is odd", "an even number, 160 to 3840"],
        ),
        ({"render": {"style": "vector", "height": 4320}}, ["4320 is out of range", "to 2160"]),
        ({"render": {"width": 7680}}, ["render.width: 7680 is out of range"]),
        ({"render": {"style": "vector", "palette": "blue"}}, ["palette", "light, dark"]),
        ({"results": "a{b}c"}, ["results: 'a{b}c'", "wildcards"]),
        ({"results": ""}, ["results: '' is empty"]),
        ({"results": "-x"}, ["results: '-x' starts with '-'"]),
        ({"results": "~/x"}, ["results: '~/x' starts with '~'"]),
        ({"results": "a\0b"}, ["no file name can have"]),
        ({"results": ["a"]}, ['results: ["a"] is a list', "a text"]),
        ({"policy": {"epsilon": float("nan")}}, ["policy.epsilon: nan", "a finite one"]),
        ({"encode": {"crf": "nan"}}, ["encode.crf: nan", "a finite one"]),
        ({"reaches": float("inf")}, ["reaches: inf"]),
        ({"env": 5}, ["env: unknown value '5'"]),
        ({"policy": {"name": None}}, ["policy.name: null is nothing"]),
        ({"reaches": "٣"}, ["reaches: '٣' is a text"]),
        ({"env": "CartPole-v5"}, ["env: unknown value", "did you mean 'CartPole-v1'?"]),
        ({"env": "no_such_module:X-v0"}, ["env: 'no_such_module:X-v0' cannot be imported"]),
        ({"env": "MountainCar-v0", "env_kwargs": {"gravity": 1}}, ["allowed: goal_velocity"]),
        ({"env_kwargs": {"goal_velocity": 0.08}}, ["0.08 is out of range", "-0.07 to 0.07"]),
        ({"env_kwargs": {"goal_velocity": "fast"}}, ["'fast' is out of range"]),
        ({"env_kwargs": 3}, ["env_kwargs: 3 is a number", "a mapping"]),
        (
            {"env": "CartPole-v1", "policy": RANDOM, "env_kwargs": {"gravity": 1}},
            ["env_kwargs.gravity: CartPole-v1 has no such argument", "sutton_barto_reward"],
        ),
        (
            {"env": "CartPole-v1", "policy": RANDOM, "env_kwargs": {"render_mode": "human"}},
            ["env_kwargs.render_mode: is set by goalreel itself"],
        ),
        ({"max_steps": 0}, ["max_steps: 0 is out of range", "1 to 1000000"]),
        ({"success": "won"}, ["success: unknown value 'won'", "terminated, truncated"]),
        ({"success": True}, ["success: true is true or false", "a text or a number"]),
        ({"success": "inf"}, ["success: inf", "a finite one"]),
        (
            {"env": "CartPole-v1", "policy": {"epsilon": 0.0}},
            ["'pump' does not play CartPole-v1", "random, file, recorded, sb3"],
        ),
        ({"policy": {"name": "file"}}, ["policy.file: null", "needs the path"]),
        ({"policy": {"name": "file", "file": "x.py"}}, ["policy.file: 'x.py'", "No such file"]),
        ({"policy": {"name": "file", "file": "a\0b"}}, ["policy.file: 'a\\x00b'"]),
        ({"policy": {"name": "file", "file": ["x"]}}, ['policy.file: ["x"] is a list']),
        ({"policy": {"file": "x.py"}}, ["policy.file: 'pump' has no such parameter"]),
        ({"policy": {"algorithm": "ppo"}}, ["policy.algorithm: unknown value 'ppo'", "PPO, DQN"]),
        ({"reaches": 10**9}, ["4,000,000 shards", "shard_size: 250", "10000 or more"]),
    ],
)
def test_a_fault_names_the_key_the_value_and_what_is_allowed(given, parts):
    said = faults(**given)
    assert said.startswith("the configuration has a fault:\n  ")
    assert len(said.splitlines()) == 2
    for part in parts:
        assert part in said


def test_all_faults_are_told_at_once():
    said = faults(reachs=1, seed=-1, encode={"qp": 99, "preset": "fats"}, policy={"name": "x"})
    assert "has 5 faults" in said and len(said.splitlines()) == 6
    said = faults(env="CartPoll-v1", seed=-1)
    assert "has 2 faults" in said, "a policy is not held against an environment that is not known"
    continuous = {"env": "MountainCarContinuous-v0", "encode": {"qp": 99}}
    said = faults(policy={"name": "near_optimal"}, **continuous)
    assert "near_optimal" in said and "encode.qp: 99" in said


def test_text_from_the_command_line_gets_the_schemas_type():
    config = load(
        reaches="200",
        seed="7",
        encode={"qp": "31", "crf": "null"},
        film={"fps": "60"},
        policy={"epsilon": "0.25"},
    )
    assert (config["reaches"], config["seed"], config["film"]["fps"]) == (200, 7, 60)
    assert config["encode"]["qp"] == 31 and config["encode"]["crf"] is None
    assert config["policy"]["epsilon"] == 0.25
    assert load(success="475")["success"] == 475.0
    assert load(max_steps="null")["max_steps"] is None and load(max_steps="9")["max_steps"] == 9
    lake = load(
        env="FrozenLake-v1",
        env_kwargs={"is_slippery": "false", "map_name": "8x8"},
        policy={"name": "random"},
    )
    assert lake["env_kwargs"] == {"is_slippery": False, "map_name": "8x8"}
    assert load(encode={"crf": "18.5"})["encode"]["crf"] == 18.5
    assert load(reaches=1e3)["reaches"] == 1000 and isinstance(load(reaches=1e3)["reaches"], int)


def test_one_meaning_has_one_spelling():
    for one, other in (
        ({"policy": {"epsilon": 0}}, {"policy": {"epsilon": "-0.0"}}),
        ({"encode": {"crf": 20}}, {"encode": {"crf": "20.0"}}),
        ({"encode": {"qp": "1e1"}}, {"encode": {"qp": 10}}),
        ({"film": None, "policy": {}}, {}),
        ({"overlay": {"caption": "null"}}, {"overlay": {"caption": ""}}),
        ({"results": 2025}, {"results": "2025"}),
        ({"clips": {"step_trigger": ["5", 7.0]}}, {"clips": {"step_trigger": [5, 7]}}),
        (
            {"clips": {"episode_trigger": {"best": "5"}}},
            {"clips": {"episode_trigger": {"best": 5}}},
        ),
        ({"clips": {"episode_trigger": "null"}}, {"clips": {"episode_trigger": None}}),
        ({"overlay": {"hud": "True"}}, {"overlay": {"hud": True}}),
    ):
        assert canonical(load(**one)) == canonical(load(**other))


def test_a_policys_parameters_are_filled_in_where_they_fit():
    config = load(env="MountainCarContinuous-v0")
    assert config["policy"] == {"name": "pump", "epsilon": 0.0, "force": 1.0}
    assert "force" not in load()["policy"]
    # config.yaml's own epsilon: 0.0 stays when a user names another policy, and says nothing there.
    merged = load(env="CartPole-v1", policy={"name": "random", "epsilon": 0.0, "file": None})
    assert merged["policy"] == {"name": "random"}


def test_mountain_car_is_planned_without_gymnasium():
    code = (
        "import sys; from pathlib import Path\n"
        "from goalreel.workflow.config import load_config; from goalreel.workflow.specs import Specs\n"
        "specs = Specs(load_config({}, Path('../config.schema.yaml')), Path('.'))\n"
        "from types import SimpleNamespace; first = SimpleNamespace(shard='00000')\n"
        "[specs.spec(stage, first) for stage in ('encode', 'render', 'atlas')]\n"
        "assert not {'numpy', 'gymnasium', 'pygame', 'pandas'} & set(sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY / "scripts", capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr


def test_a_policys_file_is_watched_by_its_content(tmp_path):
    path = tmp_path / "policy.py"

    def spec(text, env="CartPole-v1"):
        path.write_text(text)
        config = load(env=env, policy={"name": "file", "file": str(path)})
        return Specs(config, REPOSITORY / "scripts").spec("simulate", of_shard(0))

    assert spec("a = 1") == spec("a = 1") != spec("a = 2")
    assert hashlib.sha256(b"a = 2").hexdigest() in spec("a = 2", "MountainCar-v0")


@pytest.mark.skipif(bool(find_spec("ale_py")), reason="ale-py is installed")
def test_atari_says_what_to_install():
    assert "needs the package ale-py" in faults(env="ALE/Breakout-v5", policy=RANDOM)


@pytest.mark.skipif(bool(find_spec("Box2D")), reason="Box2D is installed")
def test_an_environment_whose_library_is_missing_says_what_to_install():
    said = faults(env="LunarLander-v3", policy=RANDOM)
    assert "'LunarLander-v3' cannot be imported" in said and "pip install" in said


@pytest.mark.skipif(bool(find_spec("stable_baselines3")), reason="stable-baselines3 is installed")
def test_a_saved_model_says_what_to_install():
    said = faults(policy={"name": "sb3", "file": str(SCHEMA)})
    assert "needs the package stable-baselines3" in said and "pip install" in said


def test_only_the_vector_style_has_other_sizes_and_palettes():
    asked = {"style": "vector", "width": 3840, "height": 2160, "palette": "dark"}
    assert load(render=asked | {"width": "3840"})["render"] == asked
    fixed = {"style": "gymnasium", "width": 600, "height": 400, "palette": "light"}
    assert load(render=fixed) == load()
    said = faults(render={"width": 1280, "height": 720, "palette": "dark"})
    assert "has 3 faults" in said


def test_a_shard_may_be_larger_than_the_film():
    assert load(reaches=1, shard_size=5000)["shard_size"] == 5000


def test_every_policy_of_the_schema_is_known_to_the_code():
    schema = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))["properties"]["policy"]
    assert set(schema["x-fits"]) == set(schema["properties"]["name"]["enum"])
    for name in set(schema["x-fits"]) - {"file", "recorded", "sb3", "sarsa", "dqn"}:
        make_policy({"name": name, "epsilon": 0.5})
    with pytest.raises(GoalreelError, match="policy.file: nothing.py: no Python file"):
        make_policy({"name": "file", "file": "nothing.py", "function": "act"})
    with pytest.raises(GoalreelError, match="sarsa is learned first"):
        make_policy({"name": "sarsa", "epsilon": 0.0})
    with pytest.raises(GoalreelError, match="dqn is trained first"):
        make_policy({"name": "dqn", "epsilon": 0.0, "variant": "fast", "checkpoint": "best"})
    assert tuple(schema["properties"]["variant"]["enum"]) == tuple(VARIANTS)
    assert tuple(schema["properties"]["algorithm"]["enum"]) == ALGORITHMS
    with pytest.raises(GoalreelError, match="unknown policy 'pmup'"):
        make_policy({"name": "pmup", "epsilon": 0.5})


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
INNER = st.sampled_from(
    ["name", "epsilon", "force", "qp", "crf", "preset", "fps", "show", "style", "width", "file"]
)
SECTIONS = st.dictionaries(INNER, JUNK, max_size=3)
KEYS = st.sampled_from(
    ["reaches", "policy", "encode", "film", "results", "seed", "env", "render", "clips"]
    + ["env_kwargs", "max_steps", "success"]
)


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(KEYS | st.text(), JUNK | SECTIONS, max_size=4))
def test_any_junk_either_works_or_gets_a_message(junk):
    try:
        specs = Specs(load_config(junk, SCHEMA), REPOSITORY / "scripts")
        for stage in ("simulate", "render", "encode"):
            assert specs.spec(stage, of_shard(0))
    except GoalreelError as error:
        assert "fault" in str(error)
