"""goalreel's DQN and its peers, on Pong, by the same rules.

The game is ALE/Pong-v5 with 84x84 gray frames, frame skip 4 with maximum, and stacks of four. All
use the same network, batch size and replay ratio (8 samples per decision), Adam, one-step targets,
20,000 decisions of replay and 5% random actions:

    Stable-Baselines3        its DQN in its wrappers, one environment
    like CleanRL             its loop: the same wrappers, one environment, plain Adam
    AtariVectorEnv           the same loop, 8 environments of ale-py's AtariVectorEnv, fused Adam
    goalreel                 target `train` in float32: 8 environments, in one process with two
                             threads for batches of 32, and in two processes for batches of 512
    goalreel, bfloat16       the same in bfloat16, if the processor has it

The peers' PyTorch has one thread or all cores, whichever is faster. The table is training_peers.csv
and training_peers.md.

    python -m benchmarks.training.peers            40 minutes on two quiet cores
    python -m benchmarks.training.peers --runs 1   8 minutes
"""

from collections.abc import Callable
from functools import partial

from benchmarks.harness import Measured, Stopwatch, compare_trainings, median, ratio
from benchmarks.training.pong import GAME, STICKY, goalreel

BATCHES, NAMES = (32, 512), {"nature": "Nature 2015", "small": "Mnih 2013"}
GROUPS = [(network, batch) for network in NAMES for batch in BATCHES]
RATIO, BUFFER, EPSILON, ENVS = 8, 20_000, 0.05, 8
START, FIRST, MEASURED = 1024, 1280, 1536  # decisions: learning starts, measuring starts, measured
FIGURES, OURS = ("wall_ms", "cpu_ms"), ("goalreel", "goalreel, bfloat16")
HEADER = ("network", "batch", "training", "wall, ms a decision", "ratio, wall",
          "CPU, ms a decision", "ratio, CPU", "others, cores")  # fmt: skip


def stable_baselines3(network: str, batch: int, stopwatch: Stopwatch) -> None:
    """Train by Stable-Baselines3's DQN."""
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    from goalreel.policies.torch_network import NETWORKS, make_body

    class Features(BaseFeaturesExtractor):
        def __init__(self, space):
            super().__init__(space, NETWORKS[network][1])
            self.body = make_body(space.shape, network)

        def forward(self, stacks):
            return self.body(stacks)

    learn_by_sb3(
        *("DQN", 1, stopwatch),
        policy_kwargs={"features_extractor_class": Features},
        **{"learning_rate": 1e-4, "buffer_size": BUFFER, "learning_starts": START},
        **{"batch_size": batch, "train_freq": batch // RATIO, "target_update_interval": 1000},
        **{"exploration_initial_eps": EPSILON, "exploration_final_eps": EPSILON},
        **{"optimize_memory_usage": True},
        replay_buffer_kwargs={"handle_timeout_termination": False},
    )


def learn_by_sb3(algorithm: str, envs: int, clock, seed: int = 1, **options) -> None:
    """Train by an algorithm of Stable-Baselines3 as long as `clock.going`, see pong.goalreel."""
    import stable_baselines3
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    from benchmarks.training.plain_dqn import Settings, use_fastest_threads

    use_fastest_threads(Settings(batch=options["batch_size"]))
    kwargs = {"frameskip": 1, "repeat_action_probability": STICKY}
    env = VecFrameStack(make_atari_env(GAME, envs, seed, env_kwargs=kwargs), n_stack=4)
    model = getattr(stable_baselines3, algorithm)("CnnPolicy", env, seed=seed, **options)

    def going(values: dict, _) -> bool:
        model = values["self"]
        returns = [game["r"] for game in model.ep_info_buffer]
        act = partial(model.predict, deterministic=True)
        return clock.going(model.num_timesteps, returns, lambda stacks: act(stacks)[0])

    model.learn(10_000_000, callback=going)


def plain(network: str, batch: int, stopwatch: Stopwatch, **others) -> None:
    """Train by the plain loop, with `others` for plain_dqn.Settings."""
    from benchmarks.training.plain_dqn import Settings, train

    same = {"network": network, "batch": batch, "decisions": batch // RATIO}
    same |= {"buffer": BUFFER, "start": START, "exploration": 0, "epsilon": EPSILON}
    train(Settings(**same, **others), stopwatch)


def ours(network: str, batch: int, stopwatch: Stopwatch, half: bool) -> None:
    """Train as target `train` does, by the rules of this comparison."""
    same = {"network": network, "batch_size": batch, "train_freq": batch // RATIO}
    same |= {"gradient_steps": 1, "buffer_size": BUFFER, "learning_starts": START}
    same |= {"exploration_fraction": 0, "exploration_final_eps": EPSILON, "n_steps": 1}
    same |= {"screen_size": 84, "max_grad_norm": 10}
    dqn = {"algorithm": "dqn", "double": False, "dueling": False}
    split = (1, 2) if batch == BATCHES[0] else (2, 1)
    same |= dict(zip(("processes", "threads"), split, strict=True))
    goalreel(stopwatch, **same, **dqn, n_envs=ENVS, autocast=half)


CONTENDERS: dict[str, Callable] = {
    "Stable-Baselines3": stable_baselines3,
    "like CleanRL": plain,
    "AtariVectorEnv": partial(plain, vector=True, envs=ENVS, fused=True),
    OURS[0]: partial(ours, half=False),
    OURS[1]: partial(ours, half=True),
}
ROWS = {
    f"{network} {batch} {name}": partial(contender, network, batch)
    for network, batch in GROUPS
    for name, contender in CONTENDERS.items()
}


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table, or measure one row."""
    compare_trainings(__doc__, "training_peers", ROWS, (FIRST, MEASURED), HEADER, table, argv, 3)


def table(found: dict[str, list[Measured]]) -> tuple[list[list[str]], str]:
    """Return the rows below HEADER, with ratios to the best peer of a group, and a note."""
    rows, ratios = [], []
    for network, batch in GROUPS:
        group = {name: found[f"{network} {batch} {name}"] for name in CONTENDERS}
        for name, measured in group.items():
            changes = [ratio(best_peer(group, figure), measured, figure) for figure in FIGURES]
            cells = [NAMES[network], str(batch), name]
            for figure, change in zip(FIGURES, changes, strict=True):
                cells += [f"{median(measured, figure):.2f}", f"{change:.2f}"]
            rows.append([*cells, f"{median(measured, 'others_cores'):.2f}"])
            ratios += [changes[0]] * (name == OURS[0])
    return rows, (
        f"In wall-clock time goalreel in float32 is {min(ratios):.2f} to {max(ratios):.2f} times "
        f"as fast as the best peer. A decision has {RATIO} samples. Ratios are those of each run."
    )


def best_peer(group: dict[str, list[Measured]], figure: str) -> list[Measured]:
    """Return the figures of the peer whose median is the least."""
    peers = [measured for name, measured in group.items() if name not in OURS]
    return min(peers, key=lambda measured: median(measured, figure))


if __name__ == "__main__":
    main()
