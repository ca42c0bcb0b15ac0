"""Encoding frames into an MP4 file: x264's settings, which all of goalreel's videos share.

How ffmpeg is run stands in ffmpeg; how frames turn into yuv420p, in yuv; RGB frames that come one
by one, in encoder; what is encoded, with the callers: segment for the film, and the views.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.files.seal import seal_mp4
from goalreel.mp4.reader import TICKS, VideoIndex, read_index

# Nothing fades here: weighted prediction would take a fifth of the time for the same bytes.
_X264 = "scenecut=0:open-gop=0:weightp=0"
_PRIMARIES = ["-color_primaries", "bt709", "-color_trc", "bt709"]
BT709 = ["-colorspace", "bt709", *_PRIMARIES]
BT709 += ["-color_range", "tv", "-chroma_sample_location", "center"]
RGB = ["-colorspace", "rgb", *_PRIMARIES, "-color_range", "pc"]


def encode_video(
    path: str | os.PathLike,
    frames: Iterable,
    size: tuple[int, int],
    fps: int,
    encode: Mapping,
    comment: str = "",
    keyframes: Sequence[int] = (0,),
) -> int:
    """Encode frames to `path`, an MP4 file; return how many there were.

    frames: yuv420p buffers as in yuv, of size (width, height). encode: preset and either qp or
    crf. comment: what the file keeps about its making. keyframes: numbers of the frames that must
    be keyframes, in order. Raises GoalreelError if ffmpeg fails or the file does not hold exactly
    these frames.
    """
    rate = Fraction(fps)
    with replacing(path) as temporary:
        times = temporary.with_suffix(".keyframes")
        times.write_text(_keyframe_times(keyframes, fps))
        # From a file, since an argument ends at 128 kB.
        output = ["-c:v", "libx264", *BT709, "-/force_key_frames", str(times.resolve())]
        source = raw_frames("yuv420p", size, rate, BT709)
        written = ffmpeg.run(source + mp4_file(temporary, rate, encode, output, comment), frames)
        check(read_index(temporary), written, rate, keyframes)
        seal_mp4(temporary)
    return written


def raw_frames(
    pixel_format: str, size: tuple[int, int], rate: Fraction, colour: Sequence[str]
) -> list[str]:
    """Return ffmpeg's arguments for frames of (width, height) that come by standard input."""
    return [
        *["-f", "rawvideo", "-pixel_format", pixel_format, "-video_size", f"{size[0]}x{size[1]}"],
        *["-framerate", str(rate), *colour, "-i", "pipe:0"],
    ]


def mp4_file(
    path: Path, rate: Fraction, encode: Mapping, output: Sequence[str], comment: str = ""
) -> list[str]:
    """Return ffmpeg's arguments for an MP4 file that x264 encodes; see encode_video.

    output: what differs from video to video: the codec and its colours, filters, keyframes.
    """
    return [
        *[*output, "-preset", encode["preset"], *_quantiser(encode)],
        # Threads and B-frames would make bytes and timestamps depend on more than the frames.
        *["-threads", "1", "-bf", "0", "-x264-params", _X264],
        *["-flags", "+bitexact", "-fflags", "+bitexact", "-map_metadata", "-1"],
        *["-metadata", f"comment={comment}", "-video_track_timescale", str(TICKS * rate.numerator)],
        *["-f", "mp4", "-y", f"file:{path.resolve()}"],
    ]


def _quantiser(encode: Mapping) -> list[str]:
    if encode.get("crf") is not None:
        return ["-crf", str(encode["crf"])]
    return ["-qp", str(encode["qp"])]


def _keyframe_times(frames: Sequence[int], fps: int) -> str:
    """Return the times, in seconds, that make ffmpeg force a keyframe at each of `frames`.

    It forces the first frame at or after a time. Half a frame earlier is safe from rounding.
    """
    return ",".join(f"{max(frame - 0.5, 0) / fps:.6f}" for frame in frames)


def check(index: VideoIndex, written: int, rate: Fraction, keyframes: Sequence[int] = (0,)) -> None:
    """Raise GoalreelError if a file does not hold the frames written, one interval apart."""
    if index.frames != written:
        raise GoalreelError(
            f"ffmpeg wrote {index.frames} frames of the {written} that it was given"
        )
    missing = set(keyframes) - set(index.keyframes)
    if missing:
        raise GoalreelError(f"episodes start without a keyframe at frames {sorted(missing)[:5]}")
    interval, timescale = TICKS * rate.denominator, TICKS * rate.numerator
    if index.durations != (interval,) or index.timescale != timescale or index.first_pts != 0:
        raise GoalreelError(
            f"frames last {index.durations} of 1/{index.timescale} s from {index.first_pts} on, "
            f"not {interval} of 1/{timescale} s from 0 on"
        )
