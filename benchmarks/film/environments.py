"""Films of environments that Gymnasium renders: goalreel's workflow, its peers, and the floor.

    floor            Gymnasium's step and render only
    RecordVideo      Gymnasium's, one process, at its defaults, an MP4 for each episode
    EnvPool          its own step and render, into x264's preset ultrafast
    goalreel         from the start of `snakemake` to its end, title cards and captions

goalreel plays first, on each number of --cores. The others replay its seeds and actions on one
core each (EnvPool plays episodes of its own). The table is TABLE.csv and TABLE.md, written after
each environment.

    python -m benchmarks.film.environments --runs 1                          half an hour
    python -m benchmarks.film.environments --episodes 2 --runs 1             a first try
    python -m benchmarks.film.environments --envs CartPole-v1 ALE/Pong-v5
    python -m benchmarks.film.environments --table other_environments
    python -m benchmarks.film.environments --table long_films --cores 2 --runs 1
    python -m benchmarks.film.environments --table cores --cores 1 2 4 8 16

MuJoCo renders without a screen by OSMesa (Debian: libosmesa6).
"""

import argparse
import contextlib
import ctypes
import ctypes.util
import hashlib
import itertools
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.film.replays import (
    BALANCE,
    FILMS,
    Episode,
    Film,
    Taken,
    record_video,
    recorded_episodes,
    step_and_render,
)
from benchmarks.harness import (
    MismatchError,
    available_cores,
    digits,
    medians,
    parser,
    pinned,
    run_workflow,
    take_turns,
    write_table,
)

ALL_FILMS = (
    *FILMS,
    Film("Ant-v5", 20, 5, max_episode_steps=30),
    Film("Walker2d-v5", 20, 10, max_episode_steps=30),
    Film("Hopper-v5", 20, 10, max_episode_steps=30),
    Film("Humanoid-v5", 20, 5, max_episode_steps=30),
)
LONG_FILMS = (
    Film("CarRacing-v3", 100, 3, max_episode_steps=1000),
    Film("HalfCheetah-v5", 100, 3, max_episode_steps=300),
)
# They need packages that envs/locks/bench.txt does not have: highway-env, miniworld,
# pybullet_envs_gymnasium, and gymnasium-robotics with mujoco<3.12.
OTHER_FILMS = (
    Film("highway_env:highway-v0", 20, 5, max_episode_steps=20),
    Film(
        "pybullet_envs_gymnasium:HalfCheetahBulletEnv-v0", 20, 5, max_episode_steps=30, fresh=True
    ),
    Film("miniworld:MiniWorld-Hallway-v0", 20, 5, max_episode_steps=100),
    Film("gymnasium_robotics:FetchReach-v4", 20, 5, max_episode_steps=30),
)
# Films that are large enough for many cores.
CORES_FILMS = (
    Film("CartPole-v1", 1000, 5, rule=BALANCE),
    Film("LunarLander-v3", 600, 20),
    Film("ALE/Breakout-v5", 300, 20),
    Film("minigrid:MiniGrid-DoorKey-8x8-v0", 1500, 20, max_episode_steps=100),
    Film("CarRacing-v3", 80, 5, max_episode_steps=100),
)
TABLES = {"environments": ALL_FILMS, "other_environments": OTHER_FILMS}
TABLES |= {"long_films": LONG_FILMS, "cores": CORES_FILMS}
_SHORT = ("long_films", "cores")  # tables without the columns below
_DETAILS = {
    *("floor, µs", "floor, frames/s", "EnvPool, frames/s", "goalreel adds, µs"),
    *("jobs' starts, µs", "cache, bytes/frame", "film, bytes/frame", "peak, MiB"),
}
_NUM_ENVS = 8  # side by side in EnvPool, so that the cost of a call does not count


