"""Steps of classic control on one core: goalreel, EnvPool and Gymnasium's SyncVectorEnv.

Random actions are drawn beforehand. Each contender has the number of environments that suits it
best. The tests compare the steps with Gymnasium's (test_classic_steps.py). The table is
sub_envs.csv and sub_envs.md.

    python -m benchmarks.film.sub_envs                               two minutes
    python -m benchmarks.film.sub_envs --runs 1 --envs CartPole-v1   a first try
"""

import itertools
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.harness import ENV, medians, parser, rate, take_turns, write_table

ENVS = ENV, "CartPole-v1", "Acrobot-v1", "Pendulum-v1"
NUM_ENVS = 256, 1024, 2048, 4096
HEADER = (
    *("environment", "goalreel, million steps/s", "EnvPool, one thread", "SyncVectorEnv"),
    *("to EnvPool", "to SyncVectorEnv"),
)
_SECONDS = 0.3  # of each measurement
_EPISODE = 100  # steps after which goalreel's episodes start from the beginning, as in a batch


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parser(__doc__, runs=5)
    options.add_argument("--envs", nargs="+", choices=ENVS, default=ENVS, metavar="ENV")
    options = options.parse_args(argv)
    rows = []
    for env in options.envs:
        contenders = {
            (name, count): partial(measure, make, env, count)
            for name, make in CONTENDERS.items()
            for count in NUM_ENVS
        }
        found = take_turns(contenders, options.runs)
        ours, *theirs = (
            max(statistics.median(found[name, count]) for count in NUM_ENVS) for name in CONTENDERS
        )
        cells = f"{ours:.1f}", *(f"{peer:.3g}" for peer in theirs)
        rows.append([env, *cells, *(f"{ours / peer:.1f}" for peer in theirs)])
    notes = [
        f"{medians(options.runs)}, wall-clock time of {_SECONDS} s each, at the best of "
        f"{', '.join(map(str, NUM_ENVS))} environments. Each step makes observations, rewards and "
        "endings. EnvPool and SyncVectorEnv reset each episode that ended. goalreel, which plays "
        f"a batch of episodes, resets all of them after {_EPISODE} steps."
    ]
    write_table(options.output / "sub_envs", HEADER, rows, notes)


def measure(make: Callable, env: str, count: int) -> float:
    """Return the million steps per second of `count` environments."""
    rng, step = np.random.default_rng(7), make(env, count)
    if env == "Pendulum-v1":
        actions = rng.uniform(-2, 2, (8, count, 1)).astype(np.float32)
    else:
        actions = rng.integers(0, 2 if env == "CartPole-v1" else 3, (8, count))
    turns = itertools.cycle(actions)

    def work() -> int:
        step(next(turns))
        return count

    return rate(work, _SECONDS, time.perf_counter) / 1e6


def goalreel(env: str, count: int) -> Callable:
    """Return goalreel's step."""
    from goalreel.environments.environment import make_environment

    reset, every = make_environment({"env": env}).sub_envs(np.arange(count)), np.ones(count, bool)
    batch = reset.take(every)

    def step(actions: np.ndarray) -> None:
        nonlocal batch
        if batch.steps == _EPISODE:
            batch = reset.take(every)
        batch.step(actions)
        batch.observations()

    return step


def env_pool(env: str, count: int) -> Callable:
    """Return EnvPool's step, on one thread."""
    import envpool

    envs = envpool.make(env, "gymnasium", num_envs=count, num_threads=1, seed=7)
    envs.reset()
    return envs.step


def sync_vector_env(env: str, count: int) -> Callable:
    """Return the step of Gymnasium's own vector environment."""
    import gymnasium

    envs = gymnasium.make_vec(env, count, vectorization_mode="sync")
    envs.reset(seed=7)
    return envs.step


CONTENDERS = {"goalreel": goalreel, "EnvPool": env_pool, "SyncVectorEnv": sync_vector_env}


if __name__ == "__main__":
    main()
