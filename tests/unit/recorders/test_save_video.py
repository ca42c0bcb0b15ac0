"""save_video writes the same files with the same frames as Gymnasium's."""

import itertools
import warnings

import av
import numpy as np
import psutil
import pytest
from conftest import decoded
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import decoded_rgb, equal, filmed, kept, stand_in_for_moviepy

from goalreel import GoalreelError, save_video
from goalreel.encoding.yuv import planar
from goalreel.recorders.schedule import capped_cubic_video_schedule

LOSSLESS = {"fps": 30, "qp": 0, "preset": "ultrafast"}


def noise(count, height=16, width=24):
    """Return frames of random pixels."""
    return list(np.random.default_rng(0).integers(0, 256, (count, height, width, 3), np.uint8))


def always(_):
    return True


@given(
    count=st.integers(1, 8),
    as_iterator=st.booleans(),
    episode_index=st.integers(0, 9),
    episodes=st.none() | st.sets(st.integers(0, 9)),
    steps=st.none() | st.sets(st.integers(0, 9)) | st.just(range(99)),
    step_starting_index=st.integers(0, 3),
    video_length=st.none() | st.integers(1, 10),
    name_prefix=st.sampled_from(["rl-video", "a b.c"]),
)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_save_video_matches_files_and_frames_of_gymnasium(
    tmp_path_factory, count, as_iterator, episodes, steps, **options
):
    folder = tmp_path_factory.mktemp("both")
    options |= {
        "episode_trigger": None if episodes is None else episodes.__contains__,
        "step_trigger": None if steps is None else steps.__contains__,
    }
    frames = noise(count)
    with pytest.MonkeyPatch.context() as patch:
        stand_in_for_moviepy(patch)
        from gymnasium.utils.save_video import save_video as gymnasiums

        gymnasiums(frames, str(folder / "theirs"), fps=30, **options)
    frames = iter(frames) if as_iterator else frames
    save_video(frames, folder / "ours", **LOSSLESS, **options)
    assert equal(filmed(folder / "ours"), kept(folder / "theirs"))


def test_save_video_converts_rgba_and_gray_frames(tmp_path):
    frames = noise(3)
    grey = [np.repeat(frame[..., :1], 3, axis=2) for frame in frames]
    variants = {
        "rgb": frames,
        "rgba": [np.dstack([frame, frame[..., 0]]) for frame in frames],
        "grey": grey,
        "plane": [frame[..., 0] for frame in grey],
        "channel": [frame[..., :1] for frame in grey],
    }
    for name, images in variants.items():
        save_video(images, tmp_path / name, episode_trigger=always, **LOSSLESS)
    films = {name: next((tmp_path / name).glob("*.mp4")).read_bytes() for name in variants}
    assert films["rgba"] == films["rgb"] and films["plane"] == films["channel"] == films["grey"]


def test_schedule_matches_gymnasium(monkeypatch):
    stand_in_for_moviepy(monkeypatch)
    from gymnasium.utils.save_video import capped_cubic_video_schedule as gymnasiums

    assert [*map(capped_cubic_video_schedule, range(20000))] == [*map(gymnasiums, range(20000))]


def test_lossless_video_has_exact_frames_at_any_size(tmp_path):
    for (height, width), fps in itertools.product([(1, 1), (7, 9), (48, 64)], [0.5, 30000 / 1001]):
        frames = noise(5, height, width)
        save_video(frames, tmp_path, fps=fps, qp=0, name_prefix="a")
        with av.open(str(tmp_path / "a-episode-0.mp4")) as container:
            stream = container.streams.video[0]
            context = stream.codec_context
            assert (context.format.name, context.colorspace) == ("gbrp", 0)
            assert stream.average_rate == pytest.approx(fps) and stream.frames == 5
        shown = decoded_rgb(tmp_path / "a-episode-0.mp4")
        assert all(np.array_equal(a, b) for a, b in zip(shown, frames, strict=True))


@pytest.mark.parametrize("odd", [0, 1])
def test_colors_match_bt709_within_two_levels(tmp_path, odd):
    """An odd size repeats the last row and column."""
    blocks = np.repeat(np.repeat(noise(3, 40, 60), 2, 1), 2, 2)
    gradients = np.zeros((80, 120, 3), np.uint8)
    gradients[1::2, :, 0], gradients[:, 1::2, 2] = 255, 255  # each 2x2 block has four colors
    frames = [frame[odd:, odd:] for frame in (*blocks, gradients)]
    save_video(frames, tmp_path, fps=30, qp=1)
    with av.open(str(tmp_path / "rl-video-episode-0.mp4")) as container:
        context = container.streams.video[0].codec_context
        assert (context.format.name, context.color_range, context.colorspace) == ("yuv420p", 1, 1)
        assert (context.color_primaries, context.color_trc) == (1, 1)
    for shown, frame in zip(decoded(tmp_path / "rl-video-episode-0.mp4"), frames, strict=True):
        expected = planar(np.pad(frame, ((0, odd), (0, odd), (0, 0)), "edge"))
        assert np.abs(shown.astype(int) - expected).max() <= 2