@dataclass(frozen=True)
class Run:
    """The figures of goalreel's film."""

    frames: int  # without title cards
    seconds: float
    peak: int  # bytes, of its largest Python process
    cpu: dict[str, list[float]]  # of each program, each job's own CPU seconds, without ffmpeg's
    cache: int  # bytes of the frame caches
    film: int  # bytes
    film_frames: int  # title cards included
    digest: str  # of the film


@dataclass
class Found:
    """The measurements of an environment."""

    film: Film
    start: Run  # an episode of one step
    runs: dict[int, list[Run]]  # by cores
    taken: dict[str, list[Taken]] = field(default_factory=dict)  # by peer; "floor" too
    reason: str = ""  # for a missing peer


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    osmesa = ctypes.util.find_library("OSMesa")
    os.environ.setdefault("MUJOCO_GL", "osmesa" if osmesa else "egl")
    os.environ.setdefault("PYGLET_HEADLESS", "true")  # MiniWorld's
    head = header(options.cores)
    left_out = _DETAILS if options.table in _SHORT else ()
    places = [place for place, name in enumerate(head) if name not in left_out]
    found: list[Found] = []
    for film in options.films:
        place = tempfile.TemporaryDirectory(prefix="goalreel-environments-")
        with place as folder, contextlib.chdir(folder):  # MuJoCo writes its log there
            found.append(measure(film, Path(folder), options))
        rows = [cells(each, options.cores) for each in found]
        table = [[row[place] for place in places] for row in (head, *rows)]
        write_table(options.output / options.table, table[0], table[1:], notes(found, options))


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line, with the chosen films."""
    add = (options := parser(__doc__)).add_argument
    add("--table", choices=TABLES, default="environments", help="which films (%(default)s)")
    add("--episodes", type=int, default=3000, help="most episodes of a film (%(default)s)")
    add("--peer-episodes", type=int, default=100, help="episodes of the peers")
    add("--envs", nargs="+", metavar="ENV", help="only these films of the table")
    add("--cores", type=int, nargs="+", default=[1, 2], help="cores of goalreel's films (1 2)")
    chosen = options.parse_args(argv)
    if max(chosen.cores) > available_cores():
        options.error(f"--cores {max(chosen.cores)}: This machine offers {available_cores()}.")
    films = {film.name: film for film in TABLES[chosen.table]}
    if unknown := set(chosen.envs or ()) - films.keys():
        options.error(f"--envs: No {', '.join(unknown)} in {chosen.table}: {', '.join(films)}.")
    chosen.films = []
    for film in (films[name] for name in chosen.envs or films):
        episodes = min(film.episodes, chosen.episodes)
        played = min(film.peer_episodes, chosen.peer_episodes, episodes)
        chosen.films.append(replace(film, episodes=episodes, peer_episodes=played))
    return chosen


def measure(film: Film, folder: Path, options: argparse.Namespace) -> Found:
    """Let all contenders film an environment in turns. Raises MismatchError."""
    numbers = itertools.count()
    episodes: list[Episode] = []

    def ours(cores: int) -> Run:
        place = folder / str(next(numbers))
        run = goalreel(film, place, cores)
        if not episodes:
            episodes.extend(recorded_episodes(place / "results", film.peer_episodes))
        return run

    def peer(work: Callable) -> Taken | None:
        return alone(work, film, episodes, folder / str(next(numbers)))

    def pool() -> Taken | None:
        try:
            return peer(env_pool)
        except Exception as error:  # EnvPool lacks the environment, or does not render it
            line = (str(error).strip().splitlines() or [type(error).__name__])[-1].rstrip(".")
            found.reason = f"EnvPool does not film {film.name}: {line}."
            return None

    start = goalreel(replace(film, episodes=1, max_episode_steps=1), folder / "start", 1)
    found = Found(film, start, {})
    names = {f"goalreel, -j {cores}": cores for cores in options.cores}
    contenders = {name: partial(ours, cores) for name, cores in names.items()}
    if options.table not in _SHORT:
        contenders |= {"floor": partial(peer, step_and_render), "EnvPool": pool}
    contenders["RecordVideo"] = partial(peer, record_video)
    result = take_turns(contenders, options.runs, rotate=False)
    found.runs = {cores: result.pop(name) for name, cores in names.items()}
    found.taken = {name: taken for name, taken in result.items() if None not in taken}
    if len({run.digest for runs in found.runs.values() for run in runs}) > 1:
        raise MismatchError(f"{film.name}: not all runs of goalreel gave the same film")
    return found


def alone(work: Callable, *arguments: object) -> object:
    """Return the result of a function in a new process on one core."""
    with pinned(1), ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


def goalreel(film: Film, folder: Path, cores: int) -> Run:
    """Film by the whole workflow in the new `folder`, on `cores` cores."""
    import goalreel
    from goalreel.mp4.reader import read_index

    folder.mkdir()
    policy = ", ".join(f"{key}: {value}" for key, value in film.policy(folder).items())
    policy = policy.replace(f"{folder}{os.sep}", "")  # a path would make each run's film different
    words = [f"env={film.id}", f"episodes={film.episodes}", f"policy={{{policy}}}"]
    words += ["render={scale: 1}"]  # frames as large as the peers'
    if film.max_episode_steps:
        words.append(f"max_episode_steps={film.max_episode_steps}")
    with pinned(cores):
        seconds, processes = run_workflow(folder, cores, words, folder / "cache")
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


# EnvPool


def env_pool(film: Film, episodes: Sequence[Episode], folder: Path) -> Taken:
    """Film by EnvPool and x264's preset ultrafast, an MP4 for each of its environments."""
    import envpool
    import imageio_ffmpeg

    if osmesa := ctypes.util.find_library("OSMesa"):  # where EnvPool's MuJoCo finds OpenGL
        ctypes.CDLL(osmesa, mode=ctypes.RTLD_GLOBAL)
    name = film.id.rpartition(":")[2].removeprefix("ALE/")
    options = {"max_episode_steps": film.max_episode_steps} if film.max_episode_steps else {}
    options |= {"num_envs": _NUM_ENVS, "num_threads": 1, "seed": 7, "render_mode": "rgb_array"}
    envs = envpool.make(name, "gymnasium", **options)
    observations = envs.reset()[0]
    numbers = np.arange(_NUM_ENVS, dtype=np.int32)
    height, width = envs.render(env_ids=numbers).shape[1:3]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-f", "rawvideo"]
    command += ["-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", "30", "-i", "-"]
    command += ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-threads", "1"]
    folder.mkdir()
    encoders = [
        subprocess.Popen([*command, str(folder / f"{number}.mp4")], stdin=subprocess.PIPE)
        for number in numbers
    ]
    actions, frames = (action for episode in episodes for action in episode.actions), 0
    start = time.perf_counter()
    while len(batch := list(itertools.islice(actions, _NUM_ENVS))) == _NUM_ENVS:
        if film.rule:
            batch = eval(film.rule, {"obs": observations})  # noqa: S307 - our own rule
        observations = envs.step(np.asarray(batch, envs.action_space.dtype))[0]
        for encoder, frame in zip(encoders, envs.render(env_ids=numbers), strict=True):
            encoder.stdin.write(frame.data)
        frames += _NUM_ENVS
    for encoder in encoders:
        encoder.stdin.close()
        if encoder.wait():
            raise RuntimeError("ffmpeg failed")
    return Taken(frames, time.perf_counter() - start)


