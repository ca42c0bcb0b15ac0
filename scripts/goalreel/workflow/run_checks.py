"""Checks before a run starts: of its results folder, and of the files that its jobs need."""

import contextlib
import fcntl
import itertools
import json
import os
import shlex
import shutil
import socket
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import yaml

from goalreel.configuration.schema import config_error
from goalreel.errors import GoalreelError, UnusableFileError, listed, quoted
from goalreel.files.atomic import replacing
from goalreel.provenance.checksums import (
    RUN_FILE,
    SUMS,
    begins_with_checksum,
    checked_lines,
    other_files,
    with_checksum,
)

_SOURCES = ("scripts", "envs", "docs", "tests", "profiles", "benchmarks", "examples")
_SOURCES += (".git", ".github", ".ci", "config", "workflow")
# Options that compared runs have in common. `success` is null in a film of episodes.
COMPARED = ("env", "env_kwargs", "env_wrappers", "max_episode_steps", "success")
_MOST_SENT = 10_000_000  # bytes, in workflow.py of Snakemake 9.27
_LOCK = Path("logs", "run.lock")  # in the results
_LOCKS: list = []  # of this process, held until it ends


def check_results(results: str, base: Path) -> None:
    """Raise GoalreelError if the results folder is an address, a file, or has files of others."""
    # Snakemake would make a folder with an address's name, and empty docs/report to report.
    place, base = Path(results).resolve(), base.resolve()
    if "://" in results:
        fix = "Use a folder, and add --default-storage-prefix (docs/how-to/object-storage.md)."
        problem = f"is an address. {fix}"
    elif place == base or any(place.is_relative_to(base / name) for name in _SOURCES):
        problem = "holds goalreel's own files. Choose another folder."
    elif place.exists() and not place.is_dir():
        problem = "is a file. Choose another folder."
    elif _is_users(place / RUN_FILE):
        problem = f"has a {RUN_FILE} that goalreel would replace. Move it, or use another folder."
    else:
        return
    raise config_error({"results": f"{results!r} {problem}"})


def _is_users(path: Path) -> bool:
    """Return whether a file exists that does not begin as a run's record."""
    try:
        return path.is_file() and not begins_with_checksum(path)
    except OSError:  # no permission, which the first job reports
        return False


def check_same_run(config: Mapping, targets: Sequence[str]) -> None:
    """Raise GoalreelError if the results hold a run of another environment or policy."""
    # A run counts from its first trajectory file on.
    results, now = Path(config["results"]), _played(config)
    try:
        then = _played(yaml.safe_load(checked_lines(results / RUN_FILE)))
    except (GoalreelError, yaml.YAMLError, LookupError, TypeError, AttributeError):
        return  # there is no record of a run
    if then == now or not any(results.glob("trajectories/*.npz")):
        return
    differs = next(new for old, new in zip(then, now, strict=True) if old != new)
    other = shlex.quote(f"{results}-{Path(differs.rpartition(':')[2]).stem}")
    folder = shlex.quote(str(results))
    views = "".join(f" {target}" for target in targets)
    raise GoalreelError(
        f"results: {str(results)!r} already holds a {then[0]} run of the policy {then[1]}. "
        f"Choose another folder: results={other}\n"
        f"  To replace it: rm -r {folder}\n"
        f"  To continue it: snakemake{views} --configfile {folder}/{RUN_FILE}"
    )


def check_network(plan, targets: Collection[str]) -> None:
    """Raise GoalreelError if a Plan would train a network again although `train` is no target."""
    path = Path(plan.results, "train", "metrics.json")
    if "train" in targets or "train" not in plan.stages or not path.is_file():
        return
    try:
        then = json.loads(path.read_text(encoding="utf-8"))["config"]
        now = json.loads(json.dumps({key: plan.run.value(key) for key in then}))
        before, after = ({**config, **config["train"], "train": None} for config in (then, now))
    except (OSError, ValueError, LookupError, TypeError):  # damaged, so that it is made again
        return
    if differs := [key for key, value in before.items() if after.get(key) != value]:
        was = [f"{key} {quoted(before[key])}, now {quoted(after.get(key))}" for key in differs]
        raise GoalreelError(
            f"train: The trained network has other options ({listed(was, 2)}). "
            f"Repeat them, or train again: snakemake train\n"
            f"  All options of its run: {plan.results}/{RUN_FILE}"
        )


def check_comparable(sides: Mapping[str, str]) -> None:
    """Raise GoalreelError if finished runs, by name, differ in an option of their environment."""
    from goalreel.provenance.embedded_specs import read_spec  # it takes NumPy

    firsts = {name: Path(folder, "trajectories", "00000.npz") for name, folder in sides.items()}
    (a, first), *others = ((name, read_spec(path).config) for name, path in firsts.items())
    for (b, other), key in itertools.product(others, COMPARED):
        if first[key] != other[key]:
            values = f"{quoted(first[key])} in {a}, {quoted(other[key])} in {b}"
            fix = "To compare them: compare_different=true"
            raise GoalreelError(f"compare: The runs differ in {key} ({values}). {fix}")


