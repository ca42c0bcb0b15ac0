"""Super Mario Bros in its own interpreter plays as in its packages."""

import json
import os
import subprocess

import pytest
from pixel_policies import random_policy
from project import REPOSITORY

from goalreel.provenance.spec import canonical

_HERE = REPOSITORY / ".venv-mario" / "bin" / "python"
PYTHON = os.environ.get("GOALREEL_MARIO_PYTHON") or (str(_HERE) if _HERE.exists() else None)
pytestmark = pytest.mark.skipif(
    PYTHON is None,
    reason="takes an interpreter with goalreel[mario]: .venv-mario/bin/python or that of "
    "GOALREEL_MARIO_PYTHON",
)
SETTINGS = {"game": "SuperMarioBros-1-1-v0", "noop": 0}


def mario(code: str, *arguments: str):
    """Run code with arguments in the interpreter, and return the JSON that it prints."""
    said = run("-W", "error::RuntimeWarning", "-c", code, *arguments)
    assert not said.stderr
    return json.loads(said.stdout)


def run(*arguments: str) -> subprocess.CompletedProcess:
    environment = {"PYTHONPATH": str(REPOSITORY / "scripts"), "PATH": os.environ["PATH"]}
    said = subprocess.run(
        [PYTHON, *arguments], capture_output=True, text=True, env=environment, timeout=300
    )
    assert said.returncode == 0, said.stderr
    return said


def test_mario_envs_match_the_package_with_four_frames_a_step():
    """Mario runs to the right, meets his first enemy, and starts again."""
    ours = f"""
import json, numpy as np
from goalreel.training.games.make_envs import make_envs
from goalreel.training.games.settings import game_settings
envs = make_envs(game_settings(**{SETTINGS}), 0, 2)
assert envs.actions == 7 and envs.obs.shape == (2, 84, 84) and envs.obs.dtype == np.uint8
rows, ended = [], []
for number in range(60):
    step = envs.step(np.array([1, 0 if number % 3 else 2]))
    rows.append([float(step.rewards[0]), bool(step.terminated[0]), int(step.next_obs[0].sum())])
    ended += [[e.index, e.return_, e.distance] for e in step.ended]
envs.close()
print(json.dumps([rows, ended]))
"""
    theirs = """
import contextlib, io, json
import numpy as np
with contextlib.redirect_stderr(io.StringIO()):
    import gym
from gym_super_mario_bros import SuperMarioBrosEnv
from gym_super_mario_bros.actions import SIMPLE_MOVEMENT
from nes_py.wrappers import JoypadSpace
from goalreel.policies.preprocessing import pillow
env = JoypadSpace(SuperMarioBrosEnv(target=(1, 1)), SIMPLE_MOVEMENT)
env.reset()
rows, ended, total, furthest = [], [], 0.0, 0
for _ in range(60):
    paid = 0.0
    for _ in range(4):
        screen, reward, done, info = env.step(1)
        paid, furthest = paid + reward, max(furthest, int(info["x_pos"]))
        if done:
            break
    total += paid
    rows.append([paid, done, int(pillow(np.ascontiguousarray(screen)).sum())])
    if done:
        ended.append([0, total, furthest])
        env.reset()
        total, furthest = 0.0, 0
print(json.dumps([rows, ended]))
"""
    rows, ended = mario(ours)
    wanted = mario(theirs)
    assert rows == wanted[0] and len({row[2] for row in rows}) > 20
    assert [game for game in ended if game[0] == 0] == wanted[1] != []


def test_film_shows_screens_of_the_package(tmp_path):
    """The test compares pixels and rewards of an episode that ends with a life and of a truncated one."""
    (tmp_path / "right.py").write_text("def act(obs):\n    return [1] * len(obs)\n")
    config = {
        "env": "SuperMarioBros-1-1-v0",
        "max_episode_steps": 250,
        "seed": 2025,
        "film.show_failures": False,
    }
    policy = {"name": "python", "file": str(tmp_path / "right.py"), "function": "act"}
    lengths = []
    for name, player in ("right", policy), ("random", {"name": "random"}):
        values = config | {"policy": player, "success": None}
        shard = {"first": 0, "count": 1}
        spec = canonical({"stage": "simulate", "config": values, "shard": shard})
        files = [str(tmp_path / f"{name}.{kind}.npz") for kind in ("trajectories", "frames")]
        program = str(REPOSITORY / "scripts" / "simulate.py")
        run(program, "--spec", spec, "--trajectories", files[0], "--frames", files[1])
        lengths.append(mario(AGAIN, *files))
    assert lengths[0] < lengths[1] == 250


def test_film_observations_equal_training_observations(tmp_path):
    """The test compares every fourth screen, warped, after the no-ops at the start."""
    path = random_policy(tmp_path / "policy.npz", "SuperMarioBros-1-1-v0", 7)
    assert mario(WATCHED, str(path), json.dumps(SETTINGS)) == 40


WATCHED = """
import json, sys
from dataclasses import replace
import numpy as np
from goalreel.environments.environment import make_environment
from goalreel.policies.policy import make_policy
from goalreel.simulation.episodes import simulate_episodes
from goalreel.training.games.make_envs import make_envs
from goalreel.training.games.settings import game_settings
class Watching:
    stacks = []
    def values(self, stacks):
        self.stacks.append(stacks[0].copy())
        return actor.values(stacks)
policy = make_policy({"name": "pixels", "file": sys.argv[1], "checkpoint": "last"})
actor, policy = policy.actor, replace(policy, actor=Watching())
seed = next(s for s in range(99) if not policy.generators(np.array([s]))[0].noops)
config = {"env": "SuperMarioBros-1-1-v0", "max_episode_steps": 160}
environment = make_environment(config)
policy.check(environment)
actions = simulate_episodes(np.array([seed]), environment, policy)[0].actions.reshape(-1, 4)
assert (actions == actions[:, :1]).all() and len(np.unique(actions)) > 1
envs = make_envs(game_settings(**json.loads(sys.argv[2])), 0, 1)
for stack, action in zip(Watching.stacks, actions[:, 0], strict=True):
    assert np.array_equal(stack[-1], envs.obs[0])
    envs.step(np.array([action]))
print(json.dumps(len(actions)))
"""


AGAIN = """
import contextlib, io, json, sys
import numpy as np
with contextlib.redirect_stderr(io.StringIO()):
    import gym
from gym_super_mario_bros import SuperMarioBrosEnv
from gym_super_mario_bros.actions import SIMPLE_MOVEMENT
from nes_py.wrappers import JoypadSpace
from goalreel.rendering.frame_cache import open_cache
from goalreel.simulation.trajectories import read_trajectories
played, cache = read_trajectories(sys.argv[1]), open_cache(sys.argv[2])
env = JoypadSpace(SuperMarioBrosEnv(target=(1, 1)), SIMPLE_MOVEMENT)
assert np.array_equal(cache[0], env.reset())
for number, action in enumerate(played.actions.tolist()):
    screen, reward, done, _ = env.step(action)
    assert np.array_equal(cache[number + 1], screen) and reward == played.rewards[number]
assert done == played.episodes.terminated[0] and len(cache) == number + 2
print(json.dumps(number + 1))
"""
