"""The preflight: a run's first steps, played before the run by a process of its own.

What would fail in each job, an environment that cannot be made or drawn, a policy that gives wrong
actions, is found before any starts. The files that a policy opens meanwhile shape what it does, so
they are watched like its modules.
"""

import hashlib
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

from goalreel.environments.registry import CLASSIC_CONTROL, describe
from goalreel.errors import GoalreelError
from goalreel.files.atomic import write_text
from goalreel.policies.parameters import RECORDED, is_trained_here

_TIMEOUT = 60  # seconds; a slower start is left to the jobs
_PLAYING = 0.5  # seconds of steps
_MAX_STEPS = 64
_MAX_LINES = 5  # of a message
_MAIN = "from goalreel.verification.preflight import main; main()"
# Of Python, of packages and of goalreel: a policy opens them, and they are no input of its.
_SYSTEM = {*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), sys.prefix, sys.base_prefix}
_SYSTEM |= {"/dev", "/etc", "/proc", "/sys", "/usr", str(Path(__file__).parents[2])}


def is_known_to_play(config: Mapping) -> bool:
    """Return whether goalreel computes the environment, and a policy of its own plays."""
    own = config["policy"]["name"] not in (*RECORDED, "file", "sb3")
    computed = describe(config["env"]).computed or config["env"] in CLASSIC_CONTROL
    return own and computed and not config["env_wrappers"]


def opened_files(config: Mapping, digest: str, scripts: Path, kept: Path) -> list[str]:
    """Return the files that a run's policy opens, after its first steps have succeeded.

    A success is kept, so that the next start costs nothing.

    Args:
        config: the complete configuration.
        digest: of all that shapes an episode.
        scripts: the folder of the programs.
        kept: the folder where successes are kept.

    Raises:
        GoalreelError: the environment or the policy fails.
    """
    record = kept / f"{digest}.json"
    try:
        files = json.loads(record.read_text(encoding="utf-8"))
        if all(_sha256(path) == sha for path, sha in files.items()):
            return list(files)
    except (OSError, ValueError, AttributeError):
        pass  # there is none, or a file of it is gone
    files = _played(config, scripts)
    if files is None:
        return []
    try:
        write_text(record, json.dumps(files))
    except OSError:
        return list(files)  # the next start plays again
    return list(files)


def _played(config: Mapping, scripts: Path) -> dict[str, str] | None:
    """Return the sha256 of each file that was opened, None if it took too long to know."""
    env = os.environ | {"PYTHONPATH": str(scripts), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="goalreel-") as folder:
        answer = Path(folder, "answer.json")
        words = [sys.executable, "-P", "-c", _MAIN, str(answer)]
        try:
            ended = subprocess.run(
                words, input=json.dumps(config).encode(), capture_output=True, env=env,
                timeout=_TIMEOUT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
        if answer.is_file():
            told = json.loads(answer.read_text(encoding="utf-8"))
            if "error" in told:
                raise GoalreelError(_shortened(told["error"]))
            return told["files"]
    how = f"exit status {ended.returncode}"
    if ended.returncode < 0:
        how = signal.Signals(-ended.returncode).name
    last = ended.stderr.decode(errors="replace").rstrip().splitlines()[-1:]
    raise GoalreelError(
        "\n  ".join([f"env: {config['env']} ended its process in the first steps ({how})", *last])
    )


def _shortened(message: str) -> str:
    """Return a message without the middle of its traceback."""
    lines = [line for line in message.splitlines() if line.strip(" ^~")]
    return "\n".join(lines if len(lines) <= _MAX_LINES else [lines[0], *lines[-3:]])


def _sha256(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def main() -> None:
    """Play the first steps of the configuration on standard input; write the answer as JSON."""
    config, opened, answer_path = json.load(sys.stdin), set(), Path(sys.argv[1])
    sys.addaudithook(lambda event, told: event == "open" and opened.add(told))
    try:
        _play(config, answer_path.parent)
        answer = {"files": _own(opened, config) if config["policy"]["name"] == "file" else {}}
    except GoalreelError as error:
        answer = {"error": str(error)}
    answer_path.write_text(json.dumps(answer), encoding="utf-8")
    os._exit(0)  # what the environment has started need not end


def _own(opened: set, config: Mapping) -> dict[str, str]:
    """Return the sha256 of the user's files among those that were opened for reading.

    opened: (path, mode, flags), as Python's audit event tells
    """
    files = {}
    for path, mode, flags in list(opened):  # reading what is found opens more
        written = set(mode) & set("wax+") if mode else flags & (os.O_WRONLY | os.O_RDWR)
        if written or not isinstance(path, str | os.PathLike):
            continue
        whole = Path(path).absolute()
        if whole.parent.name == "__pycache__":
            whole = Path(importlib.util.source_from_cache(str(whole)))
        if whole.is_file() and not any(whole.is_relative_to(folder) for folder in _SYSTEM):
            here = whole.is_relative_to(Path.cwd())
            files[str(whole.relative_to(Path.cwd()) if here else whole)] = _sha256(whole)
    files.pop(os.path.normpath(config["policy"]["file"]), None)
    return dict(sorted(files.items()))


def _play(config: Mapping, folder: Path) -> None:
    """Play an episode's first steps, and film them to a folder, as the first shard does."""
    import numpy as np

    from goalreel.environments.environment import make_environment
    from goalreel.environments.seeding import episode_seeds
    from goalreel.pictures.camera import filming
    from goalreel.policies.policy import make_policy
    from goalreel.simulation.episodes import simulate_episodes

    environment, policy = make_environment(config), config["policy"]
    seeds = episode_seeds(config["seed"], np.arange(1), 0)
    if policy["name"] in RECORDED or is_trained_here(policy):
        if not describe(config["env"]).computed:
            next(environment.play(int(seeds[0]), np.empty(0)))
        return
    player, steps, began = make_policy(policy), 1, time.perf_counter()
    player.check(environment)
    if describe(config["env"]).computed:
        return
    while steps:  # one to learn how long it takes, then as many as fit
        since, limit = time.perf_counter(), np.full(1, steps)
        with filming(folder / "frames.npz", environment) as camera:
            simulate_episodes(seeds, environment, player, limit, camera)
        took = time.perf_counter() - since
        late = time.perf_counter() - began > 4 * _PLAYING
        steps = min(int(_PLAYING / took), _MAX_STEPS) if steps == 1 and not late else 0
