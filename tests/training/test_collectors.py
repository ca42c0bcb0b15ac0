"""Collectors write exactly the played steps, lose none, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from pixel_policies import random_weights, settings
from project import REPOSITORY

from goalreel.errors import GoalreelError
from goalreel.policies.pixel_network import Actor
from goalreel.training.games.make_envs import make_envs
from goalreel.training.games.settings import GameSettings, game_settings
from goalreel.training.pixels.collector import END, EPISODE, EPISODES, STATE, Collector, step_fields
from goalreel.training.pixels.collectors import Collectors, actions_of
from goalreel.training.shared_memory.arrays import shared_arrays
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import SharedWeights, fields_of

GAME = asdict(game_settings("MountainCar-v0"))
STACK, NUM_ENVS = 4, 3
PROC = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="Linux tells it there")


def weights(actions: int = 3) -> dict[str, np.ndarray]:
    """Return random weights of the network in a learner's format."""
    return random_weights(actions, STACK, 0)


def started(python=sys.executable, game: dict = GAME, actions=3, epsilon=1.0, **others):
    """Return the collectors of a few cars, to be closed."""
    chosen = settings(python=python, **{"collectors": 1, "n_envs": NUM_ENVS} | others)
    return closing(Collectors(chosen, game, 0, weights(actions), epsilon))


def until(holds, collectors: Collectors | None = None) -> None:
    """Wait up to a minute until a condition holds."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)
        if collectors:
            collectors.check()


class Alone:
    """A collector in this process, and the readers of its memory."""

    def __init__(self, epsilon: float):
        self.ring, self.episodes = Ring(step_fields(), 5000), Ring(EPISODE, EPISODES)
        fields = fields_of(weights())
        shared = SharedWeights(fields)
        shared.write(weights())
        state_fd, self.state = shared_arrays(STATE)
        self.state["epsilon"][0] = epsilon
        fds = {"steps": self.ring.fd, "episodes": self.episodes.fd}
        fds |= {"state": state_fd, "weights": shared.fd}
        envs = make_envs(GameSettings(**GAME), 9, NUM_ENVS)
        self.collector = Collector(envs, lambda: True, (5,), 0, STACK, 5000, fields, fds)


def taken(ring: Ring) -> dict[str, np.ndarray]:
    """Take all rows out of a ring."""
    pieces = []
    while len(ring):
        rows = ring.items(ring.capacity)
        pieces.append({name: column.copy() for name, column in rows.items()})
        ring.release(len(next(iter(rows.values()))))
    return {name: np.concatenate([rows[name] for rows in pieces]) for name in pieces[0]}


def test_collector_rows_equal_played_steps():
    """The test replays the actions of the rows."""
    alone = Alone(1.0)
    for _ in range(230):
        alone.collector.step()
    rows = taken(alone.ring)
    assert (rows["action"] != END).sum() == 230 * NUM_ENVS
    envs = make_envs(GameSettings(**GAME), 9, NUM_ENVS)
    mine = [{n: c[rows["env"] == index] for n, c in rows.items()} for index in range(NUM_ENVS)]
    at, ended, episode_steps = [0] * NUM_ENVS, 0, np.zeros(NUM_ENVS, int)
    while at[0] < len(mine[0]["env"]):
        obs = envs.obs
        actions = np.array([mine[index]["action"][at[index]] for index in range(NUM_ENVS)])
        step = envs.step(actions)
        ended += len(step.ended)
        for index, own in enumerate(mine):
            place = at[index]
            assert np.array_equal(own["frame"][place], obs[index])
            assert own["episode_step"][place] == episode_steps[index]
            assert own["reward"][place] == step.rewards[index]
            assert own["terminated"][place] == step.terminated[index]
            at[index] += 1
            if step.truncated[index] and not step.terminated[index]:
                assert own["action"][place + 1] == END
                assert own["episode_step"][place + 1] == episode_steps[index] + 1
                assert np.array_equal(own["frame"][place + 1], step.next_obs[index])
                at[index] += 1
        episode_steps = np.where(step.terminated | step.truncated, 0, episode_steps + 1)
    assert ended == len(alone.episodes)
    assert ended >= 4 * NUM_ENVS


def test_collector_acts_on_gymnasium_stacks(monkeypatch):
    """The first frame of an episode fills its first stack."""
    alone, given = Alone(0.0), []

    def values(_, stacks):
        given.append(stacks.copy())
        return np.zeros((len(stacks), 3))

    monkeypatch.setattr(Actor, "values", values)
    for _ in range(120):
        alone.collector.step()
    rows = taken(alone.ring)
    for index in range(NUM_ENVS):
        own = {n: c[(rows["env"] == index) & (rows["action"] != END)] for n, c in rows.items()}
        for step, stacks in enumerate(given):
            back = np.minimum(np.arange(STACK)[::-1], own["episode_step"][step])
            assert np.array_equal(stacks[index], own["frame"][step - back])


def test_useless_interpreter_or_game_is_named(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no car today' >&2\nexit 3\n")
    python.chmod(0o755)
    with (
        pytest.raises(GoalreelError, match=r"(?s)collector 0 failed .*status 3.*no car today"),
        started(str(python)) as collectors,
    ):
        until(lambda: False, collectors)
    with pytest.raises(GoalreelError, match=r"(?s)Mount.*status 3.*no car today.*See pixels.game"):
        actions_of(str(python), GAME)
    with pytest.raises(GoalreelError, match=r"pixels.python: '/no/python' cannot run .No such"):
        actions_of("/no/python", GAME)
    with pytest.raises(GoalreelError, match=r"(?s)^game: Unknown value 'no'.*pixels.python"):
        actions_of(sys.executable, GAME | {"game": "no"})


TRAINER = """
import sys, time
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from test_collectors import started
with started(collectors=2) as collectors:
    while not all(map(len, collectors.rings)):
        time.sleep(0.01)
    print(*[child.process.pid for child in collectors.children], flush=True)
    time.sleep(600)
"""


@PROC
def test_collectors_of_killed_trainer_end_and_free_memory():
    told = [str(REPOSITORY / "scripts"), str(Path(__file__).parent)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "tests" / "helpers")}
    with subprocess.Popen(
        [sys.executable, "-c", TRAINER, *told], stdout=subprocess.PIPE, env=environment
    ) as trainer:
        collectors = [int(pid) for pid in trainer.stdout.readline().split()]
        assert len(collectors) == 2
        for pid in collectors:
            told = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            assert {b"OMP_NUM_THREADS=1", b"OPENBLAS_NUM_THREADS=1"} <= set(told)
        memory = set().union(*map(shared_memory, (trainer.pid, *collectors)))
        os.kill(trainer.pid, signal.SIGKILL)
        trainer.wait()
        until(lambda: not any(map(is_alive, collectors)))
    assert memory == {"/memfd:goalreel (deleted)"}, "it has no name by which to stay"


def shared_memory(pid: int) -> set[str]:
    """Return the names of a process's writable shared mappings."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    columns = [line.split(maxsplit=5) for line in maps]
    return {path[0] for _, rights, _, _, _, *path in columns if rights == "rw-s" and path}


def is_alive(pid: int) -> bool:
    """Return whether a process runs, and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_collector_processes_need_no_pytorch():
    code = "import sys, goalreel.training.pixels.collector; sys.exit('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "scripts")}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
