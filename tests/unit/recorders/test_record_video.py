"""RecordVideo records the frames of Gymnasium's, loses none, and keeps none in memory."""

import json
import signal
import threading

import gymnasium
import numpy as np
import pytest
from conftest import decoded, fake_ffmpeg
from recordings import BROKEN, LOSSLESS, decoded_rgb, equal, filmed, kept, stand_in_for_moviepy

from goalreel import GoalreelError, RecordVideo

pytestmark = pytest.mark.filterwarnings("ignore:.*Overwriting existing videos")
STATE = ("recording", "step_id", "episode_id", "frames_per_sec", "video_length")
SETTINGS = [
    {},
    {"video_length": 7, "name_prefix": "a b"},
    {"episode_trigger": lambda _: True, "step_trigger": lambda step: step in (5, 6, 30), "fps": 12},
]
STEPS = {"step_trigger": lambda step: step % 11 == 4, "video_length": 15}


class Noise(gymnasium.Env):
    """An environment without render_fps and with random frames, or the frame `odd`."""

    metadata = {"render_modes": ["rgb_array"]}
    observation_space = action_space = gymnasium.spaces.Discrete(2)
    render_mode = "rgb_array"

    def __init__(self, size=(32, 48)):
        self.rng, self.size, self.frames, self.odd = np.random.default_rng(0), size, [], None

    def reset(self, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}

    def render(self):
        """Return a new frame, which `frames` also gets."""
        if self.odd is not None:
            return self.odd
        self.frames.append(self.rng.integers(0, 256, (*self.size, 3), np.uint8))
        return self.frames[-1]


def play(env, steps, seed=3):
    """Step `env` through several episodes, and yield its observable state after each call."""
    env.action_space.seed(seed)
    env.reset(seed=seed)
    yield "reset"
    for step in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        yield f"step {step}"
        if terminated or truncated:
            env.reset()
            yield "reset"


