"""Collectors: what they write is what was played, and none is lost, left or waited for."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from pixel_policies import random_weights
from project import REPOSITORY

from goalreel.errors import GoalreelError
from goalreel.training.games.make_envs import make_envs
from goalreel.training.games.settings import GameSettings
from goalreel.training.pixels.collector import (
    CONTROL,
    COUNTERS,
    END,
    EPISODE,
    EPISODES,
    Assignment,
    Collector,
    actor_of,
    step_fields,
)
from goalreel.training.pixels.collectors import Collectors, actions_of
from goalreel.training.shared_memory import blocks
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import SharedWeights, fields_of

GAME = asdict(GameSettings("MountainCar-v0").filled())
SHAPE, STACK, NUM_ENVS = (84, 84), 4, 3
PROC = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="Linux tells it there")


def weights(actions: int = 3) -> dict[str, np.ndarray]:
    """Return random weights of the network, as a learner gives them."""
    return random_weights(actions, STACK, 0)


def started(
    python: str = sys.executable,
    collectors: int = 1,
    epsilon: float = 1.0,
    actions: int = 3,
    **others,
):
    """Return the collectors of a few cars, to be entered."""
    told = {"game": GAME, "seed": (1, 0), "num_envs": NUM_ENVS, "shape": SHAPE, "stack": STACK}
    told = Assignment(**told | {"capacity": 300, "block": True} | others)
    return Collectors(python, collectors, told, weights(actions), epsilon)


@pytest.fixture
def replay_and_feeder():
    """Return a function that makes a replay buffer and its feeder; both take PyTorch."""
    pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
    from goalreel.training.pixels.frame_replay_buffer import FrameReplay
    from goalreel.training.pixels.replay_feeder import ReplayFeeder

    def make(rings, num_envs, size, shape=SHAPE, margin=32, environments=NUM_ENVS):
        replay = FrameReplay(num_envs, size, shape, STACK, margin)
        return replay, ReplayFeeder(rings, replay, environments)

    return make


def until(holds, collectors: Collectors | None = None) -> None:
    """Wait until something holds; a minute is far more than it takes anywhere."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)
        if collectors:
            collectors.watch()


class Alone:
    """A collector in this process, and the other ends of what it writes to."""

    def __init__(self, capacity: int, block: bool, epsilon: float, alive=lambda: True):
        """Make memory, car sub-environments and collector."""
        self.ring, self.episodes = Ring(step_fields(SHAPE), capacity), Ring(EPISODE, EPISODES)
        fds = {"steps": self.ring.fd, "episodes": self.episodes.fd}
        fds |= {n: blocks.create(blocks.layout(f)[1]) for n, f in
                (("counters", COUNTERS), ("control", CONTROL))}  # fmt: skip
        self.weights = SharedWeights(fields_of(weights()))
        self.weights.write(weights())
        told = Assignment(
            *(GAME, [5], NUM_ENVS, SHAPE, STACK, capacity, block, fields_of(weights())),
            fds | {"weights": self.weights.fd},
        )
        told = Assignment.of(told.to_json())
        blocks.arrays(fds["control"], CONTROL)["epsilon"][0] = epsilon
        self.counters = blocks.arrays(fds["counters"], COUNTERS)
        self.collector = Collector(told, make_envs(GameSettings(**GAME), 9, NUM_ENVS), alive)

    def rows(self) -> dict[str, np.ndarray]:
        """Take all rows out of the ring."""
        taken = []
        while len(self.ring):
            rows = self.ring.items(10_000)
            taken.append({name: column.copy() for name, column in rows.items()})
            self.ring.release(len(rows["env"]))
        return {name: np.concatenate([rows[name] for rows in taken]) for name in taken[0]}


