"""Only the options in SECURITY.md run code, not datasets, recordings or other options."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.envs import registration
from message_form import check_form

from goalreel.errors import GoalreelError
from goalreel.simulation.recording_file import read_recording
from goalreel.workflow.config import load_config

RAN = Path("ran")
PAYLOAD = """import gymnasium

open("ran", "w").close()
go = gymnasium.Wrapper
"""
CART = {"id": "CartPole-v1", "entry_point": "gymnasium.envs.classic_control.cartpole:CartPoleEnv"}
WRAPPERS = "gymnasium.wrappers"


class Harmful:
    """Makes the file when it is unpickled."""

    def __reduce__(self):
        """Make pickle call `open`."""
        return open, ("ran", "w")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with foreign code, and forget what a test imports from it.

    Snakemake puts the Snakefile's folder first on the path, which is often the working folder.
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
    """Write the metadata of a dataset, and return the options that film it."""
    wrapped = [{"name": "W", "entry_point": wrapper, "kwargs": {}} for wrapper in wrappers]
    text = json.dumps(CART | {"kwargs": {}, "additional_wrappers": wrapped} | spec)
    content = dict.fromkeys(("observation_space", "action_space"), "") | {"total_episodes": 1}
    Path("set/data/metadata.json").write_text(json.dumps(content | {"env_spec": text}))
    return {"policy": {"name": "minari", "dataset": "set", "allow": list(allow)}}


def planned(**given: object) -> str:
    """Plan a run, and return its error message, if any."""
    try:
        load_config(given)
    except GoalreelError as error:
        check_form(str(error))
        return str(error)
    return ""


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
def test_dataset_with_foreign_code_is_rejected(options, named, package, monkeypatch):
    plugin = registration.EnvSpec("Plugin-v0", Harmful)
    monkeypatch.setitem(registration.registry, "Plugin-v0", plugin)
    given = dataset(**options) if isinstance(options, dict) else dataset(*options)
    told = planned(**given)
    assert f"policy.dataset: The dataset would run {named!r}" in told
    if package:
        option = f"'policy={{name: minari, dataset: set, allow: [{package}]}}'"
        assert told.endswith(f"To allow it, add:\n  --config {option}")
    assert not RAN.exists()


def test_dataset_without_spaces_is_rejected():
    """Minari would make the environment by its entry point to read the spec."""
    path, options = Path("set/data/metadata.json"), dataset()
    content = json.loads(path.read_text())
    path.write_text(json.dumps({key: content[key] for key in ("total_episodes", "env_spec")}))
    assert "does not say how it was recorded" in planned(**options)


def test_dataset_runs_allowed_packages():
    planned(**dataset("payload:go", allow=("payload",)))
    assert RAN.exists()


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