@pytest.mark.parametrize(
    "render_mode", ["rgb_array", pytest.param("rgb_array_list", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("settings", [*SETTINGS, pytest.param(STEPS, marks=pytest.mark.slow)])
def test_record_video_matches_files_and_state_of_gymnasium(
    tmp_path, monkeypatch, render_mode, settings
):
    stand_in_for_moviepy(monkeypatch)
    ours, theirs = (
        wrapper(
            gymnasium.make("CartPole-v1", render_mode=render_mode, max_episode_steps=25),
            str(tmp_path / folder),
            **settings,
            **more,
        )
        for wrapper, folder, more in [
            (RecordVideo, "ours", LOSSLESS),
            (gymnasium.wrappers.RecordVideo, "theirs", {}),
        ]
    )
    for number, calls in enumerate(zip(play(ours, 70), play(theirs, 70), strict=True)):
        assert calls[0] == calls[1]
        assert [getattr(ours, a) for a in STATE] == [getattr(theirs, a) for a in STATE]
        assert len(ours.recorded_frames) == len(theirs.recorded_frames)
        if number % 9 == 5:
            shown, wanted = ours.render(), theirs.render()
            assert len(shown) == len(wanted) and np.array_equal(shown, wanted)
    ours.close()
    theirs.close()
    assert not ours.recording and equal(filmed(tmp_path / "ours"), kept(tmp_path / "theirs"))
    assert settings == {} or len(list((tmp_path / "ours").iterdir())) > 1


@pytest.mark.parametrize("render_mode", ["rgb_array", "rgb_array_list"])
def test_manual_recording_matches_gymnasium(tmp_path, monkeypatch, render_mode):
    stand_in_for_moviepy(monkeypatch)
    for wrapper, more in [(RecordVideo, LOSSLESS), (gymnasium.wrappers.RecordVideo, {})]:
        env = gymnasium.make("CartPole-v1", render_mode=render_mode)
        folder = str(tmp_path / wrapper.__module__)
        env = wrapper(env, folder, step_trigger=lambda _: False, **more)
        calls = play(env, 6)
        [next(calls) for _ in range(4)]
        env.start_recording("by hand")
        env.render()  # in the video with rgb_array_list
        list(calls)
        env.start_recording("another")
        env.reset()
        env.start_recording("empty")
        with pytest.warns(UserWarning, match="zero frames to save"):
            env.stop_recording()
        with pytest.raises(AssertionError, match="no recording was started"):
            env.stop_recording()
        env.close()
    theirs, ours = sorted(tmp_path.iterdir(), key=lambda folder: "goalreel" in folder.name)
    assert equal(filmed(ours), kept(theirs)) and "by hand.mp4" in filmed(ours)


def test_wrapper_is_in_the_spec_of_the_environment(tmp_path):
    env = gymnasium.make("MountainCar-v0", render_mode="rgb_array")
    env = RecordVideo(env, str(tmp_path / "a"), video_length=5, qp=7)
    again = gymnasium.make(env.spec)
    assert isinstance(again, RecordVideo) and again.video_length == 5
    assert env.spec.additional_wrappers[-1].kwargs["qp"] == 7
    again.close()


def test_disable_logger_false_prints_the_finished_video(tmp_path, capfd):
    for disable_logger, said in [(True, ""), (False, "rl-video-episode-0.mp4: 4 frames\n")]:
        env = RecordVideo(Noise(), str(tmp_path / str(said)), disable_logger=disable_logger)
        for _ in play(env, 3):
            pass
        env.close()
        out, err = capfd.readouterr()
        assert out == "" and err.endswith(said) and bool(err) == bool(said)


def test_bad_frame_raises_and_the_environment_continues(tmp_path):
    env = RecordVideo(Noise(), str(tmp_path), step_trigger=lambda step: step == 5)
    env.reset()
    env.start_recording("first")
    for _ in range(3):
        env.step(0)
    env.unwrapped.odd = np.zeros((34, 48, 3), np.uint8)
    message = r"frame 3: .*\(34, 48, 3\) is .* uint8 of shape \(32, 48, 3\), like the frames"
    with pytest.raises(GoalreelError, match=message):
        env.step(0)
    assert list(tmp_path.iterdir()) == []
    env.unwrapped.odd = None
    env.step(0)
    env.step(0)
    env.close()
    assert [path.name for path in tmp_path.iterdir()] == ["rl-video-step-5.mp4"]


@pytest.mark.parametrize(
    ("script", "message"),
    [*BROKEN, ("head -c 99 >&2 2> /dev/null; echo 'No space left' >&2; exit 1", "No space left")],
)
def test_broken_encoder_raises_and_leaves_no_file(tmp_path, monkeypatch, script, message):
    fake_ffmpeg(tmp_path, monkeypatch, script)
    env = RecordVideo(Noise((400, 600)), str(tmp_path / "out"))
    with pytest.raises(GoalreelError, match=message):
        for _ in play(env, 30):
            pass
        env.close()
    assert list((tmp_path / "out").iterdir()) == []
    env.step(0)
    env.close()


def test_exception_during_a_write_shifts_no_frame(tmp_path):
    """A timer interrupts at random moments. The video has whole frames in order."""

    def interrupt(*_):
        raise KeyboardInterrupt

    env = RecordVideo(Noise((400, 600)), str(tmp_path), **LOSSLESS)
    env.reset()
    before, interrupts = signal.signal(signal.SIGALRM, interrupt), 0
    for step in range(80):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.002 + step * 0.0002)
            env.step(0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupts += 1
    signal.signal(signal.SIGALRM, before)
    counted = len(env.recorded_frames)
    env.close()
    places = {frame.tobytes(): number for number, frame in enumerate(env.unwrapped.frames)}
    shown = [places[f.tobytes()] for f in decoded_rgb(tmp_path / "rl-video-episode-0.mp4")]
    assert interrupts and len(shown) == counted and shown == sorted(set(shown))


def test_on_video_gets_the_outcome_of_the_episode(tmp_path):
    """`info`, a JSON file and the file's name hold the results of Gymnasium's step and reset."""
    told, played = [], []
    env = RecordVideo(
        gymnasium.make("CartPole-v1", render_mode="rgb_array"),
        tmp_path,
        episode_trigger=lambda episode: episode != 1,
        name_pattern="{name_prefix} {episode:02} seed {seed} return {return:.0f}",
        statistics=True,
        on_video=lambda *given: told.append(given),
    )
    for seed in (11, 12, None):
        env.reset(seed=seed)
        length, over = 0, False
        while not over:
            *_, terminated, truncated, _ = env.step(length % 2)
            length, over = length + 1, terminated or truncated
        played.append(length)
    env.close()
    wanted = []
    for episode, seed in ((0, 11), (2, None)):
        length = played[episode]
        name = f"rl-video {episode:02} seed {seed} return {length}"
        info = {"episode": episode, "env": 0, "seed": seed, "return": float(length)}
        info |= {"length": length, "terminated": True, "truncated": False}
        info |= {"step": sum(played[:episode]) - 1, "frames": length + 1}
        wanted.append((str(tmp_path / f"{name}.mp4"), episode, info))
        assert json.loads((tmp_path / f"{name}.json").read_text()) == info
        assert len(decoded(tmp_path / f"{name}.mp4")) == length + 1
    assert told == wanted
    assert len(list(tmp_path.iterdir())) == 4


def test_method_is_told_and_equal_names_get_numbers(tmp_path):
    class Log:
        lock = threading.Lock()

        def __init__(self):
            self.names, self.own = [], threading.Lock()  # which cannot be copied

        def video(self, path, episode, info):
            self.names.append(path)

    log, pattern = Log(), "episode-{episode}-return-{return:.0f}"
    options = {"step_trigger": lambda step: step % 4 == 0, "video_length": 2}
    env = RecordVideo(Noise(), tmp_path, name_pattern=pattern, on_video=log.video, **options)
    env.reset()
    for _ in range(12):
        env.step(0)
    env.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == len(log.names) == 3
    assert {"episode-0-return-0.mp4", "episode-0-return-0-2.mp4"} <= {*names}


def test_error_in_on_video_keeps_the_video(tmp_path):
    def fail(path, episode, info):
        raise ConnectionError("no network")

    env = RecordVideo(Noise(), tmp_path, on_video=fail)
    env.reset()
    with pytest.raises(ConnectionError, match="no network"):
        env.close()
    assert len(decoded(tmp_path / "rl-video-episode-0.mp4")) == 1
    assert not env.recording


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("all", "with {episode} or {step}"),
        ("{episode}/{step}", "a file name without suffix"),
        ("{episode} {score}", "fields:\n  {name_prefix}, {env}, {episode}"),
        ("{", "Use these fields"),
    ],
)
def test_bad_name_pattern_raises(tmp_path, pattern, message):
    with pytest.raises(GoalreelError, match="name_pattern") as error:
        RecordVideo(Noise(), tmp_path, name_pattern=pattern)
    assert message in str(error.value)
