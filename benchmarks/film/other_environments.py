"""Films of an environment that Gymnasium draws: goalreel's workflow against RecordVideo.

CartPole-v1, balanced by a rule of one line, so that episodes last 500 steps. goalreel is timed from
the start of `snakemake` to its end, at its defaults and with shards for all cores; RecordVideo,
after one episode that is not timed, films the episodes of the same seeds and actions in one
process. They take turns. Printed, and written to other_environments.csv and .md.

    python -m pip install -r requirements-bench.txt
    python -m benchmarks.film.other_environments                        some minutes
    python -m benchmarks.film.other_environments --reaches 2 --runs 1   a first try
"""

import argparse
import csv
import os
import tempfile
import time
from pathlib import Path

from benchmarks.sample import RESULTS, MismatchError, Sample
from benchmarks.table import Contender, as_csv, as_markdown, describe_machine, make_rows
from benchmarks.timed_run import timed_run

ENV = "CartPole-v1"
POLICY = """import numpy as np


def act(observations):
    return (observations[:, 2] + 0.5 * observations[:, 3] > 0).astype(np.int64)
"""


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    shards = max(1, options.reaches // options.cores)
    contenders = {
        "goalreel, one shard": lambda folder: goalreel(
            folder, options, (f"shard_size={options.reaches}",)
        ),
        f"goalreel, {options.cores} shards": lambda folder: goalreel(
            folder, options, (f"shard_size={shards}",)
        ),
    }
    samples = {name: [] for name in ("RecordVideo", *contenders)}
    with tempfile.TemporaryDirectory(prefix="goalreel-environments-") as name:
        for run in range(options.runs):
            for contender, film in contenders.items():
                folder = Path(name, f"{run} {contender}")
                samples[contender].append(film(folder))
            samples["RecordVideo"].append(record_video(folder / "results" / "episodes.csv"))
    rows = make_rows(Contender(ENV, name, tuple(taken)) for name, taken in samples.items())
    machine = describe_machine(options.cores)
    frames = samples["RecordVideo"][0].units
    table = as_markdown(
        rows,
        [
            f"Medians of {options.runs} runs, in which all take turns; wall-clock time. "
            f"{options.reaches} episodes, {frames:,} frames of 600x400 pixels, the same seeds and "
            "actions for all, and the same returns.",
            f"goalreel: from the start of snakemake to its end, on {options.cores} cores, title "
            "cards and captions included, x264's preset veryfast. RecordVideo: one process, an MP4 "
            "for each episode, x264's preset medium on all cores, its imports not counted.",
            f"Machine: {machine}.",
        ],
    )
    print(table)
    (options.output / "other_environments.csv").write_text(as_csv(rows, machine), encoding="utf-8")
    (options.output / "other_environments.md").write_text(table, encoding="utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("--reaches", type=int, default=20, help="episodes to film (20)")
    add("--runs", type=int, default=3, help="runs, of which the median is shown (3)")
    add("--cores", type=int, default=2, help="cores for everyone (2)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    return options.parse_args(argv)


def goalreel(folder: Path, options: argparse.Namespace, config: tuple[str, ...]) -> Sample:
    """Film with the whole workflow in the new `folder`."""
    folder.mkdir()
    (folder / "balance.py").write_text(POLICY, encoding="utf-8")
    words = [f"env={ENV}", f"reaches={options.reaches}", "success=450", *config]
    words.append("policy={name: file, file: balance.py}")
    seconds = timed_run(folder, options.cores, words, {"XDG_CACHE_HOME": str(folder / "cache")})
    frames = sum(steps + 1 for _, steps, _ in _filmed(folder / "results" / "episodes.csv"))
    return Sample(frames, seconds, f"{options.reaches} episodes")


def record_video(table: Path) -> Sample:
    """Film the episodes of goalreel's table by RecordVideo. Raises MismatchError."""
    import gymnasium
    import numpy as np

    scope: dict = {}
    exec(POLICY, scope)  # noqa: S102 - the same rule for both
    with tempfile.TemporaryDirectory() as folder:
        env = gymnasium.wrappers.RecordVideo(
            gymnasium.make(ENV, render_mode="rgb_array"), folder, episode_trigger=lambda _: True
        )

        def play(seed: int) -> tuple[int, float]:
            observation, _ = env.reset(seed=seed)
            steps, total, ended = 0, 0.0, False
            while not ended:
                action = scope["act"](np.asarray([observation]))[0]
                observation, reward, terminated, truncated, _ = env.step(action)
                steps, total, ended = steps + 1, total + reward, terminated or truncated
            return steps, total

        episodes = _filmed(table)
        play(episodes[0][0])
        env.stop_recording()
        start, frames = time.perf_counter(), 0
        for seed, steps, total in episodes:
            if play(seed) != (steps, total):
                raise MismatchError(f"the episode of seed {seed} is another one")
            frames += steps + 1
        env.stop_recording()
        seconds = time.perf_counter() - start
        env.close()
    return Sample(frames, seconds, f"{len(episodes)} episodes")


def _filmed(table: Path) -> list[tuple[int, int, float]]:
    """Return seed, steps and return of the filmed episodes."""
    with table.open(encoding="utf-8", newline="") as rows:
        return [
            (int(row["seed"]), int(row["steps"]), float(row["return"]))
            for row in csv.DictReader(rows)
        ]


if __name__ == "__main__":
    main()
