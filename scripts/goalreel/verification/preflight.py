"""The preflight: play the first steps of a run in a process of its own, before any job.

It finds errors that every job would repeat: an environment that fails to start or render, or a
policy with wrong actions. Files that a policy opens meanwhile affect its actions, so goalreel
watches them like its modules.
"""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from goalreel.environments.gymnasium_ids import environment_fps
from goalreel.environments.registry import CLASSIC_CONTROL, describe
from goalreel.errors import GoalreelError, shortened
from goalreel.files.atomic import write_text
from goalreel.policies.parameters import RECORDED, is_trained_here
from goalreel.provenance.checksums import sha256_of

_TIMEOUT = 60  # seconds, after which the jobs have to find errors
_PLAYING, _MIN_STEPS, _MAX_STEPS = 0.5, 8, 64  # seconds and numbers of steps to play
_STEPS = 1000  # of an episode without a limit
_MAIN = "from goalreel.verification.preflight import main; main()"
_RENDERER = """
from mujoco.gl_context import GLContext
context = GLContext(64, 64)
context.make_current()
from OpenGL import GL
print(GL.glGetString(GL.GL_RENDERER).decode())"""
# Folders of Python, packages and goalreel. A policy opens files there, but they are not its input.
_SYSTEM = {*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), sys.prefix, sys.base_prefix}
_PACKAGES = {"site-packages", "dist-packages"}  # also in a parent virtual environment
_SYSTEM |= {"/dev", "/etc", "/proc", "/sys", "/usr", str(Path(__file__).parents[2])}


def is_known_to_play(config: Mapping) -> bool:
    """Return whether goalreel steps the environment itself, with a policy of its own."""
    own = config["policy"]["name"] not in (*RECORDED, "python", "sb3", "onnx")
    computed = describe(config["env"]).computed or config["env"] in CLASSIC_CONTROL
    return own and computed and not config["env_wrappers"]


def read_first_steps(record: Path) -> dict | None:
    """Return the saved `play_first_steps`, or None if there is none or a file has changed."""
    # The OpenGL renderer is the present one: a driver or MUJOCO_GL may have changed.
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        found = json.loads(record.read_text(encoding="utf-8"))
        if all(sha256_of(Path(path)) == sha for path, sha in found["files"].items()):
            return found | ({"opengl": _opengl_renderer()} if found["opengl"] else {})
    return None


def _opengl_renderer() -> str:
    """Return the name of the OpenGL renderer of MuJoCo, "" if it has none."""
    ended = subprocess.run([sys.executable, "-P", "-c", _RENDERER], capture_output=True, text=True)
    return ended.stdout.partition("\n")[0]  # PyOpenGL may print more at its end


