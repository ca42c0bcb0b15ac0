"""The files of the recorders hold exactly the frames, or their colors in BT.709."""

import itertools

import av
import numpy as np
import pytest
from conftest import decoded
from recordings import decoded_rgb, stand_in_for_moviepy

from goalreel.encoding.yuv import planar
from goalreel.errors import GoalreelError
from goalreel.recorders.schedule import capped_cubic_video_schedule
from goalreel.recorders.video_writer import VideoOptions, VideoWriter


def noise(count, height=16, width=24):
    """Return frames of random pixels."""
    return list(np.random.default_rng(0).integers(0, 256, (count, height, width, 3), np.uint8))


def written(path, frames, **options):
    """Return the path of a video of frames."""
    writer = VideoWriter(path, VideoOptions(**options), {"episode": 0}, 0, written)
    for frame in frames:
        writer.append(frame)
    return writer.finish()


def test_rgba_and_gray_frames_are_converted(tmp_path):
    frames = noise(3)
    grey = [np.repeat(frame[..., :1], 3, axis=2) for frame in frames]
    variants = {
        "rgb": frames,
        "rgba": [np.dstack([frame, frame[..., 0]]) for frame in frames],
        "grey": grey,
        "plane": [frame[..., 0] for frame in grey],
        "channel": [frame[..., :1] for frame in grey],
    }
    films = {
        name: written(tmp_path / f"{name}.mp4", images, fps=30, qp=0).read_bytes()
        for name, images in variants.items()
    }
    assert films["rgba"] == films["rgb"] and films["plane"] == films["channel"] == films["grey"]


def test_schedule_matches_gymnasium(monkeypatch):
    stand_in_for_moviepy(monkeypatch)
    from gymnasium.utils.save_video import capped_cubic_video_schedule as gymnasiums

    assert [*map(capped_cubic_video_schedule, range(20000))] == [*map(gymnasiums, range(20000))]


def test_lossless_video_has_exact_frames_at_any_size(tmp_path):
    for (height, width), fps in itertools.product([(1, 1), (7, 9), (48, 64)], [0.5, 30000 / 1001]):
        frames = noise(5, height, width)
        path = written(tmp_path / "a.mp4", frames, fps=fps, qp=0)
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            context = stream.codec_context
            assert (context.format.name, context.colorspace) == ("gbrp", 0)
            assert stream.average_rate == pytest.approx(fps) and stream.frames == 5
        shown = decoded_rgb(path)
        assert all(np.array_equal(a, b) for a, b in zip(shown, frames, strict=True))


@pytest.mark.parametrize("odd", [0, 1])
def test_colors_match_bt709_within_two_levels(tmp_path, odd):
    """An odd size repeats the last row and column."""
    blocks = np.repeat(np.repeat(noise(3, 40, 60), 2, 1), 2, 2)
    gradients = np.zeros((80, 120, 3), np.uint8)
    gradients[1::2, :, 0], gradients[:, 1::2, 2] = 255, 255  # each 2x2 block has four colors
    frames = [frame[odd:, odd:] for frame in (*blocks, gradients)]
    path = written(tmp_path / "a.mp4", frames, fps=30, qp=1)
    with av.open(str(path)) as container:
        context = container.streams.video[0].codec_context
        assert (context.format.name, context.color_range, context.colorspace) == ("yuv420p", 1, 1)
        assert (context.color_primaries, context.color_trc) == (1, 1)
    for shown, frame in zip(decoded(path), frames, strict=True):
        expected = planar(np.pad(frame, ((0, odd), (0, odd), (0, 0)), "edge"))
        assert np.abs(shown.astype(int) - expected).max() <= 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fps": 0}, "fps: 0 is not allowed. Use 0.001 "),
        ({"fps": 30, "qp": 0.5}, "qp: 0.5 is not allowed. Use a whole number"),
        ({"fps": 30, "preset": "fastest"}, "preset: Unknown value 'fastest'"),
    ],
)
def test_bad_option_raises_before_the_first_frame(options, message):
    with pytest.raises(GoalreelError, match=message):
        VideoOptions(**options)
