"""The cost of a frame: `env.render()`, and goalreel, which also finds the blocks that changed.

Random episodes are played twice: by Gymnasium, and with goalreel's frames. All frames are compared.
The table is drawing.csv and drawing.md.

    python -m benchmarks.film.drawing                                       a few minutes
    python -m benchmarks.film.drawing --envs Taxi-v4 --episodes 5 --runs 1  a first try
"""

import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import MismatchError, cpu_of, medians, parser, take_turns, write_table

# Number of episodes per environment.
ENVS = {
    **{"CartPole-v1": 200, "Acrobot-v1": 50, "Pendulum-v1": 50, "LunarLander-v3": 50},
    **{"FrozenLake-v1": 400, "CliffWalking-v1": 50, "Taxi-v4": 50},
    **{"minigrid:MiniGrid-DoorKey-8x8-v0": 100, "minigrid:MiniGrid-FourRooms-v0": 50},
}
MOST = 200  # steps of an episode
HEADER = (
    *("environment", "episodes", "frames"),
    *("env.render(), µs", "goalreel, µs", "times as fast"),
)


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    add = (options := parser(__doc__)).add_argument
    add("--envs", nargs="+", default=list(ENVS))
    add("--episodes", type=int, help="episodes per environment (50 to 400)")
    chosen = options.parse_args(argv)
    episodes = {env: chosen.episodes or ENVS.get(env, 50) for env in chosen.envs}
    contenders = {env: partial(measure, env, count) for env, count in episodes.items()}
    rows = []
    for env, found in take_turns(contenders, chosen.runs).items():
        frames, theirs, ours, ratio = map(statistics.median, zip(*found, strict=True))
        counts = env.rpartition(":")[2], f"{episodes[env]:,}", f"{frames:,.0f}"
        rows.append([*counts, f"{theirs:.0f}", f"{ours:.0f}", f"{ratio:.1f}"])
    notes = [
        f"{medians(chosen.runs)}; µs of CPU time for a frame. Random episodes of at most {MOST} "
        "steps, as one shard. goalreel's time includes the search for the blocks that changed, and "
        "the second run of the shard's first episode. All frames are equal, pixel by pixel."
    ]
    write_table(chosen.output / "drawing", HEADER, rows, notes)


def measure(name: str, episodes: int) -> tuple[int, float, float, float]:
    """Return the number of frames, the µs per frame of Gymnasium and of goalreel, and the ratio."""
    from goalreel import open_cache
    from goalreel.environments.environment import make_environment
    from goalreel.environments.gymnasium_env import GymnasiumEnvironment
    from goalreel.policies.policy import make_policy
    from goalreel.provenance.spec import NO_SPEC
    from goalreel.rendering.frame_recorder import filming
    from goalreel.simulation.reaches import simulate_reaches

    environment = make_environment({"env": name, "max_episode_steps": MOST})
    policy = make_policy({"name": "random"})

    def played(recorder=None):
        given = range(episodes), 7, environment, policy, 1
        return simulate_reaches(*given, success=None, recorder=recorder)

    with tempfile.TemporaryDirectory(prefix="goalreel-drawing-") as folder:
        path = Path(folder, "frames.npz")
        with filming(path, environment) as recorder:
            made, filmed = cpu_of(lambda: played(recorder))
            recorder.write(made.digest(), NO_SPEC)
        ours = filmed - cpu_of(played)[1]
        cache, frame, theirs = open_cache(path), 0, 0.0
        peer = GymnasiumEnvironment(name, max_episode_steps=MOST)
        env = peer.make()
        for number, seed in enumerate(made.episodes.seed.tolist()):
            env.reset(seed=seed)
            for action in [None, *made.episode(number)[1]]:
                if action is not None:
                    env.step(peer.actions.to_gymnasium(action))
                image, seconds = cpu_of(env.render)
                theirs += seconds
                if not np.array_equal(image, cache[frame]):
                    raise MismatchError(f"{name}: frame {frame} differs")
                frame += 1
        env.close()
    return frame, 1e6 * theirs / frame, 1e6 * ours / frame, theirs / ours


if __name__ == "__main__":
    main()
