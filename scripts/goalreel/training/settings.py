"""The options of a training, and their presets by environment, without PyTorch.

All counts are decisions, over all environments. A decision lasts `frame_skip` steps.
"""

from collections.abc import Mapping
from types import SimpleNamespace

_SHARED = {
    "screen_size": 84,
    **{"frame_skip": 1, "network": None, "processes": 1, "threads": 1, "max_grad_norm": 0.5},
    **{"eval_freq": 50_000, "n_eval_episodes": 20},
}
# RL Baselines3 Zoo's values for Atari, and for PPO in environments that it does not name.
DEFAULTS = {
    "dqn": {
        **{"learning_rate": 1e-3, "gamma": 0.99, "n_envs": 16, "batch_size": 128},
        **{"total_timesteps": 200_000, "buffer_size": 100_000, "learning_starts": 1_000},
        **{"train_freq": 4, "gradient_steps": 1, "target_update_interval": 500, "n_steps": 3},
        **{"exploration_fraction": 0.1, "exploration_final_eps": 0.05},
        **{"dueling": False, "double": True},
    },
    "ppo": {
        **{"learning_rate": 1e-3, "gamma": 0.99, "n_envs": 16, "batch_size": 256, "n_steps": 64},
        **{"total_timesteps": 500_000, "n_epochs": 8, "gae_lambda": 0.95, "clip_range": 0.2},
        **{"ent_coef": 0.005, "vf_coef": 0.5, "starts": "reset"},
    },
}
_MARIO = {
    **{"algorithm": "ppo", "frame_skip": 4, "processes": 2, "n_envs": 32},
    **{"screen_size": 42, "network": "tiny", "total_timesteps": 1_500_000},
    **{"n_steps": 64, "batch_size": 512, "n_epochs": 4, "learning_rate": 5e-4, "gamma": 0.92},
    **{"ent_coef": 0.004, "vf_coef": 0.25, "max_grad_norm": 1.0, "starts": "failures"},
    **{"eval_freq": 100_000},
}
# Small batches cost less in one process, which need not sum gradients.
_DQN_FRAMES = {
    **{"algorithm": "dqn", "threads": 2, "network": "small", "dueling": True, "double": False},
    **{"n_envs": 8, "batch_size": 32, "train_freq": 4, "max_grad_norm": 10.0, "n_steps": 10},
    "target_update_interval": 2_000,
}
# The first prefix of an id that fits is taken, with the first of its presets or the one of the
# training's algorithm. docs/benchmarks/training.md has what these presets learned.
PRESETS: dict[str, tuple[dict, ...]] = {
    "ALE/": (
        {
            **{"algorithm": "ppo", "frame_skip": 4, "screen_size": 42, "network": "tiny"},
            **{"processes": 2, "n_envs": 16, "n_steps": 128, "batch_size": 256, "n_epochs": 3},
            **{"learning_rate": 5e-4, "ent_coef": 0.01, "total_timesteps": 4_000_000},
            **{"eval_freq": 400_000, "n_eval_episodes": 10},
        },
        _DQN_FRAMES
        | {
            **{"frame_skip": 4, "total_timesteps": 400_000, "buffer_size": 100_000},
            **{"screen_size": 42, "network": "tiny"},
            **{"learning_starts": 5_000, "exploration_fraction": 0.1, "learning_rate": 2e-4},
            **{"exploration_final_eps": 0.02, "eval_freq": 25_000, "n_eval_episodes": 10},
        },
    ),
    "SuperMarioBros-v": (_MARIO | {"starts": "reset"},),  # the whole game
    "SuperMarioBros-": (_MARIO,),
    # With decisions of 12 steps, random play reaches the goal in 5.1% of episodes.
    "MountainCar-": (
        {
            **{"algorithm": "dqn", "frame_skip": 12, "network": [128, 128], "learning_rate": 4e-3},
            **{"total_timesteps": 20_000, "learning_starts": 500, "exploration_fraction": 0.1},
            **{"n_envs": 16, "train_freq": 4, "batch_size": 128, "buffer_size": 10_000},
            **{"n_steps": 1, "gamma": 0.8, "eval_freq": 500, "n_eval_episodes": 100},
            **{"max_grad_norm": 10.0, "reward_threshold": -110.0},
        },
    ),
    "CartPole-": (
        {
            **{"algorithm": "ppo", "n_steps": 32, "gamma": 0.98, "gae_lambda": 0.8},
            **{"total_timesteps": 100_000, "eval_freq": 10_000},
        },
    ),
    # With a discount near 1, a greedy policy hovers instead of landing.
    "LunarLander": ({"algorithm": "ppo", "n_steps": 128, "total_timesteps": 800_000},),
    "": ({"algorithm": "ppo"},),
}
_CAR_FRAMES = _DQN_FRAMES | {
    **{"frame_skip": 12, "gamma": 0.95, "total_timesteps": 60_000, "buffer_size": 20_000},
    **{"learning_starts": 2_000, "exploration_fraction": 1 / 6, "learning_rate": 2.5e-4},
    **{"eval_freq": 5_000, "n_eval_episodes": 30},
}


class Settings(SimpleNamespace):
    """The options of `configuration.options.Train`, which describes them, without `null`."""

    autocast = True  # whether to compute in bfloat16 where the processor or the GPU can

    @property
    def checkpoint_steps(self) -> list[int]:
        """The decisions after which the weights are evaluated, increasing."""
        every = range(self.eval_freq, self.total_timesteps, self.eval_freq)
        kept = (step for step in self.checkpoints if step < self.total_timesteps)
        return sorted({*every, *kept, self.total_timesteps})

    def epsilon(self, decisions: int) -> float:
        """Return the share of random actions after a number of decisions."""
        last = max(round(self.exploration_fraction * self.total_timesteps), 1)
        return 1.0 + min(decisions / last, 1.0) * (self.exploration_final_eps - 1.0)

    def remaining(self, decisions: int) -> float:
        """Return the factor of learning rate and entropy bonus: it falls from 1 to 0.02."""
        return max(1.0 - decisions / self.total_timesteps, 0.02)


def with_defaults(section: Mapping, env: str) -> dict:
    """Return a section `train` with presets for `null`, except the other algorithm's options."""
    name = env.rpartition(":")[2]
    presets = next(presets for prefix, presets in PRESETS.items() if name.startswith(prefix))
    first, *others = (_CAR_FRAMES,) if section.get("pixels") else presets
    algorithm = section.get("algorithm") or first["algorithm"]
    preset = next((preset for preset in (first, *others) if preset["algorithm"] == algorithm), None)
    if preset is None:
        cores = first.get("processes", 1) * first.get("threads", 1)
        split = "processes" if algorithm == "ppo" else "threads"
        preset = {"frame_skip": first.get("frame_skip", 1), split: cores, "algorithm": algorithm}
    values = _SHARED | DEFAULTS[algorithm] | preset
    total = section.get("total_timesteps") or values["total_timesteps"]
    values["checkpoints"] = [0, total // 8, total // 4, total // 2]  # networks change early on
    return {n: values.get(n) if value is None else value for n, value in section.items()}
