"""goalreel's training from pixels against its peers, on Pong, by the same rules.

All have the same game (ALE/Pong-v5 without sticky actions, 84x84 grey, four frames skipped with
their maximum, stacks of four), network, batch and replay ratio (8 samples a decision), float32,
Adam, DQN's target of one step, 20,000 decisions of replay, 5% random actions:

    Stable-Baselines3        its DQN in its wrappers, one environment
    like CleanRL             its loop written anew: the same wrappers, one environment, plain Adam
    AtariVectorEnv           the same loop, 8 environments of ale-py's AtariVectorEnv, fused Adam
    goalreel                 rule `pixels`: a collector of 8 environments beside a learner
    goalreel, bfloat16       the same, as it comes

The peers' PyTorch has one thread or all cores, whichever makes their updates faster, tried before.
Printed, and written to training_peers.csv and training_peers.md.

    python -m pip install -e '.[train]' --group train-test
    python -m benchmarks.training.peers              40 minutes on two quiet cores
    python -m benchmarks.training.peers --rounds 1   8 minutes
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.training.row_processes import (
    Measured,
    Stopwatch,
    command_line,
    goalreel,
    in_turns,
    load_note,
    median,
    ratio,
    tell,
    write_table,
)

BATCHES, NAMES = (32, 512), {"nature": "Nature 2015", "small": "Mnih 2013"}
RATIO, BUFFER, EPSILON, ENVS = 8, 20_000, 0.05, 8
START, FIRST, MEASURED = 1024, 1280, 1536  # decisions: learning begins; from, and how many
OURS = ("goalreel", "goalreel, bfloat16")
GOAL = 1.2
HEADER = ("network", "batch", "training", "wall, ms a decision", "ratio, wall",
          "CPU, ms a decision", "ratio, CPU", "others, cores")  # fmt: skip


@dataclass(frozen=True)
class Group:
    """What all contenders of a group share."""

    network: str
    batch: int


GROUPS = [Group(network, batch) for network in NAMES for batch in BATCHES]


def stable_baselines3(group: Group, stopwatch: Stopwatch) -> None:
    """Train by Stable-Baselines3's DQN."""
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import VecFrameStack

    from benchmarks.training.plain_dqn import GAME, NETWORKS, QNetwork, use_fastest_threads

    class Features(BaseFeaturesExtractor):
        """All layers but the last, of pixels that Stable-Baselines3 has scaled."""

        def __init__(self, space):
            super().__init__(space, NETWORKS[group.network][1])
            self.layers = QNetwork(group.network, space.shape[0], 1).layers[:-1]

        def forward(self, stacks):
            return self.layers(stacks)

    use_fastest_threads(settings_of(group))
    kwargs = {"frameskip": 1, "repeat_action_probability": 0.0}
    env = VecFrameStack(make_atari_env(GAME, n_envs=1, seed=1, env_kwargs=kwargs), n_stack=4)
    model = DQN(
        *("CnnPolicy", env),
        policy_kwargs={"features_extractor_class": Features},
        **{"learning_rate": 1e-4, "buffer_size": BUFFER, "learning_starts": START},
        **{"batch_size": group.batch, "train_freq": group.batch // RATIO},
        **{"target_update_interval": 1000, "optimize_memory_usage": True, "seed": 1},
        replay_buffer_kwargs={"handle_timeout_termination": False},
        exploration_initial_eps=EPSILON,
        exploration_final_eps=EPSILON,
    )

    def going(values: dict, _) -> bool:
        return stopwatch.going(values["self"].num_timesteps)

    model.learn(10 * (FIRST + MEASURED), callback=going)


def plain(group: Group, stopwatch: Stopwatch, **others) -> None:
    """Train by the plain loop; others: of plain_dqn.Settings."""
    from benchmarks.training.plain_dqn import train

    train(settings_of(group, **others), stopwatch.going)


def settings_of(group: Group, **others):
    """Return the plain loop's settings."""
    from benchmarks.training.plain_dqn import Settings

    same = {"network": group.network, "batch": group.batch, "decisions": group.batch // RATIO}
    same |= {"buffer": BUFFER, "start": START, "exploration": 0, "epsilon": EPSILON}
    return Settings(**same, **others)


def ours(group: Group, stopwatch: Stopwatch, half: bool) -> None:
    """Train as rule `pixels` does, by the rules of this comparison."""
    same = {"network": group.network, "batch": group.batch, "replay_ratio": RATIO}
    same |= {"buffer": BUFFER, "learning_starts": START, "exploration": 0, "final_epsilon": EPSILON}
    dqn = {"double": False, "dueling": False, "n_step": 1, "accumulation": 1, "gradient_clip": 0}
    goalreel(stopwatch, half, **same, **dqn, collectors=1, environments=ENVS)


_VECTOR = {"vector": True, "envs": ENVS, "fused": True}
CONTENDERS: dict[str, Callable[[Group, Stopwatch], None]] = {
    "Stable-Baselines3": stable_baselines3,
    "like CleanRL": plain,
    "AtariVectorEnv": partial(plain, **_VECTOR),
    OURS[0]: partial(ours, half=False),
    OURS[1]: partial(ours, half=True),
}
ROWS = {
    f"{group.network} {group.batch} {name}": (group, name)
    for group in GROUPS
    for name in CONTENDERS
}


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table; or measure one row."""
    chosen = command_line(__doc__, ROWS).parse_args(argv)
    if chosen.row:
        group, name = ROWS[chosen.row]
        stopwatch = Stopwatch(FIRST, MEASURED)
        CONTENDERS[name](group, stopwatch)
        tell(stopwatch.measured())
        return
    found = in_turns("benchmarks.training.peers", list(ROWS), chosen.rounds)
    rows = [cells for group in GROUPS for cells in cells_of(group, found)]
    path = chosen.output / "training_peers"
    write_table(path, HEADER, rows, notes(chosen.rounds, found), words=3)


def of_group(group: Group, found: dict[str, list[Measured]]) -> dict[str, list[Measured]]:
    """Return what the contenders of a group measured, by their names."""
    return {name: found[f"{group.network} {group.batch} {name}"] for name in CONTENDERS}


def best_peer(members: dict[str, list[Measured]], figure: str) -> str:
    """Return the peer whose median is the least."""
    peers = [name for name in members if name not in OURS]
    return min(peers, key=lambda name: median(members[name], figure))


def cells_of(group: Group, found: dict[str, list[Measured]]) -> list[list[str]]:
    """Return the rows of a group below HEADER."""
    members, rows = of_group(group, found), []
    for name, measured in members.items():
        cells = [NAMES[group.network], str(group.batch), name]
        for figure in ("wall_ms", "cpu_ms"):
            best = members[best_peer(members, figure)]
            cells += [f"{median(measured, figure):.2f}", f"{ratio(best, measured, figure):.2f}"]
        rows.append([*cells, f"{median(measured, 'others_cores'):.2f}"])
    return rows


def notes(rounds: int, found: dict[str, list[Measured]]) -> list[str]:
    """Return what a reader of the table should know."""
    ratios = []
    for group in GROUPS:
        members = of_group(group, found)
        best = members[best_peer(members, "wall_ms")]
        ratios += [ratio(best, members[OURS[0]], "wall_ms")]
    reached = sum(one >= GOAL for one in ratios)
    return [
        f"In wall clock goalreel in float32 is {min(ratios):.2f} to {max(ratios):.2f} times as "
        f"fast as the best peer, {statistics.median(ratios):.2f} in the middle; the goal, {GOAL}, "
        f"is reached in {reached} of {len(ratios)} groups.",
        f"A decision with its {RATIO} samples: {MEASURED:,} of them from decision {FIRST:,} on, "
        f"learning from {START:,} on. CPU time is that of all processes of a row, each of which "
        f"is measured by itself; medians of {rounds} round{'s' * (rounds > 1)}, in which all take "
        "turns, and of the ratios of each round.",
        load_note(found),
    ]


if __name__ == "__main__":
    main()
