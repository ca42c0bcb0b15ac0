"""A saved Stable-Baselines3 model as a policy.

Stable-Baselines3 and PyTorch are no part of goalreel's requirements: they are imported where a
configuration asks for them. A model is asked for its deterministic action, one lane at a time and
on one CPU thread, so that an action depends on nothing but its observation.
"""

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.errors import GoalreelError

ALGORITHMS = ("PPO", "DQN", "A2C", "SAC", "TD3")


@dataclass(frozen=True)
class _NoGenerators:
    """Stands where a policy has nothing to draw."""

    def take(self, lanes: np.ndarray) -> "_NoGenerators":
        return self


@dataclass(frozen=True)
class Sb3Policy:
    """A model that `model.save(path)` wrote."""

    path: str
    algorithm: str
    model: object

    @classmethod
    def load(cls, path: str, algorithm: str) -> "Sb3Policy":
        """Load a model. Raises GoalreelError if it or Stable-Baselines3 cannot be used."""
        try:
            library = importlib.import_module("stable_baselines3")
            importlib.import_module("torch").set_num_threads(1)
        except ImportError as error:
            raise GoalreelError(
                f"policy.name: 'sb3' needs the package stable-baselines3, which {sys.executable} "
                f"cannot import ({error}): pip install stable-baselines3"
            ) from None
        try:
            model = getattr(library, algorithm).load(path, device="cpu")
        except Exception as error:  # a zip of another kind or algorithm, another version's pickles
            raise GoalreelError(
                f"policy.file: {path} cannot be loaded as policy.algorithm: {algorithm} "
                f"({type(error).__name__}: {error}); allowed: a file of model.save(), and its "
                f"algorithm among {', '.join(ALGORITHMS)}"
            ) from None
        return cls(path, algorithm, model)

    def check(self, environment) -> None:
        """Raise GoalreelError if the model was trained for other observations or actions."""
        seen = environment.sample_observations(1)
        wanted = getattr(self.model.observation_space, "shape", None)
        # Images are seen channels first by the model, which turns them itself.
        if sorted(wanted or ()) != sorted(seen.shape[1:]):
            raise GoalreelError(
                f"policy.file: {self.path} was trained on observations of shape {wanted}; those of "
                f"{environment.id} have {seen.shape[1:]}"
            )
        self.act(seen, environment, self.generators(np.zeros(1, int)))

    def generators(self, seeds: np.ndarray) -> _NoGenerators:
        """Return what stands for generators: the model draws nothing."""
        return _NoGenerators()

    def act(self, observations: Sequence, environment, generators: _NoGenerators):
        """Return the actions (lanes, ...), each from its own observation alone."""
        chosen = [self.model.predict(seen, deterministic=True)[0] for seen in observations]
        actions = environment.actions.checked(
            np.stack(chosen), len(chosen), f"policy.file: {self.path} ({self.algorithm})"
        )
        stored = getattr(environment, "action_dtype", None)
        return (actions.reshape(len(chosen)).astype(stored) if stored else actions), generators