def test_save_video_without_frames_warns_and_writes_nothing(tmp_path):
    for frames, length in [([], None), (iter([]), None), (noise(3), 0), (iter(noise(3)), 0)]:
        with pytest.warns(UserWarning, match="episode-0.mp4: Skipped, as it has no frames"):
            save_video(frames, tmp_path, fps=30, video_length=length)
    with warnings.catch_warnings(action="error"):
        save_video([], tmp_path, episode_trigger=lambda _: False, fps=30)
    assert list(tmp_path.iterdir()) == []


def test_save_video_gives_same_bytes_for_list_and_stream(tmp_path):
    frames = noise(20)
    for name, given_frames in [("a", frames), ("b", iter(frames)), ("c", np.array(frames))]:
        save_video(given_frames, tmp_path / name, step_trigger=always, video_length=8, fps=30)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(names) == 19, "more than may overlap in a stream"
    for name in names:
        wanted = (tmp_path / "a" / name).read_bytes()
        assert all((tmp_path / other / name).read_bytes() == wanted for other in "bc")


def test_infinite_stream_is_read_only_as_far_as_needed(tmp_path):
    frames = itertools.cycle(noise(3))
    save_video(frames, tmp_path, video_length=7, **LOSSLESS)
    assert len(decoded_rgb(tmp_path / "rl-video-episode-0.mp4")) == 7


def test_stream_with_nine_overlapping_snippets_raises(tmp_path):
    children, before = [], len(psutil.Process().children())

    def frames():
        for frame in noise(40):
            yield frame
            children.append(len(psutil.Process().children()) - before)

    with pytest.raises(GoalreelError, match="9 snippets overlap at frame 9, .* as a list"):
        save_video(frames(), tmp_path, step_trigger=always, **LOSSLESS)
    assert max(children) == 8 and list(tmp_path.iterdir()) == []
    assert len(psutil.Process().children()) == before
    save_video(noise(12), tmp_path, step_trigger=always, **LOSSLESS)
    assert len(list(tmp_path.iterdir())) == 11


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((16, 24, 3)), r"frame 4: ndarray of float64 and shape \(16, 24, 3\)"),
        (np.zeros((24, 16, 3), np.uint8), r"shape \(24, 16, 3\) is .* uint8 of shape \(16, 24,"),
        (None, "frame 4: NoneType of object"),
    ],
)
@pytest.mark.parametrize("as_iterator", [False, True])
def test_bad_frame_raises_and_finished_snippets_stay(tmp_path, bad, message, as_iterator):
    frames = [*noise(4), bad]
    frames = iter(frames) if as_iterator else frames
    with pytest.raises(GoalreelError, match=message):
        save_video(frames, tmp_path, step_trigger=always, video_length=2, fps=30)
    finished = {path.name for path in tmp_path.iterdir()}
    assert finished == {"rl-video-step-0.mp4", "rl-video-step-1.mp4"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fps": 0}, "fps: 0 is not allowed. Use 0.001 to 1000"),
        ({"qp": 0.5}, "qp: 0.5 is not allowed. Use a whole number from 0"),
        ({"preset": "fastest"}, "preset: Unknown value 'fastest'. Did you mean"),
        ({"video_length": -1}, "video_length: -1"),
        ({"save_logger": "line"}, "save_logger: 'line' is not allowed. Use None or 'bar'"),
    ],
)
def test_bad_argument_raises_before_the_first_frame(tmp_path, options, message):
    def frames():
        pytest.fail("a frame was made")
        yield

    with pytest.raises(GoalreelError, match=message):
        save_video(frames(), tmp_path, **{"fps": 30} | options)


def test_progress_bar_uses_stderr_only_if_asked(tmp_path, capfd):
    for given_frames in (list, iter):
        save_video(given_frames(noise(3)), tmp_path, fps=30)
        assert capfd.readouterr() == ("", "")
        save_video(given_frames(noise(3)), tmp_path, fps=30, save_logger="bar")
        said = capfd.readouterr()
        assert said.out == "" and "━" in said.err


@pytest.mark.parametrize("make", [list, iter])
def test_on_video_is_called_for_each_snippet(tmp_path, make):
    calls = []
    places = {"episode_index": 3, "step_starting_index": 97, "video_length": 4, "fps": 10}
    triggers = {"step_trigger": lambda step: step in (100, 104)}
    call = {"on_video": lambda *given: calls.append(given)}
    save_video(make(noise(12)), tmp_path, **places, **triggers, **call)
    assert calls == [
        (str(tmp_path / f"rl-video-step-{step}.mp4"), 3, {"episode": 3, "step": step, "frames": 4})
        for step in (100, 104)
    ]
    assert all(len(decoded(path)) == 4 for path, *_ in calls)
