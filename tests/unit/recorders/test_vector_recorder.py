"""vector.RecordVideo records all episodes of sub-environments, from reset to the last frame."""

import functools
import json
import multiprocessing

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from recordings import LOSSLESS, decoded_rgb, equal, filmed, kept, stand_in_for_moviepy

from goalreel import GoalreelError
from goalreel.vector import FinalFrame, RecordVideo

pytestmark = pytest.mark.filterwarnings("ignore:.*Overwriting existing videos")
MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)


class Counter(gymnasium.Env):
    """An environment whose frames encode its index, its episode and its step."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = gymnasium.spaces.Discrete(100)
    action_space = gymnasium.spaces.Discrete(2)
    render_mode = "rgb_array"

    def __init__(self, index):
        self.index, self.episode, self.number = index, -1, 0

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.number = self.episode + 1, 0
        return 0, {}

    def step(self, action):
        """End after 3 to 7 steps, and truncate every other episode."""
        self.number += 1
        over = self.number == length(self.index, self.episode)
        return self.number, 0.5, over and self.episode % 2 == 0, over and self.episode % 2 == 1, {}

    def render(self):
        return image(self.index, self.episode, self.number)


def length(index, episode):
    """Return an episode's number of steps."""
    return 3 + (2 * index + 3 * episode) % 5


def image(*numbers):
    """Return the frame that encodes three numbers."""
    return np.tile(np.array(numbers, np.uint8) * 9, (16, 24, 1))


def whole(index, episode):
    """Return all frames of an episode."""
    return [image(index, episode, step) for step in range(length(index, episode) + 1)]


def make(kind, mode, count=3):
    """Return a vector environment of counters."""
    makers = [functools.partial(Counter, index) for index in range(count)]
    if kind is SyncVectorEnv:
        return SyncVectorEnv(makers, autoreset_mode=mode)
    if mode == AutoresetMode.SAME_STEP:
        makers = [functools.partial(wrapped, index) for index in range(count)]
    return AsyncVectorEnv(makers, autoreset_mode=mode, context="fork")


def wrapped(index):
    """Return a counter that renders its last frames."""
    return FinalFrame(Counter(index))


def started_episodes(count, mode, steps):
    """Return the (sub-environment, episode) of each episode, in the order of their starts."""
    envs, order = make(SyncVectorEnv, mode, count), []
    envs.reset()
    for _ in range(steps + 1):
        shown = [(env.index, env.episode) for env in envs.envs]
        order += [pair for pair in shown if pair not in order]
        envs.step(np.zeros(count, int))
    return order


