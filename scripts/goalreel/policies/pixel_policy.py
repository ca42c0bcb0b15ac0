"""A network that was trained from pixels as a policy: what it sees of a game, and when it decides.

It sees every game as in its training. Of ALE's that is ale-py's AtariVectorEnv, byte for byte: an
episode begins with FIRE, where the game has it, and with no-ops, of as many frames as the episode's
own generator draws; an action lasts `frame_skip` frames, and the maximum of the last two, made
smaller by area, is what the next decision sees. Here a frame is a step: the environment gives each
one, and the policy holds its action until the next decision.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goalreel.environments.environment import Environment, PerEnv
from goalreel.environments.seeding import action_generators
from goalreel.errors import OptionError
from goalreel.policies.network_file import PixelCheckpoints, read_checkpoints
from goalreel.policies.pixel_network import SIDE, Actor
from goalreel.policies.preprocessing import WARPS, shrunk

_NOOP = 0


@dataclass
class _Game:
    """What the policy knows of the episode of a sub-environment."""

    noops: int  # frames that its start lasts, at least
    frames: int = 0  # that the policy has seen
    action: int = _NOOP  # that is held
    stack: np.ndarray | None = None  # (stack, 84, 84) uint8, what the last decision was made on
    before: np.ndarray | None = None  # the last frame before that of a decision, if it counts


@dataclass(frozen=True)
class PixelPolicy:
    """The network of a checkpoint, and how it was trained to see its game."""

    path: str | os.PathLike  # of its file
    checkpoints: PixelCheckpoints
    actor: Actor  # float64, whose rounding decides between no two actions

    @classmethod
    def load(cls, path: str | os.PathLike, checkpoint: str | int) -> "PixelPolicy":
        """Read a policy file.

        Args:
            path: of the file.
            checkpoint: "best", "last" or its decisions of training.

        Raises:
            GoalreelError: it cannot be used, or has no such checkpoint.
        """
        checkpoints = read_checkpoints(path, PixelCheckpoints)
        weights = checkpoints.weights[checkpoints.choose(checkpoint)]
        return cls(path, checkpoints, Actor.of(weights, np.float64))

    @property
    def warp(self) -> str:
        """How pictures became what the network sees in its training, by its name in WARPS."""
        return self.checkpoints.game["warp"]

    def check_game(self, env: str) -> None:
        """Raise GoalreelError if the network was trained on another game than that of an id."""
        if (game := self.checkpoints.game["game"]) != env:
            raise OptionError(
                "policy.file",
                f"{self.path} was trained on {game}, and env is {env}; set "
                f"env={game}, or name a policy of {env}",
            )

    def check(self, environment: Environment) -> None:
        """Raise GoalreelError if the network was trained on another game or other actions."""
        self.check_game(environment.id)
        space = environment.actions
        if int(space.high[0] - space.low[0]) + 1 != self.checkpoints.actions:
            raise OptionError(
                "policy.file",
                f"{self.path} was trained to choose from {self.checkpoints.actions} "
                f"actions; {environment.id} takes {space}; leave env_kwargs out",
            )

    def generators(self, seeds: np.ndarray) -> PerEnv:
        """Return the beginning of each episode."""
        _, draws = action_generators(seeds).random()
        most = self.checkpoints.game["noop"]
        return PerEnv(_Game(int(draw * most)) for draw in draws)

    def act(
        self, observations: Sequence, environment: Environment, generators: PerEnv
    ) -> tuple[np.ndarray, PerEnv]:
        """Return the actions, (num_envs,), each from its own episode alone."""
        fire = self._fire(environment)
        games = zip(generators, observations, strict=True)
        actions = [self._act(game, obs, fire) for game, obs in games]
        return np.array(actions, environment.actions.stored_dtype), generators

    def _fire(self, environment: Environment) -> int | None:
        """Return the action that presses FIRE at a game's start, None where none does."""
        if self.checkpoints.game["fire"] is False:
            return None
        meanings = environment.action_meanings
        return meanings.index("FIRE") if "FIRE" in meanings else None

    def _act(self, game: _Game, frame: np.ndarray, fire: int | None) -> int:
        skip = self.checkpoints.game["frame_skip"]
        since = game.frames - max(game.noops, fire is not None)  # the first decision
        game.frames += 1
        if since < 0:
            return fire if fire is not None and game.frames == 1 else _NOOP
        if since % skip == 0:
            game.stack = self._stacked(game, frame)
            game.action = int(self.actor.values(game.stack[None])[0].argmax())
        elif since % skip == skip - 1 and self.checkpoints.game["maximum"]:
            game.before = frame
        return game.action

    def _stacked(self, game: _Game, frame: np.ndarray) -> np.ndarray:
        """Return what a decision is made on, (stack, 84, 84) uint8; the first repeats its frame."""
        screen = frame if game.before is None else np.maximum(game.before, frame)
        if screen.ndim == 3:  # Mario's screen
            screen = WARPS[self.warp](screen)
        elif screen.shape != (SIDE, SIDE):  # ALE's, in grey
            screen = shrunk(screen)
        if game.stack is None:
            return np.repeat(screen[None], self.checkpoints.stack, axis=0)
        return np.concatenate([game.stack[1:], screen[None]])
