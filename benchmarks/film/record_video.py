"""goalreel's RecordVideo and Gymnasium's in one run on the same episodes: time, CPU, memory.

Each records every episode of an environment, an MP4 file for each, in a process of its own, after
an episode that is not timed. The time is that of rendering, stepping and writing, up to the end of
`close`. They take turns, run by run, so that a busy machine slows all of them alike. Printed, and
written to record_video.csv and record_video.md.

    python -m pip install -r envs/locks/bench.txt
    python -m benchmarks.film.record_video                         some minutes
    python -m benchmarks.film.record_video --episodes 2 --runs 1   a first try
"""

import argparse
import hashlib
import os
import re
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.sample import RESULTS, MismatchError, Sample
from benchmarks.table import Contender, as_csv, as_markdown, describe_machine, make_rows

# Policies that make an episode neither short nor endless: pump; lean with the pole.
POLICIES = {
    "MountainCar-v0": lambda observation: 2 if observation[1] >= 0 else 0,
    "CartPole-v1": lambda observation: int(observation[2] + observation[3] > 0),
}
RECORDERS = {
    "gymnasium.wrappers.RecordVideo": None,
    "goalreel.RecordVideo": {},
    "goalreel.RecordVideo, x264 preset medium as Gymnasium's": {"preset": "medium"},
}


@dataclass(frozen=True)
class Recording:
    """What a process found.

    frames: rendered; seconds: wall-clock time; cpu: seconds of all its processes; peak: bytes of
    memory that Python held at most; states: a digest of all observations
    """

    frames: int
    seconds: float
    cpu: float
    peak: int
    states: str


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    found: dict[tuple[str, str], list[tuple[Recording, Sample]]] = {}
    with tempfile.TemporaryDirectory(prefix="goalreel-record-") as folder:
        for run in range(options.runs):
            for env in POLICIES:
                for number, name in enumerate(RECORDERS):
                    place = Path(folder, f"{run}-{env}-{number}")
                    measured = measure(env, name, options.episodes, place)
                    found.setdefault((env, name), []).append(measured)
                    sample = measured[1]
                    said = f"run {run + 1} of {options.runs}: {env}, {name}: {sample.seconds:.3g} s"
                    print(f"{said} for {sample.units:,} frames", file=sys.stderr, flush=True)
    check(found)
    rows = make_rows(
        Contender(*key, tuple(sample for _, sample in measured)) for key, measured in found.items()
    )
    machine = describe_machine(_cores())
    table = as_markdown(rows, notes(found, options, machine))
    print(table)
    options.output.mkdir(parents=True, exist_ok=True)
    Path(options.output, "record_video.csv").write_text(as_csv(rows, machine), encoding="utf-8")
    Path(options.output, "record_video.md").write_text(table, encoding="utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("--episodes", type=int, default=5, help="episodes of each environment (5)")
    add("--runs", type=int, default=3, help="runs, of which the median is shown (3)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    arguments = options.parse_args(argv)
    if arguments.episodes < 1 or arguments.runs < 1:
        options.error("--episodes and --runs must be positive")
    return arguments


def measure(env: str, name: str, episodes: int, folder: Path) -> tuple[Recording, Sample]:
    """Record in a process of its own, and count the frames that came out."""
    import imageio_ffmpeg

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        recording = process.submit(record, env, name, episodes, folder).result()
    videos = [folder / f"rl-video-episode-{number}.mp4" for number in range(1, episodes + 1)]
    written = sum(imageio_ffmpeg.count_frames_and_secs(str(video))[0] for video in videos)
    lost = recording.frames - written
    if not 0 <= lost <= episodes:
        raise MismatchError(f"{name}: {written} frames of {recording.frames} were written")
    played = f"{episodes} episodes"
    return recording, Sample(recording.frames, recording.seconds, played, lost)


def record(env_name: str, name: str, episodes: int, folder: Path) -> Recording:
    """Record episodes 1, 2, ...; episode 0 is the one that is not timed."""
    import gymnasium

    import goalreel

    settings, env = RECORDERS[name], gymnasium.make(env_name, render_mode="rgb_array")
    if settings is None:
        env = gymnasium.wrappers.RecordVideo(env, str(folder), lambda _: True)
    else:
        env = goalreel.RecordVideo(env, str(folder), lambda _: True, **settings)
    frames, start, cpu, states = 0, 0.0, 0.0, hashlib.sha256()
    for episode in range(episodes + 1):
        observation, _ = env.reset(seed=episode)  # which also saves the episode before
        if episode == 1:
            frames, start, cpu = 0, time.perf_counter(), _cpu()
        frames += 1
        over = False
        while not over:
            action = POLICIES[env_name](observation)
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
            states.update(observation.tobytes())
            frames += 1
    env.close()
    seconds = time.perf_counter() - start
    return Recording(frames, seconds, _cpu() - cpu, _peak(), states.hexdigest())


def check(found: dict[tuple[str, str], list[tuple[Recording, Sample]]]) -> None:
    """Raise MismatchError if not all have played the same."""
    for env in POLICIES:
        played = {
            (recording.frames, recording.states)
            for (group, _), measured in found.items()
            for recording, _ in measured
            if group == env
        }
        if len(played) > 1:
            raise MismatchError(f"{env}: not all recorders saw the same episodes")


def notes(found: dict, options: argparse.Namespace, machine: str) -> list[str]:
    """Return what a reader of the table should know, the memory too."""
    times = f"Medians of {options.runs} runs" if options.runs > 1 else "One run"
    said = [
        f"{times}; changes and ratios are against the first row of each environment. Stepping and "
        f"rendering are part of the time. {options.episodes} episodes of each environment, the "
        'same seeds and actions for all; every observation was compared. "Lost" is the last frame '
        "of an episode.",
        "All encode with x264, each at its own default settings where no other is named: "
        "Gymnasium's preset, by moviepy, is medium, on all cores; goalreel.RecordVideo's is "
        "veryfast, on one.",
    ]
    for env in POLICIES:
        costs = [
            f"{name} {statistics.median(1000 * r.cpu / r.frames for r, _ in measured):.2f} ms, "
            f"{statistics.median(r.peak for r, _ in measured) / 2**20:,.0f} MiB"
            for (group, name), measured in found.items()
            if group == env
        ]
        said.append(
            f"{env}, CPU time per frame, ffmpeg's included, and peak memory of the Python process: "
            f"{'; '.join(costs)}."
        )
    return [*said, f"Machine: {machine}."]


def _cpu() -> float:
    """Return the CPU seconds of this process and of all that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _peak() -> int:
    """Return the most bytes that this process has held; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return 0
    return int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1]) * 1024


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main()
