"""Test the MP4 writer with goalreel's reader, PyAV and ffmpeg."""

import itertools
import os
import struct
import subprocess
import tracemalloc
from fractions import Fraction

import av
import numpy as np
import pytest
from assembling import packets_of
from conftest import HARSH, QP
from hypothesis import given, settings
from hypothesis import strategies as st

from goalreel.encoding import ffmpeg
from goalreel.encoding.x264 import encode_video
from goalreel.errors import UnusableFileError
from goalreel.films.concatenate import join
from goalreel.mp4 import writer
from goalreel.mp4.movie_box import Chapter, VideoTrack
from goalreel.mp4.reader import TICKS, read_index
from goalreel.mp4.writer import read_runs, write_mp4

SIZE = (64, 48)
LEVELS = [40, 200, 90, 150, 60, 120, 220, 180, 30, 100]  # luma of each picture


def frame(level: int) -> np.ndarray:
    """Return a yuv420p picture that its luma identifies."""
    picture = np.full(SIZE[0] * SIZE[1] * 3 // 2, 128, np.uint8)
    picture[: SIZE[0] * SIZE[1]] = level
    noise = np.random.default_rng(level).integers(0, 8, SIZE[0] * 8)
    picture[: SIZE[0] * 8] += noise.astype(np.uint8)
    return picture


@pytest.fixture(scope="module")
def x264(tmp_path_factory):
    """Return a file by x264 of ten IDR pictures."""
    path = tmp_path_factory.mktemp("source") / "s.mp4"
    encode_video(path, map(frame, LEVELS), SIZE, 30, QP, "{}", range(10))
    return path


@pytest.fixture(scope="module")
def source(x264):
    """Return the bytes of that file's samples, and its avcC box."""
    return samples_of(x264), read_index(x264).configuration


def samples_of(path) -> list[bytes]:
    """Return the bytes of each sample, found by the index."""
    index, data = read_index(path), path.read_bytes()
    stored = b"".join(data[start : start + length] for start, length in index.runs())
    ends = np.cumsum(index.sizes).tolist()
    return [stored[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def track(source, order, fps=30, keyframes=None) -> tuple[VideoTrack, list]:
    """Return a track of source pictures in this order, and its payload."""
    stored, configuration = source
    keyframes = range(len(order)) if keyframes is None else keyframes
    sizes = np.array([len(stored[i]) for i in order], np.uint32)
    video = VideoTrack(configuration, SIZE, fps, sizes, keyframes)
    return video, [stored[i] for i in order]


def chapters_of(frames: list[int]) -> list[Chapter]:
    """Return chapters of these lengths, named after the index of their first frame."""
    firsts = itertools.accumulate(frames, initial=0)
    return [Chapter(n, f"{HARSH} {first}") for first, n in zip(firsts, frames, strict=False)]


def boxes(data: bytes) -> list[str]:
    """Return the names of a file's boxes, in order."""
    names, place = [], 0
    while place < len(data):
        length, name = struct.unpack_from(">I4s", data, place)
        names.append(name.decode())
        place += length if length != 1 else struct.unpack_from(">Q", data, place + 8)[0]
    return names


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    data=st.data(),
    fps=st.sampled_from([1, 7, 30, Fraction(30000, 1001)]),
)
def test_pyav_and_reader_find_what_is_written(source, tmp_path_factory, lengths, data, fps):
    frames, path = sum(lengths), tmp_path_factory.getbasetemp() / "roundtrip.mp4"
    order = data.draw(st.lists(st.integers(0, 9), min_size=frames, max_size=frames))
    some = st.sets(st.integers(0, frames - 1)) | st.just(set(range(frames)))
    keyframes = sorted(data.draw(some) | {0})
    video, payload = track(source, order, fps, keyframes)
    chapters = chapters_of(lengths) if data.draw(st.booleans()) else []
    write_mp4(path, video, payload, HARSH, "a comment", chapters)

    index, tick = read_index(path), TICKS * Fraction(fps).denominator
    assert (index.frames, index.durations) == (frames, (tick,))
    assert index.timescale == TICKS * Fraction(fps).numerator
    assert (list(index.keyframes), index.comment) == (keyframes, "a comment")
    assert index.size == SIZE
    assert index.configuration == video.configuration
    expected = [source[0][i] for i in order]
    assert samples_of(path) == expected
    assert boxes(path.read_bytes()) == ["ftyp", "moov", "mdat", "free"]

    found = packets_of(path)
    assert [bytes(p) for p in found] == expected
    expected = [(i * tick, i * tick, tick) for i in range(frames)]
    assert [(p.pts, p.dts, p.duration) for p in found] == expected
    assert [i for i, p in enumerate(found) if p.is_keyframe] == keyframes
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.average_rate, stream.frames) == (fps, frames)
        assert container.metadata["title"] == HARSH
        found = container.chapters()
    ends = [n / Fraction(fps) for n in itertools.accumulate(c.frames for c in chapters)]
    times = list(zip([0, *ends], ends, strict=False))
    assert [c["metadata"]["title"] for c in found] == [c.title for c in chapters]
    assert [tuple(c[end] * c["time_base"] for end in ("start", "end")) for c in found] == times
    if chapters:
        lines = packets_of(path, "subtitles")
        assert [bytes(p)[2:].decode() for p in lines] == [c.title for c in chapters]
        spans = [(p.pts * p.time_base, (p.pts + p.duration) * p.time_base) for p in lines]
        assert spans == times


def test_ffmpeg_copies_file_without_warning(source, tmp_path):
    order = [*range(10)] * 10 + [i * i % 10 for i in range(200)]  # with long runs
    video, payload = track(source, order)
    path, copy = tmp_path / "f.mp4", tmp_path / "copy.mp4"
    write_mp4(path, video, payload, "t", "c", chapters_of([30] * 10))
    arguments = ["-i", path, "-map", "0:v", "-map", "0:s", "-c", "copy", "-y", copy]
    command = [ffmpeg.executable(), "-hide_banner", "-loglevel", "warning", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stderr == b""
    for kind in ("video", "subtitles"):
        ours = packets_of(path, kind)
        theirs = packets_of(copy, kind)[: len(ours)]
        assert [bytes(p) for p in theirs] == [bytes(p) for p in ours]
        for name in ("pts", "dts", "duration"):
            copied, written = ([getattr(p, name) * p.time_base for p in q] for q in (theirs, ours))
            assert copied == written
    with av.open(str(path)) as a, av.open(str(copy)) as b:
        assert a.chapters() == b.chapters()
        assert a.metadata["title"] == b.metadata["title"]
        assert a.streams.video[0].sample_aspect_ratio == 1
        context = a.streams.video[0].codec_context
        assert (context.color_range, context.colorspace, context.color_trc) == (1, 1, 1)
        lines = a.streams.subtitles[0]
        assert (lines.language, lines.metadata["handler_name"]) == ("eng", "Episodes")
        assert not lines.disposition & av.stream.Disposition.default


def test_thousands_of_chapters_are_all_read(source, tmp_path):
    for number, listed in ((255, True), (3000, False)):
        video, payload = track(source, [0] * number)
        write_mp4(tmp_path / "f.mp4", video, payload, chapters=chapters_of([1] * number))
        with av.open(str(tmp_path / "f.mp4")) as container:
            titles = [chapter["metadata"]["title"] for chapter in container.chapters()]
        assert titles == [f"{HARSH} {i}" for i in range(number)]
        assert (b"chpl" in (tmp_path / "f.mp4").read_bytes()) == listed


def test_film_beyond_4_gib_keeps_times_and_little_memory(source, tmp_path, monkeypatch):
    """Three million samples at 29.97 frames/s need durations of 64 bits.

    The payload is a hole in the file, except for the last sample.
    """
    stored, configuration = source
    frames, fps = 3_000_000, Fraction(30000, 1001)
    sizes = np.full(frames, 1700, np.uint32)
    sizes[-1] = len(stored[0])

    def hole(stream, payload, movie):
        stream.truncate(stream.tell() + movie.stored + sum(map(len, movie.subtitles)))

    monkeypatch.setattr(writer, "_write_media", hole)
    monkeypatch.setattr(writer, "append_trailer", lambda path: None)  # a sha256 of 5 GB of nothing
    path, chapters = tmp_path / "f.mp4", chapters_of([1500] * 2000)
    video = VideoTrack(configuration, SIZE, fps, sizes, range(0, frames, 100))
    tracemalloc.start()
    write_mp4(path, video, [], chapters=chapters)
    assert tracemalloc.get_traced_memory()[1] < 10 * frames, "the sizes and one table of them"
    tracemalloc.stop()
    index = read_index(path)
    assert sum(index.runs()[-1]) == path.stat().st_size
    with path.open("r+b") as stream:
        head = stream.read(4 * frames + 2**20)
        stream.seek(-len(stored[0]), os.SEEK_END)
        assert stream.tell() >> 32
        stream.write(stored[0])
    assert index.chunk_samples.max() <= (1 << 20) // 1700 + 1, "players read by chunks"
    duration = frames * TICKS * 1001
    for name, place in ((b"mvhd", 28), (b"tkhd", 32), (b"mdhd", 28)):  # of version 1
        assert struct.unpack_from(">Q", head, head.index(name) + place) == (duration,), name
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.frames == frames and len(container.chapters()) == 2000
        container.seek((frames - 1) * TICKS * 1001, stream=stream)
        last = [p for p in container.demux(stream) if p.size][-1]
    assert last.pts == (frames - 1) * TICKS * 1001 and last.pts >> 32
    assert bytes(last) == stored[0]


def test_segment_cut_while_joining_is_rejected(source, tmp_path):
    video, payload = track(source, [0, 1, 2])
    (tmp_path / "short").write_bytes(b"".join(payload)[:-1])
    blocks = read_runs(tmp_path / "short", [(0, len(b"".join(payload)))])
    with pytest.raises(UnusableFileError, match="short: .* shorter than its index says"):
        write_mp4(tmp_path / "f.mp4", video, blocks)


def test_segments_of_writer_and_ffmpeg_join_alike(x264, source, tmp_path):
    """Files with subtitles between their samples join as well, in any order."""
    video, payload = track(source, range(10))
    ours, film = tmp_path / "ours.mp4", tmp_path / "film.mp4"
    write_mp4(ours, video, payload)
    write_mp4(film, video, payload, chapters=chapters_of([3, 4, 3]))
    films = set()
    for number, segments in enumerate(itertools.permutations([x264, ours, film], 2)):
        path, chapters = tmp_path / f"f{number}.mp4", [chapters_of([8, 2]), chapters_of([10])]
        join(zip(segments, chapters, strict=True), path, 30, "t", "c")
        films.add(path.read_bytes())
    assert len(films) == 1
    assert samples_of(tmp_path / "f1.mp4") == 2 * source[0]
