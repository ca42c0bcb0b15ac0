"""A run of the whole workflow in a folder of its own, and how long it took."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.sample import ROOT


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
