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
_SECONDS = 60  # a try takes 0.6 s
_MADE: weakref.WeakSet = weakref.WeakSet()


def choose_opengl() -> None:
    """Set MUJOCO_GL to the first OpenGL that works, now or when mujoco is imported.

    A value that the user has set stays, and so does MuJoCo's default on other systems than Linux.

    Raises:
        GoalreelError: none works, or one does not answer.

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
    errors = []
    for name in _CHOICES:
        error = _loading_error(name)
        if not error:
            os.environ["MUJOCO_GL"] = name
            return
        errors.append(f"\n  {name}: {error}")
    raise GoalreelError(
        "MuJoCo has no OpenGL to draw with; install Debian's packages libegl1 and libgl1-mesa-dri, "
        f"or libosmesa6, or set MUJOCO_GL:{''.join(errors)}"
    )


def _loading_error(name: str) -> str:
    """Return why MuJoCo cannot draw with an OpenGL, "" if it can."""
    with tempfile.TemporaryDirectory() as folder:  # where MuJoCo writes its log
        try:
            tried = subprocess.run(  # noqa: S603 - this interpreter
                [sys.executable, "-c", _TRY],
                env=os.environ | {"MUJOCO_GL": name},
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            # To go on with the other would let a busy minute decide on the pixels of a shard.
            raise GoalreelError(
                f"MuJoCo got no answer from OpenGL by {name} in {_SECONDS} s; set MUJOCO_GL to "
                f"the one to draw with: {' or '.join(_CHOICES)}"
            ) from None
    lines = tried.stderr.strip().splitlines() or [f"ended with status {tried.returncode}"]
    return lines[-1] if tried.returncode else ""
