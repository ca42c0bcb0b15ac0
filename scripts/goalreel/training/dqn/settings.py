"""The variants of training: a baseline and changes to it.

They follow M. Lapan, "Deep Reinforcement Learning Hands-On", 2nd edition (2020), chapter 9. In all
variants an action lasts several frames, and a training ends when it has solved the environment. The
baseline takes one gradient step per decision. With n environments, one gradient step covers several
decisions, with a batch that is larger by the same factor. The book also plays in a second process.
A step takes so little time here that 16 environments in one process are faster.

The hyperparameters started from RL Baselines3 Zoo's for MountainCar-v0 (hyperparams/dqn.yml).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Hyperparameters. A decision chooses an action, which lasts `frame_skip` frames."""

    total_timesteps: int = 20_000  # decisions after which a training stops unsolved
    frame_skip: int = 12  # with 4, random play reaches the goal in 1 of 2,000 episodes
    learning_rate: float = 4e-3
    train_freq: int = 1  # decisions for each gradient step
    batch_size: int = 32  # transitions in a gradient step, times `train_freq`
    buffer_size: int = 10_000  # transitions
    learning_starts: int = 500  # decisions before the first gradient step
    gamma: float = 0.98  # per frame
    target_update_interval: int = 500  # decisions
    # Not a fraction of total_timesteps, because most trainings end earlier.
    exploration_steps: int = 2_000  # decisions over which epsilon falls from 1
    exploration_final_eps: float = 0.05
    hidden: tuple[int, ...] = (128, 128)
    no_grad: bool = True  # compute actions and targets without gradients
    n_envs: int = 1  # environments in a batch
    wrapped: bool = True  # Gymnasium's environments and wrappers, or goalreel's own steps


_ENVIRONMENTS = {"n_envs": 3, "train_freq": 3}
VARIANTS = {
    "baseline": Settings(),
    "without_no_grad": Settings(no_grad=False),
    "environments_3": Settings(**_ENVIRONMENTS),
    "wrappers_environments": Settings(wrapped=False, **_ENVIRONMENTS),
    "fast": Settings(wrapped=False, n_envs=16, train_freq=4),
}
