"""The collectors' processes: started, watched, started again when one dies, and ended.

What they share with the trainer is memory without names (shared), given by descriptors, so none is
left behind, however they end. What one does stands in collector.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.training.pixels.collector import CONTROL, COUNTERS, EPISODE, REFUSED, Assignment
from goalreel.training.pixels.frame_replay_buffer import step_fields
from goalreel.training.shared_memory import blocks, child_process
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import SharedWeights, fields_of

_EPISODES = 1024  # of a collector, between two looks at them
_STARTS = 3  # in a row without a step, after which a collector is given up
_PATIENCE = 10.0  # seconds for a collector to end by itself
_ANSWER = 120.0  # seconds for a game to tell its actions
_TOLD = 2000  # characters of what a collector said last


@dataclass(frozen=True)
class Crew:
    """Which collectors to start.

    python: their interpreter; game: GameSettings as a dict; seed: of this session of the training,
    whole numbers; shape: of a frame; capacity: steps of each ring; block: see Assignment
    """

    python: str
    game: Mapping
    seed: tuple[int, ...]
    collectors: int
    environments: int
    shape: tuple[int, int]
    stack: int
    capacity: int
    block: bool


@dataclass
class _Member:
    """A collector: its memory, which outlives its process, and the process of the day.

    said: what it writes to stderr; starts: since its last step; steps: its counter at the latest
    start
    """

    ring: Ring
    episodes: Ring
    counters_fd: int
    counters: dict[str, np.ndarray]
    said: BinaryIO
    process: subprocess.Popen | None = None
    starts: int = 0
    restarts: int = 0
    steps: int = -1


class Collectors:
    """The collectors of a training; a context manager that ends them.

    rings: of their steps, see frame_replay.step_fields; restarts: how many died
    """

    def __init__(self, crew: Crew, weights: Mapping[str, np.ndarray], epsilon: float):
        """Make the shared memory, with the first weights and share of random actions in it."""
        self._crew, self.restarts, self._stopped = crew, 0, False
        self._weights = SharedWeights(fields_of(weights))
        self._fields = fields_of(weights)
        self._control_fd = blocks.create(blocks.layout(CONTROL)[1])
        self._control = blocks.arrays(self._control_fd, CONTROL)
        self._members = [self._member() for _ in range(crew.collectors)]
        self.publish(weights)
        self.explore(epsilon)

    def __enter__(self) -> "Collectors":
        """Start all processes. Raises GoalreelError if the interpreter cannot be run."""
        try:
            for number in range(len(self._members)):
                self._start(number)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_) -> None:
        """End all processes."""
        self.stop()

    @property
    def rings(self) -> list[Ring]:
        """The rings of their steps, in order."""
        return [member.ring for member in self._members]

    def publish(self, weights: Mapping[str, np.ndarray]) -> None:
        """Give all collectors new weights."""
        self._weights.write(weights)

    def explore(self, epsilon: float) -> None:
        """Set the share of random actions."""
        self._control["epsilon"][0] = epsilon

    def counted(self) -> dict[str, int]:
        """Return the sums of all collectors' counters (collector.COUNTERS)."""
        return {
            name: sum(int(member.counters[name][0]) for member in self._members)
            for name in COUNTERS
        }

    def ended(self) -> list[tuple[float, float, int]]:
        """Return the games that have ended since the last look: return, distance, frames."""
        found = []
        for member in self._members:
            while len(member.episodes):
                rows = member.episodes.items(_EPISODES)
                columns = [rows[name].tolist() for name in ("return", "distance", "frames")]
                found += zip(*columns, strict=True)
                member.episodes.release(len(columns[0]))
        return found

    def watch(self) -> None:
        """Start those again that died. Raises GoalreelError for one that does nothing but die."""
        for number, member in enumerate(self._members):
            if member.process.poll() is None:
                continue
            if int(member.counters["steps"][0]) > member.steps:
                member.starts = 0
            member.process.stdin.close()
            self._check(number, member)
            self.restarts += 1
            member.restarts += 1
            self._start(number)

    def stop(self) -> None:
        """End all processes: they are told, and killed if they do not; their memory is given up."""
        if self._stopped:
            return
        self._stopped = True
        running = [member.process for member in self._members if member.process]
        for process in running:
            process.stdin.close()
        for process in running:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for member in self._members:
            member.said.close()
        fds = {self._control_fd, self._weights.fd}
        for member in self._members:
            fds |= {member.ring.fd, member.episodes.fd, member.counters_fd}
        for fd in fds:
            os.close(fd)

    def _member(self) -> _Member:
        crew = self._crew
        fd = blocks.create(blocks.layout(COUNTERS)[1])
        steps = Ring(step_fields(crew.shape), crew.capacity)
        said = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe that nobody reads would fill up
        return _Member(steps, Ring(EPISODE, _EPISODES), fd, blocks.arrays(fd, COUNTERS), said)

    def _start(self, number: int) -> None:
        crew, member = self._crew, self._members[number]
        fds = {
            **{"steps": member.ring.fd, "episodes": member.episodes.fd},
            **{"counters": member.counters_fd, "control": self._control_fd},
            "weights": self._weights.fd,
        }
        told = Assignment(
            *(crew.game, [*crew.seed, number, member.restarts], crew.environments, crew.shape),
            *(crew.stack, crew.capacity, _EPISODES, crew.block, self._fields, fds),
        )
        member.said.seek(0)
        member.said.truncate()
        member.starts, member.steps = member.starts + 1, int(member.counters["steps"][0])
        member.process = _process(
            crew.python, "collect", told.to_json(), pass_fds=fds.values(), stderr=member.said
        )

    def _check(self, number: int, member: _Member) -> None:
        """Raise GoalreelError if a collector that ended need not be started again."""
        status = member.process.returncode
        if status != REFUSED and member.starts < _STARTS:
            return
        member.said.seek(0)
        said = member.said.read().decode(errors="replace").strip()[-_TOLD:]
        if status == REFUSED:
            raise GoalreelError(said)
        raise GoalreelError(
            f"collector {number} ended {member.starts} times before its first step "
            f"({child_process.told(status)}); it said: {said or 'nothing'}"
        )


def actions_of(python: str, game: Mapping) -> int:
    """Return how many actions a game has, by asking a collector's interpreter for one.

    Raises GoalreelError if the interpreter does not start, or the game does not.
    """
    process = _process(
        python, "actions", json.dumps(game), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            answer, said = process.communicate(timeout=_ANSWER)
        except subprocess.TimeoutExpired:
            process.kill()
            raise GoalreelError(
                f"{python} told no actions of {game['game']} in {_ANSWER:g} s"
            ) from None
    if process.returncode:
        told = said.decode(errors="replace").strip()[-_TOLD:]
        if process.returncode == REFUSED:
            raise GoalreelError(f"{told} (see pixels.game and pixels.python)")
        raise GoalreelError(
            f"{python} cannot play {game['game']} "
            f"({child_process.told(process.returncode)}): {told}"
        )
    return int(answer.split()[-1])


def _process(python: str, *told: str, **options) -> subprocess.Popen:
    """Start a collector's interpreter."""
    try:
        return child_process.start(python, "goalreel.training.pixels.collector", *told, **options)
    except OSError as error:
        raise GoalreelError(f"pixels.python: {python} cannot be run: {error.strerror}") from None
