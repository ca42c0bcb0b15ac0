"""What a picture costs: `env.render()` against the camera, which also finds what changed.

Random episodes, each played twice: by Gymnasium alone, and with the pictures that the camera takes,
in turns. All pictures are compared afterwards. Printed, and written to drawing.csv and .md.

    python -m benchmarks.film.drawing                              some minutes
    python -m benchmarks.film.drawing --envs Taxi-v4 --episodes 5  a first try
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.sample import RESULTS, MismatchError
from benchmarks.table import available_cores, csv_text, describe_machine, markdown

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from goalreel import open_cache  # noqa: E402
from goalreel.environments.environment import make_environment  # noqa: E402
from goalreel.environments.gymnasium_env import GymnasiumEnvironment  # noqa: E402
from goalreel.pictures.camera import filming  # noqa: E402
from goalreel.policies.policy import make_policy  # noqa: E402
from goalreel.provenance.spec import NO_SPEC  # noqa: E402
from goalreel.simulation.reaches import simulate_reaches  # noqa: E402

# Episodes of each.
ENVS = {
    **{"CartPole-v1": 200, "Acrobot-v1": 50, "Pendulum-v1": 50, "LunarLander-v3": 50},
    **{"FrozenLake-v1": 400, "CliffWalking-v1": 50, "Taxi-v4": 50},
    **{"minigrid:MiniGrid-DoorKey-8x8-v0": 100, "minigrid:MiniGrid-FourRooms-v0": 50},
}
MOST = 200  # steps of an episode
HEADER = (
    *("environment", "episodes", "pictures"),
    *("env.render(), µs", "goalreel, µs", "times as fast"),
)


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--envs", nargs="+", default=list(ENVS))
    options.add_argument("--episodes", type=int, help="of each environment (50 to 400)")
    options.add_argument("--runs", type=int, default=3, help="of which the median is shown (3)")
    options.add_argument("--output", type=Path, default=RESULTS, help="folder for the table")
    chosen = options.parse_args(argv)
    rows = []
    for name in chosen.envs:
        episodes = chosen.episodes or ENVS.get(name, 50)
        found = [measure(name, episodes) for _ in range(chosen.runs)]
        theirs, ours, ratio = (statistics.median(column) for column in zip(*found, strict=True))
        counts = f"{episodes:,}", f"{found[0].pictures:,}"
        figures = f"{theirs:.0f}", f"{ours:.0f}", f"{ratio:.1f}"
        rows.append([name.rpartition(":")[2], *counts, *figures])
    machine = describe_machine(available_cores())
    notes = [
        f"µs of CPU time for a picture, the median of runs: {chosen.runs}; "
        f"random episodes of at most {MOST} steps, as one shard. goalreel's "
        "includes the search for the blocks that changed, and the shard's first episode played "
        "again. All runs are of one process, so that MiniGrid has its tiles at hand for both. All "
        "pictures are the same, pixel by pixel.",
        f"Machine: {machine}.",
    ]
    table = markdown(HEADER, rows, notes, 1)
    print(table)
    (chosen.output / "drawing.csv").write_text(csv_text(HEADER, rows, machine), encoding="utf-8")
    (chosen.output / "drawing.md").write_text(table, encoding="utf-8")


class Found(tuple):
    """µs of CPU time for a picture: Gymnasium's, ours, and their ratio."""

    pictures: int


def measure(name: str, episodes: int) -> Found:
    """Play and draw the episodes of an environment both ways. Raises MismatchError."""
    environment = make_environment({"env": name, "max_steps": MOST})
    policy = make_policy({"name": "random"})
    seconds = {}
    with tempfile.TemporaryDirectory(prefix="goalreel-drawing-") as folder:
        path = Path(folder, "frames.npz")
        with filming(path, environment) as camera:
            began = time.process_time()
            made = simulate_reaches(
                range(episodes), 7, environment, policy, 1, success=None, camera=camera
            )
            seconds["drawn"] = time.process_time() - began
            camera.write(made.digest(), NO_SPEC)
        began = time.process_time()
        simulate_reaches(range(episodes), 7, environment, policy, 1, success=None)
        seconds["played"] = time.process_time() - began
        cache, frame, theirs = open_cache(path), 0, 0.0
        peer = GymnasiumEnvironment(name, max_steps=MOST)
        env = peer.make()
        for number, seed in enumerate(made.episodes.seed.tolist()):
            env.reset(seed=seed)
            for action in [None, *made.episode(number)[1]]:
                if action is not None:
                    env.step(peer.actions.taken(action))
                began = time.process_time()
                picture = env.render()
                theirs += time.process_time() - began
                if not np.array_equal(picture, cache[frame]):
                    raise MismatchError(f"{name}: picture {frame} differs")
                frame += 1
        env.close()
    ours = 1e6 * (seconds["drawn"] - seconds["played"]) / frame
    found = Found((1e6 * theirs / frame, ours, 1e6 * theirs / frame / ours))
    found.pictures = frame
    return found


if __name__ == "__main__":
    main()
