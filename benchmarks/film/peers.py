"""goalreel and its peers in one run, on the same episodes: how long each takes for the same work.

    film        the whole workflow, from the start of `snakemake` to its end: assembled, cold and
                with atlas and coded atlas in the user's cache, and encoded by x264;
                Gymnasium's RecordVideo, warmed up; moviepy with one ImageClip per frame
    rendering   frames of the frame cache; env.render()
    simulation  goalreel; Gymnasium's SyncVectorEnv; EnvPool: one core, the pump policy
    seeding     goalreel; np.random.default_rng

The contenders take turns, run by run, so that a busy machine slows all of them alike. Peers are
measured on fewer episodes and scaled, and the table says so. It is printed, and written to
peers.csv and peers.md.

    python -m pip install -r envs/locks/bench.txt
    python -m benchmarks.film.peers                                           about fifteen minutes
    python -m benchmarks.film.peers --reaches 40 --peer-episodes 3 --runs 1   a first try
"""

import argparse
import importlib.util
import itertools
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.film import stages, video_peers
from benchmarks.sample import RESULTS, Sample
from benchmarks.table import (
    NOT_INSTALLED,
    Contender,
    Row,
    as_csv,
    as_markdown,
    describe_machine,
    make_rows,
)

RECORD_VIDEO = ("film", "RecordVideo")
COLD = ("film", "goalreel, cold")
# The settings of goalreel's films; the first finds an empty cache, the others what it leaves there.
_BARE = ("overlay={title_card: 0, caption: ''}",)  # nothing over the frames, as the peers have it
FILMS = {
    COLD: _BARE,
    ("film", "goalreel, warm"): _BARE,
    ("film", "goalreel, warm, title cards and captions"): (),
    ("film", "goalreel, warm, x264"): (*_BARE, "encode={encoder: x264}"),
    ("film", "goalreel, warm, x264 preset medium as the peers"): (
        *(*_BARE, "encode={encoder: x264, preset: medium}"),
    ),
}
Key = tuple[str, str]  # group and name of a contender
Measured = tuple[Key, Sample | None]  # None: not installed
Round = dict[Key, Sample | None]


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table; fail if goalreel is less fast than was asked for."""
    options = parse(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    bind(options.cores)
    with tempfile.TemporaryDirectory(prefix="goalreel-peers-") as folder:
        rounds = [
            measure(Path(folder, str(number)), options, f"run {number + 1} of {options.runs}")
            for number in range(options.runs)
        ]
    rows = make_rows(gather(rounds))
    machine = describe_machine(options.cores)
    table = as_markdown(rows, notes(rounds[0], options, machine))
    print(table)
    Path(options.output, "peers.csv").write_text(as_csv(rows, machine), encoding="utf-8")
    Path(options.output, "peers.md").write_text(table, encoding="utf-8")
    if options.at_least is not None:
        check_ratio(rows, options.at_least)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("--reaches", type=_positive, default=1000, help="goal reaches to film (1000)")
    add("--peer-episodes", type=_positive, default=20, help="of them, filmed by the peers (20)")
    add("--runs", type=_positive, default=3, help="runs, of which the median is shown (3)")
    add("--cores", type=_positive, default=2, help="cores for everyone (2)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    add(
        "--at-least",
        type=float,
        metavar="RATIO",
        help="fail if a cold film is not so many times as fast as RecordVideo",
    )
    arguments = options.parse_args(argv)
    if arguments.at_least is not None and not _installed("moviepy"):
        options.error("--at-least needs moviepy, which RecordVideo writes its films with")
    available = _available_cores()
    if arguments.cores > available:
        options.error(f"--cores {arguments.cores}: this machine offers {available}")
    return arguments


def bind(cores: int) -> None:
    """Bind this process and all that it starts to so many cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def measure(folder: Path, options: argparse.Namespace, title: str) -> Round:
    """Let every contender work once; goalreel films first: the peers play what it recorded."""
    results = folder / "cold" / "results"
    found: Round = {}
    for (group, name), sample in itertools.chain(
        film(folder, results, options),
        rendering(results, folder / "scratch", options.peer_episodes),
        simulation(stages.benchmark_seeds()),
        seeding(stages.benchmark_seeds()),
    ):
        found[group, name] = sample
        taken = f"{sample.seconds:.4g} s for {sample.played}" if sample else NOT_INSTALLED
        print(f"{title}: {group}, {name}: {taken}", file=sys.stderr, flush=True)
    return found