def play_first_steps(config: Mapping, scripts: Path, record: Path) -> dict:
    """Play the first steps of a run, and return the findings, or {} after a minute.

    The option `seeds` is null or a list of the first one.

    `files` is the sha256 of each file that the policy opens, and `episode_s` about the maximum
    seconds of an episode. `render_fps` is the environment's frames per second or None, and `opengl`
    the name of the OpenGL renderer, or "". They are saved in `record`, so that the next start costs
    nothing. Raises GoalreelError if the environment or the policy fails.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # as of a job
    env = os.environ | threads | {"PYTHONPATH": str(scripts)}
    with tempfile.TemporaryDirectory(prefix="goalreel-") as folder:
        answer = Path(folder, "answer.json")
        words = [sys.executable, "-P", "-c", _MAIN, str(answer)]
        given = {"input": json.dumps(config).encode(), "env": env, "timeout": _TIMEOUT}
        # Processes that the environment leaves behind would keep a pipe open.
        with Path(folder, "output").open("w+b") as output:
            try:
                ended = subprocess.run(words, stdout=output, stderr=output, check=False, **given)
            except subprocess.TimeoutExpired:
                return {}
            output.seek(0)
            said = output.read()
        if answer.is_file():
            text = answer.read_text(encoding="utf-8")
            found = json.loads(text)
            if "error" in found:
                raise GoalreelError("\n".join(shortened(found["error"], 4)))
            with contextlib.suppress(OSError):  # the next start plays again
                write_text(record, text)
            return found
    status = ended.returncode
    how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    last = said.decode(errors="replace").rstrip().splitlines()[-1:]
    message = f"env: {config['env']!r} crashed in its first steps ({how}). Correct its code."
    raise GoalreelError("\n  ".join([message, *last]))


def main() -> None:
    """Play the first steps of the configuration on standard input, and write the answer as JSON."""
    config, opened, answer_path = json.load(sys.stdin), set(), Path(sys.argv[1])
    sys.addaudithook(lambda event, args: event == "open" and opened.add(args))
    try:
        seconds, renderer = _play(config, answer_path.parent)
        answer = {"files": _own(opened, config), "episode_s": seconds, "opengl": renderer}
        answer["render_fps"] = environment_fps(config["env"], config["env_kwargs"])
    except GoalreelError as error:
        answer = {"error": str(error)}
    answer_path.write_text(json.dumps(answer), encoding="utf-8")
    os._exit(0)  # threads of the environment may keep running


def _own(opened: set, config: Mapping) -> dict[str, str]:
    """Return the sha256 of the user's files among (path, mode, flags) that were opened to read.

    Only a policy in Python has files outside of the working directory: data of packages, such as
    ROMs, have different places on different machines.
    """
    files = {}
    for path, mode, flags in list(opened):  # the loop opens more files
        written = set(mode) & set("wax+") if mode else flags & (os.O_WRONLY | os.O_RDWR)
        if written or not isinstance(path, str | os.PathLike):
            continue
        whole = Path(path).absolute()
        if whole.parent.name == "__pycache__":
            whole = Path(importlib.util.source_from_cache(str(whole)))
        is_package = bool(_PACKAGES.intersection(whole.parts))
        is_system = any(whole.is_relative_to(folder) for folder in _SYSTEM)
        here = whole.is_relative_to(Path.cwd())
        is_own = here or config["policy"]["name"] == "python"
        if whole.is_file() and is_own and not (is_package or is_system):
            files[str(whole.relative_to(Path.cwd()) if here else whole)] = sha256_of(whole)
    files.pop(os.path.normpath(config["policy"].get("file") or ""), None)
    return dict(sorted(files.items()))


def _play(config: Mapping, folder: Path) -> tuple[float, str]:
    """Film an episode's first steps. Return its seconds and the name of the OpenGL renderer."""
    # seconds: about the maximum of an episode, or 0 if they do not matter
    import numpy as np

    from goalreel.environments.drawing.mujoco_scene import renders_again
    from goalreel.environments.gymnasium_ids import find_spec
    from goalreel.environments.gymnasium_instance import Instance
    from goalreel.environments.seeding import episode_seeds
    from goalreel.films.scene import open_scene
    from goalreel.rendering.frame_recorder import filming
    from goalreel.simulation.episodes import simulate_episodes

    render = config["render"]
    config |= {f"render.{key}": render[key] for key in ("camera", "width", "height", "quality")}
    is_later = is_trained_here(config["policy"])  # the run itself trains the policy
    scene = open_scene(config | {"policy": None} if is_later else config)
    seeds = np.array(config["seeds"] or episode_seeds(config["seed"], np.arange(1), 0))
    if scene.policy is None:
        if not describe(config["env"]).computed:
            Instance(scene.env, int(seeds[0])).frame()
        return 0.0, getattr(scene.env, "renderer", "")
    scene.policy.check(scene.env)
    if describe(config["env"]).computed:
        return 0.0, ""
    known = describe(config["env"]).frame_seconds

    @renders_again
    def play(limit: np.ndarray) -> list:
        with filming(folder / "frames.npz", scene.env) as recorder:
            return simulate_episodes(seeds, scene.env, scene.policy, limit, recorder)

    took, steps = [], 1 if known is None else _MIN_STEPS
    while steps:  # one step to measure the time if it is unknown, then as many as fit
        began, limit = time.perf_counter(), np.full(1, steps)
        episodes = play(limit)
        took.append(time.perf_counter() - began)
        # The first step includes the start of the environment, which tells little of the others.
        fitting = min(max(int(_PLAYING / took[0]), _MIN_STEPS), _MAX_STEPS)
        steps = fitting if len(took) == 1 and known is None else 0
    played = len(episodes[0].rewards)
    more = took[-1] - took[0] if played > 1 else took[0] / 2  # a reset and a step
    each = max(more, 0) / max(played - 1, 1) / (1 + scene.env.check)  # a check plays each twice
    if played == limit[0]:  # the episode continues
        played = config["max_episode_steps"] or find_spec(config["env"]).max_episode_steps or _STEPS
    return (each if known is None else known) * played, scene.env.renderer