def test_rows_are_what_was_played():
    """Played again by the actions that the rows tell."""
    alone = Alone(2000, True, 1.0)
    for _ in range(230):
        alone.collector.step()
    rows = alone.rows()
    assert int(alone.counters["drops"][0]) == 0
    assert int(alone.counters["steps"][0]) == (rows["action"] != END).sum()
    envs = make_envs(GameSettings(**GAME), 9, NUM_ENVS)
    mine = [{n: c[rows["env"] == index] for n, c in rows.items()} for index in range(NUM_ENVS)]
    at, frames, ended, episode_steps = [0] * NUM_ENVS, 0, 0, np.zeros(NUM_ENVS, int)
    while at[0] < len(mine[0]["env"]):
        obs = envs.obs
        actions = np.array([mine[index]["action"][at[index]] for index in range(NUM_ENVS)])
        step = envs.step(actions)
        frames += step.frames
        ended += len(step.ended)
        for index, own in enumerate(mine):
            place = at[index]
            assert np.array_equal(own["frame"][place], obs[index])
            assert (own["episode_step"][place], own["reward"][place]) == (
                episode_steps[index],
                step.rewards[index],
            )
            assert own["terminated"][place] == step.terminated[index]
            at[index] += 1
            if step.truncated[index] and not step.terminated[index]:
                assert (
                    own["action"][place + 1] == END
                    and own["episode_step"][place + 1] == episode_steps[index] + 1
                )
                assert np.array_equal(own["frame"][place + 1], step.next_obs[index])
                at[index] += 1
        episode_steps = np.where(step.terminated | step.truncated, 0, episode_steps + 1)
    assert int(alone.counters["frames"][0]) == frames and ended == len(alone.episodes)
    assert ended >= 4 * NUM_ENVS


def test_it_acts_on_the_frames_that_gymnasium_stacks(monkeypatch):
    """At an episode's start its first frame is repeated."""
    alone, given = Alone(5000, True, 0.0), []
    monkeypatch.setattr(
        *(type(actor_of(weights())), "values"),
        lambda self, stacks: given.append(stacks.copy()) or np.zeros((len(stacks), 3)),
    )
    for _ in range(120):
        alone.collector.step()
    rows = alone.rows()
    for index in range(NUM_ENVS):
        own = {n: c[(rows["env"] == index) & (rows["action"] != END)] for n, c in rows.items()}
        for step, stacks in enumerate(given):
            back = np.minimum(np.arange(STACK)[::-1], own["episode_step"][step])
            assert np.array_equal(stacks[index], own["frame"][step - back])


