"""If an environment cannot run, the error before the run says what to type."""

import importlib
import re
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from conftest import CONTINUOUS
from message_form import rejection
from recordings import said_by

from goalreel.environments import gymnasium_ids
from goalreel.environments.gymnasium_ids import (
    ENDLESS,
    environment_errors,
    environment_tools,
    find_spec,
)
from goalreel.errors import GoalreelError
from goalreel.workflow.config import load_config

PACKAGES = ("ale_py", "minigrid", "shimmy", "gymnasium_robotics", "highway_env", "Box2D", "mujoco")
PACKAGES += ("miniworld", "pybullet_envs_gymnasium")
# Runs in a separate process, since imported environments stay registered.
ASK = f"""
import sys
sys.modules |= dict.fromkeys({PACKAGES}, None)
from goalreel.environments.gymnasium_ids import creator_errors, environment_errors
for env in sys.argv[1:]:
    errors = environment_errors(env, {{}}) or creator_errors(env, {{}})
    print(*(message.splitlines()[0] for _, message in errors))
"""
# The work of parsing a Snakefile, if the first steps of its run are cached.
PARSE = """
import sys
from pathlib import Path
from goalreel.workflow.config import read_config
from goalreel.workflow.plan import Plan
for env in sys.argv[1:]:
    plan = Plan(read_config({"env": env}), Path("scripts"))
    plan.spec("encode", {"shard": "00000"})
print({"Box2D", "mujoco", "pygame"} & {*sys.modules})
"""
MISSING = {
    "ALE/Breakout-v5": "pip install ale-py",
    "PongNoFrameskip-v4": "pip install ale-py",
    "Breakout-v4": "pip install ale-py",
    "MiniGrid-Empty-5x5-v0": "pip install minigrid",
    "LunarLander-v3": "pip install box2d",
    "HalfCheetah-v5": "pip install 'gymnasium[mujoco]'",
    "dm_control/walker-walk-v0": "pip install 'shimmy[dm-control]'",
    "walker-walk": "use env=dm_control/walker-walk-v0, after pip install 'shimmy[dm-control]'",
    "FetchReach-v4": "pip install gymnasium-robotics",
    "highway-v0": "pip install highway-env",
    "MiniWorld-Hallway-v0": "pip install miniworld",
    "AntBulletEnv-v0": "use env=pybullet_envs_gymnasium:AntBulletEnv-v0",
}
# The variables that packages read when they are imported.
SCREENS = """
import os
for name in ("DISPLAY", "MUJOCO_GL", "PYGLET_HEADLESS", "SDL_VIDEODRIVER"):
    os.environ.pop(name, None)
from goalreel.environments.gymnasium_ids import find_spec
find_spec("Pendulum-v1")
import pygame
pygame.display.init()
print(pygame.display.get_driver(), os.environ["MUJOCO_GL"], os.environ["PYGLET_HEADLESS"])
"""


def test_id_of_missing_package_names_the_installation():
    answers = said_by(ASK, *MISSING).splitlines()
    for (env, command), answer in zip(MISSING.items(), answers, strict=True):
        assert command in answer and env in answer


@pytest.mark.skipif(sys.platform != "linux", reason="takes Linux's drivers")
def test_packages_render_without_a_screen():
    """With SDL's driver `dummy`, highway-env's frames would be black."""
    assert said_by(SCREENS).splitlines()[-1] == "offscreen egl true"


def test_parse_imports_no_environment_class():
    """The import takes 0.1 s or more, and each job on a cluster parses the Snakefile."""
    assert said_by(PARSE, "LunarLander-v3", "HalfCheetah-v5").strip() == "set()"


@pytest.mark.parametrize(
    ("env", "other"),
    [
        ("LunarLander-v2", "LunarLander-v3"),
        ("HalfCheetah-v3", "HalfCheetah-v5"),
        ("MountainCar-v1", "MountainCar-v0"),
        ("MiniGrid-DoorKey-8x8", "MiniGrid-DoorKey-8x8-v0"),
        ("Pong-v5", "ALE/Pong-v5"),
        ("ALE/Pong", "ALE/Pong-v5"),
    ],
)
def test_id_of_other_version_suggests_the_existing_one(env, other):
    if other.startswith(("ALE", "MiniGrid")):
        pytest.importorskip("ale_py" if "ALE" in other else "minigrid")
    ((key, message),) = environment_errors(env, {})
    assert key == "env" and f"Use env={other}" in message
    if re.search(r"-v\d", env):  # without a version Gymnasium takes the latest
        with pytest.raises((gymnasium.error.Error, ImportError)):
            gymnasium.make(env)


@pytest.mark.parametrize("env", ["PongNoFrameskip-v4", "Breakout-v0", "ale_py:Breakout-v4"])
def test_older_atari_ids_are_found_without_package_prefix(env):
    pytest.importorskip("ale_py")
    assert find_spec(env).id == env.rpartition(":")[2]


def test_missing_module_is_named_with_searched_places():
    for env, missing in [("nowhere_env:Light-v0", "nowhere_env"), ("no.where:A-v0", "no")]:
        ((_, message),) = environment_errors(env, {})
        assert f"No module '{missing}'" in message and f"Searched: {Path.cwd()}" in message


