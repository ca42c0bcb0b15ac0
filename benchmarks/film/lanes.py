"""Steps of classic control on one core: goalreel's lanes, EnvPool and Gymnasium's SyncVectorEnv.

Random actions that are drawn beforehand; who steps is timed alone, in turns, each with the number
of lanes that suits it best. That goalreel's steps are Gymnasium's is for the tests to tell
(tests/unit/environments/test_classic_lanes.py). Printed, and written to lanes.csv and lanes.md.

    python -m benchmarks.film.lanes    a minute
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.sample import RESULTS
from benchmarks.table import available_cores, csv_text, describe_machine, markdown

ENVS = "CartPole-v1", "Acrobot-v1", "Pendulum-v1"
LANES = 256, 1024, 2048, 4096
HEADER = (
    *("environment", "goalreel, million steps/s", "EnvPool, one thread", "SyncVectorEnv"),
    *("to EnvPool", "to SyncVectorEnv"),
)
_SECONDS = 0.3  # that one of them steps at a time
_EPISODE = 100  # steps after which all lanes of goalreel's begin anew
_ACTIONS = 8  # arrays of actions that are taken in turns

Stepper = Callable[[np.ndarray], object]


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--runs", type=int, default=5, help="of which the median is shown (5)")
    runs = options.parse_args(argv).runs
    rows = []
    for name in ENVS:
        rates = {who: best_rate(make, name, runs) for who, make in CONTENDERS.items()}
        ours, *theirs = rates.values()
        cells = f"{ours:.1f}", *(f"{rate:.3g}" for rate in theirs)
        rows.append([name, *cells, *(f"{ours / rate:.1f}" for rate in theirs)])
    machine = describe_machine(available_cores())
    notes = [
        f"Wall-clock time of {_SECONDS} s each, the median of runs: {runs}, at the best of "
        f"{', '.join(f'{lanes:,}' for lanes in LANES)} lanes. Observations, rewards and endings "
        "are made in each step; EnvPool and SyncVectorEnv begin each episode that ended anew, "
        f"goalreel's lanes, which play a batch of episodes, all of them after {_EPISODE} steps.",
        f"Machine: {machine}.",
    ]
    table = markdown(HEADER, rows, notes)
    print(table)
    (RESULTS / "lanes.csv").write_text(csv_text(HEADER, rows, machine), encoding="utf-8")
    (RESULTS / "lanes.md").write_text(table, encoding="utf-8")


def best_rate(make: Callable[[str, int], Stepper], name: str, runs: int) -> float:
    """Return the million steps a second of the number of lanes that is fastest."""
    return max(
        statistics.median(rate(make(name, lanes), name, lanes) for _ in range(runs))
        for lanes in LANES
    )


def rate(step: Stepper, name: str, lanes: int) -> float:
    """Return how many million steps a second some lanes take."""
    rng = np.random.default_rng(7)
    if name == "Pendulum-v1":
        actions = rng.uniform(-2, 2, (_ACTIONS, lanes, 1)).astype(np.float32)
    else:
        actions = rng.integers(0, 3 if name == "Acrobot-v1" else 2, (_ACTIONS, lanes))
    steps, began = 0, time.perf_counter()
    while (taken := time.perf_counter() - began) < _SECONDS:
        step(actions[steps % _ACTIONS])
        steps += 1
    return steps * lanes / taken / 1e6


def goalreel_lanes(name: str, lanes: int) -> Stepper:
    """Return goalreel's step; all episodes begin anew after some steps, as in a batch."""
    from goalreel.environments.environment import make_environment

    reset = make_environment({"env": name}).lanes(np.arange(lanes))
    every = np.ones(lanes, bool)
    batch = reset.take(every)

    def step(actions: np.ndarray) -> None:
        nonlocal batch
        if batch.steps == _EPISODE:
            batch = reset.take(every)
        batch.step(actions)
        batch.observations()

    return step


def envpool_lanes(name: str, lanes: int) -> Stepper:
    """Return EnvPool's step, on one thread."""
    import envpool

    envs = envpool.make(name, "gymnasium", num_envs=lanes, num_threads=1, seed=7)
    envs.reset()
    return envs.step


def sync_lanes(name: str, lanes: int) -> Stepper:
    """Return the step of Gymnasium's own vector environment."""
    import gymnasium

    envs = gymnasium.make_vec(name, lanes, vectorization_mode="sync")
    envs.reset(seed=7)
    return envs.step


CONTENDERS = {"goalreel": goalreel_lanes, "EnvPool": envpool_lanes, "SyncVectorEnv": sync_lanes}


if __name__ == "__main__":
    main()
