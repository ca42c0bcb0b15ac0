"""Play with a network that goalreel trained.

The network sees the same observations as in training: those of ALE games are byte for byte those of
ale-py's AtariVectorEnv. An episode starts with FIRE if the game needs it, and with no-ops, whose
number the episode's own generator draws. The environment steps every single frame, and the policy
repeats its action until the next decision.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.environments.environment import Acted, Environment, PerEnv
from goalreel.environments.seeding import action_generators
from goalreel.errors import OptionError
from goalreel.policies.network_file import read_checkpoints
from goalreel.policies.numpy_network import NumpyNetwork, signals_of
from goalreel.policies.preprocessing import SIDE, WARPS, finish, shrunk

_NOOP = 0


@dataclass
class _Game:
    """The state of an episode. Frames are those of an environment, pictures those of a network."""

    noops: int  # frames without a button at the start
    steps: int = 0  # seen by the policy
    action: int = _NOOP  # repeated until the next decision
    obs: np.ndarray | None = None  # of the latest decision
    before: np.ndarray | None = None  # the frame before a decision, if the maximum needs it
    shrunk: tuple[np.ndarray, np.ndarray] | None = None  # the last gray ALE frame, and its picture
    values: np.ndarray | None = None  # of all actions, at the latest decision


@dataclass(frozen=True)
class TrainedPolicy:
    """The network of one checkpoint of a file."""

    settings: Mapping  # its environment, and its view of it, see network_file.py
    # Returns the actions, (n,), and all values, (n, actions), of observations, (n, *obs_shape).
    decide: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    is_ppo: bool = False  # whether the values are logits, of which signals show the probabilities

    @classmethod
    def load(cls, path: str | os.PathLike, checkpoint: str | int) -> "TrainedPolicy":
        """Read a checkpoint of a file, see Checkpoints.choose. Raises GoalreelError."""
        checkpoints = read_checkpoints(path)
        weights = checkpoints.weights[checkpoints.choose(checkpoint)]
        settings = checkpoints.settings
        if settings["module"]:
            from goalreel.policies.torch_network import OwnNetwork

            network = OwnNetwork(weights, settings)
        else:
            dtype = np.float32 if settings["obs"] == "pixels" else np.float64
            network = NumpyNetwork(weights, dtype, settings["strides"])
        training = checkpoints.spec.config.get("train", {})
        return cls(settings, network.decide, training.get("algorithm") == "ppo")

    @property
    def warp(self) -> str | None:
        """How frames were resized in training, "area" or a name in WARPS. None for states."""
        return self.settings["warp"]

    def check_env(self, env: str) -> None:
        """Raise GoalreelError if the network was trained in a different environment."""
        trained = self.settings["env"]
        if trained.rpartition(":")[2] != env.rpartition(":")[2]:
            problem = f"The network was trained on {trained}, not {env}"
            fix = f"Set env={trained}, or name a policy of {env}."
            raise OptionError("policy.file", f"{problem}. {fix}")

    def check(self, environment: Environment) -> None:
        """Raise GoalreelError if the environment or its spaces differ from those in training."""
        self.check_env(environment.id)
        fix = "Use the env_kwargs and env_wrappers of its training."
        space, actions = environment.actions, self.settings["actions"]
        if space.shape or not space.is_integer or int(space.high[0] - space.low[0]) + 1 != actions:
            problem = f"The network has {actions} actions, but {environment.id} takes {space}"
            raise OptionError("policy.file", f"{problem}. {fix}")
        if self.settings["obs"] == "state" and hasattr(environment, "observation_space"):
            from gymnasium.spaces import flatdim

            given, size = flatdim(environment.observation_space), self.settings["obs_shape"][0]
            if given != size:
                problem = f"The network takes {size} numbers, but {environment.id} shows {given}"
                raise OptionError("policy.file", f"{problem}. {fix}")

    def generators(self, seeds: np.ndarray) -> PerEnv:
        """Return the initial state of each episode."""
        _, draws = action_generators(seeds).random()
        most = self.settings["noop"] or 0
        return PerEnv(_Game(int(draw * most)) for draw in draws)

    def act(self, observations: Sequence, environment: Environment, generators: PerEnv) -> Acted:
        """Return the actions, (num_envs,), the episodes, and the values of their last decisions."""
        settings = self.settings
        skip, maximum = settings["frame_skip"], settings["maximum"]
        meanings = environment.action_meanings if settings["fire"] else ()
        fire = meanings.index("FIRE") if "FIRE" in meanings else None  # starts the game
        observe = self._picture if settings["obs"] == "pixels" else _flattener(environment)
        deciding = []
        for place, game in enumerate(generators):
            since = game.steps - max(game.noops, fire is not None)  # the first decision
            game.steps += 1
            if since < 0:
                game.action = fire if fire is not None and game.steps == 1 else _NOOP
            elif since % skip == 0:
                game.obs = observe(observations[place], game)
                deciding.append(game)
            elif since % skip == skip - 1 and maximum:
                game.before = observations[place]
        if deciding:
            chosen, values = self.decide(np.stack([game.obs for game in deciding]))
            for game, action, row in zip(deciding, chosen.tolist(), values, strict=True):
                game.action, game.values = action, row
        space = environment.actions
        actions = [game.action + int(space.low[0]) for game in generators]
        unknown = np.full(self.settings["actions"], np.nan)
        shown = np.array([unknown if g.values is None else g.values for g in generators])
        return np.array(actions, space.stored_dtype), generators, signals_of(shown, self.is_ppo)

    def _picture(self, frame: np.ndarray, game: _Game) -> np.ndarray:
        """Return the next observation, obs_shape, uint8; the first one repeats its picture."""
        frame = frame if game.before is None else np.maximum(game.before, frame)
        if frame.shape == (SIDE, SIDE):
            picture = frame
        elif self.warp == "area":  # of ALE, whose frames are gray
            picture = shrunk(frame, game.shrunk)
            game.shrunk = frame, picture
        else:
            picture = WARPS[self.warp](frame)
        picture = finish(picture, self.settings, game.action, self.settings["actions"])
        if game.obs is None:
            return np.repeat(picture[None], self.settings["stack"], axis=0)
        return np.concatenate([game.obs[1:], picture[None]])


def _flattener(environment: Environment) -> Callable:
    """Return the function from a state, and its game, to the numbers that a network takes."""
    space = getattr(environment, "observation_space", None)
    if space is None:
        return lambda state, game: np.asarray(state, np.float64).reshape(-1)
    from gymnasium.spaces import flatten

    return lambda state, game: flatten(space, state).astype(np.float64)
