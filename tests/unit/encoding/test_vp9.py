"""VP9 frames for films that show one stored frame many times."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
import pytest
from conftest import DISCRETE, fake_ffmpeg
from hypothesis import given
from hypothesis import strategies as st

from goalreel.encoding import ffmpeg
from goalreel.encoding.vp9 import QUALITIES, caption_box, inter_frames, key_frames, skip_frame
from goalreel.encoding.vp9_codec import encoded, ivf
from goalreel.encoding.vp9_header import configuration, is_key, level, parse_header, rewritten
from goalreel.encoding.yuv import Yuv420p
from goalreel.errors import GoalreelError
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import NOTHING, Layer
from goalreel.pictures.text_patches import Board

SIZE = (600, 400)
BOX = caption_box(SIZE)
CAPTIONS = [
    "Reach 17 · seed 3249930381360904 · 115 steps",
    "Reach 0 · seed 5802434320005502 · 113 steps",
    "W" * 80,
]
DECODERS = ["vp9", "libvpx-vp9"]


@dataclass
class Film:
    """Sources and frames of a few pictures, and of a key frame per caption."""

    cards: list
    pictures: list
    keys: list
    inters: list


def _track(atlas, captions):
    """Return the empty track with each caption, as yuv420p."""
    board = Board(atlas.background)
    cards = []
    for caption in captions:
        layer = Layer("caption", board.centred(caption, 7, 18), np.zeros(1, np.int32))
        cache = FrameCache(atlas.background, (layer,), np.array([0, 1]))
        cards.append(Yuv420p(cache)[0])
    return cards


@pytest.fixture(scope="module")
def film(atlases):
    atlas = atlases[DISCRETE]
    boxes = atlas.patches.boxes
    # At the flag the car comes within two rows of the caption's box: here libvpx's first choice is
    # to predict some pictures from the box, and others from beside it.
    tempting = np.flatnonzero((boxes[:, 0] < 36) & (abs(boxes[:, 1] - 560) <= 2))
    chosen = np.append(np.linspace(0, len(boxes) - 1, 16), tempting)
    index = np.append(chosen, NOTHING).astype(np.int32)
    layer = Layer("car", atlas.patches, index)
    view = Yuv420p(FrameCache(atlas.background, (layer,), np.array([0, len(index)])))
    *pictures, background = (view[number] for number in range(len(view)))
    cards = _track(atlas, CAPTIONS)
    inters = inter_frames(background, pictures, SIZE, "balanced", BOX)
    return Film(cards, pictures, key_frames(cards, SIZE, "balanced"), inters)


def _decode(frames, decoder="vp9"):
    """Return what a decoder of PyAV makes of each frame; it may not complain."""
    context = av.codec.CodecContext.create(decoder, "r")
    context.thread_count = 1
    av.logging.set_level(av.logging.WARNING)
    try:
        with av.logging.Capture() as said:
            shown = [f.to_ndarray() for data in frames for f in context.decode(av.Packet(data))]
            shown += [f.to_ndarray() for f in context.decode(None)]
    finally:
        av.logging.set_level(None)
    assert said == []
    return shown


def _shuffled(film):
    """Return frames in a random order with repeats, over all captions, and (key, inter) of each."""
    rng = np.random.default_rng(3)
    order = []
    for key in (0, 1, 2, 1):
        order += [(key, None), *((key, int(n)) for n in rng.integers(0, len(film.inters), 30))]
    frames = [film.keys[key] if n is None else film.inters[n] for key, n in order]
    return frames, order


def _luma_psnr(a, b):
    height = SIZE[1]
    error = np.mean((a[:height].astype(float) - b[:height]) ** 2)
    return 10 * np.log10(255**2 / error)


@pytest.mark.parametrize("decoder", DECODERS)
def test_any_order_decodes_to_what_each_frame_shows_alone(film, decoder):
    frames, order = _shuffled(film)
    shown = _decode(frames, decoder)
    assert len(shown) == len(frames)
    alone = {}
    for (key, number), picture in zip(order, shown, strict=True):
        if (key, number) not in alone:
            pair = [film.keys[key]] + ([] if number is None else [film.inters[number]])
            alone[key, number] = _decode(pair, decoder)[-1]
        assert np.array_equal(picture, alone[key, number])


def test_ffmpeg_and_libvpx_agree(film):
    frames, _ = _shuffled(film)
    for a, b in zip(*(_decode(frames, decoder) for decoder in DECODERS), strict=True):
        assert np.array_equal(a, b)


def test_gstreamer_decodes_the_same(film, tmp_path):
    if shutil.which("gst-launch-1.0") is None:
        pytest.skip("needs gst-launch-1.0")
    if subprocess.run(["gst-inspect-1.0", "vp9dec"], capture_output=True).returncode:
        pytest.skip("needs GStreamer's vp9dec and ivfparse (gstreamer1.0-plugins-good, -bad)")
    frames, _ = _shuffled(film)
    (tmp_path / "film.ivf").write_bytes(ivf(frames, SIZE))
    pipeline = "filesrc location=film.ivf ! ivfparse ! vp9dec ! video/x-raw,format=I420"
    command = ["gst-launch-1.0", "-q", *pipeline.split(), "!", "filesink", "location=film.yuv"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    shown = np.fromfile(tmp_path / "film.yuv", np.uint8).reshape(-1, 600, 600)
    expected = np.array(_decode(frames))
    assert np.array_equal(shown, expected)


def test_caption_stays_as_the_key_frame_has_it(film):
    """Inside the box every frame of an episode is its key frame, to the last bit."""
    top, left, height, width = BOX
    box = np.s_[top : top + height, left : left + width]
    for key in film.keys:
        card, *shown = _decode([key, *film.inters])
        for picture in shown:
            assert np.array_equal(picture[box], card[box])


def test_below_the_caption_every_episode_shows_the_same(film):
    first, *others = (_decode([key, *film.inters]) for key in film.keys)
    assert len(first) == len(film.inters) + 1
    height = BOX[2]
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert np.array_equal(a[height : SIZE[1]], b[height : SIZE[1]])


def test_nothing_is_taken_from_the_captions_box(film):
    """Not even from noise there, whatever it is, though some pictures end two rows below it."""
    top, left, height, width = BOX
    box = np.s_[top : top + height, left : left + width]
    rng = np.random.default_rng(5)
    noise = [rng.integers(a, b, (height, width), np.uint8) for a, b in ((16, 90), (160, 236))]
    cards = [film.cards[0].copy() for _ in noise]
    for card, samples in zip(cards, noise, strict=True):
        card[box] = samples
    keys = encoded(cards, SIZE, ["-lossless", "1"], ("good", 5), 1)
    for a, b in zip(*(_decode([key, *film.inters]) for key in keys), strict=True):
        a[box] = b[box] = 0
        assert np.array_equal(a, b)


def test_pictures_are_near_what_was_drawn(film):
    """At the default quality: 50 dB on average, 48 at worst, over the whole frame."""
    card, *shown = _decode([film.keys[0], *film.inters])
    drawn = [film.cards[0]]
    for picture in film.pictures:
        with_caption = picture.copy()
        with_caption[: BOX[2]] = film.cards[0][: BOX[2]]
        drawn.append(with_caption)
    values = [_luma_psnr(a, b) for a, b in zip([card, *shown], drawn, strict=True)]
    assert np.mean(values) >= 50
    assert min(values) >= 48


def test_skip_frame_shows_the_key_frame_again(film):
    skip = skip_frame(SIZE)
    assert len(skip) < 64
    for decoder in DECODERS:
        for key in film.keys:
            first, *others = _decode([key, skip, film.inters[0], skip], decoder)
            assert np.array_equal(others[0], first)
            assert np.array_equal(others[2], first)


def test_headers_say_what_the_film_relies_on(film):
    for frame in film.keys:
        header = parse_header(frame)
        assert is_key(frame)
        assert (header.profile, header.size, header.filter_level) == (0, SIZE, 0)
    for frame in [*film.inters, skip_frame(SIZE)]:
        header = parse_header(frame)
        assert not is_key(frame)
        assert header.shown
        assert header.error_resilient
        assert (header.profile, header.refresh, header.filter_level) == (0, 0, 0)


def test_same_pictures_same_bytes(film):
    again = inter_frames(film.pictures[0], film.pictures[1:4], SIZE, "small", BOX)
    assert again == inter_frames(film.pictures[0], film.pictures[1:4], SIZE, "small", BOX)
    assert key_frames(film.cards, SIZE, "balanced") == film.keys
    # A key frame has no memory of the one before it.
    assert key_frames(film.cards[1:2], SIZE, "balanced") == film.keys[1:2]


def test_qualities_differ_in_bytes_and_in_likeness(film):
    sizes, values = [], []
    for quality in QUALITIES:
        frames = key_frames(film.cards[:1], SIZE, quality)
        frames += inter_frames(film.pictures[0], film.pictures[5:7], SIZE, quality, BOX)
        sizes.append(sum(map(len, frames)))
        values.append(_luma_psnr(_decode(frames)[0], film.cards[0]))
    assert sizes == sorted(sizes)
    assert values == sorted(values)
    assert len(set(sizes)) == len(QUALITIES)


def test_no_pictures_no_frames(film):
    assert inter_frames(film.pictures[0], [], SIZE, "balanced", BOX) == []


def test_picture_in_the_captions_box_is_refused(film):
    background = film.pictures[0]
    picture = background.copy()
    picture[10:20, 200:300] = 16
    with pytest.raises(GoalreelError, match="picture 1 reaches into the box of the caption"):
        inter_frames(background, [background, picture], SIZE, "balanced", BOX)


def test_unknown_quality_is_refused(film):
    with pytest.raises(GoalreelError, match="'medium'; allowed: small, balanced, best"):
        key_frames(film.cards, SIZE, "medium")


def test_ffmpeg_without_libvpx_is_told(film, tmp_path, monkeypatch):
    fake_ffmpeg(tmp_path, monkeypatch, "echo \"Unknown encoder 'libvpx-vp9'\" >&2; exit 1")
    with pytest.raises(GoalreelError, match="Unknown encoder 'libvpx-vp9'"):
        key_frames(film.cards, SIZE, "balanced")


def _traced(frames, tmp_path):
    """Return what ffmpeg's own parser finds in each frame's header: a dict of fields."""
    path = tmp_path / "frames.ivf"
    path.write_bytes(ivf(frames, SIZE))
    command = [ffmpeg.executable(), "-v", "trace", "-i", str(path), "-c", "copy"]
    command += ["-bsf:v", "trace_headers", "-f", "null", "-"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = []
    for line in said.splitlines():
        if match := re.search(r"trace_headers.*?\] \d+\s+(\S+)\s+[01]+ = (-?\d+)$", line):
            if match[1] == "frame_marker":
                found.append({})
            found[-1].setdefault(match[1], int(match[2]))
    return found


def test_headers_are_read_as_ffmpeg_reads_them(film, tmp_path):
    raw = encoded([*film.cards, *film.pictures], SIZE, ["-crf", "40"], ("good", 5), 9)
    frames = [*raw, *film.keys, *film.inters]
    fields = _traced(frames, tmp_path)
    assert len(fields) == len(frames)
    levels = set()
    for frame, traced in zip(frames, fields, strict=True):
        header = parse_header(frame)
        levels.add(header.filter_level)
        assert header.key == (traced["frame_type"] == 0)
        assert header.shown == bool(traced["show_frame"])
        assert header.error_resilient == bool(traced["error_resilient_mode"])
        assert header.filter_level == traced["loop_filter_level"]
        assert header.base_q_idx == traced["base_q_idx"]
        assert header.segmented == bool(traced["segmentation_enabled"])
        if header.key:
            width, height = traced["frame_width_minus_1"] + 1, traced["frame_height_minus_1"] + 1
            assert header.size == (width, height)
        else:
            assert header.refresh == traced["refresh_frame_flags"]
            assert header.references == tuple(traced[f"ref_frame_idx[{n}]"] for n in range(3))
    assert len(levels) > 1  # else the filter's bits could stand anywhere


def test_rewriting_changes_these_fields_alone(film, tmp_path):
    raw = encoded(film.cards, SIZE, ["-crf", "40"], ("good", 5), 9)
    changed = [rewritten(raw[0], filter_level=37)]
    changed += [rewritten(frame, refresh=0b1010_0101, filter_level=1) for frame in raw[1:]]
    for before, after in zip(_traced(raw, tmp_path), _traced(changed, tmp_path), strict=True):
        expected = {"loop_filter_level": 37}
        if before["frame_type"] != 0:
            expected = {"loop_filter_level": 1, "refresh_frame_flags": 0b1010_0101}
        assert after == before | expected
    assert [rewritten(frame) for frame in raw] == raw
    with pytest.raises(GoalreelError, match="fills all reference slots"):
        rewritten(raw[0], refresh=0)


@given(data=st.binary(max_size=40), marked=st.booleans())
def test_garbage_is_refused_in_words(data, marked):
    if marked and data:
        data = bytes([0x80 | data[0] & 0x0F]) + data[1:]  # the marker, and profile 0
    try:
        header = parse_header(data)
    except GoalreelError as error:
        assert "VP9" in str(error)
    else:
        assert header.filter_level_at + 6 <= 8 * len(data)
        assert rewritten(data, filter_level=header.filter_level) == data


def test_a_header_cut_short_is_refused(film):
    for frame in (film.keys[0], film.inters[0]):
        end = (parse_header(frame).filter_level_at + 18) // 8
        for length in range(end):
            with pytest.raises(GoalreelError, match="VP9"):
                parse_header(frame[:length])


def test_configuration_is_as_ffmpeg_writes_it(film, tmp_path):
    (tmp_path / "film.ivf").write_bytes(ivf([film.keys[0]] * 3, SIZE))
    command = [ffmpeg.executable(), "-v", "error", "-i", "film.ivf", "-c", "copy", "film.mp4"]
    subprocess.run(command, cwd=tmp_path, check=True)
    written = (tmp_path / "film.mp4").read_bytes()
    place = written.index(b"vpcC") + 4
    theirs = written[place : place + 12]
    ours = configuration(SIZE, 30)
    assert len(ours) == 12
    assert ours[:6] == theirs[:6]  # version, flags, profile, level
    assert ours[6] >> 4 == theirs[6] >> 4  # bits
    assert ours[6] & 1 == theirs[6] & 1  # range
    assert ours[9:] == theirs[9:]  # matrix, and no initialisation data
    assert ours[7:9] == bytes([1, 1])  # BT.709, which a VP9 frame has no room to say in full


def test_levels_grow_with_size_and_rate():
    assert level(SIZE, 30) == 21
    assert level(SIZE, 60) == 30
    assert level((1920, 1080), 30) == 40
    assert level((3840, 2160), Fraction(30000, 1001)) == 50
    with pytest.raises(GoalreelError, match="no level for 3840x2160 pixels, 10000 frames"):
        level((3840, 2160), 10_000)


@pytest.mark.parametrize("size", [(706, 178), (776, 550), (162, 600)])
def test_skip_frame_shows_any_key_frame_again_to_the_last_sample(size):
    width, height = size
    noise = np.random.default_rng(7).integers(16, 236, (height * 3 // 2, width), np.uint8)
    (key,) = key_frames([noise], size, "best")
    context = av.CodecContext.create("vp9", "r")
    first, second = (
        frame.to_ndarray()
        for data in (key, skip_frame(size))
        for frame in context.decode(av.Packet(data))
    )
    assert np.array_equal(first, second)