def play(envs, steps, seed=None):
    """Step, and ignore the results."""
    envs.reset(seed=seed)
    for _ in range(steps):
        *_, infos = envs.step(np.zeros(envs.num_envs, int))
        assert "final_frame" not in infos.get("final_info", {})
    envs.close()


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        (SyncVectorEnv, AutoresetMode.NEXT_STEP),
        pytest.param(SyncVectorEnv, AutoresetMode.SAME_STEP, marks=pytest.mark.slow),
        *(pytest.param(AsyncVectorEnv, mode, marks=pytest.mark.slow) for mode in MODES),
    ],
)
def test_each_episode_is_a_video_up_to_its_last_frame(tmp_path, kind, mode):
    order, told = started_episodes(3, mode, 30), []
    settings = {"on_video": lambda *given: told.append(given), "statistics": True, **LOSSLESS}
    envs = RecordVideo(make(kind, mode), tmp_path, episode_trigger=lambda _: True, **settings)
    play(envs, 30, seed=40)
    assert len(list(tmp_path.iterdir())) == 2 * len(order) and len(order) > 9
    for number, (index, episode) in enumerate(order):
        path = tmp_path / f"rl-video-episode-{number}-env-{index}.mp4"
        frames, wanted = decoded_rgb(path), whole(index, episode)
        assert np.array_equal(frames, wanted[: len(frames)])
        (info,) = (info for name, told_number, info in told if told_number == number)
        over = len(frames) == len(wanted)
        assert over or number >= len(order) - 3  # ended by `close`
        assert info == json.loads(path.with_suffix(".json").read_text())
        expected = {"episode": number, "env": index, "frames": len(frames)}
        expected |= {"length": len(frames) - 1, "return": 0.5 * (len(frames) - 1)}
        expected |= {"seed": 40 + index if episode == 0 else None}
        even = episode % 2 == 0
        expected |= {"terminated": over and even, "truncated": over and not even}
        assert info.items() >= expected.items()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_record_and_trigger_select_videos(tmp_path, mode):
    order = started_episodes(4, mode, 25)
    envs = make(SyncVectorEnv, mode, 4)
    rendered = envs.envs[0].render
    envs.envs[0].render = None  # fails if an unrecorded environment is rendered
    if mode == AutoresetMode.SAME_STEP:
        envs.envs[0].render = rendered  # except last frames
    chosen = {"record": [3, 1], "episode_trigger": lambda episode: episode % 2 == 1}
    play(RecordVideo(envs, tmp_path, **chosen, name_prefix="a"), 25)
    wanted = {
        f"a-episode-{number}-env-{index}.mp4"
        for number, (index, _) in enumerate(order)
        if index in (1, 3) and number % 2
    }
    assert {path.name for path in tmp_path.iterdir()} == wanted and wanted


def test_step_trigger_starts_videos_of_video_length(tmp_path):
    envs = make(SyncVectorEnv, AutoresetMode.NEXT_STEP)
    settings = {"video_length": 6, "record": [0, 2], **LOSSLESS}
    play(RecordVideo(envs, tmp_path, step_trigger=lambda step: step == 4, **settings), 20)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"rl-video-step-4-env-0.mp4", "rl-video-step-4-env-2.mp4"}
    for index in (0, 2):
        shown = [image for episode in range(4) for image in whole(index, episode)]
        frames = decoded_rgb(tmp_path / f"rl-video-step-4-env-{index}.mp4")
        assert np.array_equal(frames, shown[5 : 5 + 7])


def test_grid_follows_its_first_environment(tmp_path):
    settings = {"grid": True, "record": [1, 0, 3, 2], "video_aspect_ratio": (3, 2)}
    envs = make(SyncVectorEnv, AutoresetMode.NEXT_STEP, 4)
    play(RecordVideo(envs, tmp_path, **settings, **LOSSLESS), 20)
    frames = decoded_rgb(tmp_path / "rl-video-episode-1.mp4")
    first = length(1, 0) + 1  # the step at which sub-environment 1 is reset
    shows = {index: [p for e in range(4) for p in whole(index, e)] for index in range(4)}
    for number, frame in enumerate(frames):
        ones = [shows[index][first + number] for index in (1, 0, 3, 2)]
        assert np.array_equal(frame, np.vstack([np.hstack(ones[:2]), np.hstack(ones[2:])]))
    assert len(frames) == length(1, 1) + 1


