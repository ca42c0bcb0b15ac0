"""MuJoCo renders without a display, and the error says what to install if it cannot."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from project import REPOSITORY

pytest.importorskip("mujoco")
DRAW = """
import numpy as np
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.environments.gymnasium_instance import Instance
np.save("picture.npy", Instance(GymnasiumEnvironment("HalfCheetah-v5"), 1).render())
"""


def draw(folder: Path, **environment: str) -> subprocess.CompletedProcess:
    """Render a reset in a separate process without a display."""
    own = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "DISPLAY", "PYTHONPATH")}
    path = os.pathsep.join([environment.pop("PYTHONPATH", "."), str(REPOSITORY / "scripts")])
    return subprocess.run(
        [sys.executable, "-c", DRAW],
        cwd=folder,
        env=own | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
    )


def test_mujoco_renders_without_display(tmp_path):
    ended = draw(tmp_path)
    if "ImportError: Cannot initialize a EGL" in ended.stderr:
        pytest.skip("MuJoCo cannot draw with egl: needs Debian's libegl1 and libgl1-mesa-dri")
    assert ended.returncode == 0 and "Exception" not in ended.stderr, ended.stderr
    assert len(np.unique(np.load(tmp_path / "picture.npy"))) > 9  # a lit scene has many colors


def test_missing_opengl_names_the_packages(tmp_path):
    (tmp_path / "OpenGL.py").write_text("raise ImportError('none here')")
    said = draw(tmp_path, PYTHONPATH=str(tmp_path)).stderr
    assert "none here" in said and "MUJOCO_GL names: egl (Debian: libegl1" in said


def test_mujoco_gl_of_the_user_is_kept(tmp_path):
    # Without a display the default would not be GLFW.
    assert "glfw" in draw(tmp_path, MUJOCO_GL="glfw").stderr
