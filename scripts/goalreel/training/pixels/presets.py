"""Presets for options of the section `pixels` that are `null`, by the family of the game.

Snakemake imports this module to plan a run, so it imports little. All counts are decisions: an
action lasts `frame_skip` frames of the emulator.
"""

from collections.abc import Mapping

from goalreel.training.games.settings import ALE, CAR, MARIO, family_of

# Based on RL Baselines3 Zoo, and on the measurements in docs/benchmarks/training.md.
_ATARI = {
    "frame_skip": 4,
    "network": "small",
    "dueling": True,
    "double": False,
    "n_step": 10,
    "collectors": 1,
    "n_envs": 8,
    "total_timesteps": 800_000,
    "buffer_size": 100_000,
    "learning_starts": 5_000,
    "exploration_fraction": 0.05,
    "exploration_final_eps": 0.02,
    "train_freq": 4,
    "gradient_steps": 1,
    "batch_size": 32,
    "learning_rate": 2.5e-4,
    "gamma": 0.99,
    "max_grad_norm": 10,
    "publish_every": 8,
    "target_update_interval": 2_000,
    "eval_freq": 50_000,
    "n_eval_episodes": 30,
    "checkpoints": [0, 100_000, 200_000, 300_000],
}
PRESETS = {
    ALE: _ATARI,
    # With actions of 12 frames, random play reaches the goal in 5.1% of episodes.
    CAR: _ATARI
    | {
        "frame_skip": 12,
        "double": True,
        "gamma": 0.95,
        "total_timesteps": 60_000,
        "buffer_size": 20_000,
        "learning_starts": 2_000,
        "exploration_fraction": 1 / 6,
        "exploration_final_eps": 0.05,
        "eval_freq": 5_000,
        "checkpoints": [0, 10_000, 20_000, 30_000],
    },
    MARIO: _ATARI | {"exploration_final_eps": 0.05, "n_eval_episodes": 3},
}


def with_defaults(section: Mapping) -> dict:
    """Return a checked section `pixels` with the presets of its game instead of `null`.

    Raises GoalreelError if the game is unknown.
    """
    preset = PRESETS[family_of(section["game"])]
    return {n: preset.get(n) if value is None else value for n, value in section.items()}
