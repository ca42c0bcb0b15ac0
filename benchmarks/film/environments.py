"""Films of environments that Gymnasium draws: goalreel's workflow, its peers, and the floor.

    floor            Gymnasium's step and render alone
    RecordVideo      Gymnasium's, one process, at its defaults, an MP4 for each episode
    EnvPool          its own step and render, into x264's preset ultrafast; where it draws the game,
                     also by how many pixels its pictures differ from Gymnasium's
    rlrender         torchrl's, where --rlrender names the program
    goalreel         from the start of `snakemake` to its end, title cards and captions

goalreel plays first, on one core and on --cores; the others replay the seeds and actions that it
recorded, on one core each, and every reward is compared (EnvPool plays episodes of its own). All
take turns, run by run. Printed, and written to environments.csv and .md, after each environment.

    python -m pip install -r envs/locks/bench.txt            and for MuJoCo: apt install libosmesa6
    python -m benchmarks.film.environments                               half an hour
    python -m benchmarks.film.environments --episodes 2 --runs 1         a first try
    python -m benchmarks.film.environments --envs CartPole-v1 ALE/Pong-v5

rlrender stands in an environment of its own, with torch, torchrl, torchcodec (which needs FFmpeg's
libraries) and envs/locks/bench.txt.
"""

import argparse
import contextlib
import ctypes.util
import hashlib
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.film import environment_peers as peers
from benchmarks.film.environment_peers import Episode, Film, Taken
from benchmarks.sample import RESULTS, MismatchError
from benchmarks.table import available_cores, csv_text, describe_machine, markdown
from benchmarks.timed_run import measured_run

FILMS = (
    Film("CartPole-v1", 100, 5, rule="obs[..., 2] + 0.5 * obs[..., 3] > 0"),
    Film("Acrobot-v1", 1000, 5),
    Film("Pendulum-v1", 300, 10),
    Film("LunarLander-v3", 300, 20),
    Film("BipedalWalker-v3", 100, 10, max_steps=100, fresh=True),
    Film("ALE/Breakout-v5", 300, 20),
    Film("ALE/Pong-v5", 100, 10),
    Film("minigrid:MiniGrid-DoorKey-8x8-v0", 1000, 20, max_steps=100),
    Film("FrozenLake-v1", 1000, 100),
    Film("CarRacing-v3", 20, 5, max_steps=100),
    Film("HalfCheetah-v5", 20, 5, max_steps=30),
)
POLICY = """import numpy as np


def act(obs):
    return ({rule}).astype(np.int64)
"""
PEERS = ("RecordVideo", "EnvPool", "rlrender")
_NONE = "–"


@dataclass
class Run:
    """What goalreel took for a film, its frames counted without title cards."""

    frames: int
    seconds: float
    peak: int  # bytes, of its largest Python process
    cpu: dict[str, list[float]]  # of each program, each job's own CPU seconds, without ffmpeg's
    cache: int  # bytes of the frame caches
    film: int  # bytes
    film_frames: int  # title cards included
    digest: str  # of the film


