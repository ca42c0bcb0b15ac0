"""The variants of training that are compared: a baseline, and what each changes of it.

They are those of M. Lapan, "Deep Reinforcement Learning Hands-On", 2nd edition (2020), chapter 9,
by its rules: in all of them an action lasts several frames, and a training ends when it has solved
the environment. The baseline takes a gradient step for each decision; n environments take one for
several decisions, of a batch as many times as large. The book's process that plays beside the
learner is left out: a step here takes so little that 16 environments in one process are faster.

The hyperparameters began as those of RL Baselines3 Zoo for MountainCar-v0 (hyperparams/dqn.yml).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How to train. A decision chooses an action, which lasts `frame_skip` frames."""

    total_timesteps: int = 20_000  # decisions after which a training gives up
    frame_skip: int = 12  # with 4, random actions reach the goal in one episode of 2,000
    learning_rate: float = 4e-3
    train_freq: int = 1  # decisions for each gradient step
    batch_size: int = 32  # transitions in a gradient step, times `train_freq`
    buffer_size: int = 10_000  # transitions
    learning_starts: int = 500  # decisions before the first gradient step
    gamma: float = 0.98  # of a frame
    target_update_interval: int = 500  # decisions
    # No fraction of total_timesteps, which most trainings do not reach.
    exploration_steps: int = 2_000  # decisions over which epsilon falls from 1
    exploration_final_eps: float = 0.05
    hidden: tuple[int, ...] = (128, 128)
    no_grad: bool = True  # no gradients are kept of what is not learned from
    n_envs: int = 1  # environments that are stepped side by side
    wrapped: bool = True  # Gymnasium's environments and wrappers, or the same car computed here


_ENVIRONMENTS = {"n_envs": 3, "train_freq": 3}
VARIANTS = {
    "baseline": Settings(),
    "without_no_grad": Settings(no_grad=False),
    "environments_3": Settings(**_ENVIRONMENTS),
    "wrappers_environments": Settings(wrapped=False, **_ENVIRONMENTS),
    "fast": Settings(wrapped=False, n_envs=16, train_freq=4),
}
