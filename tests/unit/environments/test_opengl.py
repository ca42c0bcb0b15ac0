"""MuJoCo draws without a display, and says what to install if it cannot."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from project import REPOSITORY

import goalreel

pytest.importorskip("mujoco")
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
import sys
import numpy as np
from goalreel.environments.gymnasium_env import GymnasiumEnvironment, Instance
np.save("picture.npy", Instance(GymnasiumEnvironment(sys.argv[1]), 1).render())
"""


def draw(folder: Path, env: str, **environment: str) -> subprocess.CompletedProcess:
    """Draw a reset in a process of its own, without a display."""
    own = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "DISPLAY", "PYTHONPATH")}
    path = os.pathsep.join([environment.pop("PYTHONPATH", "."), str(REPOSITORY / "scripts")])
    return subprocess.run(
        [sys.executable, "-c", DRAW, env],
        cwd=folder,
        env=own | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("env", ["HalfCheetah-v5", "ball:Ball-v0"])
def test_pictures_are_drawn_without_a_display(tmp_path, env):
    (tmp_path / "ball.py").write_text(BALL)
    ended = draw(tmp_path, env)
    if "ImportError: Cannot initialize a EGL" in ended.stderr:
        pytest.skip("MuJoCo cannot draw with egl: needs Debian's libegl1 and libgl1-mesa-dri")
    assert ended.returncode == 0 and "Exception" not in ended.stderr, ended.stderr
    assert len(np.unique(np.load(tmp_path / "picture.npy"))) > 9  # of a lit scene


def test_without_an_opengl_the_packages_are_named(tmp_path):
    (tmp_path / "OpenGL.py").write_text("raise ImportError('none here')")
    said = draw(tmp_path, "HalfCheetah-v5", PYTHONPATH=str(tmp_path)).stderr
    assert "none here" in said and "libegl1 and\n  libgl1-mesa-dri, osmesa" in said


def test_what_the_user_has_set_stays(tmp_path):
    # GLFW would not have been chosen: there is no display.
    assert "glfw" in draw(tmp_path, "HalfCheetah-v5", MUJOCO_GL="glfw").stderr


@pytest.mark.slow
def test_half_cheetah_is_filmed_as_gymnasium_draws_it(project, monkeypatch):
    import gymnasium

    monkeypatch.setenv("MUJOCO_GL", "egl")  # for the peer; the jobs are given none
    monkeypatch.delenv("DISPLAY", raising=False)
    config = {"env": "HalfCheetah-v5", "success": "truncated", "max_steps": 8, "reaches": 2}
    config |= {"shard_size": 1, "policy": "{name: random}"}
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