@pytest.mark.parametrize(
    "mode",
    [
        AutoresetMode.NEXT_STEP,
        pytest.param(AutoresetMode.SAME_STEP, marks=pytest.mark.slow),
        pytest.param(AutoresetMode.DISABLED, marks=pytest.mark.slow),
    ],
    ids=lambda mode: mode.value,
)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"episode_trigger": lambda number: number in (0, 2), "record_first_only": True},
        {"step_trigger": lambda step: step % 9 == 4, "video_length": 6, "fps": 7},
        {"episode_trigger": lambda number: number == 3, "step_trigger": lambda step: step == 1},
    ],
)
def test_grid_has_files_and_frames_of_gymnasium(tmp_path, monkeypatch, mode, settings):
    stand_in_for_moviepy(monkeypatch)
    monkeypatch.setattr(gymnasium.logger, "warn", lambda *_: None)
    settings = {"video_aspect_ratio": (3, 1), "name_prefix": "a b", **settings}
    for recorder, folder, more in [
        (RecordVideo, "ours", {"grid": True, **LOSSLESS}),
        (gymnasium.wrappers.vector.RecordVideo, "theirs", {}),
    ]:
        envs = recorder(make(SyncVectorEnv, mode), str(tmp_path / folder), **settings, **more)
        envs.reset(seed=3)
        for _ in range(40):
            _, rewards, terminated, truncated, _ = envs.step(np.zeros(3, int))
            over = terminated | truncated
            assert [part.shape for part in (rewards, terminated, truncated)] == [(3,)] * 3
            if mode == AutoresetMode.DISABLED and over.any():
                envs.reset(options={"reset_mask": np.ones(3, bool)})
        envs.close()
    ours, theirs = filmed(tmp_path / "ours"), kept(tmp_path / "theirs")
    assert len(ours) > 1 and ours.keys() == theirs.keys()
    if mode != AutoresetMode.SAME_STEP:
        assert equal(ours, theirs)
    else:  # Gymnasium's recorder shows no last frame of an episode
        longer = {len(ours[name]) - len(theirs[name]) for name in ours}
        assert longer == {0} if "video_length" in settings else 1 in longer


def test_reset_mask_starts_episodes_without_autoreset(tmp_path):
    envs = make(SyncVectorEnv, AutoresetMode.DISABLED)
    envs = RecordVideo(envs, tmp_path, episode_trigger=lambda episode: True, **LOSSLESS)
    envs.reset(seed=1)
    over, episodes = np.zeros(3, bool), [0, 0, 0]
    names = {0: (0, 0), 1: (1, 0), 2: (2, 0)}
    for _ in range(18):
        if over.any():
            envs.reset(options={"reset_mask": over})
            for index in np.flatnonzero(over).tolist():
                episodes[index] += 1
                names[len(names)] = index, episodes[index]
        _, _, terminated, truncated, _ = envs.step(np.zeros(3, int))
        over = terminated | truncated
    envs.close()
    assert len(names) > 8
    for number, (index, episode) in names.items():
        frames = decoded_rgb(tmp_path / f"rl-video-episode-{number}-env-{index}.mp4")
        assert np.array_equal(frames, whole(index, episode)[: len(frames)])


def test_batch_rendering_environments_get_separate_videos(tmp_path):
    mode = {"render_mode": "rgb_array", "vectorization_mode": "vector_entry_point"}
    envs = gymnasium.make_vec("CartPole-v1", 3, **mode)
    actions = np.random.default_rng(0).integers(0, 2, (60, 3))
    envs = RecordVideo(envs, tmp_path / "sub_envs", statistics=True, **LOSSLESS)
    envs.reset(seed=5)
    wanted = [envs.render()[1]]
    for row in actions:
        envs.step(row)
        wanted.append(envs.render()[1])
    envs.close()
    frames = decoded_rgb(tmp_path / "sub_envs" / "rl-video-episode-1-env-1.mp4")
    assert np.array_equal(frames, wanted[: len(frames)]) and 8 < len(frames) < 61


def test_bad_arguments_and_environments_raise(tmp_path):
    plain = make(SyncVectorEnv, AutoresetMode.NEXT_STEP)
    with pytest.raises(GoalreelError, match=r"record: \[3\] is not allowed. .* 0 to 2"):
        RecordVideo(plain, tmp_path, record=[3])
    makers = [functools.partial(Counter, 0)]
    others = AsyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP, context="fork")
    with pytest.raises(GoalreelError, match=r"loses the last frame(.|\n)*FinalFrame"):
        RecordVideo(others, tmp_path)
    others.close()
    with pytest.raises(ValueError, match="Render mode is None"):
        RecordVideo(gymnasium.make_vec("CartPole-v1", 2), tmp_path)
    assert multiprocessing.active_children() == []
