"""sb3.VecVideoRecorder records the frames of Stable-Baselines3's, and keeps none in memory."""

import numpy as np
import pytest
from recordings import LOSSLESS, equal, filmed, kept, stand_in_for_moviepy

pytest.importorskip("stable_baselines3", reason="takes Stable-Baselines3, which is no requirement")

import stable_baselines3.common.vec_env as theirs  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402

from goalreel import GoalreelError  # noqa: E402
from goalreel.sb3 import VecVideoRecorder  # noqa: E402


def play(recorder, folder, trigger, length, **more):
    """Play two environments for 50 steps, and return the file names that the recorder reported."""
    envs = make_vec_env("CartPole-v1", 2, seed=3)
    envs = recorder(envs, str(folder), trigger, length, "a b", **more)
    envs.reset()
    rng, names = np.random.default_rng(1), []
    for _ in range(50):
        envs.step(rng.integers(0, 2, 2))
        if envs.recording and envs.video_name not in names:
            names.append(envs.video_name)
    envs.close()
    return names


@pytest.mark.parametrize(
    ("trigger", "length"),
    [(lambda step: step == 0, 12), (lambda step: step % 20 == 5, 10), (lambda step: step > 40, 99)],
)
def test_recorder_matches_files_of_stable_baselines3(tmp_path, monkeypatch, trigger, length):
    ours = play(VecVideoRecorder, tmp_path / "ours", trigger, length, **LOSSLESS)
    stand_in_for_moviepy(monkeypatch)
    assert ours == play(theirs.VecVideoRecorder, tmp_path / "theirs", trigger, length)
    made, wanted = filmed(tmp_path / "ours"), kept(tmp_path / "theirs")
    assert equal(made, wanted) and sorted(made) == sorted(ours)


def test_on_video_is_called_for_each_video(tmp_path):
    calls, steps = [], (3, 20)
    call = {"on_video": lambda *given: calls.append(given)}
    names = play(VecVideoRecorder, tmp_path, lambda step: step in steps, 8, **call)
    assert calls == [
        (str(tmp_path / name), number, {"episode": number, "step": step, "frames": 9})
        for number, (name, step) in enumerate(zip(names, steps, strict=True))
    ]


def test_bad_qp_raises(tmp_path):
    with pytest.raises(GoalreelError, match="qp: 99"):
        VecVideoRecorder(make_vec_env("CartPole-v1", 1), str(tmp_path), lambda step: True, qp=99)