@dataclass
class Found:
    """What was measured of an environment."""

    film: Film
    start: Run  # an episode of one step
    runs: dict[int, list[Run]]  # by cores
    taken: dict[str, list[Taken]] = field(default_factory=dict)  # by peer; "floor" too
    pixels: float | None = None
    reasons: list[str] = field(default_factory=list)  # of what is not there


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    if ctypes.util.find_library("OSMesa"):
        os.environ.setdefault("MUJOCO_GL", "osmesa")
    os.environ.setdefault("MUJOCO_GL", "egl")
    options.output.mkdir(parents=True, exist_ok=True)
    machine = describe_machine(options.cores)
    found: list[Found] = []
    for film in options.films:
        place = tempfile.TemporaryDirectory(prefix="goalreel-environments-")
        with place as folder, contextlib.chdir(folder):  # where MuJoCo leaves its log
            found.append(measure(film, Path(folder), options))
        head = header(options)
        rows = [cells(each, options) for each in found]
        table = markdown(head, rows, notes(found, options, machine))
        text = csv_text(head, ([c.replace(_NONE, "") for c in row] for row in rows), machine)
        (options.output / "environments.csv").write_text(text, encoding="utf-8")
        (options.output / "environments.md").write_text(table, encoding="utf-8")
    print(table)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line, the chosen films among them."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [film.name for film in FILMS]
    add = options.add_argument
    add("--episodes", type=int, help="of each environment at most (100; fewer of slow ones)")
    add("--peer-episodes", type=int, help="of them, played by the peers at most (5 to 100)")
    add("--envs", nargs="+", choices=names, default=names, metavar="ENV", help=", ".join(names))
    add("--runs", type=int, default=3, help="runs, of which the median is shown (3)")
    add("--cores", type=int, default=2, help="cores of goalreel's second film (2)")
    add("--rlrender", type=_absolute, metavar="PROGRAM", help="torchrl's program")
    add("--output", type=_absolute, default=RESULTS, help="folder for the tables")
    arguments = options.parse_args(argv)
    counts = arguments.episodes, arguments.peer_episodes, arguments.runs, arguments.cores
    if min(count for count in counts if count is not None) < 1:
        options.error("--episodes, --peer-episodes, --runs and --cores must be positive")
    if arguments.cores > available_cores():
        options.error(f"--cores {arguments.cores}: this machine offers {available_cores()}")
    arguments.films = []
    for film in FILMS:
        if film.name in arguments.envs:
            episodes = min(film.episodes, arguments.episodes or film.episodes)
            played = min(film.peer_episodes, arguments.peer_episodes or film.peer_episodes)
            film = replace(film, episodes=episodes, peer_episodes=min(played, episodes))
            arguments.films.append(film)
    return arguments


def _absolute(text: str) -> Path:
    return Path(text).absolute()


def measure(film: Film, folder: Path, options: argparse.Namespace) -> Found:
    """Let everyone film an environment, in turns."""
    start = goalreel(replace(film, episodes=1, max_steps=1), folder / "start", 1)
    found = Found(film, start, {1: [], options.cores: []})
    contenders: dict[str, Callable] = {
        "floor": peers.step_and_render,
        "RecordVideo": peers.record_video,
        "EnvPool": peers.env_pool,
    }
    if options.rlrender:
        contenders["rlrender"] = partial(peers.rlrender, program=options.rlrender)
    episodes: list[Episode] = []
    for number in range(options.runs):
        for cores, runs in found.runs.items():
            place = folder / f"{number} {cores}"
            runs.append(goalreel(film, place, cores))
            say(film, f"goalreel, -j {cores}", runs[-1].frames, runs[-1].seconds)
            episodes = episodes or recorded(place / "results", film.peer_episodes)
        for name, work in list(contenders.items()):
            place = folder / f"{number} {name}"
            try:
                taken = alone(work, film, episodes, place)
            except MismatchError:
                raise
            except Exception as error:
                if name in ("floor", "RecordVideo"):
                    raise
                found.reasons.append(f"{name} does not film {film.name}: {reason(error)}")
                del contenders[name]
                continue
            found.taken.setdefault(name, []).append(taken)
            say(film, name, taken.frames, taken.seconds)
    if len({run.digest for runs in found.runs.values() for run in runs}) > 1:
        raise MismatchError(f"{film.name}: not all runs of goalreel gave the same film")
    if "EnvPool" in found.taken:
        alone(peers.env_pool_pictures, film, episodes, folder)
        found.pixels = alone(peers.differing_pixels, film, folder)
    return found


def say(film: Film, name: str, frames: int, seconds: float) -> None:
    """Tell what was measured on stderr."""
    speed = f"{seconds:.1f} s, {frames / seconds:.0f} frames/s"
    print(f"{film.name}: {name}: {speed}", file=sys.stderr, flush=True)


