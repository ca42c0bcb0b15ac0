"""A faulty environment is answered by one message, or its film is right anyway.

The message names the environment, the seed, the step, the value and the allowed one.
"""

import json
import os
import random
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hostile_env import ENV
from project import REPOSITORY

from goalreel import cli
from goalreel.errors import GoalreelError
from goalreel.films.scene import open_scene
from goalreel.provenance.spec import NO_SPEC, canonical, parse_spec
from goalreel.simulation.reaches import simulate_reaches
from goalreel.workflow.job_events import Job, cause_of

BOX = "Its observation_space is Box(-1.0, 1.0, (2,), float32)."
STEP, RESET, OBS = "in step (seed 5, step 3).", "in reset (seed 5, step 0).", "the observation "
NUMBER, FIVE = (
    "Return a single number.",
    "Return (observation, reward, terminated, truncated, info).",
)
TWO, CODE = "Return (observation, info).", "Correct its code."
FAULTS = {  # by method, code in it, and the message
    "step": {
        "obs = np.zeros(3)": f"{OBS}of float64, shape (3,), {STEP} {BOX}",
        "obs = 0.5": f"{OBS}'0.5' (float) {STEP} {BOX}",
        "obs = np.array(['a', 'b'])": f"{OBS}of <U1, shape (2,), {STEP} {BOX}",
        "obs = np.array([None, {}], object)": f"{OBS}of object, shape (2,), {STEP} {BOX}",
        "obs = obs.astype(complex)": f"{OBS}of complex128, shape (2,), {STEP} {BOX}",
        "obs = [[1, 2], [3]]": f"{OBS}'[[1, 2], [3]]' (list) {STEP} {BOX}",
        "obs = {1: 2}": f"{OBS}'{{1: 2}}' (dict) {STEP} {BOX}",
        "result = 1, 2, 3, 4": f"returned '(1, 2, 3, 4)' (tuple) {STEP} {FIVE}",
        "result = None": f"returned 'None' (NoneType) {STEP} {FIVE}",
        "reward = '1.5'": f"the reward '''1.5''' (str) {STEP} {NUMBER}",
        "reward = np.ones(2)": f"the reward of float64, shape (2,), {STEP} {NUMBER}",
        "reward = 1j": f"the reward '1j' (complex) {STEP} {NUMBER}",
        "end = np.array([True, False])": f"the terminated of bool, shape (2,), {STEP} {NUMBER}",
        "end = 'no'": f"the terminated '''no''' (str) {STEP} {NUMBER}",
        "raise KeyError('level')": f"raised KeyError {STEP} {CODE}",
        "raise StopIteration": f"raised StopIteration {STEP} {CODE}",
        "sys.exit('bye')": f"raised SystemExit {STEP} {CODE}",
        "(lambda f: f(f))(lambda f: f(f))": f"raised RecursionError {STEP} {CODE}",
    },
    "reset": {
        "result = obs": f"returned of float32, shape (2,), {RESET} {TWO}",
        "result = None": f"returned 'None' (NoneType) {RESET} {TWO}",
        "result = obs[:1], {}": f"{OBS}of float32, shape (1,), {RESET} {BOX}",
        "sys.exit(1)": f"raised SystemExit {RESET} {CODE}",
    },
    "render": {
        "image = None": "seed 5, step 0: env.render() returned NoneType of shape ()",
        "image = image / 2": "seed 5, step 0: env.render() returned float64 of shape (32, 48, 3)",
        "image = [image]": "seed 5, step 0: env.render() returned uint8 of shape (1, 32, 48, 3)",
        "image = np.zeros((2, 16385, 3), np.uint8)": "of shape (2, 16385, 3). Return uint8 of shape",
        "raise OSError": f"raised OSError in render (seed 5, step 0). {CODE}",
    },
    "space": {
        "gymnasium.spaces.Box(0, 9, (2,), np.uint8)": f"{OBS}of float32, shape (2,), {RESET}",
        "gymnasium.spaces.Dict(a=gymnasium.spaces.Discrete(2))": f"{OBS}of float32, shape (2,), ",
    },
}
HARMLESS = (  # code in `step`, with which the film is the same
    "os.chdir('/')",
    "np.random.seed(0); random.seed(0)",
    "os.environ['HOME'] = '/nowhere'",
    "print('text'); print('{\"error\": \"x\"}', file=sys.stderr)",
    "obs = obs.tolist()",
    "reward = np.float32(1)",
    "reward = np.array(1.0)",
    "end = np.bool_(False)",
    "threading.Thread(target=time.sleep, args=(1,), daemon=True).start()",
)


