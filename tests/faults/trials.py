"""How faults are tried: how often, on which runs, what each must end with, and who counts.

A trial damages or stops a run and leaves it to `ends_right`: the next plain runs must end with the
bytes of an undisturbed run and with nothing else in the results folder. The faults themselves stand
in the tests beside this module; table.py prints what they noted.
"""

import contextlib
import os
import random
import shutil
import time
from pathlib import Path

import pytest
from conftest import Project, hashes

FULL = os.environ.get("GOALREEL_FAULTS") == "full"  # what `make faults` asks for
SMALL = {"reaches": 6, "shard_size": 2}
BY_X264 = SMALL | {"encode": "{encoder: x264}"}
BOUND = 240  # seconds for one run, which alone takes some; what takes longer hangs


def trials(sample: int, full: int):
    """Return the mark that runs a test `full` times under `make faults`, else `sample` times."""
    return pytest.mark.parametrize("trial", range(full if FULL else sample))


def only_full(reason: str):
    """Return the mark of what is left to `make faults`."""
    return pytest.mark.skipif(not FULL, reason=f"make faults: {reason}")


def noted(record_property, fault: str, outcome: str, tried: int = 1) -> None:
    """Note what came of a fault for the table."""
    record_property("fault", (fault, outcome, tried))


def dice(*what) -> random.Random:
    """Return the random numbers of a trial: the same each time that it is run."""
    return random.Random(repr(what))  # noqa: S311


def ended(process) -> str:
    """Wait for a run and return all that it says, which holds no traceback."""
    said, _ = process.communicate(timeout=BOUND)
    assert "Traceback" not in said, said
    return said


def ends_right(project: Project, config: dict, wanted: dict, culprits=(), runs: int = 2) -> str:
    """Run plainly until the run ends well; return the outcome in words.

    Whatever fails before names all `culprits`, at most `runs` - 1 times. Then the results are
    `wanted`, byte for byte, and no temporary file stands among them.
    """
    for run in range(runs):
        options = ["--keep-going"] if culprits and run == 0 else []
        process = project.start("-j", "2", *options, config=config)
        said = ended(process)
        if process.returncode == 0:
            found = hashes(project.folder / "results")
            different = {k for k in found | wanted if found.get(k) != wanted.get(k)}
            assert not different, f"{sorted(different)} differ after\n{said}"
            return "the next run ends right" if run == 0 else "refused by name, then made again"
        assert run < runs - 1, said
        assert culprits, said
        unnamed = [str(culprit) for culprit in culprits if str(culprit) not in said]
        assert not unnamed, f"{unnamed} are not named in\n{said}"
    raise AssertionError("no run was asked for")


def copy_of(project: Project, folder: Path) -> Project:
    """Return a copy of a project with its results, their times and Snakemake's notes of them."""
    shutil.copytree(project.folder, folder)
    copy = Project.__new__(Project)
    copy.folder, copy.cache = folder, project.cache
    return copy


def forget(project: Project, *names: str) -> None:
    """Remove results, as if the run had not come so far."""
    for name in names:
        path = project.folder / "results" / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def processes(project: Project, *programs: str) -> list[int]:
    """Return the processes in a project's folder whose program, or its script, is so named."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            names = {Path(word).name for word in words[:2]}
            here = (folder / "cwd").readlink().is_relative_to(project.folder)
            if here and any(name.startswith(programs) for name in names):
                found.append(int(folder.name))
    return found


def wait_for(what, seconds: float = 60):
    """Return what `what()` returns as soon as it is true, or None after some time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.005)
    return None


def damaged(path: Path, content: bytes, keep_times: bool) -> None:
    """Replace a file's content, with its old time stamps or with new ones."""
    status = path.stat()
    path.write_bytes(content)
    if keep_times:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
