"""A recording is complete after any end of its program, and keeps no frame in memory."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import decoded
from project import REPOSITORY
from recordings import PEAK, said_by

PROGRAM = """
import os, signal, sys, time
import gymnasium, goalreel

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's parent ignores it
env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
env = goalreel.RecordVideo(env, sys.argv[1], video_length=1000, preset="ultrafast")
env.reset(seed=1)
for _ in range(4):
    env.step(0)
"""
ENDINGS = {
    "the end": "",
    "close": "env.close()",
    "collection": "del env; print(os.listdir(sys.argv[1]))",
    "exception": "raise ValueError('of the program')",
    "Ctrl-C": "os.killpg(0, signal.SIGINT); time.sleep(60)",
}


def ending(folder, program, **options):
    """Run a program that records into `folder`, in a separate process group."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, str(folder)],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "scripts")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        **options,
    )


@pytest.mark.parametrize("how", ENDINGS)
def test_video_is_complete_for_any_end_of_the_program(tmp_path, how):
    process = ending(tmp_path, PROGRAM + ENDINGS[how])
    out, err = process.communicate()
    wanted = {"exception": 1, "Ctrl-C": -signal.SIGINT}
    assert process.returncode == wanted.get(how, 0), err
    assert how in ("exception", "Ctrl-C") or err == ""
    assert how != "collection" or out == "['rl-video-episode-0.mp4']\n"
    assert [path.name for path in tmp_path.iterdir()] == ["rl-video-episode-0.mp4"]
    assert len(decoded(tmp_path / "rl-video-episode-0.mp4")) == 5


def test_killed_program_leaves_no_file_of_the_video_name(tmp_path):
    process = ending(tmp_path, PROGRAM + "os.kill(os.getpid(), signal.SIGKILL)")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not list(tmp_path.glob("*.mp4"))
    (left,) = tmp_path.iterdir()
    while True:  # ffmpeg ends by itself
        with contextlib.suppress(Exception):
            if len(decoded(left)) == 5:
                break
        time.sleep(0.05)


FORK = """
import gc
child = os.fork()
if not child:
    env.step(0)
    del env  # neither this nor the exit touches the parent's video
    gc.collect()
    sys.exit()
other = os.fork()
if not other:
    time.sleep(10)  # holds what it has inherited
    os._exit(0)
os.waitpid(child, 0)
env.step(0)
env.close()
assert os.waitpid(other, os.WNOHANG) == (0, 0), "close has waited for the other child"
os.kill(other, signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_child_does_not_affect_video_of_parent(tmp_path):
    process = ending(tmp_path, PROGRAM + FORK)
    _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["rl-video-episode-0.mp4"]
    assert len(decoded(tmp_path / "rl-video-episode-0.mp4")) == 6


MEMORY = """
import gymnasium, numpy as np
import goalreel

class Small(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space = action_space = gymnasium.spaces.Discrete(2)
    render_mode = "rgb_array"

    def reset(self, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}

    def render(self):
        return np.full((64, 64, 3), np.random.default_rng().integers(256), np.uint8)

env = goalreel.RecordVideo(Small(), sys.argv[1], step_trigger=lambda step: step == 0)
env.reset()
for step in range(10300):
    if step == 300:
        before = peak()
    env.step(0)
print(peak() - before)
env.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak in /proc")
def test_memory_stays_flat_over_10_000_steps(tmp_path):
    assert int(said_by(PEAK + MEMORY, str(tmp_path))) < 10000 * 64 * 64 * 3 / 10
    assert len(decoded(tmp_path / "rl-video-step-0.mp4")) == 10300