def film(folder: Path, results: Path, options: argparse.Namespace) -> Iterator[Measured]:
    """Film with everyone, from nothing to MP4."""
    setting = folder / "cache", options.reaches, options.cores
    for number, (key, config) in enumerate(FILMS.items()):
        place = results.parent if key == COLD else folder / str(number)
        yield key, video_peers.film_with_goalreel(place, *setting, config)
    moviepy = _installed("moviepy")  # RecordVideo writes its films with it
    episodes = video_peers.recorded_episodes(results, options.peer_episodes)
    for key, work in (
        (RECORD_VIDEO, video_peers.film_with_record_video),
        (("film", "moviepy, one ImageClip per frame"), video_peers.film_with_image_clips),
    ):
        yield key, work(episodes, folder / work.__name__) if moviepy else None


def rendering(results: Path, scratch: Path, count: int) -> Iterator[Measured]:
    """Make frames with everyone: RGB frames in memory, and a shard's cache on disk."""
    yield ("rendering", "env.render()"), stages.render_with_gymnasium(results, count)
    yield ("rendering", "goalreel, RGB from its cache"), stages.render_with_goalreel(results)
    ours = stages.render_shard_with_goalreel(results, scratch)
    yield ("rendering", "goalreel, a shard to its cache"), ours


def simulation(seeds: np.ndarray) -> Iterator[Measured]:
    """Take steps with everyone, about as many as goalreel's episodes have."""
    ours = stages.simulate_with_goalreel(seeds)
    theirs = stages.simulate_with_sync_vector_env(seeds, ours.units)
    yield ("simulation", "SyncVectorEnv"), theirs
    theirs = stages.simulate_with_envpool(ours.units) if _installed("envpool") else None
    yield ("simulation", "EnvPool, one thread"), theirs
    yield ("simulation", "goalreel"), ours


def seeding(seeds: np.ndarray) -> Iterator[Measured]:
    """Seed episodes with everyone."""
    yield ("seeding", "np.random.default_rng"), stages.seed_with_default_rng(seeds)
    yield ("seeding", "goalreel"), stages.seed_with_goalreel(seeds)


def gather(rounds: list[Round]) -> list[Contender]:
    """Return the contenders with their samples of all rounds, RecordVideo before its rivals."""
    order = [RECORD_VIDEO, *(key for key in rounds[0] if key != RECORD_VIDEO)]
    return [
        Contender(*key, None if rounds[0][key] is None else tuple(r[key] for r in rounds))
        for key in order
    ]


def notes(first: Round, options: argparse.Namespace, machine: str) -> list[str]:
    """Return what a reader of the table should know."""
    frames, runs = first[COLD].units, options.runs
    times = f"Medians of {runs} runs" if runs > 1 else "One run"
    return [
        f"{times}; changes and ratios are against the first row of each group.",
        f"film: {options.reaches:,} episodes, {frames:,} frames of 600x400 pixels; the peers play "
        "the same actions from the same seeds, and every state was compared. goalreel writes one "
        "film with a chapter for each episode, tables and trajectories beside it. Where none are "
        "named it has no captions and no title cards, as the peers have none, but for one frame "
        "before each episode that an assembled film needs; such frames are not counted. The peers "
        "write an MP4 for each episode, in one process. goalreel assembles its film from coded "
        "pictures where x264 is not named. x264 runs at everyone's own default settings where no "
        "other is named: the peers' preset is medium, on all cores; goalreel's, of Mountain Car, "
        "is veryfast.",
        "cold: the user's cache is empty; warm: it holds the atlas and, to assemble, the "
        "coded atlas.",
        "rendering: the frames of the film's first shard, as RGB in memory or as a cache on disk.",
        "simulation: the FPS are environment steps; pump policy, one core. goalreel plays "
        f"{stages.LANES:,} episodes side by side, and its time includes seeding and recording "
        f"them; the others step {stages.PEER_LANES} environments, already seeded.",
        "seeding: the FPS are episodes.",
        f"Machine: {machine}.",
    ]


def check_ratio(rows: list[Row], wanted: float) -> None:
    """End the program with an error if the cold film's ratio is below `wanted`."""
    (cold,) = (row for row in rows if row.step == ": ".join(COLD))
    if cold.ratio < wanted:
        sys.exit(f"error: goalreel is {cold.ratio:.2f} times as fast as RecordVideo, not {wanted}")


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


if __name__ == "__main__":
    main()
