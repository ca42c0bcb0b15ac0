"""Play a saved Stable-Baselines3 model.

Stable-Baselines3, sb3-contrib and PyTorch are not dependencies of goalreel. This module imports
them only if a configuration needs them. A model predicts one observation at a time on one CPU
thread, so that an episode depends only on its seed. To repeat it, call
`model.set_random_seed(seed % 2**32)` at its start and `model.predict` at each step.
"""

import importlib
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from goalreel.environments.environment import Acted, Environment, PerEnv, Signals, take_rows
from goalreel.errors import GoalreelError, quoted
from goalreel.policies.numpy_network import signals_of
from goalreel.policies.parameters import ALGORITHMS
from goalreel.policies.sb3_network import Sb3Network, read_network


@dataclass
class _Episode:
    """The state of a model in an episode."""

    seed: int
    is_start: bool = True  # no action yet
    memory: object = None  # the hidden state of a recurrent model
    rng_states: tuple = ()  # of PyTorch, NumPy and the action space


@dataclass(frozen=True)
class Sb3Policy:
    """A model that `model.save(path)` wrote."""

    section: Mapping  # `policy` of the configuration
    network: Sb3Network | None  # plays without Stable-Baselines3, if it can

    @classmethod
    def load(cls, section: Mapping) -> "Sb3Policy":
        """Load the model of a section `policy`. Raises GoalreelError if it cannot be used."""
        if (here := os.getcwd()) not in sys.path:  # noqa: PTH109 - for the user's own modules
            sys.path.append(here)
        network = None
        if section.get("deterministic", True):
            network = read_network(section["file"], section.get("vecnormalize"))
        if section.get("batch"):
            if network is None or not network.bound or network.num_convolutions:
                able = "only deterministic continuous actions of an MlpPolicy can"
                problem = f"{quoted(section['file'])} cannot play in batches, {able}"
                raise GoalreelError(f"policy.batch: {problem}. Remove batch.")
            network = replace(network, in_batches=True)
        policy = cls(section, network)
        if policy.network is None and section.get("safe"):
            problem = f"{quoted(section['file'])} cannot be played without code of its files"
            raise GoalreelError(f"policy.safe: {problem}. If you trust them, remove safe.")
        if policy.network is None:
            policy.model, policy.statistics  # noqa: B018 - they may raise
        return policy

    @cached_property
    def model(self):
        """The model, loaded by Stable-Baselines3."""
        path, algorithm = self.section["file"], self.section.get("algorithm", "PPO")
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        library = importlib.import_module(ALGORITHMS[algorithm].replace("-", "_"))
        off_policy = importlib.import_module("stable_baselines3.common.off_policy_algorithm")
        try:
            kind = getattr(library, algorithm)
            small = {}
            if issubclass(kind, off_policy.OffPolicyAlgorithm):
                # `load` would allocate the whole replay buffer of the training.
                small = {"buffer_size": 1, "optimize_memory_usage": False}
                small |= {"replay_buffer_class": None, "replay_buffer_kwargs": {}}
            model = kind.load(path, device="cpu", **small)
        except Exception as error:  # a different kind of .zip, algorithm or version
            raise GoalreelError(
                f"policy.file: {quoted(path)} cannot be loaded as a model of {algorithm}. Save it "
                f"with model.save(), and set policy.algorithm.\n  {type(error).__name__}: {error}"
            ) from None
        # `predict` would set the mode of every layer, and check a distribution, at each step.
        model.policy.set_training_mode(False)
        model.policy.set_training_mode = lambda mode: None
        torch.distributions.Distribution.set_default_validate_args(False)
        return model

    @cached_property
    def statistics(self):
        """A VecNormalize that its `save` wrote, which normalizes observations, None without."""
        if not (path := self.section.get("vecnormalize")):
            return None
        try:
            statistics = pickle.loads(Path(path).read_bytes())  # noqa: S301 - as VecNormalize.load
            statistics.normalize_obs  # noqa: B018 - other pickled objects lack it
        except Exception as error:  # a pickle can raise anything
            raise GoalreelError(
                f"policy.vecnormalize: {quoted(path)} cannot be loaded. Name a file of "
                f"VecNormalize.save().\n  {type(error).__name__}: {error}"
            ) from None
        return statistics

    def check(self, environment: Environment) -> None:
        """Raise GoalreelError if the statistics are of a different observation space.

        sb3_files.spaces_error checks the model itself before the run.
        """
        if self.network or self.statistics is None or not self.statistics.norm_obs:
            return
        trained, found = self.model.observation_space, self.statistics.observation_space
        if trained != found:
            raise GoalreelError(
                f"policy.vecnormalize: The statistics are of observations in {found}, and the "
                f"model was trained on {trained}. Name the file that was saved with the model."
            )

    def generators(self, seeds: np.ndarray) -> PerEnv:
        """Return the initial state of each episode."""
        return PerEnv(map(_Episode, np.asarray(seeds).tolist()))

    def act(self, observations: Sequence, environment: Environment, generators: PerEnv) -> Acted:
        """Return the actions, (num_envs, *stored_shape), the episodes, and the signals."""
        batch, episodes = environment.batch(observations), list(generators)
        if self.network is None:
            chosen = [self._predict(take_rows(batch, i), e) for i, e in enumerate(episodes)]
            actions, given = zip(*chosen, strict=True)
            # For MultiBinary, `predict` returns floats.
            actions = np.stack(actions).astype(self.model.action_space.dtype)
            signals = {name: np.concatenate([part[name] for part in given]) for name in given[0]}
        else:
            actions, signals = self.network.act(batch, environment.actions)
        label = f"policy.file: {self.section['file']} ({self.section.get('algorithm')})"
        return environment.actions.validate(actions, len(episodes), label), generators, signals

    def _predict(self, observation: object, episode: _Episode) -> tuple[object, Signals]:
        if self.statistics is not None:
            observation = self.statistics.normalize_obs(observation)
        is_random = not self.section.get("deterministic", True)
        if is_random:
            self._restore(episode)
        given = observation, episode.memory, np.array([episode.is_start]), not is_random
        try:
            action, episode.memory = self.model.predict(*given)
        except (KeyError, RuntimeError, ValueError) as error:
            raise GoalreelError(
                f"policy.file: {quoted(self.section['file'])} cannot take an observation. Set env "
                f"and env_wrappers as in its training.\n  {type(error).__name__}: {error}"
            ) from None
        episode.is_start = False
        if is_random:
            torch, spaces = importlib.import_module("torch"), self.model.action_space.np_random
            states = torch.get_rng_state(), np.random.get_state(), spaces.bit_generator.state
            episode.rng_states = states
        return action, self._signals(observation)

    def _signals(self, observation: object) -> Signals:
        """Return the critic's value, action probabilities or Q values of one observation."""
        policy, torch = self.model.policy, importlib.import_module("torch")
        if hasattr(policy, "lstm_actor"):  # its critic has a memory of its own
            return {}
        with torch.no_grad():
            tensor, _ = policy.obs_to_tensor(observation)
            if hasattr(policy, "q_net"):
                return signals_of(policy.q_net(tensor).numpy(), False)
            if not hasattr(policy, "predict_values"):
                return {}
            signals = {"value": policy.predict_values(tensor).numpy()[:, 0]}
            chances = getattr(policy.get_distribution(tensor), "distribution", None)
            if isinstance(chances, torch.distributions.Categorical):
                signals["probabilities"] = chances.probs.numpy()
            return signals

    def _restore(self, episode: _Episode) -> None:
        """Set the random generators to their states in an episode."""
        # A model with state-dependent exploration draws its noise once, at the start.
        if episode.is_start or self.model.use_sde:
            self.model.set_random_seed(episode.seed % 2**32)
            if self.model.use_sde:
                self.model.policy.reset_noise()
            return
        torch = importlib.import_module("torch")
        torch_state, numpy_state, space_state = episode.rng_states
        torch.set_rng_state(torch_state)
        np.random.set_state(numpy_state)
        self.model.action_space.np_random.bit_generator.state = space_state