@pytest.fixture
def film(tmp_path, monkeypatch):
    """Return a function that films three episodes with faults, and returns the frame cache."""
    (tmp_path / "hostile.py").write_text(ENV, encoding="ascii")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", os.environ["HOME"])

    def made(**faults) -> bytes:
        config = {"env": "hostile:Hostile-v0", "env_kwargs": faults, "policy": {"name": "random"}}
        spec, scene = parse_spec(canonical({"config": config})), open_scene(config)
        players = scene.env, scene.policy, 100, True, spec, None
        play = partial(simulate_reaches, range(3), 1, *players, seeds=[5, 6, 7])
        scene.film(tmp_path / "frames.npz", play, NO_SPEC)
        return (tmp_path / "frames.npz").read_bytes()

    yield made
    sys.modules.pop("hostile", None)


@pytest.mark.parametrize(
    ("method", "code", "message"), [(m, c, said) for m in FAULTS for c, said in FAULTS[m].items()]
)
def test_fault_of_environment_is_answered_by_a_message(film, method, code, message):
    with pytest.raises(GoalreelError) as error:
        film(**{method: code})
    said = str(error.value)
    assert message in said and "hostile:Hostile-v0" in said.splitlines()[0]
    assert str(REPOSITORY / "scripts") not in said, "goalreel's own calls are not shown"


def test_harmless_faults_do_not_change_the_film(film, tmp_path):
    sound, states = film(), (random.getstate(), np.random.get_state())  # noqa: NPY002
    for code in HARMLESS:
        assert film(step=code) == sound, code
        assert os.getcwd() == str(tmp_path), "paths of results are relative"  # noqa: PTH109
    assert film(close="raise RuntimeError") == sound
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002


def simulate(folder, step: str, *options: str) -> tuple[int, str]:
    """Play an episode in a process of its own, and return its status and the cause of a failure."""
    (folder / "hostile.py").write_text(ENV, encoding="ascii")
    config = {"env": "hostile:Hostile-v0", "env_kwargs": {"step": step}, "seed": 1}
    config |= {"policy": {"name": "random"}, "film.show_failures": False, "success": None}
    spec = {"stage": "simulate", "config": config, "shard": {"first": 0, "count": 1}}
    command = [sys.executable, REPOSITORY / "scripts" / "simulate.py", "--spec", json.dumps(spec)]
    command += ["--trajectories", "out/t.npz", "--frames", "out/f.npz", *options]
    plans = {cli.PLANS: cli.packed({str(folder / "out"): {}})}
    with (folder / "log").open("w") as log:
        given = {"cwd": folder, "env": os.environ | plans, "stdout": log, "stderr": log}
        ended = subprocess.run(command, timeout=60, **given)
    return ended.returncode, cause_of(Job("simulate", logs=[str(folder / "log")]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "cause"),
    [
        ("os.abort()", "The job crashed (Aborted) in the code below. Correct it.\n  File"),
        ("ctypes.string_at(0)", "The job crashed (Segmentation fault) in the code below."),
        ("os.kill(os.getpid(), 9)", "The job was killed without a message."),
        ('print(\'{"error": "x"}\', flush=True); os._exit(7)', '{"error": "x"}'),
        ("raise KeyError(1)", "env: 'hostile:Hostile-v0' raised KeyError in step"),
    ],
)
def test_crash_of_environment_is_named(tmp_path, step, cause):
    status, said = simulate(tmp_path, step)
    assert status != 0 and said.startswith(cause), said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "option", "cause"),
    [
        (
            "time.sleep(60)",
            "--max-step-seconds=1",
            r"env: .* took more than 1 s .*\(seed \d+, step 3",
        ),
        ("sum(range(10**12))", "--max-step-seconds=1", r"The job crashed \(Timeout \(0:00:03\)\)"),
        (
            "self.kept = bytearray(10**9)",
            "--max-memory-mb=500",
            r"Out of memory.*raise max_memory_mb",
        ),
    ],
)
def test_limit_of_time_or_memory_ends_the_job(tmp_path, step, option, cause):
    status, said = simulate(tmp_path, step, option)
    assert status != 0 and re.match(cause, said), said
    status, said = simulate(tmp_path, "pass", option)
    assert status == 0, said


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        "threading.Thread(target=time.sleep, args=(600,)).start()",
        "os.fork() or (time.sleep(9), os._exit(0))",
        "os.environ.clear()",
        "os.chdir('/')",
    ],
)
def test_environment_that_leaves_something_behind_is_filmed(tmp_path, step):
    status, said = simulate(tmp_path, step)
    assert status == 0, said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"t.npz", "f.npz"}
