"""Trials of faults: their numbers, the runs that they disturb, and the recovery.

A trial damages or stops a run and then calls `recover`. The next plain runs must end with the bytes
of an undisturbed run, and with no other file in the results folder.
"""

import contextlib
import os
import random
import shutil
import time
from pathlib import Path

import pytest
from conftest import SMALL, hashes
from project import Project

from goalreel.provenance.spec import Spec, parse_spec
from goalreel.verification.run import Verdict, verify_results
from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan
from goalreel.workflow.stages import STAGES

TIMES = int(os.environ.get("GOALREEL_FAULTS", "1"))  # factor on the number of random trials
BY_X264 = SMALL | {"encode": "{encoder: x264}"}
SHARDS = ("00000", "00001")
BOUND = 240  # seconds after which a run counts as hanging


def sampled(values) -> list:
    """Return a test's parameters, all but the first marked as slow."""
    first, *others = (value if isinstance(value, tuple) else [value] for value in values)
    return [pytest.param(*first), *(pytest.param(*v, marks=pytest.mark.slow) for v in others)]


def trials(count: int):
    """Return the mark that runs a test `count` times, all but the first marked as slow."""
    return pytest.mark.parametrize("trial", sampled(range(TIMES * count)))


def generator(*what) -> random.Random:
    """Return the random generator of a trial, the same in each run of the tests."""
    return random.Random(repr(what))  # noqa: S311


def finished(process) -> str:
    """Wait for a run and return its output, which must contain no traceback."""
    output, _ = process.communicate(timeout=BOUND)
    assert "Traceback" not in output, output
    return output


def recover(
    project: Project, expected: dict, config=SMALL, culprits=(), complete=False, targets=()
) -> None:
    """Run plainly until a run succeeds, and compare the results with those of an undisturbed run.

    One run may reject the culprits, if it names them all, before the next succeeds. A run of a
    complete film does not need its sources, and the test makes missing ones by name.
    """
    options = ["--keep-going"] if culprits else []
    for attempt in range(3):
        process = project.start("-j", "2", *targets, *options, config=config)
        output = finished(process)
        if process.returncode == 0:
            break
        if "--unlock" in output:
            project.run("--unlock", config=config)
            continue
        assert attempt < 2 and culprits, output
        unnamed = [culprit for culprit in culprits if culprit not in output]
        assert not unnamed, f"{unnamed} are not named in\n{output}"
        options = []
    assert process.returncode == 0, output
    actual = hashes(project.folder / "results")
    missing = sorted(expected.keys() - actual.keys())
    if complete and missing and not set(missing) & {"film.mp4", "episodes.csv", "attempts.csv"}:
        project.run("-j", "2", *(f"results/{name}" for name in missing), config=config)
        actual = hashes(project.folder / "results")
    different = {name for name in actual | expected if actual.get(name) != expected.get(name)}
    assert not different, f"{sorted(different)} differ after\n{output}"


def verified(project: Project, config: dict) -> list[Verdict]:
    """Return the verdicts of `verify` on a project's results."""

    def plan(complete: dict) -> Spec:
        return parse_spec(Plan(complete, project.folder / "scripts").spec("verify", {}))

    outputs = {name: stage.paths for name, stage in STAGES.items()}
    return verify_results(project.folder / "results", outputs, plan(load_config(config)), plan, 2)


def forget(project: Project, *names: str) -> None:
    """Remove results, as if the run had not made them yet."""
    for name in names:
        path = project.folder / "results" / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def processes(project: Project, programs: tuple[str, ...], option: str = "") -> list[int]:
    """Return the ids of a project's processes with one of the programs, and `option` as a word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            names = {Path(word).name for word in words[:2]}
            here = (folder / "cwd").readlink().is_relative_to(project.folder)
            if here and any(n.startswith(programs) for n in names) and option in (*words, ""):
                found.append(int(folder.name))
    return found


def wait_for(what, seconds: float = 60):
    """Return the first true result of `what()`, or None after a time limit."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.005)
    return None


def replaced(path: Path, content: bytes, keep_times: bool) -> None:
    """Replace a file's content, and keep or renew its time stamps."""
    status = path.stat()
    path.write_bytes(content)
    if keep_times:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
