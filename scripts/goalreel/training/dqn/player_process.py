"""The trainer's side of a player in a process of its own: starts it, takes its steps, ends it.

The two share memory without a name, by descriptors, so none is left behind, however they end.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.training.dqn import player_main
from goalreel.training.dqn.playing import Played
from goalreel.training.dqn.settings import Settings
from goalreel.training.games.car_lanes import Step
from goalreel.training.shared_memory import blocks, child_process
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import SharedWeights, fields_of


class PlayerProcess:
    """A player beside this process; a context manager that ends it.

    Attributes:
        ring: the steps that wait.
        process: None until it is entered.
    """

    def __init__(self, settings: Settings, seed: int, weights: Mapping[str, np.ndarray]):
        """Make the shared memory, with the first weights in it."""
        self._settings, self._seed, self._fields = settings, seed, fields_of(weights)
        self.ring = Ring(player_main.step_fields(settings.lanes), player_main.capacity_of(settings))
        self._weights = SharedWeights(self._fields)
        self._weights.write(weights)
        self._control_fd, self._control = blocks.shared(player_main.CONTROL)
        self._frames = 0
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "PlayerProcess":
        """Start it, and let it play once it is ready. Raises GoalreelError if it ends before."""
        fds = {"steps": self.ring.fd, "control": self._control_fd, "weights": self._weights.fd}
        text = json.dumps([asdict(self._settings), self._seed, self._fields, fds])
        module = "goalreel.training.dqn.player_main"
        self.process = child_process.start(sys.executable, module, text, pass_fds=fds.values())
        try:
            while not self._control["ready"][0]:
                self._wait()
        except BaseException:
            self.__exit__()
            raise
        self._control["playing"][0] = 1
        return self

    def __exit__(self, *_) -> None:
        """End it, and free the memory."""
        child_process.end([self.process])
        for fd in (self.ring.fd, self._control_fd, self._weights.fd):
            os.close(fd)

    def next(self) -> Played:
        """Return the next step, waiting for it. Raises GoalreelError if the player has ended."""
        while not (waiting := len(self.ring)):
            self._wait()
        row = {name: items[0].copy() for name, items in self.ring.items(1).items()}
        self.ring.release(1)
        obs, actions, epsilon = (row.pop(name) for name in ("obs", "actions", "epsilon"))
        step = Step(int(row.pop("frames")), obs=row.pop("reset_obs"), **row)
        self._frames += step.frames
        return Played(obs, actions, step, float(epsilon), waiting)

    def learned(self, weights: Callable[[], dict[str, np.ndarray]]) -> None:
        """Publish new weights."""
        self._weights.write(weights())

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """Let it finish its step and play no further, so that it takes no CPU meanwhile."""
        self._control["playing"][0] = 0
        yield
        self._control["playing"][0] = 1

    def _wait(self) -> None:
        """Wait a moment. Raises GoalreelError if the player has ended and left nothing."""
        status = self.process.poll()
        if status is not None and not len(self.ring):
            raise GoalreelError(
                f"the process that plays ended after {self._frames:,} frames "
                f"({child_process.meaning(status)}); its error message, if any, is above"
            )
        time.sleep(player_main.PAUSE)
