"""A saved Stable-Baselines3 model as a policy.

Stable-Baselines3, sb3-contrib and PyTorch are not among goalreel's dependencies: they are imported
where a configuration asks for them. A model acts one row at a time and on one CPU thread, so that
an episode depends on its seed alone: it is what `model.set_random_seed(seed % 2**32)` at its start
and `model.predict` at each step give.
"""

import importlib
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.environments.environment import Environment, PerEnv, take_rows
from goalreel.errors import GoalreelError
from goalreel.policies.parameters import ALGORITHMS


@dataclass
class _Episode:
    """What a model goes on from in an episode."""

    seed: int
    starts: bool = True  # whether it has not acted yet
    memory: object = None  # of a recurrent model
    draws: tuple = ()  # the states of the random generators that it draws from


@dataclass(frozen=True)
class Sb3Policy:
    """A model that `model.save(path)` wrote."""

    path: str
    algorithm: str
    model: object
    statistics: object | None  # the VecNormalize whose statistics observations are normalised with
    deterministic: bool

    @classmethod
    def load(cls, config: Mapping) -> "Sb3Policy":
        """Load a model by its section `policy`.

        Raises:
            GoalreelError: it, its statistics, or the library cannot be used.
        """
        path, algorithm = config["file"], config.get("algorithm", "PPO")
        importlib.import_module("torch").set_num_threads(1)
        library = importlib.import_module(ALGORITHMS[algorithm].replace("-", "_"))
        off_policy = importlib.import_module("stable_baselines3.common.off_policy_algorithm")
        try:
            kind = getattr(library, algorithm)
            small = {}
            if issubclass(kind, off_policy.OffPolicyAlgorithm):
                # It allocates its replay buffer when it is loaded, as large as in its training.
                small = {"buffer_size": 1, "optimize_memory_usage": False}
                small |= {"replay_buffer_class": None, "replay_buffer_kwargs": {}}
            model = kind.load(path, device="cpu", **small)
        except Exception as error:  # a zip of another kind or algorithm, another version's pickles
            raise GoalreelError(
                f"policy.file: {path} cannot be loaded as policy.algorithm: {algorithm} "
                f"({type(error).__name__}: {error}); allowed: a file of model.save() with its "
                f"algorithm, one of {', '.join(ALGORITHMS)}"
            ) from None
        saved = config.get("vecnormalize")
        statistics = _read_statistics(saved) if saved else None
        return cls(path, algorithm, model, statistics, config.get("deterministic", True))

    def check(self, environment: Environment) -> None:
        """Raise GoalreelError if the statistics are of other observations.

        Whether the model itself fits is checked before the run, by sb3_files.spaces_error.
        """
        if self.statistics is None or not self.statistics.norm_obs:
            return
        trained, found = self.model.observation_space, self.statistics.observation_space
        if trained != found:
            raise GoalreelError(
                f"policy.vecnormalize: its statistics are of observations in {found}, and "
                f"{self.path} was trained on {trained}; name the file that was saved with it, or "
                "write false for none"
            )

    def generators(self, seeds: np.ndarray) -> PerEnv:
        """Return the beginning of each episode."""
        return PerEnv(map(_Episode, np.asarray(seeds).tolist()))

    def act(
        self, observations: Sequence, environment: Environment, generators: PerEnv
    ) -> tuple[np.ndarray, PerEnv]:
        """Return the actions, (num_envs, *stored_shape), each from its own episode alone."""
        batch = environment.batch(observations)
        chosen = [self._predict(take_rows(batch, i), one) for i, one in enumerate(generators)]
        # Of MultiBinary it predicts floats.
        actions = np.stack(chosen).astype(self.model.action_space.dtype)
        who = f"policy.file: {self.path} ({self.algorithm})"
        return environment.actions.checked(actions, len(chosen), who), generators

    def _predict(self, observation: object, episode: _Episode) -> object:
        if self.statistics is not None:
            observation = self.statistics.normalize_obs(observation)
        if not self.deterministic:
            self._restore(episode)
        action, episode.memory = self.model.predict(
            observation,
            state=episode.memory,
            episode_start=np.array([episode.starts]),
            deterministic=self.deterministic,
        )
        episode.starts = False
        if not self.deterministic:
            torch, spaces = importlib.import_module("torch"), self.model.action_space.np_random
            drawn = torch.get_rng_state(), np.random.get_state(), spaces.bit_generator.state
            episode.draws = drawn
        return action

    def _restore(self, episode: _Episode) -> None:
        """Set the random generators to where they are in an episode."""
        # The noise of a model with state-dependent exploration is drawn once, when it starts.
        if episode.starts or self.model.use_sde:
            self.model.set_random_seed(episode.seed % 2**32)
            if self.model.use_sde:
                self.model.policy.reset_noise()
            return
        torch = importlib.import_module("torch")
        ours, numpys, spaces = episode.draws
        torch.set_rng_state(ours)
        np.random.set_state(numpys)
        self.model.action_space.np_random.bit_generator.state = spaces


def _read_statistics(path: str):
    """Return the VecNormalize that its `save` wrote."""
    try:
        statistics = pickle.loads(Path(path).read_bytes())  # noqa: S301 - as VecNormalize.load
        statistics.normalize_obs  # noqa: B018 - what else was pickled has it not
    except Exception as error:  # whatever a pickle can raise
        raise GoalreelError(
            f"policy.vecnormalize: {path} cannot be loaded ({type(error).__name__}: {error}); "
            f"allowed: a file of VecNormalize.save()"
        ) from None
    return statistics
