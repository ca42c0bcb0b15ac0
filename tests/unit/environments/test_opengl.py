"""MuJoCo draws without a display, by an OpenGL that works, and says what to install if none does."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from project import REPOSITORY

import goalreel
from goalreel.environments import opengl
from goalreel.errors import GoalreelError

pytest.importorskip("mujoco")
CHOOSE = """
import os
from goalreel.environments.opengl import choose_opengl
choose_opengl()
import mujoco
print(os.environ["MUJOCO_GL"], mujoco.GLContext.__module__)
"""
# An environment of one's own whose drawing has bound itself when mujoco was imported.
BALL = """
import gymnasium, mujoco
from gymnasium import spaces

class Ball(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"]}
    observation_space = action_space = spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        ball = '<mujoco><worldbody><light pos="0 0 2"/><geom size=".3"/></worldbody></mujoco>'
        self.model = mujoco.MjModel.from_xml_string(ball)
        self.data = mujoco.MjData(self.model)
        self.renderer = mujoco.Renderer(self.model, 64, 64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        mujoco.mj_forward(self.model, self.data)
        return 0, {}

    def render(self):
        self.renderer.update_scene(self.data)
        return self.renderer.render()

    def close(self):
        self.renderer.close()

gymnasium.register("Ball-v0", Ball, max_episode_steps=4)
"""
DRAW = """
import os, sys
import numpy as np
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
env = GymnasiumEnvironment(sys.argv[1]).make()
env.reset(seed=1)
np.save("picture.npy", env.render())
sys.exit(3)  # as after an error: without closing
"""


def run(folder: Path, program: str, *arguments: str, **environment: str):
    """Run a program in a folder, without a display, and return the process."""
    own = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "DISPLAY", "PYTHONPATH")}
    path = os.pathsep.join([environment.pop("PYTHONPATH", ""), str(REPOSITORY / "scripts")])
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=own | {"PYTHONPATH": path.strip(os.pathsep)} | environment,
        capture_output=True,
        text=True,
    )


def needs(name: str, folder: Path) -> None:
    """Skip a test where MuJoCo cannot draw with an OpenGL."""
    tried = run(folder, "import mujoco; mujoco.GLContext(9, 9).make_current()", MUJOCO_GL=name)
    if tried.returncode:
        packages = {"egl": "libegl1 and libgl1-mesa-dri", "osmesa": "libosmesa6"}[name]
        pytest.skip(f"MuJoCo cannot draw with {name}: needs Debian's {packages}")


@pytest.mark.parametrize("name", ["egl", "osmesa"])
def test_the_first_opengl_that_works_is_chosen_before_mujoco_binds_itself_to_one(tmp_path, name):
    needs(name, tmp_path)
    # A folder without any driver is what EGL finds on a machine that has none.
    hidden = {} if name == "egl" else {"__EGL_VENDOR_LIBRARY_DIRS": str(tmp_path)}
    assert run(tmp_path, CHOOSE, **hidden).stdout.split() == [name, f"mujoco.{name}"]


def test_what_the_user_has_set_stays(tmp_path):
    # GLFW would not have been chosen: there is no display.
    chosen = run(tmp_path, CHOOSE, MUJOCO_GL="glfw").stdout.split()
    assert chosen == ["glfw", "mujoco.glfw"]


def test_without_any_opengl_the_packages_are_named(tmp_path):
    (tmp_path / "OpenGL.py").write_text("raise ImportError('none here')")
    ended = run(tmp_path, CHOOSE, PYTHONPATH=str(tmp_path))
    *_, error, egl, osmesa = ended.stderr.splitlines()
    assert "libegl1 and libgl1-mesa-dri, or libosmesa6, or set MUJOCO_GL" in error
    assert [egl.split(":")[0], osmesa.split(":")[0]] == ["  egl", "  osmesa"]
    assert "none here" in egl
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["egl", "osmesa"])
@pytest.mark.parametrize("env", ["HalfCheetah-v5", "ball:Ball-v0"])
def test_pictures_are_drawn_and_nothing_is_printed_at_the_end(tmp_path, name, env):
    needs(name, tmp_path)
    (tmp_path / "ball.py").write_text(BALL)
    hidden = {} if name == "egl" else {"__EGL_VENDOR_LIBRARY_DIRS": str(tmp_path)}
    ended = run(tmp_path, DRAW, env, **hidden)
    assert ended.returncode == 3 and "Exception" not in ended.stderr, ended.stderr
    assert len(np.unique(np.load(tmp_path / "picture.npy"))) > 9  # of a lit scene


@pytest.mark.slow
def test_half_cheetah_is_filmed_as_gymnasium_draws_it(project, monkeypatch):
    import gymnasium

    monkeypatch.setenv("MUJOCO_GL", "")  # as good as none
    monkeypatch.delenv("DISPLAY", raising=False)
    config = {"env": "HalfCheetah-v5", "success": "truncated", "max_steps": 8, "reaches": 2}
    config |= {"shard_size": 1, "policy": "{name: random}"}
    try:
        opengl._choose()  # in this process, for the peer
    except GoalreelError as error:
        pytest.skip(str(error))
    project.run("-j", "2", config=config, MUJOCO_GL="")
    results = project.folder / "results"
    for row in pd.read_csv(results / "episodes.csv").itertuples():
        name = f"{row.shard:05d}.npz"
        cache = goalreel.open_cache(results / "frames" / name)
        # A new one: where an instance's camera looks hangs on its first episode.
        peer = gymnasium.make("HalfCheetah-v5", render_mode="rgb_array")
        peer.reset(seed=row.seed)
        pictures = [peer.render()]
        for action in goalreel.read_trajectories(results / "trajectories" / name).episode(0)[1]:
            peer.step(action)
            pictures.append(peer.render())
        assert len(cache) == len(pictures) == 9
        for picture, frame in zip(pictures, cache, strict=True):
            assert np.array_equal(frame, picture)
        peer.close()
