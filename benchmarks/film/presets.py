"""x264's presets on what Gymnasium draws: time, size and quality, on the same frames.

The first episodes of each environment of environments.py, and of Mountain Car, are played and drawn
into a frame cache, whose first frames goalreel encodes, without title cards, by each preset in
turn. CPU seconds, user and system, of ffmpeg alone; its start, a film of one frame, is taken off.
Luma's PSNR is against the frames that went in. Printed, and written to presets.csv and .md.

    python -m benchmarks.film.presets                                        some ten minutes
    python -m benchmarks.film.presets --runs 1 --envs CartPole-v1            a first try
"""

import argparse
import resource
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.film.encode_stage import FPS, SEED, draw_atlas, luma_errors, make_shard, psnr
from benchmarks.film.environment_peers import Film
from benchmarks.film.environments import FILMS, POLICY
from benchmarks.sample import ENV, RESULTS
from benchmarks.table import available_cores, csv_text, describe_machine, markdown

# The first is what the others are compared with.
PRESETS = (("veryfast", 23), ("superfast", 23), ("ultrafast", 23), ("ultrafast", 26))
FRAMES = 200  # of each environment, encoded _TIMES end to end
_TIMES = 3
_ALWAYS = -1e9  # the return from which on an episode counts as a success
HEADER = ("environment", "preset, qp", "CPU, µs/frame", "time", "bytes/frame", "size")
HEADER += ("PSNR Y, dB", "worst frame, dB")


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parse(argv)
    from goalreel.errors import GoalreelError

    rows, reasons = [], []
    for film in (film for film in (*FILMS, Film(ENV, 2, 0)) if film.name in options.envs):
        with tempfile.TemporaryDirectory(prefix="goalreel-presets-") as name:
            try:
                cache = filmed(film, Path(name))
            except GoalreelError as error:
                reasons.append(f"{film.name} was not filmed: {error}".splitlines()[0])
                continue
            rows += measure(film.name, cache, Path(name), options.runs)
    machine = describe_machine(available_cores())
    table = markdown(HEADER, rows, [*notes(options.runs), *reasons, f"Machine: {machine}."], 2)
    print(table)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "presets.csv").write_text(csv_text(HEADER, rows, machine), encoding="utf-8")
    (options.output / "presets.md").write_text(table, encoding="utf-8")


def parse(argv: list[str] | None, description: str = __doc__) -> argparse.Namespace:
    """Return the options of a command line."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*(film.name for film in FILMS), ENV]
    add = options.add_argument
    add("--envs", nargs="+", choices=names, default=names, metavar="ENV", help=", ".join(names))
    add("--runs", type=int, default=3, help="runs, of which the median is shown (3)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    arguments = options.parse_args(argv)
    if arguments.runs < 1:
        options.error("--runs must be positive")
    return arguments


def filmed(film: Film, folder: Path):
    """Return the frame cache of as many episodes as FRAMES needs."""
    from goalreel.environments.environment import make_environment
    from goalreel.pictures.camera import filming
    from goalreel.pictures.frame_cache import open_cache
    from goalreel.policies.policy import make_policy
    from goalreel.provenance.spec import NO_SPEC
    from goalreel.simulation.reaches import simulate_reaches

    if film.id == ENV:
        draw_atlas(folder)
        return open_cache(make_shard(folder, "shard", film.episodes).frames)
    policy = {"name": "random"}
    if film.rule:
        (folder / "balance.py").write_text(POLICY.format(rule=film.rule), encoding="utf-8")
        policy = {"name": "file", "file": str(folder / "balance.py"), "function": "act"}
    episodes, path, cache = 1, folder / "frames.npz", ()
    while len(cache) < FRAMES:
        environment = make_environment({"env": film.id, "max_steps": film.max_steps})
        player = make_policy(policy)
        with filming(path, environment, _ALWAYS) as camera:
            played = range(episodes), SEED, environment, player, 1, "reaches", NO_SPEC
            simulate_reaches(*played, _ALWAYS, camera)
            camera.write("", NO_SPEC)
        cache, episodes = open_cache(path), 2 * episodes
    return cache


def measure(name: str, cache, folder: Path, runs: int) -> list[list[str]]:
    """Return an environment's rows: all presets take turns, run by run."""
    from goalreel.encoding.x264 import encode_video
    from goalreel.encoding.yuv import Yuv420p

    view, path = Yuv420p(cache), folder / "segment.mp4"
    frames = [frame.copy() for frame in view.frames(range(FRAMES))] * _TIMES
    starts = [int(start) for start in cache.offsets[:-1] if start < FRAMES]
    starts = [start + FRAMES * time for time in range(_TIMES) for start in starts]

    def cpu_of(preset: str, qp: int, given: Sequence, keyframes: Sequence[int]) -> float:
        before = _children()
        encode_video(path, given, view.size, FPS, {"preset": preset, "qp": qp}, "", keyframes)
        return _children() - before

    seconds: dict = {}
    quality: dict = {}
    for run in range(runs):
        for preset in PRESETS:
            start = cpu_of(*preset, frames[:1], [0])
            taken = (cpu_of(*preset, frames, starts) - start) / (len(frames) - 1)
            seconds.setdefault(preset, []).append(taken)
            print(f"run {run + 1}: {name}, {preset}: {taken * 1e6:.0f} µs/frame", file=sys.stderr)
            if preset not in quality:
                errors = luma_errors(path, frames, view.size)
                size = path.stat().st_size / len(frames)
                quality[preset] = size, psnr(errors.mean()), psnr(errors.max())
    rows = []
    for preset, taken in seconds.items():
        time, (size, mean, worst) = statistics.median(taken), quality[preset]
        base_time, base_size = statistics.median(seconds[PRESETS[0]]), quality[PRESETS[0]][0]
        cells = f"{time * 1e6:.0f}", f"{time / base_time:.2f}", f"{size:.0f}"
        cells += f"{size / base_size:.2f}", f"{mean:.2f}", f"{worst:.2f}"
        rows.append([name, " ".join(map(str, preset)), *cells])
    return rows


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def notes(runs: int) -> list[str]:
    """Return what a reader of the table should know."""
    return [
        f"{f'Medians of {runs} runs' if runs > 1 else 'One run'}, the presets in turns. CPU time "
        "of ffmpeg alone, without its start. time, size: to the first row of the environment.",
        f"The first {FRAMES} frames of each, {_TIMES} times over, each episode from a keyframe on, "
        "without title cards; random policies, CartPole balanced, Mountain Car by pump. PSNR of "
        "luma, from the mean squared error of all frames and of the worst.",
    ]


if __name__ == "__main__":
    main()