def test_wrong_mujoco_gl_lists_allowed_values():
    pytest.importorskip("mujoco")
    program = "import os\nos.environ['MUJOCO_GL'] = 'vulkan'\n" + ASK.replace(", 'mujoco'", "")
    said = said_by(program, "HalfCheetah-v5")
    assert "MUJOCO_GL='vulkan'. Use egl, osmesa" in said


def test_environment_without_end_needs_time_limit():
    given = {"env": "CliffWalking-v1", "policy": {"name": "random"}}
    assert "CliffWalking-v1 may never end" in rejection(given)
    load_config(given | {"max_episode_steps": 200})
    for env in ("Blackjack-v1", "FrozenLake-v1"):  # they end by themselves or by a time limit
        load_config(given | {"env": env})
    endless = [
        spec.id
        for spec in gymnasium.registry.values()
        if spec.max_episode_steps is None and str(spec.entry_point).startswith("gymnasium.envs.toy")
    ]
    assert {env for env in endless if not ENDLESS.fullmatch(env)} == {"Blackjack-v1"}


def test_recording_of_other_environment_is_rejected(tmp_path):
    path = str(tmp_path / "r.npz")
    rows = {"episode": [0, 0], "seed": [7, 7], "action": [0, 1]}

    def check(recorded: str | None, env: str) -> None:
        np.savez(path, **rows, **({} if recorded is None else {"env": recorded}))
        load_config({"env": env, "policy": {"name": "recording", "file": path}})

    for recorded in (None, "", "Acrobot-v1", "gymnasium:Acrobot-v1"):
        check(recorded, "Acrobot-v1")
    check(CONTINUOUS, CONTINUOUS)
    for env in ("Acrobot-v1", CONTINUOUS):
        with pytest.raises(GoalreelError, match=f"in 'CartPole-v1', but env is '{env}'. Set env="):
            check("CartPole-v1", env)


def test_tools_are_the_packages_that_step_and_render(monkeypatch):
    """The packages are found by name, since listing all of them takes 0.4 s."""
    monkeypatch.delattr("importlib.metadata.packages_distributions")
    tools = {"LunarLander-v3": ("Box2D", "pygame-ce"), "HalfCheetah-v5": ("mujoco",)}
    tools |= {"CartPole-v1": ("pygame-ce",), "ALE/Pong-v5": ("ale-py",)}
    assert {env: environment_tools(env) for env in tools} == tools


def test_digests_of_environments_do_not_depend_on_imports(monkeypatch):
    """A job of an editable package imports less than the process that plans it."""
    module = "gymnasium.envs.classic_control.cartpole"
    monkeypatch.setattr(gymnasium_ids, "_is_installed", lambda path: False)
    importlib.import_module(module)
    imported = gymnasium_ids.environment_files("CartPole-v1")
    monkeypatch.delitem(sys.modules, module)
    assert gymnasium_ids.environment_files("CartPole-v1") == imported
    assert f"{module.replace('.', '/')}.py" in imported


def test_modules_that_an_environment_imports_are_watched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    register = "import gymnasium\nfrom {0}physics import Game\ngymnasium.register('{1}-v0', Game)\n"
    for folder, dots, env in ((tmp_path, "", "Alone"), (tmp_path / "pack", ".", "Packed")):
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        (folder / f"{env}.py").write_text(register.format(dots, env))
        (folder / "physics.py").write_text("import gymnasium\nclass Game(gymnasium.Env): pass\n")
    (tmp_path / "pack" / "__init__.py").write_text("from . import Packed\n")
    for env, file in (("Alone:Alone-v0", "physics.py"), ("pack:Packed-v0", "pack/physics.py")):
        before = gymnasium_ids.environment_files(env)
        assert file in before and "unused.py" not in before
        (tmp_path / file).write_text((tmp_path / file).read_text() + "REWARD = 2.0\n")
        after = gymnasium_ids.environment_files(env)
        assert {name for name in before if before[name] != after[name]} == {file}


def test_ids_with_own_options_of_drawing_are_not_plain_mujoco():
    reacher = gymnasium.spec("Reacher-v5").entry_point
    gymnasium.register("Contacts-v0", reacher, kwargs={"visual_options": {14: True}})
    wrapper = gymnasium.wrappers.TimeAwareObservation.wrapper_spec()
    gymnasium.register("Timed-v0", reacher, additional_wrappers=(wrapper,))
    ids = ("Reacher-v5", "Contacts-v0", "Timed-v0", "CartPole-v1")
    assert [gymnasium_ids.is_mujoco(env) for env in ids] == [True, False, False, False]


def test_imports_from_folders_without_init_are_found(tmp_path):
    (tmp_path / "helpers/deep").mkdir(parents=True)
    (tmp_path / "helpers/util.py").write_text("from helpers.deep import more\nimport last\n")
    (tmp_path / "helpers/deep/more.py").write_text("")
    (tmp_path / "last.py").write_text("")
    (tmp_path / "toy.py").write_text("from helpers.util import last\n")
    found = gymnasium_ids.with_imports(tmp_path / "toy.py")
    names = {path.relative_to(tmp_path).as_posix() for path in found}
    assert names == {"toy.py", "last.py", "helpers/util.py", "helpers/deep/more.py"}
