"""The trainer's side of the processes that play: it starts them, reads what they made, ends them.

They share memory without names with the trainer, by descriptors, so none is left behind, however
they end.
"""

import json
import os
import subprocess
from collections.abc import Mapping

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.training.pixels.collector import EPISODE, EPISODES, STATE, step_fields
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.shared_memory import child_process
from goalreel.training.shared_memory.arrays import shared_arrays
from goalreel.training.shared_memory.child_process import Child
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import SharedWeights, fields_of

_ANSWER = 120.0  # seconds for a game to print its number of actions


def _start(python: str, job: str, values: Mapping, fds=()) -> Child:
    return Child(python, "goalreel.training.pixels.collector", job, json.dumps(values), fds=fds)


class Collectors:
    """The collectors of a training.

    Attributes:
        children: their processes.
        rings: of their steps (collector.step_fields), in the same order.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        game: Mapping,
        session: int,
        weights: Mapping[str, np.ndarray],
        epsilon: float,
    ):
        """Start all processes, which play by the first weights and share of random actions.

        Args:
            settings: of the training.
            game: GameSettings as a dict.
            session: whose seeds no other session has.
            weights: the first ones.
            epsilon: the first share of random actions.

        Raises:
            GoalreelError: if the interpreter cannot be run.
        """
        self.children: list[Child] = []
        numbers = range(settings.collectors)
        self.rings = [Ring(step_fields(), settings.ring) for _ in numbers]
        self._episodes = [Ring(EPISODE, EPISODES) for _ in numbers]
        state_fd, self._state = shared_arrays(STATE)
        fields = fields_of(weights)
        self._weights = SharedWeights(fields)
        shared = {"state": state_fd, "weights": self._weights.fd}
        self._fds = set(shared.values())
        self.publish(weights)
        self.explore(epsilon)
        try:
            for number, steps, episodes in zip(numbers, self.rings, self._episodes, strict=True):
                fds = shared | {"steps": steps.fd, "episodes": episodes.fd}
                self._fds |= set(fds.values())
                values = {"game": game, "num_envs": settings.envs_per_collector, "number": number}
                values |= {"seed": (settings.seed, session, number), "stack": settings.stack}
                values |= {"capacity": settings.ring, "weights": fields, "fds": fds}
                self.children.append(_start(settings.interpreter, "collect", values, fds.values()))
        except GoalreelError:
            self.close()
            raise

    def publish(self, weights: Mapping[str, np.ndarray]) -> None:
        """Give all collectors new weights."""
        self._weights.write(weights)

    def explore(self, epsilon: float) -> None:
        """Set the share of random actions."""
        self._state["epsilon"][0] = epsilon

    def blocked(self) -> float:
        """Return the seconds that collectors waited for room, of all together."""
        return int(self._state["blocked"].sum()) / 1e9

    def ended(self) -> list[tuple[float, float]]:
        """Return the return and distance of each game that has ended since the last call."""
        games = []
        for ring in self._episodes:
            rows = ring.items(EPISODES)
            columns = [rows[name].tolist() for name in EPISODE]
            games += zip(*columns, strict=True)
            ring.release(len(columns[0]))
        return games

    def check(self) -> None:
        """Raise GoalreelError if a collector has ended."""
        for number, child in enumerate(self.children):
            if child.has_ended(f"collector {number}"):
                raise GoalreelError(f"collector {number} ended before the training")

    def close(self) -> None:
        """End all processes, and free their memory; a second time nothing happens."""
        child_process.end(self.children)
        for fd in self._fds:
            os.close(fd)
        self.children, self._fds = [], set()


class GreedyGames:
    """The greedy games of one evaluation, while a process beside the training plays them."""

    def __init__(
        self, settings: PipelineSettings, game: Mapping, weights: Mapping[str, np.ndarray]
    ):
        """Begin to play. Raises GoalreelError if the interpreter cannot be run."""
        fields = fields_of(weights)
        self._fd, arrays = shared_arrays(fields)
        for name, array in arrays.items():
            array[...] = weights[name]
        values = {"game": game, "stack": settings.stack, "games": settings.n_eval_episodes}
        values |= {"weights": fields, "fd": self._fd}
        self._child = _start(settings.interpreter, "evaluate", values, [self._fd])

    def returns(self) -> list[float] | None:
        """Return the games' returns, None while it plays. Raises GoalreelError if it failed."""
        return json.loads(self._child.printed()) if self._child.has_ended("an evaluation") else None

    def close(self) -> None:
        """End the process, and free the weights."""
        child_process.end([self._child])
        os.close(self._fd)


def actions_of(python: str, game: Mapping) -> int:
    """Return how many actions a game has, as a collector's interpreter finds it.

    Raises GoalreelError if the interpreter does not start, or the game does not.
    """
    child = _start(python, "actions", {"game": game})
    try:
        child.process.wait(_ANSWER)
        child.has_ended(game["game"])
        return int(child.printed().split()[-1])
    except GoalreelError as error:
        raise GoalreelError(f"{error} (see pixels.game and pixels.python)") from None
    except subprocess.TimeoutExpired:
        raise GoalreelError(f"{python} did not start {game['game']} in {_ANSWER:g} s") from None
    finally:
        child_process.end([child])
