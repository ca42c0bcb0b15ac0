"""The collectors' processes: started, watched, restarted when one dies, and ended.

They share memory without names with the trainer, by descriptors, so none is left behind, however
they end.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.training.pixels.collector import (
    CONTROL,
    COUNTERS,
    EPISODE,
    EPISODES,
    REFUSED,
    Assignment,
    step_fields,
)
from goalreel.training.shared_memory import blocks, child_process
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import SharedWeights, fields_of

_STARTS = 3  # in a row without a step, after which a collector is given up
_ANSWER = 120.0  # seconds for a game to print its number of actions
_TAIL = 2000  # characters of a collector's stderr in a message


@dataclass
class _Handle:
    """A collector: its memory, which outlives its process, and its present process."""

    ring: Ring
    episodes: Ring
    counters_fd: int
    counters: dict[str, np.ndarray]
    stderr: BinaryIO
    process: subprocess.Popen | None = None
    starts: int = 0  # since its last step
    restarts: int = 0
    steps: int = -1  # its counter at the latest start


class Collectors:
    """The collectors of a training; a context manager that ends them.

    Attributes:
        restarts: how many died.
    """

    def __init__(
        self,
        python: str,
        collectors: int,
        assignment: Assignment,
        weights: Mapping[str, np.ndarray],
        epsilon: float,
    ):
        """Make the shared memory, with the first weights and share of random actions in it."""
        self._python, self.restarts, self._stopped = python, 0, False
        self._assignment = replace(assignment, weights=fields_of(weights))
        self._weights = SharedWeights(self._assignment.weights)
        self._control_fd, self._control = blocks.shared(CONTROL)
        self._handles = [self._handle() for _ in range(collectors)]
        self.publish(weights)
        self.explore(epsilon)

    def __enter__(self) -> "Collectors":
        """Start all processes. Raises GoalreelError if the interpreter cannot be run."""
        try:
            for rank in range(len(self._handles)):
                self._start(rank)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_) -> None:
        """End all processes."""
        self.stop()

    @property
    def rings(self) -> list[Ring]:
        """The rings of their steps (frame_replay_buffer.step_fields), in order."""
        return [handle.ring for handle in self._handles]

    def publish(self, weights: Mapping[str, np.ndarray]) -> None:
        """Give all collectors new weights."""
        self._weights.write(weights)

    def explore(self, epsilon: float) -> None:
        """Set the share of random actions."""
        self._control["epsilon"][0] = epsilon

    def counted(self) -> dict[str, int]:
        """Return the sums of all collectors' counters (collector.COUNTERS)."""
        return {
            name: sum(int(handle.counters[name][0]) for handle in self._handles)
            for name in COUNTERS
        }

    def ended(self) -> list[tuple[float, float, int]]:
        """Return the games that have ended since the last call: return, distance, frames."""
        games = []
        for handle in self._handles:
            while len(handle.episodes):
                rows = handle.episodes.items(EPISODES)
                columns = [rows[name].tolist() for name in EPISODE]
                games += zip(*columns, strict=True)
                handle.episodes.release(len(columns[0]))
        return games

    def watch(self) -> None:
        """Restart those that died. Raises GoalreelError for one that dies before any step."""
        for rank, handle in enumerate(self._handles):
            if handle.process.poll() is None:
                continue
            if int(handle.counters["steps"][0]) > handle.steps:
                handle.starts = 0
            handle.process.stdin.close()
            self._check(rank, handle)
            self.restarts += 1
            handle.restarts += 1
            self._start(rank)

    def stop(self) -> None:
        """End all processes, and free their memory."""
        if self._stopped:
            return
        self._stopped = True
        child_process.end(handle.process for handle in self._handles if handle.process)
        fds = {self._control_fd, self._weights.fd}
        for handle in self._handles:
            handle.stderr.close()
            fds |= {handle.ring.fd, handle.episodes.fd, handle.counters_fd}
        for fd in fds:
            os.close(fd)

    def _handle(self) -> _Handle:
        steps = Ring(step_fields(self._assignment.shape), self._assignment.capacity)
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe that nobody reads would fill up
        return _Handle(steps, Ring(EPISODE, EPISODES), *blocks.shared(COUNTERS), stderr)

    def _start(self, rank: int) -> None:
        handle = self._handles[rank]
        fds = {
            **{"steps": handle.ring.fd, "episodes": handle.episodes.fd},
            **{"counters": handle.counters_fd, "control": self._control_fd},
            "weights": self._weights.fd,
        }
        seed = (*self._assignment.seed, rank, handle.restarts)
        assignment = replace(self._assignment, seed=seed, fds=fds)
        handle.stderr.seek(0)
        handle.stderr.truncate()
        handle.starts, handle.steps = handle.starts + 1, int(handle.counters["steps"][0])
        handle.process = _process(
            *(self._python, "collect", assignment.to_json()),
            **{"pass_fds": fds.values(), "stderr": handle.stderr},
        )

    def _check(self, rank: int, handle: _Handle) -> None:
        """Raise GoalreelError if it is of no use to restart a collector that ended."""
        status = handle.process.returncode
        if status != REFUSED and handle.starts < _STARTS:
            return
        handle.stderr.seek(0)
        message = _tail(handle.stderr.read())
        if status == REFUSED:
            raise GoalreelError(message)
        raise GoalreelError(
            f"collector {rank} ended {handle.starts} times before its first step "
            f"({child_process.meaning(status)}); its stderr: {message or 'empty'}"
        )


def actions_of(python: str, game: Mapping) -> int:
    """Return how many actions a game has, as a collector's interpreter finds it.

    Raises GoalreelError if the interpreter does not start, or the game does not.
    """
    process = _process(
        *(python, "actions", json.dumps(game)),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE},
    )
    with process:
        try:
            stdout, stderr = process.communicate(timeout=_ANSWER)
        except subprocess.TimeoutExpired:
            process.kill()
            raise GoalreelError(
                f"{python} did not start {game['game']} within {_ANSWER:g} s"
            ) from None
    if process.returncode == REFUSED:
        raise GoalreelError(f"{_tail(stderr)} (see pixels.game and pixels.python)")
    if process.returncode:
        raise GoalreelError(
            f"{python} cannot play {game['game']} "
            f"({child_process.meaning(process.returncode)}): {_tail(stderr)}"
        )
    return int(stdout.split()[-1])


def _tail(stderr: bytes) -> str:
    return stderr.decode(errors="replace").strip()[-_TAIL:]


def _process(python: str, *arguments: str, **options) -> subprocess.Popen:
    """Start a collector's interpreter."""
    module = "goalreel.training.pixels.collector"
    try:
        return child_process.start(python, module, *arguments, **options)
    except OSError as error:
        raise GoalreelError(f"pixels.python: {python} cannot be run: {error.strerror}") from None