# The table


def header(cores: Sequence[int]) -> list[str]:
    """Return the table's header."""
    return [
        *("environment", "episodes", "frames", "floor, µs", "floor, frames/s"),
        *("RecordVideo, frames/s", "EnvPool, frames/s"),
        *(f"goalreel, {n} core{'s'[: n - 1]}, frames/s" for n in cores),
        *("to RecordVideo", "goalreel adds, µs", "jobs' starts, µs"),
        *("cache, bytes/frame", "film, bytes/frame", "peak, MiB"),
    ]


def cells(found: Found, cores: Sequence[int]) -> list[str]:
    """Return an environment's cells, empty if nothing was measured."""
    floors = [1e6 * taken.cpu / taken.frames for taken in found.taken.get("floor", ())]
    floor = statistics.median(floors or [0])  # 0 for a table without it
    speeds = {
        name: statistics.median(taken.frames / taken.seconds for taken in each)
        for name, each in (found.taken | found.runs).items()
    }
    run, *_ = rounds = found.runs[cores[0]]
    own = statistics.median(added(run, found.start) for run in rounds)
    starts = statistics.median(start_cost(run, found.start) for run in rounds)
    peak = max(run.peak for runs in found.runs.values() for run in runs)
    shown = [
        digits(speeds[name]) if name in speeds else ""
        for name in ("floor", "RecordVideo", "EnvPool")
    ]
    return [
        *(found.film.name, str(found.film.episodes), str(run.frames), f"{floor:.0f}", *shown),
        *(digits(speeds[count]) for count in cores),
        f"{speeds[cores[-1]] / speeds['RecordVideo']:.2f}",
        *(f"{own - floor:.0f}", f"{starts:.0f}"),
        *(f"{run.cache / run.frames:.0f}", f"{run.film / run.film_frames:.0f}"),
        f"{peak / 2**20:.0f}",
    ]


