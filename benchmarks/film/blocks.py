"""The encode stage of drawn pictures: assembled from blocks, and by x264, of the same frames.

Episodes of a random policy (of CartPole by a rule that balances) with captions and title cards, as
the workflow makes them. CPU seconds of this process and its ffmpeg, the frame cache in the memory
of the file system; PSNR of luma against the cache, by FFmpeg's decoder, mean and worst frame. All
take turns, run by run. Printed, and written to blocks.csv and blocks.md:

    python -m benchmarks.film.blocks                        some minutes
    python -m benchmarks.film.blocks --envs CartPole-v1     a part
"""

import argparse
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.sample import RESULTS
from benchmarks.table import csv_text, describe_machine, markdown

# Environments, and the most steps of an episode; of each a shard of the default size.
FILMS = {
    **{"CartPole-v1": 500, "Acrobot-v1": 500, "Pendulum-v1": 200, "LunarLander-v3": 500},
    **{"ALE/Breakout-v5": 1000, "ALE/Pong-v5": 500},
    **{"minigrid:MiniGrid-DoorKey-8x8-v0": 200, "FrozenLake-v1": 100},
}
SETTINGS = {
    "blocks": {"encoder": "blocks", "qp": 25, "card_qp": 12},
    "x264 ultrafast": {"encoder": "x264", "preset": "ultrafast", "qp": 23},
    "x264 veryfast": {"encoder": "x264", "preset": "veryfast", "qp": 23},
}
HEAD = ("environment", "encoder", "frames", "CPU, ms a frame", "ratio", "bytes a frame", "ratio",
        "PSNR, dB", "worst")  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--envs", nargs="+", choices=FILMS, default=list(FILMS), metavar="ENV")
    options.add_argument("--runs", type=int, default=3, help="of which the median is shown (3)")
    options.add_argument("--output", type=Path, default=RESULTS, help="folder for the tables")
    options = options.parse_args(argv)
    rows = []
    for env in options.envs:
        with tempfile.TemporaryDirectory(prefix="goalreel-blocks-") as folder:
            rows += measure(Path(folder), env, FILMS[env], options.runs)
    machine = describe_machine(1)
    notes = [
        f"Of each a shard of the default size; medians of {options.runs} runs. Ratios are to x264 "
        "veryfast: its CPU time over this one's, this one's bytes over its. The films have title "
        "cards and captions.",
        f"Machine: {machine}.",
    ]
    table = markdown(HEAD, rows, notes)
    (options.output / "blocks.csv").write_text(csv_text(HEAD, rows, machine), encoding="utf-8")
    (options.output / "blocks.md").write_text(table, encoding="utf-8")
    print(table)


def measure(folder: Path, env: str, steps: int, runs: int) -> list[list[str]]:
    """Return the rows of an environment."""
    from goalreel.films.segment import assemble_blocks, encode_segment

    cache = frames_of(folder, env, steps)
    makers = {
        name: partial(assemble_blocks if settings["encoder"] == "blocks" else encode_segment,
                      cache, folder / f"{name}.mp4", 30, settings, "{}")
        for name, settings in SETTINGS.items()
    }  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(runs):
        for name, make in makers.items():
            seconds[name].append(cpu_seconds(make))
    taken = {name: statistics.median(values) for name, values in seconds.items()}
    sizes = {name: (folder / f"{name}.mp4").stat().st_size for name in makers}
    peer, rows = "x264 veryfast", []
    for name in makers:
        mean, worst = quality(folder / f"{name}.mp4", cache)
        rows.append(
            [
                *(env.rpartition(":")[2], name, f"{len(cache):,}"),
                *(f"{1000 * taken[name] / len(cache):.3f}", f"{taken[peer] / taken[name]:.1f}"),
                *(f"{sizes[name] / len(cache):.0f}", f"{sizes[name] / sizes[peer]:.1f}"),
                *(f"{mean:.1f}", f"{worst:.1f}"),
            ]
        )
    return rows


def frames_of(folder: Path, env: str, steps: int):
    """Return a shard's frames, with title cards and captions."""
    from goalreel.environments.environment import make_environment
    from goalreel.environments.registry import describe
    from goalreel.pictures.camera import filming
    from goalreel.pictures.frame_cache import open_cache
    from goalreel.pictures.overlay import overlaid
    from goalreel.policies.policy import make_policy
    from goalreel.provenance.spec import NO_SPEC
    from goalreel.simulation.reaches import simulate_reaches

    environment = make_environment({"env": env, "max_steps": steps})
    episodes = describe(env).shard_size
    policy = {"name": "random"}
    if env == "CartPole-v1":
        text = "import numpy as np\n\n\ndef act(obs):\n"
        text += "    return (obs[..., 2] + 0.5 * obs[..., 3] > 0).astype(np.int64)\n"
        (folder / "balance.py").write_text(text, encoding="utf-8")
        policy = {"name": "file", "file": str(folder / "balance.py"), "function": "act",
                  "files": [], "batch": True}  # fmt: skip
    with filming(folder / "f.npz", environment) as camera:
        made = simulate_reaches(
            range(episodes), 7, environment, make_policy(policy), 1, success=None, camera=camera
        )
        camera.write(made.digest(), NO_SPEC)
    texts = [f"Episode {number}" for number in range(episodes)]
    return overlaid(open_cache(folder / "f.npz"), made, env, texts, hud=False, cards=15)


def cpu_seconds(make: Callable[[], object]) -> float:
    """Return the CPU seconds that a call takes, its programs included."""
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN

    def now() -> float:
        return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, who))

    began = now()
    make()
    return now() - began


def quality(path: Path, cache) -> tuple[float, float]:
    """Return mean and least PSNR of luma, in dB."""
    from goalreel.encoding import ffmpeg
    from goalreel.encoding.yuv import Yuv420p

    view = Yuv420p(cache)
    width, height = view.size
    command = [ffmpeg.executable(), "-v", "error", "-i", str(path)]
    command += ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-"]
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as decoder:
        for frame in view.frames():
            data = np.frombuffer(decoder.stdout.read(frame.size), np.uint8)
            shown = data[: width * height].reshape(height, width).astype(np.int32)
            error = np.square(shown - frame[:height]).mean()
            found.append(10 * np.log10(255**2 / max(error, 1e-9)))
    return float(np.mean(found)), float(min(found))


if __name__ == "__main__":
    main()
