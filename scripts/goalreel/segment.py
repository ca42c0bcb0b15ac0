"""Encoding: from a shard's frame cache to its segment, a short MP4 file of closed GOPs.

All segments of a film share their settings, timebase and parameter sets, so that film can join
them as they are. How ffmpeg is run stands in ffmpeg; how frames turn into yuv420p, in yuv.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from goalreel import ffmpeg
from goalreel.atomic import replacing
from goalreel.errors import GoalreelError
from goalreel.frame_cache import FrameCache
from goalreel.mp4 import read_index
from goalreel.yuv import Yuv420p

# Ticks of the segments' timebase per frame: any number, but the same in segments and film.
TICKS = 512
# Nothing fades here: weighted prediction would take a fifth of the time for the same bytes.
_X264 = "scenecut=0:open-gop=0:weightp=0"
_COLOUR = ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"]
_COLOUR += ["-color_range", "tv", "-chroma_sample_location", "center"]


def encode_segment(
    cache: FrameCache, path: str | os.PathLike, fps: int, encode: Mapping, comment: str
) -> None:
    """Encode a frame cache to `path`, with a keyframe at each episode's first frame.

    encode: preset and either qp or crf. comment: what the file keeps about its making.
    Raises GoalreelError if ffmpeg fails or the file does not hold exactly the cache's frames.
    """
    view = Yuv420p(cache)
    height, width = cache.background.shape[:2]
    with replacing(path) as temporary:
        keyframes = temporary.with_suffix(".keyframes")
        keyframes.write_text(_keyframe_times(cache.offsets[:-1].tolist(), fps))
        arguments = [
            *["-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", f"{width}x{height}"],
            *["-framerate", str(fps), *_COLOUR, "-i", "pipe:0"],
            *["-c:v", "libx264", "-preset", encode["preset"], *_quantiser(encode)],
            # Threads and B-frames would make bytes and timestamps depend on more than the frames.
            *["-threads", "1", "-bf", "0", *_COLOUR, "-x264-params", _X264],
            # From a file, since an argument ends at 128 kB.
            *["-/force_key_frames", str(keyframes.resolve())],
            *["-flags", "+bitexact", "-fflags", "+bitexact", "-map_metadata", "-1"],
            *["-metadata", f"comment={comment}", "-video_track_timescale", str(TICKS * fps)],
            *["-f", "mp4", "-y", f"file:{temporary.resolve()}"],
        ]
        written = ffmpeg.run(arguments, view.frames())
        _check(temporary, written, cache, fps)


def _quantiser(encode: Mapping) -> list[str]:
    if encode.get("crf") is not None:
        return ["-crf", str(encode["crf"])]
    return ["-qp", str(encode["qp"])]


def _keyframe_times(frames: list[int], fps: int) -> str:
    """Return the times, in seconds, that make ffmpeg force a keyframe at each of `frames`.

    It forces the first frame at or after a time. Half a frame earlier is safe from rounding.
    """
    return ",".join(f"{max(frame - 0.5, 0) / fps:.6f}" for frame in frames)


def _check(path: Path, written: int, cache: FrameCache, fps: int) -> None:
    index = read_index(path)
    if not index.frames == written == len(cache):
        raise GoalreelError(
            f"ffmpeg wrote {index.frames} frames of the {written} that it was given; "
            f"the shard has {len(cache)}"
        )
    missing = set(cache.offsets[:-1].tolist()) - set(index.keyframes)
    if missing:
        raise GoalreelError(f"episodes start without a keyframe at frames {sorted(missing)[:5]}")
    if index.durations != (TICKS,) or index.timescale != TICKS * fps or index.first_pts != 0:
        raise GoalreelError(
            f"frames last {index.durations} of 1/{index.timescale} s from {index.first_pts} on, "
            f"not {TICKS} of 1/{TICKS * fps} s from 0 on"
        )