def added(run: Run, start: Run) -> float:
    """Return the µs of CPU time per frame of the jobs, without ffmpeg and their starts."""
    return 1e6 * sum(map(sum, run.cpu.values())) / run.frames - start_cost(run, start)


def start_cost(run: Run, start: Run) -> float:
    """Return the µs per frame of the starts of a film's jobs, by a film of one step."""
    each = {program: statistics.mean(cpu) for program, cpu in start.cpu.items()}
    seconds = sum(len(cpu) * each.get(program, 0) for program, cpu in run.cpu.items())
    return 1e6 * seconds / run.frames


def notes(found: list[Found], options: argparse.Namespace) -> list[str]:
    """Return the notes below the table."""
    steps = ((e.film.name, e.film.max_episode_steps) for e in found)
    limits = ", ".join(f"{name} {limit}" for name, limit in steps if limit)
    played = ", ".join(f"{each.film.name} {each.film.peer_episodes}" for each in found)
    fresh = ", ".join(each.film.name for each in found if each.film.fresh)
    policies = "random" + ", CartPole balanced" * ("CartPole-v1" in played)
    about = [
        f"{medians(options.runs)}, wall-clock time if no other is named. Policies: {policies}. "
        f"Most steps of an episode: {limits or 'as registered'}.",
        "Frames are goalreel's, without title cards. The peers replay some of the episodes, "
        f"spread over the film, on one core, and every reward was compared: {played} episodes."
        + f" Each episode of {fresh} gets a new instance."
        * bool(fresh),
        "RecordVideo: one process at its defaults (x264's preset medium, an MP4 for each "
        "episode), its start not timed.",
        "goalreel: the whole workflow, title cards and captions included, frames not enlarged. To "
        f"RecordVideo: how many times as many frames per second with -j {options.cores[-1]}.",
    ]
    details = [
        "floor: Gymnasium's step and render only, in µs of CPU time per frame, and frames per "
        "second on one core.",
        "EnvPool: its own step and render on one thread, eight environments side by side, as many "
        "steps in episodes of its own, into x264's preset ultrafast, its start not timed.",
        f"goalreel adds: µs of CPU time per frame of all jobs with -j {options.cores[0]}, without "
        "ffmpeg, the floor, the jobs' starts (taken from a film of one step) and Snakemake's own "
        "time.",
        "peak: of goalreel's largest Python process, without ffmpeg.",
        *(each.reason for each in found if each.reason),
        f"MuJoCo renders by MUJOCO_GL={os.environ['MUJOCO_GL']}.",
    ]
    return about if options.table in _SHORT else [*about, *details]


if __name__ == "__main__":
    main()
