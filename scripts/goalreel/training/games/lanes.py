"""Environments given as pixels, several side by side, whose episodes follow one another.

What every kind of them offers, and which kind a game is: the car in cars, emulated games in
emulated. Frames are not stacked here: who acts stacks what it acts on, the replay buffer what is
learned from. Collectors import this under NumPy 1.26 too, without PyTorch.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.training.games.names import CAR
from goalreel.training.games.settings import GameSettings


@dataclass(frozen=True)
class Episode:
    """A whole game that ended, whatever the learner's episodes were.

    return_: the sum of the environment's own rewards, not clipped; frames: steps of the
    environment since its reset; distance: the furthest position that the learner's steps reached,
    in the environment's units (pixels in Mario), nan where there is none
    """

    lane: int
    return_: float
    frames: int
    distance: float


@dataclass(frozen=True)
class PixelStep:
    """What a step of all lanes gives; (lanes, ...) arrays.

    frames: steps of environments that the actions took, up to `skip` for each lane; those that a
    reset takes do not count. rewards: float32, as the learner gets them. terminated, truncated:
    bool, of the learner's episode: with `episodic_life` it terminates with each life. after: uint8,
    (lanes, 84, 84), what was seen then, at an episode's end too. ended: the games that were over
    """

    frames: int
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    after: np.ndarray
    ended: tuple[Episode, ...]


class PixelLanes(Protocol):
    """Environments side by side.

    actions: how many there are to choose from, 0 to actions - 1
    seen: (lanes, 84, 84) uint8, what to act on next: after an end, that of the next reset
    ages: (lanes,) int32, the learner's steps since the reset
    """

    actions: int
    seen: np.ndarray
    ages: np.ndarray

    def step(self, actions: np.ndarray) -> PixelStep:
        """Take (lanes,) actions, and begin anew where an episode ended; arrays stay as they are."""

    def close(self) -> None:
        """Free what the environments hold."""


def make_lanes(game: GameSettings, seed: int, lanes: int) -> PixelLanes:
    """Return `lanes` environments of a game; the same seed and actions give the same pixels.

    Raises GoalreelError where a package is missing, for a wrapper that the game has no use for,
    and for less than one lane.
    """
    if lanes < 1:
        raise GoalreelError(f"lanes: {lanes} is not allowed; allowed: 1 or more environments")
    if game.family == CAR:
        from goalreel.training.games.mountain_car import CarLanes

        return CarLanes(game, seed, lanes)
    from goalreel.training.games.emulated import EmulatedLanes

    return EmulatedLanes(game, seed, lanes)
