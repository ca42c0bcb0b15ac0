"""Playing and learning in two processes: what is played is learned, and neither outlives the other.

The player needs no PyTorch, and its tests do not either.
"""

import contextlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from pixel_policies import random_perceptron
from project import REPOSITORY

from goalreel.errors import GoalreelError
from goalreel.training.dqn.player_process import PlayerProcess
from goalreel.training.dqn.playing import transitions
from goalreel.training.dqn.settings import Settings
from goalreel.training.games.car_envs import WrappedCars

SETTINGS = Settings(hidden=(16, 16), wrapped=False, parallel=True, learn_every=4)
GREEDY = replace(SETTINGS, exploration=1, final_epsilon=0.0)  # from the second step on


def weights(action: int) -> dict[str, np.ndarray]:
    """Return the weights of a network that takes one action always."""
    made = {n: 0 * array for n, array in random_perceptron(0, SETTINGS.hidden).items()}
    made["4.bias"][action] = 1.0
    return made


def test_steps_arrive_as_gymnasium_makes_them():
    """Through the ring none is lost, and none comes twice or in another order."""
    theirs, ended = WrappedCars(5, 3, 4), 0
    settings = replace(SETTINGS, num_envs=3, frame_skip=4)
    with contextlib.closing(PlayerProcess(settings, 5, weights(2))) as player:
        for _ in range(300):
            played, obs = player.next(), theirs.obs
            assert len(player.ring) <= player.ring.capacity == 2 * 4
            step = theirs.step(played.batch.actions)
            theirs.obs = step.obs
            for name, value in vars(transitions(obs, played.batch.actions, step, 0.98)).items():
                assert np.array_equal(getattr(played.batch, name), value), name
            over = step.terminated | step.truncated
            assert played.frames == step.frames and np.array_equal(played.over, over)
            ended += int(over.sum())
    assert ended >= 3


def test_it_plays_by_weights_no_older_than_the_ring():
    with contextlib.closing(PlayerProcess(GREEDY, 1, weights(2))) as player:
        player.next()  # all of this one is random
        for action in (2, 0, 1):
            player.learned(lambda action=action: weights(action))
            before = [player.next().batch.actions[0] for _ in range(player.ring.capacity + 1)]
            after = [player.next().batch.actions[0] for _ in range(50)]
            assert after == [action] * 50, before


def test_a_player_that_dies_is_an_error():
    with contextlib.closing(PlayerProcess(SETTINGS, 1, weights(2))) as player:
        player.process.kill()
        with pytest.raises(GoalreelError, match="that plays has ended .killed by SIGK"):
            while True:  # what it played is taken first
                player.next()


TRAINER = f"""
import sys, time
sys.path[:0] = [{str(REPOSITORY / "scripts")!r}, {str(REPOSITORY / "tests" / "training")!r}]
sys.path[:0] = [{str(REPOSITORY / "tests" / "helpers")!r}]
from test_parallel import *
with contextlib.closing(PlayerProcess(GREEDY, 1, weights(2))) as player:
    player.next()
    print("ready", flush=True)
    time.sleep(600)
"""


def test_it_ends_with_a_trainer_that_is_killed():
    trainer = subprocess.Popen([sys.executable, "-c", TRAINER], stdout=-1, stderr=-1)
    assert trainer.stdout.readline() == b"ready\n"
    trainer.kill()
    # The player has the other ends of these too: they close when both processes are gone.
    said = trainer.communicate(timeout=60)
    assert said == (b"", b"") and trainer.returncode == -9


@pytest.mark.parametrize("module", ["dqn.player_process", "pixels.collector"])
def test_processes_that_play_need_no_pytorch(module):
    code = f"import sys, goalreel.training.{module}; sys.exit('torch' in sys.modules)"
    environment = {"PYTHONPATH": str(REPOSITORY / "scripts")}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
