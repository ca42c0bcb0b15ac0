"""Encoding frames into an MP4 file: x264's settings, which all of goalreel's videos share.

How ffmpeg is run stands in ffmpeg; how frames turn into yuv420p, in yuv; what is encoded, with the
callers: segment for the film, and the views.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from goalreel import ffmpeg
from goalreel.atomic import replacing
from goalreel.errors import GoalreelError
from goalreel.mp4 import VideoIndex, read_index

# Ticks of the videos' timebase per frame: any number, but the same in segments and film.
TICKS = 512
# Nothing fades here: weighted prediction would take a fifth of the time for the same bytes.
_X264 = "scenecut=0:open-gop=0:weightp=0"
_COLOUR = ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"]
_COLOUR += ["-color_range", "tv", "-chroma_sample_location", "center"]


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
    width, height = size
    with replacing(path) as temporary:
        times = temporary.with_suffix(".keyframes")
        times.write_text(_keyframe_times(keyframes, fps))
        arguments = [
            *["-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", f"{width}x{height}"],
            *["-framerate", str(fps), *_COLOUR, "-i", "pipe:0"],
            *["-c:v", "libx264", "-preset", encode["preset"], *_quantiser(encode)],
            # Threads and B-frames would make bytes and timestamps depend on more than the frames.
            *["-threads", "1", "-bf", "0", *_COLOUR, "-x264-params", _X264],
            # From a file, since an argument ends at 128 kB.
            *["-/force_key_frames", str(times.resolve())],
            *["-flags", "+bitexact", "-fflags", "+bitexact", "-map_metadata", "-1"],
            *["-metadata", f"comment={comment}", "-video_track_timescale", str(TICKS * fps)],
            *["-f", "mp4", "-y", f"file:{temporary.resolve()}"],
        ]
        written = ffmpeg.run(arguments, frames)
        _check(read_index(temporary), written, keyframes, fps)
    return written


def _quantiser(encode: Mapping) -> list[str]:
    if encode.get("crf") is not None:
        return ["-crf", str(encode["crf"])]
    return ["-qp", str(encode["qp"])]


def _keyframe_times(frames: Sequence[int], fps: int) -> str:
    """Return the times, in seconds, that make ffmpeg force a keyframe at each of `frames`.

    It forces the first frame at or after a time. Half a frame earlier is safe from rounding.
    """
    return ",".join(f"{max(frame - 0.5, 0) / fps:.6f}" for frame in frames)


def _check(index: VideoIndex, written: int, keyframes: Sequence[int], fps: int) -> None:
    if index.frames != written:
        raise GoalreelError(
            f"ffmpeg wrote {index.frames} frames of the {written} that it was given"
        )
    missing = set(keyframes) - set(index.keyframes)
    if missing:
        raise GoalreelError(f"episodes start without a keyframe at frames {sorted(missing)[:5]}")
    if index.durations != (TICKS,) or index.timescale != TICKS * fps or index.first_pts != 0:
        raise GoalreelError(
            f"frames last {index.durations} of 1/{index.timescale} s from {index.first_pts} on, "
            f"not {TICKS} of 1/{TICKS * fps} s from 0 on"
        )
