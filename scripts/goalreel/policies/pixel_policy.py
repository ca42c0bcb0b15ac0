"""Play a game with a network that was trained from pixels.

The network sees the same observations as in training, for ALE games byte for byte those of ale-py's
AtariVectorEnv. An episode starts with FIRE if the game needs it, and with no-ops, whose number the
episode's own generator draws. An action lasts `frame_skip` frames. The next observation is the
maximum of the last two frames, resized by area. The environment steps every single frame, so the
policy repeats its action until the next decision.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.environments.environment import Acted, Environment, PerEnv
from goalreel.environments.seeding import action_generators
from goalreel.errors import OptionError
from goalreel.policies.network_file import PixelCheckpoints, read_checkpoints
from goalreel.policies.numpy_network import NumpyNetwork
from goalreel.policies.preprocessing import SIDE, WARPS, shrunk

_NOOP = 0


@dataclass
class _Game:
    """The state of an episode."""

    noops: int  # frames without a button at the start
    frames: int = 0  # seen by the policy
    action: int = _NOOP  # repeated until the next decision
    stack: np.ndarray | None = None  # (stack, 84, 84) uint8, the last observation
    before: np.ndarray | None = None  # the frame before a decision, if the maximum needs it
    shrunk: tuple[np.ndarray, np.ndarray] | None = None  # the last gray ALE frame, and its result


@dataclass(frozen=True)
class PixelPolicy:
    """The network of one checkpoint of a policy file."""

    path: str | os.PathLike
    checkpoints: PixelCheckpoints
    network: NumpyNetwork

    @classmethod
    def load(cls, path: str | os.PathLike, checkpoint: str | int) -> "PixelPolicy":
        """Read a checkpoint of a policy file, see Checkpoints.choose. Raises GoalreelError."""
        checkpoints = read_checkpoints(path, PixelCheckpoints)
        weights = checkpoints.weights[checkpoints.choose(checkpoint)]
        names = {"hidden": "dense0", "values": "dense1"}
        layers = {name.partition("."): array for name, array in weights.items()}
        weights = {f"{names.get(k, k)}.{part}": array for (k, _, part), array in layers.items()}
        return cls(path, checkpoints, NumpyNetwork.of(weights))

    @property
    def warp(self) -> str:
        """How frames were resized in training, a name in WARPS."""
        return self.checkpoints.game["warp"]

    def check_game(self, env: str) -> None:
        """Raise GoalreelError if the network was trained on a different game."""
        if (game := self.checkpoints.game["game"]) != env:
            problem = f"The network was trained on {game}, not {env}"
            fix = f"Set env={game}, or name a policy of {env}."
            raise OptionError("policy.file", f"{problem}. {fix}")

    def check(self, environment: Environment) -> None:
        """Raise GoalreelError if the network was trained on a different game or action space."""
        self.check_game(environment.id)
        space = environment.actions
        if int(space.high[0] - space.low[0]) + 1 != self.checkpoints.actions:
            taken = f"{environment.id} takes {space}"
            problem = f"The network has {self.checkpoints.actions} actions, but {taken}"
            raise OptionError("policy.file", f"{problem}. Remove env_kwargs.")

    def generators(self, seeds: np.ndarray) -> PerEnv:
        """Return the initial state of each episode."""
        _, draws = action_generators(seeds).random()
        most = self.checkpoints.game["noop"]
        return PerEnv(_Game(int(draw * most)) for draw in draws)

    def act(self, observations: Sequence, environment: Environment, generators: PerEnv) -> Acted:
        """Return the actions, (num_envs,), each of which depends on its own episode only."""
        meanings = environment.action_meanings if self.checkpoints.game["fire"] else ()
        fire = meanings.index("FIRE") if "FIRE" in meanings else None  # starts the game
        places = enumerate(generators)
        deciding = [game for at, game in places if self._sees(game, observations, at, fire)]
        if deciding:
            chosen = self.network.act(np.stack([game.stack for game in deciding]))
            for game, action in zip(deciding, chosen.tolist(), strict=True):
                game.action = action
        actions = [game.action for game in generators]
        return np.array(actions, environment.actions.stored_dtype), generators

    def _sees(self, game: _Game, frames: Sequence, place: int, fire: int | None) -> bool:
        """Show the policy a game's frame, if it matters; return whether it needs a new action."""
        skip = self.checkpoints.game["frame_skip"]
        since = game.frames - max(game.noops, fire is not None)  # frames since the first decision
        game.frames += 1
        if since < 0:
            game.action = fire if fire is not None and game.frames == 1 else _NOOP
        elif since % skip == 0:
            game.stack = self._stacked(game, frames[place])
            return True
        elif since % skip == skip - 1 and self.checkpoints.game["maximum"]:
            game.before = frames[place]
        return False

    def _stacked(self, game: _Game, frame: np.ndarray) -> np.ndarray:
        """Return the next observation, (stack, 84, 84) uint8; the first one repeats its frame."""
        screen = frame if game.before is None else np.maximum(game.before, frame)
        if screen.ndim == 3:  # Mario's frame
            screen = WARPS[self.warp](screen)
        elif screen.shape != (SIDE, SIDE):  # a gray ALE frame
            game.shrunk = screen, shrunk(screen, game.shrunk)
            screen = game.shrunk[1]
        if game.stack is None:
            return np.repeat(screen[None], self.checkpoints.stack, axis=0)
        return np.concatenate([game.stack[1:], screen[None]])
