"""What SECURITY.md lists runs code, each item tried; nothing else does, data sets above all."""

import json
import pickle
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from gymnasium.envs import registration
from project import REPOSITORY

from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError
from goalreel.policies.policy import make_policy
from goalreel.simulation.episodes import Episode
from goalreel.simulation.recording_file import read_recording
from goalreel.training.shared_memory import child_process
from goalreel.verification.replay import Recorded, replay
from goalreel.workflow.config import load_config

RAN = Path("ran")
PAYLOAD = """import gymnasium

open("ran", "w").close()
go = gymnasium.Wrapper


def act(observations):
    return [0] * len(observations)
"""
CART = {"id": "CartPole-v1", "entry_point": "gymnasium.envs.classic_control.cartpole:CartPoleEnv"}
WRAPPERS = "gymnasium.wrappers"


class Harmful:
    """Makes the file when it is unpickled."""

    def __reduce__(self):
        """Tell pickle to call `open`."""
        return open, ("ran", "w")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with code that nobody asked for; forget what a test imports of it.

    Snakemake puts the Snakefile's folder first, which often is the working folder.
    """
    for name in ("payload.py", "minigrid.py", "set/data/payload.py", "own-name/payload.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(PAYLOAD, encoding="ascii")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("payload", "minigrid", "set", "own-name"):
            del sys.modules[name]


def dataset(*wrappers: str, allow: tuple[str, ...] = (), **spec: object) -> dict:
    """Write a data set's metadata, and return the options that film it."""
    wrapped = [{"name": "W", "entry_point": wrapper, "kwargs": {}} for wrapper in wrappers]
    text = json.dumps(CART | {"kwargs": {}, "additional_wrappers": wrapped} | spec)
    content = dict.fromkeys(("observation_space", "action_space"), "") | {"total_episodes": 1}
    Path("set/data/metadata.json").write_text(json.dumps(content | {"env_spec": text}))
    return {"policy": {"name": "minari", "dataset": "set", "allow": list(allow)}}


def planned(**given: object) -> str:
    """Plan a run, and return the message with which it ends, if it does."""
    try:
        load_config(given)
    except GoalreelError as error:
        return str(error)
    return ""


def load_model(monkeypatch) -> None:
    """Load a model with goalreel's own code, but with another library's: it need not be there."""
    model = SimpleNamespace(load=lambda path, **options: None)
    algorithms = SimpleNamespace(OffPolicyAlgorithm=type(None))
    library = SimpleNamespace(PPO=type("PPO", (), vars(model)))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(set_num_threads=print))
    monkeypatch.setitem(sys.modules, "stable_baselines3", library)
    name = "stable_baselines3.common.off_policy_algorithm"
    monkeypatch.setitem(sys.modules, name, algorithms)
    Path("statistics.pkl").write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(GoalreelError):
        make_policy({"name": "sb3", "file": "model.zip", "normalize": "statistics.pkl"})


def start_program(monkeypatch) -> None:
    Path("program").write_text("#!/bin/sh\ntouch ran\n")
    Path("program").chmod(0o755)
    child_process.start("./program", "goalreel.training.pixels.collector").communicate()


def run_ffmpeg(monkeypatch) -> None:
    Path("program").write_text("#!/bin/sh\ntouch ran\n")
    Path("program").chmod(0o755)
    monkeypatch.setattr(ffmpeg, "executable", ffmpeg.executable.__wrapped__)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "./program")
    with pytest.raises(GoalreelError):
        ffmpeg.version.__wrapped__()


def replay_results(monkeypatch) -> None:
    empty = np.zeros((1, 4)), np.zeros((0, 1), int), np.zeros(0)
    config = {"env": "payload:CartPole-v1", "env_kwargs": {}, "env_wrappers": [], "max_steps": None}
    with pytest.raises(GoalreelError):
        replay(Recorded(config, "episode 0", Episode(3, *empty, False, False)))


def play_file(monkeypatch) -> None:
    make_policy({"name": "file", "file": "payload.py", "function": "act"})


def plan_workflow(project, *options: str) -> None:
    """Plan a run in a copy of the workflow; the code that runs leaves its file in it."""
    project.fail("-n", *options)
    assert (project.folder / "ran").exists()
    RAN.touch()


def plan_options_file(project) -> None:
    (project.folder / "payload.py").write_text(PAYLOAD, encoding="ascii")
    (project.folder / "results").mkdir()
    text = yaml.safe_dump({"env": "payload:None-v0"})
    (project.folder / "results/config.yaml").write_text(text)
    plan_workflow(project, "--configfile", "results/config.yaml")


