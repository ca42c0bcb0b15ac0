"""A saved Stable-Baselines3 model as a policy.

Stable-Baselines3 and PyTorch are not among goalreel's requirements: they are imported where a
configuration asks for them. A model predicts its deterministic action, one lane at a time and on
one CPU thread, so that an action depends on nothing but its observation.
"""

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.environments.environment import Environment
from goalreel.errors import GoalreelError

ALGORITHMS = ("PPO", "DQN", "A2C", "SAC", "TD3")


@dataclass(frozen=True)
class _NoGenerators:
    """The generators of a policy that draws nothing."""

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
                f"({type(error).__name__}: {error}); allowed: a file of model.save() with its "
                f"algorithm, one of {', '.join(ALGORITHMS)}"
            ) from None
        return cls(path, algorithm, model)

    def check(self, environment: Environment) -> None:
        """Raise GoalreelError if the model was trained for other observations or actions."""
        obs = environment.sample_observations(1)
        expected = getattr(self.model.observation_space, "shape", None)
        # Images are seen channels first by the model, which turns them itself.
        if sorted(expected or ()) != sorted(obs.shape[1:]):
            raise GoalreelError(
                f"policy.file: {self.path} was trained on observations of shape {expected}; "
                f"those of {environment.id} have shape {obs.shape[1:]}"
            )
        self.act(obs, environment, self.generators(np.zeros(1, int)))

    def generators(self, seeds: np.ndarray) -> _NoGenerators:
        """Return no generators: the model draws nothing."""
        return _NoGenerators()

    def act(
        self, observations: Sequence, environment: Environment, generators: _NoGenerators
    ) -> tuple[np.ndarray, _NoGenerators]:
        """Return the actions, (lanes, *stored_shape), each from its own observation alone."""
        chosen = [self.model.predict(obs, deterministic=True)[0] for obs in observations]
        who = f"policy.file: {self.path} ({self.algorithm})"
        return environment.actions.checked(np.stack(chosen), len(chosen), who), generators
