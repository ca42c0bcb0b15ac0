"""A run of the whole workflow in a folder of its own: how long it took, and what it needed."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sample import ROOT


@dataclass(frozen=True)
class Process:
    """What a Python process needed, as it told when it ended (film/peaks/sitecustomize.py)."""

    peak: int  # bytes of memory that it held at most
    own: float  # CPU seconds, user and system
    children: float  # CPU seconds of those that it waited for


def timed_run(
    folder: Path,
    cores: int,
    config: Sequence[str],
    environment: Mapping[str, str],
    targets: Sequence[str] = (),
) -> float:
    """Run `snakemake` in `folder`, its results in `folder`/results; return its seconds.

    config: KEY=VALUE words. environment: what is set beside this process's own. targets: what is
    made, the film if none is named. Raises RuntimeError with all that was said if it fails.
    """
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    command += ["--directory", str(folder), "-j", str(cores), *targets]
    command += ["--config", "results=results", *config]
    start = time.perf_counter()
    answer = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    seconds = time.perf_counter() - start
    if answer.returncode:
        raise RuntimeError(f"snakemake ended with status {answer.returncode}:\n{answer.stdout}")
    return seconds


def measured_run(
    folder: Path, cores: int, config: Sequence[str], cache: Path
) -> tuple[float, dict[str, list[Process]]]:
    """Run `snakemake` in the new `folder`; return its seconds and each program's processes.

    cache: the user's cache folder. Raises RuntimeError as `timed_run` does.
    """
    peaks = folder / "peaks"
    peaks.mkdir(parents=True)
    environment = {
        "XDG_CACHE_HOME": str(cache),
        "PYTHONPATH": str(ROOT / "benchmarks" / "film" / "peaks"),
        "GOALREEL_PEAKS": str(peaks),
    }
    seconds = timed_run(folder, cores, config, environment)
    processes: dict[str, list[Process]] = {}
    for path in sorted(peaks.glob("*.json")):
        process = Process(**json.loads(path.read_text(encoding="utf-8")))
        processes.setdefault(path.name.partition(".")[0], []).append(process)
    return seconds, processes