def plan_snakefile(project) -> None:
    project.edit("Snakefile", "import sys\n", f"import sys\n{PAYLOAD}\nsys.exit(1)\n")
    plan_workflow(project)


RUNS_CODE = {
    "policy: {name: file}": play_file,
    "policy: {name: sb3}": load_model,
    "policy: {name: minari, allow: [package]}": lambda _: planned(
        **dataset("payload:go", allow=("payload",))
    ),
    "env: module:Name-v0": lambda _: planned(env="payload:None-v0"),
    "env_wrappers: [module:callable]": lambda _: planned(
        env="CartPole-v1", env_wrappers=["payload:go"]
    ),
    "pixels.python": start_program,
    "--configfile results/config.yaml": plan_options_file,
    "scripts/replay.py": replay_results,
    "Snakefile": plan_snakefile,
    "IMAGEIO_FFMPEG_EXE": run_ffmpeg,
}


def test_security_lists_what_runs_code():
    page = (REPOSITORY / ".github/SECURITY.md").read_text(encoding="utf-8")
    _, by_design = page.split("## What runs code by design")
    listed = re.findall(r"^- `(.+?)`:", by_design.split("\n## ")[0], re.M)
    assert listed == list(RUNS_CODE)


@pytest.mark.parametrize("name", RUNS_CODE)
def test_security_item_runs_code(name, request):
    run = RUNS_CODE[name]
    needs = "project" if run in (plan_options_file, plan_snakefile) else "monkeypatch"
    run(request.getfixturevalue(needs))
    assert RAN.exists()


@pytest.mark.parametrize(
    ("options", "named", "package"),
    [
        (("set.data.payload:go",), "set.data.payload:go", "set"),
        (("unittest:main",), "unittest:main", "unittest"),
        (("payload",), "payload", "payload"),
        (("own-name.payload:go",), "own-name.payload:go", None),
        (("gymnasium:make",), "gymnasium:make", "gymnasium"),
        ((f"{WRAPPERS}:RecordVideo",), f"{WRAPPERS}:RecordVideo", "gymnasium"),
        (("minigrid:go",), "minigrid:go", "minigrid"),
        ({"id": "MiniGrid-Empty-5x5-v0"}, "MiniGrid-Empty-5x5-v0", "minigrid"),
        ({"id": "set.data.payload:CartPole-v1"}, "set.data.payload:CartPole-v1", "set"),
        ({"entry_point": "unittest:main"}, "unittest:CartPole-v1", "unittest"),
        ({"id": "highway-fast-v0"}, "highway-fast-v0", "highway_env"),
        ({"id": "Plugin-v0"}, "Plugin-v0", "test_security"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_dataset_names_foreign_code_is_refused(options, named, package, monkeypatch):
    plugin = registration.EnvSpec("Plugin-v0", Harmful)
    monkeypatch.setitem(registration.registry, "Plugin-v0", plugin)
    given = dataset(**options) if isinstance(options, dict) else dataset(*options)
    told = planned(**given)
    assert f"policy.dataset: wants to run {named!r}" in told
    if package:
        option = f"'policy={{name: minari, dataset: set, allow: [{package}]}}'"
        assert told.endswith(f"To allow it: --config {option}")
    assert not RAN.exists()


def test_dataset_without_spaces_is_refused():
    """Minari would have the environment made by the entry point, to ask it."""
    path, options = Path("set/data/metadata.json"), dataset()
    content = json.loads(path.read_text())
    path.write_text(json.dumps({key: content[key] for key in ("total_episodes", "env_spec")}))
    assert "is not the metadata of a Minari data set (KeyError" in planned(**options)


def test_dataset_of_known_packages_is_planned(monkeypatch):
    wrappers = f"{WRAPPERS}:TimeAwareObservation", f"{WRAPPERS}.common:OrderEnforcing"
    monkeypatch.setattr("goalreel.workflow.config.policy_tools", lambda policy: ())
    assert planned(**dataset(*wrappers)) == ""
    assert not RAN.exists()


def test_other_options_run_no_code():
    np.savez("recording.npz", actions=np.array([Harmful()], dtype=object))
    with pytest.raises(GoalreelError):
        read_recording("recording.npz")
    assert planned(env="CartPole-v1", policy={"name": "random"}) == ""
    assert not RAN.exists()