def reason(error: Exception) -> str:
    """Return an error's last line, or what became of its process."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].rstrip(".") + "."


@contextlib.contextmanager
def pinned(cores: int) -> Iterator[None]:
    """Bind what is started to so many cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def alone(work: Callable, *arguments: object) -> object:
    """Return what a function returns in a new process on one core."""
    with pinned(1), ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


def goalreel(film: Film, folder: Path, cores: int) -> Run:
    """Film by the whole workflow in the new `folder`, on so many cores."""
    import goalreel
    from goalreel.mp4.reader import read_index

    folder.mkdir()
    words = [f"env={film.id}", f"episodes={film.episodes}"]
    words += ["render={scale: 1}"]  # pictures as large as the peers'
    if film.max_steps:
        words.append(f"max_steps={film.max_steps}")
    if film.rule:
        (folder / "balance.py").write_text(POLICY.format(rule=film.rule), encoding="utf-8")
        words.append("policy={name: file, file: balance.py}")
    else:
        words.append("policy={name: random}")
    with pinned(cores):
        seconds, processes = measured_run(folder, cores, words, folder / "cache")
    results = folder / "results"
    shards = map(goalreel.read_trajectories, sorted((results / "trajectories").glob("*.npz")))
    path = results / "film.mp4"
    return Run(
        frames=sum(int(shard.offsets[-1]) for shard in shards),
        seconds=seconds,
        peak=max(process.peak for started in processes.values() for process in started),
        cpu={
            program: [process.own for process in started]
            for program, started in processes.items()
            if program != "snakemake"
        },
        cache=sum(each.stat().st_size for each in (results / "frames").iterdir()),
        film=path.stat().st_size,
        film_frames=read_index(path).frames,
        digest=hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def recorded(results: Path, count: int) -> list[Episode]:
    """Return `count` of a film's episodes, evenly spread over it."""
    import goalreel

    episodes = []
    for path in sorted((results / "trajectories").glob("*.npz")):
        shard = goalreel.read_trajectories(path)
        for index in range(len(shard)):
            _, actions, rewards = shard.episode(index)
            episodes.append(Episode(int(shard.episodes.seed[index]), actions, rewards))
    return [episodes[index] for index in np.linspace(0, len(episodes) - 1, count).astype(int)]


def header(options: argparse.Namespace) -> list[str]:
    """Return the table's header."""
    return [
        *("environment", "episodes", "frames", "floor, µs", "floor, frames/s"),
        *(f"{name}, frames/s" for name in PEERS),
        "EnvPool, pixels that differ",
        *("goalreel, 1 core, frames/s", f"goalreel, {options.cores} cores, frames/s"),
        *("to RecordVideo", "goalreel adds, µs", "jobs' starts, µs"),
        *("cache, bytes/frame", "film, bytes/frame", "peak, MiB"),
    ]


def cells(found: Found, options: argparse.Namespace) -> list[str]:
    """Return an environment's cells, _NONE where nothing was measured."""
    floor = statistics.median(1e6 * taken.cpu / taken.frames for taken in found.taken["floor"])
    speeds = {
        name: statistics.median(taken.frames / taken.seconds for taken in all_taken)
        for name, all_taken in found.taken.items()
    }
    one, more = (
        statistics.median(run.frames / run.seconds for run in found.runs[cores])
        for cores in (1, options.cores)
    )
    run = found.runs[1][0]
    own = statistics.median(added(run, found.start) for run in found.runs[1])
    starts = statistics.median(started(run, found.start) for run in found.runs[1])
    peak = max(run.peak for runs in found.runs.values() for run in runs)
    return [
        found.film.name,
        *(str(found.film.episodes), str(run.frames), f"{floor:.0f}", digits(speeds["floor"])),
        *(digits(speeds[name]) if name in speeds else _NONE for name in PEERS),
        _NONE if found.pixels is None else f"{100 * found.pixels:.2f}%",
        *(digits(one), digits(more), f"{more / speeds['RecordVideo']:.2f}"),
        *(f"{own - floor:.0f}", f"{starts:.0f}"),
        *(f"{run.cache / run.frames:.0f}", f"{run.film / run.film_frames:.0f}"),
        f"{peak / 2**20:.0f}",
    ]


def digits(speed: float) -> str:
    """Return a speed, a small one with a decimal."""
    return f"{speed:.0f}" if speed >= 100 else f"{speed:.1f}"


def added(run: Run, start: Run) -> float:
    """Return the µs of CPU time per frame that the jobs took, without ffmpeg and their starts."""
    return 1e6 * sum(map(sum, run.cpu.values())) / run.frames - started(run, start)


def started(run: Run, start: Run) -> float:
    """Return the µs per frame that the starts of a film's jobs took, as a film of a step tells."""
    each = {program: statistics.mean(cpu) for program, cpu in start.cpu.items()}
    seconds = sum(len(cpu) * each.get(program, 0) for program, cpu in run.cpu.items())
    return 1e6 * seconds / run.frames


def notes(found: list[Found], options: argparse.Namespace, machine: str) -> list[str]:
    """Return what a reader of the table should know."""
    times = f"Medians of {options.runs} runs, in turns" if options.runs > 1 else "One run"
    limits = ", ".join(f"{e.film.name} {e.film.max_steps}" for e in found if e.film.max_steps)
    played = ", ".join(f"{each.film.name} {each.film.peer_episodes}" for each in found)
    fresh = ", ".join(each.film.name for each in found if each.film.fresh)
    rule = next((each.film.rule for each in found if each.film.rule), None)
    apart = [e.film.name for e in found if "EnvPool" in e.taken and e.pixels is None]
    return [
        f"{times}; wall-clock time where no other is named. Random policies"
        + (f"; CartPole by `{rule}`" if rule else "")
        + (f". At most so many steps an episode: {limits}." if limits else "."),
        "Frames: goalreel's, without title cards. The peers replay some of the same episodes, "
        f"spread over the film, on one core, and every reward was compared: {played} episodes."
        + (
            f" Each episode of {fresh} gets a new instance: a used one plays otherwise."
            * bool(fresh)
        ),
        "floor: Gymnasium's step and render alone; µs of CPU time per frame, and frames per second "
        "on one core. RecordVideo: Gymnasium's, one process at its defaults (x264's preset medium, "
        "an MP4 for each episode), on one core, its start not timed.",
        "EnvPool: its own step and render on one thread, eight environments side by side, as many "
        "steps in episodes of its own, into x264's preset ultrafast, one core, its start not "
        "timed. Pixels that differ: from Gymnasium's picture of the same state"
        + (
            f"; unknown for {', '.join(apart)}, whose states EnvPool does not tell in full and "
            "whose episodes it seeds otherwise."
            if apart
            else "."
        ),
        "rlrender: torchrl's, "
        + ("on one core, its start not timed." if options.rlrender else "was not measured."),
        f"goalreel: the whole workflow from the start of snakemake to its end, on one core and on "
        f"{options.cores}, title cards and captions included, pictures not enlarged "
        f"(render.scale: 1). To RecordVideo: how many times "
        f"as many frames per second on {options.cores} cores.",
        "goalreel adds: µs of CPU time per frame of all jobs on one core, without ffmpeg, the "
        "floor and the jobs' starts; those are taken from a film of one step. Snakemake's own time "
        "is in none of them.",
        "peak: of goalreel's largest Python process; ffmpeg's memory does not count.",
        *(line for each in found for line in each.reasons),
        f"MuJoCo draws by MUJOCO_GL={os.environ['MUJOCO_GL']}.",
        f"Machine: {machine}.",
    ]


if __name__ == "__main__":
    main()
