"""Super Mario Bros in an interpreter of its own, held against the packages that bring it."""

import json
import os
import subprocess

import pytest
from project import REPOSITORY

_HERE = REPOSITORY / ".venv-mario" / "bin" / "python"
PYTHON = os.environ.get("GOALREEL_MARIO_PYTHON") or (str(_HERE) if _HERE.exists() else None)
pytestmark = pytest.mark.skipif(
    PYTHON is None,
    reason="takes an interpreter with requirements-mario.txt: .venv-mario/bin/python or that of "
    "GOALREEL_MARIO_PYTHON",
)
SETTINGS = {"game": "SuperMarioBros-1-1-v0", "noop": 0, "warp": "slice"}


def mario(code: str):
    """Run code in the interpreter; return what it prints, which is JSON."""
    environment = {"PYTHONPATH": str(REPOSITORY / "scripts"), "PATH": os.environ["PATH"]}
    said = subprocess.run(
        [PYTHON, "-W", "error::RuntimeWarning", "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert said.returncode == 0 and not said.stderr, said.stderr
    return json.loads(said.stdout)


def test_lanes_are_the_packages_own_game_four_frames_a_step():
    """Mario runs to the right, meets his first enemy, and begins anew."""
    ours = f"""
import json, numpy as np
from goalreel.training.games.make_lanes import make_lanes
from goalreel.training.games.settings import GameSettings
lanes = make_lanes(GameSettings(**{SETTINGS}), 0, 2)
assert lanes.actions == 7 and lanes.obs.shape == (2, 84, 84) and lanes.obs.dtype == np.uint8
rows, ended = [], []
for number in range(60):
    step = lanes.step(np.array([1, 0 if number % 3 else 2]))
    rows.append([float(step.rewards[0]), bool(step.terminated[0]), int(step.next_obs[0].sum())])
    ended += [[e.lane, e.return_, e.frames, e.distance] for e in step.ended]
lanes.close()
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
from goalreel.policies.warp import sliced
env = JoypadSpace(SuperMarioBrosEnv(target=(1, 1)), SIMPLE_MOVEMENT)
env.reset()
rows, ended, total, frames, furthest = [], [], 0.0, 0, 0
for _ in range(60):
    paid = 0.0
    for _ in range(4):
        screen, reward, done, info = env.step(1)
        paid, frames, furthest = paid + reward, frames + 1, max(furthest, int(info["x_pos"]))
        if done:
            break
    total += paid
    rows.append([paid, done, int(sliced(np.ascontiguousarray(screen)).sum())])
    if done:
        ended.append([0, total, frames, furthest])
        env.reset()
        total, frames, furthest = 0.0, 0, 0
print(json.dumps([rows, ended]))
"""
    rows, ended = mario(ours)
    wanted = mario(theirs)
    assert rows == wanted[0] and len({row[2] for row in rows}) > 20
    assert [game for game in ended if game[0] == 0] == wanted[1] != []


def test_a_whole_game_has_three_lives():
    code = """
import json, numpy as np
from goalreel.training.games.make_lanes import make_lanes
from goalreel.training.games.settings import GameSettings
settings = {"game": "SuperMarioBros-v3", "noop": 0, "warp": "slice", "episodic_life": True}
lanes = make_lanes(GameSettings(**settings), 0, 1)
lost, ended = 0, ()
while not ended:
    step = lanes.step(np.array([1]))
    lost, ended = lost + int(step.terminated[0]), step.ended
print(json.dumps(lost))
"""
    assert mario(code) == 3


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (SETTINGS | {"warp": "area"}, "'area' needs OpenCV"),
        ({"game": "MountainCar-v0"}, "the packages of requirements.txt"),
    ],
)
def test_what_that_interpreter_cannot_do_is_told(values, said):
    code = f"""
import json
from goalreel.errors import GoalreelError
from goalreel.training.games.make_lanes import make_lanes
from goalreel.training.games.settings import GameSettings
try:
    make_lanes(GameSettings(**{values}), 0, 1)
except GoalreelError as error:
    print(json.dumps(str(error)))
"""
    assert said in mario(code)
