"""Which OpenGL MuJoCo draws with: on a machine without a display its own default, GLFW, fails.

MuJoCo takes what MUJOCO_GL names, and reads it while it is imported. So the choice is made at that
moment, whichever environment imports it: of Gymnasium, of a package, or of the user's own module.
"""

import atexit
import contextlib
import importlib.abc
import importlib.machinery
import os
import subprocess
import sys
import tempfile
import weakref

from goalreel.errors import GoalreelError

_CHOICES = ("egl", "osmesa")  # a graphics card's or Mesa's own, then Mesa's into memory
# In a process of its own: a library that fails may crash it, and binds PyOpenGL to itself.
_TRY = """
import mujoco
context = mujoco.GLContext(64, 64)
context.make_current()
model = mujoco.MjModel.from_xml_string("<mujoco/>")
mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
context.free()
"""
_TIMEOUT = 60  # seconds; a try takes 0.6
_MADE: weakref.WeakSet = weakref.WeakSet()


def choose_opengl() -> None:
    """Set MUJOCO_GL to the first OpenGL that works, now or when mujoco is imported.

    A value that the user has set stays, and so does MuJoCo's default on other systems than Linux.

    Raises:
        GoalreelError: none works.
    """
    if os.environ.get("MUJOCO_GL") or sys.platform != "linux":
        return
    if "mujoco" in sys.modules:
        _choose()
    elif not any(isinstance(finder, _BeforeMujoco) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BeforeMujoco())


def close_at_exit(env) -> None:
    """Have an instance closed before Python ends; OSMesa's raises where that happens later."""
    if "mujoco" in sys.modules:
        _MADE.add(env)


@atexit.register
def _close() -> None:
    for env in list(_MADE):
        with contextlib.suppress(Exception):  # whatever the environment's own may raise
            env.close()


class _BeforeMujoco(importlib.abc.MetaPathFinder):
    """Finds nothing, and chooses when mujoco is looked for."""

    def find_spec(self, name, path=None, target=None):
        if name == "mujoco" and importlib.machinery.PathFinder.find_spec(name):
            _choose()


def _choose() -> None:
    if os.environ.get("MUJOCO_GL"):
        return
    problems = ""
    for name in _CHOICES:
        with tempfile.TemporaryDirectory() as folder:  # where MuJoCo writes its log
            # One that does not answer raises: to go on with the other would let a busy minute
            # decide on the pixels of a shard.
            tried = subprocess.run(  # noqa: S603 - this interpreter
                [sys.executable, "-c", _TRY],
                env=os.environ | {"MUJOCO_GL": name},
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT,
            )
        if tried.returncode == 0:
            os.environ["MUJOCO_GL"] = name
            return
        lines = tried.stderr.splitlines() or [f"ended with status {tried.returncode}"]
        problems += f"\n  {name}: {lines[-1]}"
    raise GoalreelError(
        "MuJoCo has no OpenGL to draw with; install Debian's packages libegl1 and libgl1-mesa-dri, "
        f"or libosmesa6, or set MUJOCO_GL:{problems}"
    )
