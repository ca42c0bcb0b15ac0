"""Playing and learning in two processes: what is played is learned, and neither outlives the other.

The player needs no PyTorch, and its tests do not either.
"""

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from project import REPOSITORY

from goalreel.errors import GoalreelError
from goalreel.training.dqn.player_main import capacity_of
from goalreel.training.dqn.player_process import PlayerProcess
from goalreel.training.dqn.settings import Settings
from goalreel.training.games.car_lanes import WrappedCars

SETTINGS = Settings(frames=1600, start=200, hidden=(16, 16), wrapped=False, parallel=True)
GREEDY = replace(SETTINGS, exploration=1e-9, final_epsilon=0.0)  # from the second step on


def weights(action: int) -> dict[str, np.ndarray]:
    """Return the weights of a network that takes one action always."""
    sizes = (2, *SETTINGS.hidden, 3)
    made = {}
    for number, (inputs, outputs) in enumerate(zip(sizes, sizes[1:], strict=False)):
        made[f"{2 * number}.weight"] = np.zeros((outputs, inputs), np.float32)
        made[f"{2 * number}.bias"] = np.zeros(outputs, np.float32)
    made["4.bias"][action] = 1.0
    return made


def test_steps_arrive_as_gymnasium_makes_them():
    """Through the ring none is lost, and none comes twice or in another order."""
    lanes = 3
    theirs = WrappedCars(5, lanes, 4)
    obs, ended = theirs.obs, 0
    settings = replace(SETTINGS, lanes=lanes, frame_skip=4)
    with PlayerProcess(settings, 5, weights(2)) as player:
        for _ in range(40 * capacity_of(settings)):
            played = player.next()
            step = theirs.step(played.actions)
            assert np.array_equal(played.obs, obs) and 1 <= played.waiting <= capacity_of(settings)
            for name, value in vars(step).items():
                assert np.array_equal(getattr(played.step, name), value), name
            obs, ended = step.obs, ended + int((step.terminated | step.truncated).sum())
    assert ended >= lanes


def test_it_plays_by_weights_no_older_than_the_ring():
    with PlayerProcess(GREEDY, 1, weights(2)) as player:
        player.next()  # all of this one is random
        for action in (2, 0, 1):
            player.learned(lambda action=action: weights(action))
            before = [int(player.next().actions[0]) for _ in range(player.ring.capacity + 1)]
            after = [int(player.next().actions[0]) for _ in range(50)]
            assert after == [action] * 50, before


def test_it_rests_when_it_is_told():
    with PlayerProcess(SETTINGS, 1, weights(2)) as player:
        player.next()
        with player.resting():
            while len(player.ring):
                player.next()
            time.sleep(0.2)  # in which it would fill the ring
            assert len(player.ring) <= 1, "more than the step in hand"
        assert player.next().waiting


def test_a_player_that_dies_is_an_error():
    with PlayerProcess(SETTINGS, 1, weights(2)) as player:
        player.process.kill()
        with pytest.raises(GoalreelError, match="that plays ended after .* frames .killed by SIGK"):
            while True:  # what it played is taken first
                player.next()
    player = PlayerProcess(SETTINGS, 1, {"nonsense": np.zeros(3)})
    with pytest.raises(GoalreelError, match="ended after 0 frames .exit status 1"), player:
        pass


TRAINER = f"""
import sys, time
sys.path[:0] = [{str(REPOSITORY / "scripts")!r}, {str(REPOSITORY / "tests" / "training")!r}]
sys.path[:0] = [{str(REPOSITORY / "tests" / "helpers")!r}]
from test_parallel import *
with PlayerProcess(GREEDY, 1, weights(2)) as player:
    player._control["playing"][0] = sys.argv[1] != "rests"
    if sys.argv[1] == "writes":  # it has written weights, and half of the next
        player._weights._version[0] += 3
        for _ in range(2):
            while len(player.ring):
                player.next()
            time.sleep(0.2)  # in which the player comes to wait for those
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("doing", ["plays", "rests", "writes"])
def test_it_ends_with_a_trainer_that_is_killed(doing):
    trainer = subprocess.Popen(
        [sys.executable, "-c", TRAINER, doing], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert trainer.stdout.readline() == b"ready\n"
    trainer.kill()
    # The player has the other ends of these too: they close when both processes are gone.
    said = trainer.communicate(timeout=60)
    assert said == (b"", b"") and trainer.returncode == -9


@pytest.mark.parametrize("module", ["dqn.player_main", "pixels.collector"])
def test_processes_that_play_need_no_pytorch(module):
    code = f"import sys, goalreel.training.{module}; sys.exit('torch' in sys.modules)"
    environment = {"PYTHONPATH": str(REPOSITORY / "scripts")}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_learning_keeps_its_ratio_to_playing(monkeypatch, request):
    """As many gradient steps for a frame as the settings say, however fast the player is."""
    torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")
    from goalreel.training.dqn import training

    before = torch.get_num_threads()
    request.addfinalizer(lambda: torch.set_num_threads(before))
    torch.set_num_threads(1)
    losses = []
    learn = training.Learner.learn

    def counted(learner, batch):
        losses.append(learn(learner, batch))
        return losses[-1]

    monkeypatch.setattr(training.Learner, "learn", counted)
    one = training.train(SETTINGS, 1)
    assert one.frames == 1600
    assert len(losses) == (1600 - 200) // SETTINGS.train_every * SETTINGS.gradient_steps
    queue, drops = ([row[column] for row in one.log.rows] for column in (-2, -1))
    assert max(queue) <= capacity_of(SETTINGS) and not any(drops)
    assert len(one.evaluations) == 1 and one.seconds > 0