def test_what_follows_dropped_steps_begins_anew():
    alone = Alone(10, False, 1.0)
    for _ in range(8):
        alone.collector.step()
    assert len(alone.ring) == 10 and int(alone.counters["drops"][0]) == 8 * NUM_ENVS - 10
    assert alone.rows()["episode_step"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    for _ in range(2):
        alone.collector.step()
    assert alone.rows()["episode_step"].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.slow
@PROC
def test_collectors_have_one_thread_and_another_is_started_for_one_that_dies():
    with started(capacity=3000) as collectors:
        until(lambda: collectors.counted()["steps"], collectors)
        member = collectors._handles[0]
        told = Path(f"/proc/{member.process.pid}/environ").read_bytes().split(b"\0")
        for name in (b"OMP", b"OPENBLAS", b"MKL"):
            assert name + b"_NUM_THREADS=1" in told
        for death in (1, 2):
            pid, steps = member.process.pid, collectors.counted()["steps"]
            os.kill(pid, signal.SIGKILL)
            until(lambda d=death: collectors.restarts == d, collectors)
            held = collectors.counted()["steps"]
            assert held >= steps and member.process.pid != pid
            until(lambda h=held: collectors.counted()["steps"] > h, collectors)
        rows = Ring.items(collectors.rings[0], 3000)
        first = (rows["episode_step"] == 0) & (rows["env"] == 0)
        assert first.sum() >= 3, "each begins with a reset"
        process = member.process
    assert process.poll() == 0, "it ended by itself when it was told"


def test_one_that_does_nothing_but_die_is_given_up(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no car today' >&2\nexit 3\n")
    python.chmod(0o755)
    with (
        pytest.raises(GoalreelError, match=r"collector 0 ended 3 times .*status 3.*no car today"),
        started(str(python)) as collectors,
    ):
        until(lambda: False, collectors)
    with pytest.raises(GoalreelError, match=r"python cannot play Mount.*status 3\): no car today"):
        actions_of(str(python), GAME)
    with pytest.raises(GoalreelError, match=r"pixels.python: /no/python cannot be run: No such"):
        actions_of("/no/python", GAME)
    with pytest.raises(GoalreelError, match=r"^game: unknown value 'no'.*pixels.python"):
        actions_of(sys.executable, GAME | {"game": "no"})


TRAINER = """
import sys, time
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from test_collectors import started
with started(collectors=2) as collectors:
    while not all(int(m.counters["steps"][0]) for m in collectors._handles):
        time.sleep(0.01)
    print(*[m.process.pid for m in collectors._handles], flush=True)
    time.sleep(600)
"""


@PROC
def test_when_the_trainer_is_killed_collectors_end_and_leave_no_memory():
    told = [str(REPOSITORY / "scripts"), str(Path(__file__).parent)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "tests" / "helpers")}
    with subprocess.Popen(
        [sys.executable, "-c", TRAINER, *told], stdout=subprocess.PIPE, env=environment
    ) as trainer:
        collectors = [int(pid) for pid in trainer.stdout.readline().split()]
        assert len(collectors) == 2
        memory = set().union(*map(shared_memory, (trainer.pid, *collectors)))
        os.kill(trainer.pid, signal.SIGKILL)
        trainer.wait()
        until(lambda: not any(map(is_alive, collectors)))
    assert memory == {"/memfd:goalreel (deleted)"}, "it has no name by which to stay"


def shared_memory(pid: int) -> set[str]:
    """Return what a process has mapped to write to it, and shares with others, by its names."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    columns = [line.split(maxsplit=5) for line in maps]
    return {path[0] for _, rights, _, _, _, *path in columns if rights == "rw-s" and path}


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_feeder_moves_batches_and_stops_at_its_limit(replay_and_feeder):
    rings = [Ring(step_fields(SHAPE), 3000) for _ in range(2)]
    columns = (np.zeros((2400, *SHAPE), np.uint8), np.arange(2400) % NUM_ENVS, np.arange(2400) % 3)
    episode_steps = np.arange(2400) // NUM_ENVS
    fields = step_fields(SHAPE)
    rows = dict(
        zip(fields, (*columns, episode_steps, episode_steps, episode_steps * 0), strict=True)
    )
    rows = {name: column.astype(fields[name][0]) for name, column in rows.items()}
    rows["action"][5::100] = END
    for ring in rings:
        ring.push(rows)
    replay, feeder = replay_and_feeder(rings, 2 * NUM_ENVS, 2000)
    feeder.limit = 2500
    feeder.start()
    until(lambda: feeder.steps >= 2500)
    assert feeder.rows / feeder.batches >= 60
    time.sleep(0.05)
    assert feeder.steps == 2500 and feeder.queued() == 4800 - feeder.rows
    feeder.limit = float("inf")
    feeder.stop()
    assert feeder.rows == 4800 and feeder.steps == 4800 - 48
    assert replay.count.tolist() == [800] * 6
    assert np.array_equal(replay.arrays()["episode_step"][4 * 2000 :][:800], np.arange(800))


def filled(count: int, rows: int) -> list[Ring]:
    """Return rings that hold rows of one environment each."""
    rings = [Ring(step_fields((2, 2)), rows) for _ in range(count)]
    zeros = {name: np.zeros((rows, *s), d) for name, (d, s) in step_fields((2, 2)).items()}
    for ring in rings:
        ring.push(zeros | {"episode_step": np.arange(rows, dtype=np.int32)})
    return rings


@pytest.mark.parametrize("window", [1, 2, 3, 7, 64, 256])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_all_rings_are_served_alike_however_little_may_be_moved(count, window, replay_and_feeder):
    turns = 10 * count if window < 256 else count
    rings = filled(count, (turns * window) // count + window + 9)
    held = [len(ring) for ring in rings]
    _, feeder = replay_and_feeder(rings, count, 300, (2, 2), 8, 1)
    for turn in range(1, turns + 1):
        feeder.limit = turn * window
        while feeder.drain():
            pass
        assert feeder.steps == feeder.limit
        served = [before - len(ring) for before, ring in zip(held, rings, strict=True)]
        assert max(served) - min(served) <= count
    assert max(served) == min(served) and sum(served) == turns * window
