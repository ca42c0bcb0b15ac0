"""Greedy games of trained networks in Super Mario Bros, and of a blind list of actions.

Each plays 100 games from the level's start, after 0 to 30 frames without a button, until it dies,
reaches the flag or has no time left. The seeds are no training's. The rows disturb the actions:

    sticky frames       each frame repeats the last one's action with 0.25 (Machado et al., 2018)
    sticky decisions    each decision repeats the last one's action with 0.25
    random              each decision takes a random action with 0.01
    none                actions are played as chosen

The blind list is a path to the flag that a search has found without disturbance. Afterwards it goes
on to press its last action. The table is mario_games.csv and mario_games.md. Networks of other
levels, without a list, make mario_levels.csv and mario_levels.md:

    python -m benchmarks.training.mario mario-*/train/policy.npz
    python -m benchmarks.training.mario --levels mario-1-*/train/policy.npz

It takes 8 minutes a player on one core.
"""

import random
from collections import Counter
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks.harness import parser, write_table

# Trainings and their evaluations draw seeds below 2**31. Games from 2**31 on chose the preset.
NOOPS, SEED = 30, 2**31 + 2**21
HEADER = ("player", "disturbance", "games", "flags", "mean distance", "lost games at pixels")
STICKY = {"repeat_action_probability": 0.25}
MODES = ("sticky frames", "sticky decisions", "random", "none")
SEGMENT = 64  # pixels; games are counted that end in it


def main(argv: list[str] | None = None) -> None:
    """Play all games, and write the table."""
    from goalreel.policies.network_file import read_checkpoints
    from goalreel.policies.numpy_network import NumpyNetwork

    options = parser(__doc__)
    options.add_argument("policies", type=Path, nargs="+", help="policy.npz of each training")
    options.add_argument("--games", type=int, default=100, help="games of a row (100)")
    options.add_argument("--levels", action="store_true", help="networks of different levels")
    options = options.parse_args(argv)
    players, steps, rows = {}, [], []
    for checkpoints in map(read_checkpoints, options.policies):
        settings, place = checkpoints.settings, checkpoints.choose("best")
        network = NumpyNetwork(checkpoints.weights[place], strides=settings["strides"])
        seed = checkpoints.spec.config["train"]["seed"]
        name = settings["env"] if options.levels else f"seed {seed}"
        players[name] = (lambda stacks, _, network=network: network.decide(stacks)[0]), settings
        steps.append(f"{checkpoints.checkpoint_steps[place]:,}")
    if not options.levels:
        players["blind list"] = _blind_list(settings), settings
    for name, (act, rules) in players.items():
        rows += [cells(name, mode, play(act, mode, options.games, rules)) for mode in MODES]
    note = (
        f"{'Levels' if options.levels else settings['env']}, the checkpoints of the best "
        f"evaluations, after {', '.join(steps)} decisions. Games are counted by parts of {SEGMENT} "
        "pixels, the most frequent ones first."
    )
    packages, name = ("numpy", "stable-retro"), f"mario_{'levels' if options.levels else 'games'}"
    write_table(options.output / name, HEADER, rows, [note], 2, packages)


def _blind_list(settings: dict):
    """Return a player of the list of actions that a search has found."""
    from goalreel.environments.mario import MarioEnv
    from goalreel.training.mario_envs import search

    exact = MarioEnv(settings["env"], "ram", repeat_action_probability=0.0)
    path = search(exact, random.Random(SEED), settings["frame_skip"])

    def blind(stacks: np.ndarray, decision: int) -> np.ndarray:
        return np.full(len(stacks), path[min(decision, len(path) - 1)])

    return blind


def play(act, mode: str, games: int, settings: dict) -> list[tuple[bool, int]]:
    """Return whether each game reached the flag, and its furthest position."""
    from goalreel.environments.mario import MarioEnv
    from goalreel.policies.preprocessing import WARPS, finish

    rng, ends, decision = random.Random(SEED), {}, 0
    probability = 0.25 if mode == "sticky frames" else 0.0

    def picture(env: MarioEnv, action: int) -> np.ndarray:
        screen = WARPS[settings["warp"]](env.render())
        return finish(screen, settings, action, settings["actions"])

    envs = {
        game: MarioEnv(settings["env"], "ram", repeat_action_probability=probability)
        for game in range(games)
    }
    best, last, stacks = dict.fromkeys(envs, 0), dict.fromkeys(envs, 0), {}
    for game, env in envs.items():
        env.reset(seed=SEED + game)
        env.advance(0, 1 + rng.randint(0, NOOPS))
        stacks[game] = np.repeat(picture(env, 0)[None], settings["stack"], 0)
    while envs:
        chosen = act(np.stack([stacks[game] for game in envs]), decision).tolist()
        decision += 1
        for game, action in zip(list(envs), chosen, strict=True):
            env, played = envs[game], action
            if mode == "sticky decisions" and rng.random() < 0.25:
                played = last[game]
            elif mode == "random" and rng.random() < 0.01:
                played = rng.randrange(settings["actions"])
            last[game] = played
            _, over = env.advance(played, settings["frame_skip"])
            best[game] = max(best[game], env.x_pos)
            stacks[game] = np.concatenate([stacks[game][1:], picture(env, action)[None]])
            if over:
                ends[game] = env.flag_get, best[game]
                del envs[game]
    return list(ends.values())


def cells(player: str, mode: str, ends: list[tuple[bool, int]]) -> list[str]:
    """Return the cells of a row below HEADER."""
    lost = Counter(SEGMENT * (x // SEGMENT) for has_flag, x in ends if not has_flag)
    places = ", ".join(f"{count} at {x:,}" for x, count in lost.most_common(5))
    distance = mean(x for _, x in ends)
    flags = sum(has_flag for has_flag, _ in ends)
    return [player, mode, str(len(ends)), str(flags), f"{distance:,.0f}", places]


if __name__ == "__main__":
    main()