def check_run_files(paths: Iterable[Path]) -> None:
    """Raise GoalreelError if one of the files is a run's own record, and is damaged or edited."""
    for path in paths:
        if path.name == RUN_FILE and (path.parent / "trajectories").is_dir():
            try:
                checked_lines(path)
            except UnusableFileError:
                problem = "Edited or damaged (checksum mismatch)"
                fix = "Restore it, or move it out of the results to use it as it is."
                raise GoalreelError(f"{path}: {problem}. {fix}") from None


def _played(config: Mapping) -> tuple[str, str]:
    """Return a run's environment, and its policy: the file or dataset, or else the name."""
    policy = config["policy"]
    return config["env"], policy.get("file") or policy.get("dataset") or policy["name"]


def lock_results(results: Path) -> None:
    """Lock the results for this process, or raise GoalreelError if another process has."""
    # Snakemake's own lock is in its working folder, so it does not cover two folders.
    path = results / _LOCK
    with contextlib.suppress(OSError):  # the first job reports it
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise GoalreelError(
                f"results: Another run is writing to {str(results)!r}. Wait until it ends, "
                f"or add --config results=FOLDER\n  That run: {lock.read().strip()}"
            ) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()}{_place()}")
        lock.flush()
        _LOCKS.append(lock)


def release_lock(folders: Collection[Path]) -> None:
    """Remove Snakemake's lock of this folder if the killed runs of some results have left it."""
    locks = Path(".snakemake", "locks")
    lines = {line for lock in locks.glob("*.output.lock") for line in lock.read_text().splitlines()}
    owners = {_owner(line) for line in lines}
    if owners and owners <= {*folders} and all(map(_is_left, owners)):
        shutil.rmtree(locks)
        print("goalreel: The last run here was killed. This run continues it.", file=sys.stderr)


def _owner(path: str) -> Path | None:
    """Return the results folder of a locked file: the nearest with a lock of its own."""
    parts = Path(path).parts
    # A copy from a storage has the storage's prefix, of unknown length, before its path.
    starts = range(3, len(parts)) if path.startswith(".snakemake/storage/") else (0,)
    folders = (folder for start in starts for folder in Path(*parts[start:]).parents)
    return next((folder for folder in folders if (folder / _LOCK).is_file()), None)


def _is_left(results: Path) -> bool:
    """Return whether the last run of results was started here, on this machine, and has ended."""
    try:
        with (results / _LOCK).open("r+", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock.read().endswith(_place())
    except OSError:  # also if it is locked
        return False


def _place() -> str:
    return f" on {socket.gethostname()}, started in {Path.cwd()}\n"


def software_note(config: Mapping, devices: Path = Path("/dev")) -> str:
    """Return a line to print if MuJoCo renders without the GPU of this machine, else ""."""
    renderer, has_egl = config["render"]["opengl"], os.environ.get("MUJOCO_GL", "egl") == "egl"
    gpus = [*devices.glob("nvidia[0-9]*"), *devices.glob("dri/renderD*")]
    if not (gpus and has_egl and renderer and renderer.startswith(("llvmpipe", "softpipe"))):
        return ""
    return (
        f"goalreel: render.opengl: {renderer!r} draws on the CPU, although this machine has a GPU. "
        "Install the EGL library of its driver. A container needs "
        "NVIDIA_DRIVER_CAPABILITIES=all."
    )


def check_folders(jobs: Iterable) -> None:
    """Raise GoalreelError if a job would remove a user's files with a folder that it replaces."""
    for folder in (Path(output) for job in jobs for output in job.output):
        others: list[Path] = []
        with contextlib.suppress(GoalreelError):  # a damaged list, which the job makes again
            others = other_files(folder) if (folder / SUMS).is_file() else []
        if others:
            raise GoalreelError(
                f"{folder}: Holds files that goalreel did not make, and would be replaced. "
                f"Move them elsewhere: {listed(others, 3)}"
            )


def check_sources(workflow, files: Iterable[Path]) -> None:
    """Raise GoalreelError if jobs on other machines would lack files that they need."""
    # Without a shared disk, Snakemake sends only the files that git tracks in this folder.
    try:
        _ = workflow.source_archive
    except AssertionError:  # the jobs share the disk
        return
    needed = list(files)
    sent = {Path(name).resolve() for name in workflow.dag.get_sources() if name[:2] != ".."}
    if lacking := [path for path in needed if path.resolve() not in sent]:
        workflow.cleanup_source_archive()
        raise GoalreelError(
            f"{listed(lacking, 1)}: Jobs on other machines get only files that git tracks. Start "
            f"snakemake at the top of a git checkout, and add new files there: git add FILE"
        )
    if large := [path for path in needed if path.stat().st_size > _MOST_SENT]:
        workflow.cleanup_source_archive()
        raise GoalreelError(
            f"{listed(large, 1)}: Over 10 MB, so Snakemake does not send it to other machines. Use "
            f"machines that share a disk."
        )


def write_run_file(config: Mapping) -> None:
    """Write the complete configuration to the results, for views of the same run."""
    path = Path(config["results"]) / RUN_FILE
    head = "# All options of the run that made these results. A view of it:\n"
    head += f"#     snakemake clips --configfile {shlex.quote(path.as_posix())}\n"
    text = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)
    # If the folder is read-only, the first job that writes to it reports so.
    with contextlib.suppress(OSError), replacing(path) as temporary:
        temporary.write_bytes(with_checksum((head + text).encode()))
