"""Start the processes that play, read their steps and end them.

They share anonymous memory with the trainer, which the system frees however they end.
"""

import json
import os
import subprocess
from collections.abc import Mapping

from goalreel.errors import GoalreelError, quoted
from goalreel.training.pixels.collector import EPISODE, EPISODES, STATE, step_fields
from goalreel.training.pixels.settings import PipelineSettings
from goalreel.training.shared_memory import child_process
from goalreel.training.shared_memory.arrays import shared_arrays
from goalreel.training.shared_memory.child_process import Child
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import SharedWeights, Weights, fields_of

_TIMEOUT = 120.0  # seconds for a game to print its number of actions


def _start(python: str, job: str, values: Mapping, fds=()) -> Child:
    return Child(python, "goalreel.training.pixels.collector", job, json.dumps(values), fds=fds)


class Collectors:
    """The collectors of a training."""

    def __init__(
        self,
        settings: PipelineSettings,
        game: Mapping,
        session: int,
        weights: Weights,
        epsilon: float,
    ):
        """Start all processes, with GameSettings as a dict and initial weights and epsilon.

        The number of the session gives them seeds of their own. Raises GoalreelError if the
        interpreter cannot run.
        """
        self.children: list[Child] = []
        numbers = range(settings.collectors)
        self.rings = [Ring(step_fields(), settings.ring) for _ in numbers]  # of their steps
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

    def publish(self, weights: Weights) -> None:
        """Publish new weights to all collectors."""
        self._weights.write(weights)

    def explore(self, epsilon: float) -> None:
        """Set the share of random actions."""
        self._state["epsilon"][0] = epsilon

    def blocked(self) -> float:
        """Return the seconds that all collectors together waited for space."""
        return int(self._state["blocked"].sum()) / 1e9

    def ended(self) -> list[tuple[float, float]]:
        """Return the return and distance of each game that ended since the last call."""
        games = []
        for ring in self._episodes:
            rows = ring.items(EPISODES)
            columns = [rows[name].tolist() for name in EPISODE]
            games += zip(*columns, strict=True)
            ring.release(len(columns[0]))
        return games

    def check(self) -> None:
        """Raise GoalreelError if a collector ended."""
        for number, child in enumerate(self.children):
            if child.has_ended(f"collector {number}"):
                raise GoalreelError(f"collector {number} ended early. Run the same command again.")

    def close(self) -> None:
        """End all processes and free their memory; a second call does nothing."""
        child_process.end(self.children)
        for fd in self._fds:
            os.close(fd)
        self.children, self._fds = [], set()


class GreedyGames:
    """The greedy games of one evaluation, which a separate process plays."""

    def __init__(self, settings: PipelineSettings, game: Mapping, weights: Weights):
        """Start the process. Raises GoalreelError if the interpreter cannot run."""
        fields = fields_of(weights)
        self._fd, arrays = shared_arrays(fields)
        for name, array in arrays.items():
            array[...] = weights[name]
        values = {"game": game, "stack": settings.stack, "games": settings.n_eval_episodes}
        values |= {"weights": fields, "fd": self._fd}
        self._child = _start(settings.interpreter, "evaluate", values, [self._fd])

    def returns(self) -> list[float] | None:
        """Return the returns, None while the games last. Raises GoalreelError if it failed."""
        return json.loads(self._child.printed()) if self._child.has_ended("an evaluation") else None

    def close(self) -> None:
        """End the process, and free the weights."""
        child_process.end([self._child])
        os.close(self._fd)


def actions_of(python: str, game: Mapping) -> int:
    """Return the number of actions of a game, from the interpreter of the collectors.

    Raises GoalreelError if the interpreter or the game does not start.
    """
    child = _start(python, "actions", {"game": game})
    try:
        child.process.wait(_TIMEOUT)
        child.has_ended(game["game"])
        return int(child.printed().split()[-1])
    except GoalreelError as error:
        raise GoalreelError(f"{error}\n  See pixels.game and pixels.python.") from None
    except subprocess.TimeoutExpired:
        raise GoalreelError(
            f"pixels.python: {quoted(python)} did not start {game['game']} within {_TIMEOUT:g} s."
        ) from None
    finally:
        child_process.end([child])
