"""Test with independent decoders that segments have exactly the frames of the cache."""

import re
import subprocess

import av
import numpy as np
import pytest
from conftest import LOSSLESS, QP, decoded, fake_ffmpeg, rendered, simulated
from frames import layer_of
from recordings import BROKEN

from goalreel.encoding import ffmpeg
from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import Yuv420p
from goalreel.errors import GoalreelError
from goalreel.films.segment import encode_segment
from goalreel.mp4.reader import read_index
from goalreel.rendering.frame_cache import FrameCache


@pytest.mark.parametrize("shape", [(24, 32), (6, 8), (2, 2)])
def test_yuv_is_bt709_rounded_to_integers(shape):
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (6, *shape, 3), dtype=np.uint8)
    frames[1, 4:9, 5:12] = 0  # boxes that overlap, grow and shrink
    frames[2] = frames[0]
    frames[3] = frames[0]
    frames[3, 1:20, 3:4] = 255
    frames[4:, :2] = frames[0, :2]  # a patch only at the bottom
    layer = layer_of("noise", frames[0], frames)
    view = Yuv420p(FrameCache(frames[0], (layer,), np.array([0, 6])))
    matrix = np.array([[0.2126, 0.7152, 0.0722]])
    for i, (frame, shown) in enumerate(zip(frames, view.frames(), strict=True)):
        rgb = frame.astype(float) / 255
        luma = (rgb @ matrix.T)[..., 0]
        height, width = luma.shape
        blocks = rgb.reshape(height // 2, 2, width // 2, 2, 3).mean((1, 3))
        chroma_luma = (blocks @ matrix.T)[..., 0]
        planes = [
            16 + 219 * luma,
            128 + 224 * (blocks[..., 2] - chroma_luma) / 1.8556,
            128 + 224 * (blocks[..., 0] - chroma_luma) / 1.5748,
        ]
        expected = np.concatenate([plane.reshape(-1) for plane in planes])
        assert np.abs(shown.reshape(-1) - expected).max() <= 0.501, i


def test_lossless_segment_equals_frame_cache(cache, tmp_path):
    encode_segment(cache, tmp_path / "s.mp4", 30, LOSSLESS, "{}")
    pairs = zip(decoded(tmp_path / "s.mp4"), Yuv420p(cache).frames(), strict=True)
    assert all(np.array_equal(frame, shown) for frame, shown in pairs)


@pytest.mark.parametrize("encode", [QP, {"encoder": "x264", "preset": "veryfast", "crf": 23.5}])
def test_segment_has_keyframes_at_episodes_no_b_frames_and_bt709(cache, tmp_path, encode):
    encode_segment(cache, tmp_path / "s.mp4", 30, encode, '{"spec": 1}')
    with av.open(str(tmp_path / "s.mp4")) as container:
        stream = container.streams.video[0]
        context = stream.codec_context
        assert (stream.width, stream.height, context.format.name) == (600, 400, "yuv420p")
        assert (context.color_range, context.colorspace, context.color_trc) == (1, 1, 1)
        assert context.color_primaries == 1
        assert stream.average_rate == 30 and container.metadata["comment"] == '{"spec": 1}'
        packets = [packet for packet in container.demux(stream) if packet.size]
        container.seek(0)
        kinds = {int(frame.pict_type) for frame in container.decode(video=0)}
    assert [packet.pts for packet in packets] == [packet.dts for packet in packets]
    starts = cache.offsets[:-1].tolist()
    assert [i for i, packet in enumerate(packets) if packet.is_keyframe] == starts
    assert kinds == {1, 2}, "AV_PICTURE_TYPE_I and _P"


def test_keyframes_are_exact_at_any_frame_rate(cache, tmp_path):
    for fps in (1, 7, 144, 240):
        encode_segment(cache, tmp_path / "s.mp4", fps, QP, "{}")
        index = read_index(tmp_path / "s.mp4")
        assert set(cache.offsets[:-1].tolist()) <= set(index.keyframes)
        assert (index.frames, index.durations[0] * fps) == (len(cache), index.timescale)


def test_frames_at_constant_qp_do_not_depend_on_shard(atlases, tmp_path):
    def frames(*shards):
        for reaches in shards:
            cache = rendered(simulated(reaches=reaches), atlases)
            encode_segment(cache, tmp_path / "s.mp4", 30, QP | {"preset": "veryfast"}, "{}")
            yield from decoded(tmp_path / "s.mp4")

    whole = list(frames(range(4)))
    split = list(frames(range(1), range(1, 4)))
    assert len(whole) == len(split)
    assert all(np.array_equal(a, b) for a, b in zip(whole, split, strict=True))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        *BROKEN,
        ('head -c 36000000 | "$REAL" "$@"', "Ended before the last frame"),
        ('for last; do :; done; cat > "${last#file:}"', "not a complete MP4"),
    ],
)
def test_broken_ffmpeg_raises_and_leaves_no_file(cache, tmp_path, monkeypatch, script, message):
    folder = tmp_path / "out"
    fake_ffmpeg(tmp_path, monkeypatch, script)
    with pytest.raises(GoalreelError, match=message):
        encode_segment(cache, folder / "s.mp4", 30, QP, "{}")
    assert list(folder.iterdir()) == []


def test_error_has_output_and_command_of_ffmpeg(cache, tmp_path):
    with pytest.raises(GoalreelError) as error:
        encode_segment(cache, tmp_path / "s.mp4", 30, QP | {"preset": "nonsense"}, "{}")
    output = str(error.value)
    assert "nonsense" in output and "command: " in output and "libx264" in output


def test_ffmpeg_version_differs_between_builds(tmp_path, monkeypatch):
    output = subprocess.check_output([ffmpeg.executable(), "-version"], text=True)
    assert ffmpeg.version().startswith(re.match(r"ffmpeg version (\S+)", output)[1] + " (")
    versions = set()
    for build in ("libx264-164", "libx264-165"):
        fake_ffmpeg(tmp_path, monkeypatch, f"echo ffmpeg version 7.1 {build}")
        ffmpeg.version.cache_clear()
        versions.add(ffmpeg.version())
    ffmpeg.version.cache_clear()
    assert len(versions) == 2


def test_ffmpeg_without_options_in_files_is_rejected(tmp_path, monkeypatch):
    fake_ffmpeg(tmp_path, monkeypatch, "echo ffmpeg version 5.1.6-0+deb12u1 Copyright")
    ffmpeg.version.cache_clear()
    with pytest.raises(GoalreelError, match="Has version 5.1.6.*, but 7.0 is needed"):
        ffmpeg.version()


def test_large_frames_keep_an_unusual_rate(tmp_path):
    """Otherwise ffmpeg guesses 120 frames per second from the first frames."""
    size, path = (960, 664), tmp_path / "film.mp4"
    frames = [np.full(size[0] * size[1] * 3 // 2, 100 + n, np.uint8) for n in range(20)]
    assert (
        encode_video(path, frames, size, 125, {"preset": "ultrafast", "qp": 23}, "", [0, 9]) == 20
    )
    with av.open(str(path)) as film:
        shown = [packet for packet in film.demux(video=0) if packet.pts is not None]
        assert [n for n, packet in enumerate(shown) if packet.is_keyframe] == [0, 9]
        assert film.streams.video[0].average_rate == 125 and len(shown) == 20
