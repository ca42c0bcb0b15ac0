"""A film so long that leaks would show, in a run that is stopped at random and continued.

A run is interrupted (SIGINT), terminated (SIGTERM) and killed with all its jobs (SIGKILL), in this
order, each at a random moment in a quarter of its own, and started again by the same command.
Memory, file handles and threads of all its processes are read every second.

    python -m benchmarks.film.haul reaches=300000 shard_size=1000            45 GB of disk
    python -m benchmarks.film.haul env=CartPole-v1 episodes=100000 shard_size=500
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import psutil

from benchmarks.harness import ROOT, MismatchError, available_cores, digits, parser, write_table

_PARTS = 4
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_SEED = 1  # of the moments
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied)


@dataclass
class Part:
    """The figures of a quarter of a run."""

    shards: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    # The greatest bytes, file handles and threads of Snakemake, and of a job.
    peaks: Counter = field(default_factory=Counter)


def main(argv: list[str] | None = None) -> None:
    """Measure a run, print its table and write it."""
    add = (options := parser(__doc__, runs=1)).add_argument
    add("config", nargs="+", metavar="KEY=VALUE", help="options of the run")
    add("--folder", type=Path, help="working folder of the run (a temporary one)")
    chosen = options.parse_args(argv)
    config = dict(word.split("=") for word in chosen.config)
    unit = "reaches" if "reaches" in config else "episodes"
    with tempfile.TemporaryDirectory(prefix="goalreel-haul-", dir=chosen.folder) as folder:
        parts = film(Path(folder), config, int(config[unit]) // int(config["shard_size"]))
        table = Path(folder, "results", "episodes.csv")
        filmed = pd.read_csv(table, usecols=["seed"]).shape[0]
    if filmed != int(config[unit]):
        raise MismatchError(f"{filmed} {unit} filmed, {config[unit]} asked")
    env = config.get("env", "MountainCar-v0")
    rows = [[env, *cells(n, part, int(config["shard_size"]))] for n, part in parts.items()]
    header = ("environment", "quarter", f"s per 1,000 {unit}", f"CPU s per 1,000 {unit}")
    header += tuple(f"{what}, {who}" for who in ("Snakemake", "jobs") for what in _FIGURES)
    notes = [
        f"One run of {int(config[unit]):,} {unit} in shards of {config['shard_size']}, stopped by "
        f"{', '.join(stop.name for stop in _STOPS)} and continued. Quarters are those of the "
        "shards. The seconds are those in which Snakemake ran. Others are greatest values.",
    ]
    name = "haul_" + env.partition("-")[0].lower()
    write_table(chosen.output / name, header, rows, notes, 2)


_FIGURES = ("MiB", "file handles", "threads")


def cells(number: int, part: Part, shard_size: int) -> list[str]:
    """Return the cells of a row."""
    times = (1000 * spent / (part.shards * shard_size) for spent in (part.seconds, part.cpu))
    peaks = part.peaks
    shown = ((peaks[who, "MiB"] / 2**20, *(peaks[who, n] for n in _FIGURES[1:])) for who in _WHO)
    return [str(number + 1), *map(digits, times), *(f"{n:,.0f}" for one in shown for n in one)]


_WHO = ("Snakemake", "jobs")


def film(folder: Path, config: Mapping[str, str], shards: int) -> dict[int, Part]:
    """Film, with stops, and return the figures of each part."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    stops = moments(shards)
    parts: dict[int, Part] = {number: Part() for number in range(_PARTS)}
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    command += ["-j", str(available_cores()), "--config", *(f"{k}={v}" for k, v in config.items())]
    command += ["results=results"]
    segments, before = folder / "results" / "segments", 0
    while True:
        with (folder / "log").open("a") as log:
            run = psutil.Popen(command, cwd=folder, stderr=log, start_new_session=True)
        then, cpu, stopped = time.monotonic(), 0.0, False
        while run.poll() is None:
            time.sleep(1)
            done = sum(1 for _ in segments.glob("*.mp4")) if segments.exists() else 0
            part = parts[min(done * _PARTS // shards, _PARTS - 1)]
            part.shards, before = part.shards + done - before, done
            now = time.monotonic()
            part.seconds, then = part.seconds + now - then, now
            with suppress(*_GONE):
                spent = sum(run.cpu_times()[:4])
                part.cpu, cpu = part.cpu + spent - cpu, spent
            read(run, part.peaks)
            if stops and done >= stops[0][0]:
                end(run, stops.pop(0)[1])
                stopped = True
        if run.returncode == 0:
            return parts
        print(f"status {run.returncode}, {before} of {shards} shards", file=sys.stderr, flush=True)
        if not stopped:
            raise RuntimeError((folder / "log").read_text(encoding="utf-8")[-2000:])


def moments(shards: int) -> list[tuple[int, signal.Signals]]:
    """Return how many shards are encoded when each signal is sent."""
    draw, part = random.Random(_SEED), shards / _PARTS
    return [(int((n + draw.random()) * part), stop) for n, stop in enumerate(_STOPS)]


def read(run: psutil.Process, peaks: Counter) -> None:
    """Raise the peaks to the figures of the run's processes."""
    with suppress(*_GONE):
        for process in (run, *run.children(recursive=True)):
            with suppress(*_GONE):
                who = "Snakemake" if process == run else "jobs"
                found = process.memory_info().rss, process.num_fds(), process.num_threads()
                for name, number in zip(_FIGURES, found, strict=True):
                    peaks[who, name] = max(peaks[who, name], number)


def end(run: psutil.Popen, stop: signal.Signals) -> None:
    """Send a signal to a run, SIGKILL to all of its processes, and wait until it has ended."""
    if stop == signal.SIGKILL:
        os.killpg(run.pid, stop)
    else:
        run.send_signal(stop)
    with suppress(subprocess.TimeoutExpired):
        run.wait(300)


if __name__ == "__main__":
    main()
