"""Greedy games beside a training: a process of its own plays given weights on fixed seeds.

It is started for each evaluation, imports the game and, where it is, PyTorch, and prints the
returns as JSON. The interpreter may be another than the trainer's.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from goalreel.errors import GoalreelError
from goalreel.training.games.make_envs import make_envs
from goalreel.training.games.settings import GameSettings
from goalreel.training.pixels.collector import actor_of, next_stacks
from goalreel.training.shared_memory import blocks, child_process
from goalreel.training.shared_memory.weights import fields_of

SEED = 10_000  # of the games of an evaluation; a training's own are hashes of its seed
_NICE = 5  # it gives way to the training


@dataclass
class Evaluator:
    """The games of one evaluation, while they are played."""

    process: subprocess.Popen
    stderr: BinaryIO
    fd: int  # of the weights

    @classmethod
    def start(
        cls, python: str, game: Mapping, stack: int, games: int, weights: Mapping[str, np.ndarray]
    ) -> "Evaluator":
        """Begin to play. Raises OSError if the interpreter cannot be run."""
        fields = fields_of(weights)
        fd, arrays = blocks.shared(fields)
        for name, array in arrays.items():
            array[...] = weights[name]
        told = {"game": game, "stack": stack, "games": games, "fields": fields, "fd": fd}
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it lasts as long as the process
        process = child_process.start(
            *(python, "goalreel.training.pixels.evaluator", json.dumps(told)),
            **{"pass_fds": [fd], "stdout": subprocess.PIPE, "stderr": stderr},
        )
        return cls(process, stderr, fd)

    def returns(self) -> list[float] | None:
        """Return the games' returns, None while it plays. Raises GoalreelError if it failed."""
        if self.process.poll() is None:
            return None
        printed = self.process.stdout.read()
        if status := self.process.returncode:
            self.stderr.seek(0)
            said = self.stderr.read().decode(errors="replace").strip()[-2000:]
            raise GoalreelError(f"an evaluation failed, {child_process.meaning(status)}: {said}")
        return json.loads(printed)

    def stop(self) -> None:
        """End the process, and free the weights."""
        child_process.end([self.process])
        self.process.stdout.close()
        self.stderr.close()
        os.close(self.fd)


def play(envs, actor, stack: int, games: int, alive=lambda: True) -> list[float]:
    """Return the returns of the first game of each of `games` environments, played greedily."""
    stacks = np.repeat(envs.obs[:, None], stack, axis=1)
    returns: dict[int, float] = {}
    while len(returns) < games and alive():
        step = envs.step(actor.values(stacks).argmax(axis=1).astype(np.int16))
        stacks = next_stacks(stacks, envs.obs, step.terminated | step.truncated)
        for episode in step.ended:
            returns.setdefault(episode.index, episode.return_)
    return [returns[index] for index in sorted(returns)]


def main(argv: list[str]) -> None:
    """Play, and print the returns."""
    os.nice(_NICE)
    told = json.loads(argv[0])
    weights = blocks.arrays(told["fd"], blocks.fields_of_json(told["fields"]))
    games = told["games"]
    envs = make_envs(GameSettings(**told["game"]), SEED, games)
    returns = play(envs, actor_of(weights), told["stack"], games, child_process.parent_is_alive)
    envs.close()
    print(json.dumps(returns))


if __name__ == "__main__":
    main(sys.argv[1:])
