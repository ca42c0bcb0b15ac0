"""Encode frames with x264, with the options that all goalreel videos share."""

import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.files.checksum_trailer import append_trailer
from goalreel.mp4.reader import TICKS, VideoIndex, read_index

PRESETS = ("ultrafast", "superfast", "veryfast", "faster", "fast")
PRESETS += ("medium", "slow", "slower", "veryslow")
# Without weighted prediction: it only helps fades, and costs a fifth of the time.
_FILM = "scenecut=0:open-gop=0:weightp=0"
_PRIMARIES = ["-color_primaries", "bt709", "-color_trc", "bt709"]
_BT709 = ["-colorspace", "bt709", *_PRIMARIES]
_BT709 += ["-color_range", "tv", "-chroma_sample_location", "center"]
_RGB = ["-colorspace", "rgb", *_PRIMARIES, "-color_range", "pc"]
# The swscale filter "area" averages each 2x2 block for chroma, as yuv does.
_TO_YUV = "scale=in_range=pc:out_color_matrix=bt709:out_range=tv:out_chroma_loc=center"
_TO_YUV += ":flags=area+accurate_rnd+bitexact,format=yuv420p"
# One thread and no B-frames, so that bytes and timestamps depend only on the frames.
_EXACT = ["-threads", "1", "-flags", "+bitexact", "-fflags", "+bitexact"]

_INTRA = "keyint=1:scenecut=0:bframes=0:ref=1:weightp=0:mbtree=0:rc-lookahead=0:sync-lookahead=0"
_INTRA += ":cabac=0:8x8dct=0:no-deblock=1:aq-mode=0:ipratio=1"
# I_PCM macroblocks must not occur: their samples are byte-aligned, and another slice header would
# shift them. With psy-rd x264 codes none. At 0.01 psy-rd only lowers the chroma QP offset by 1,
# which chroma-qp-offset undoes. Rate-distortion decisions (subme 6) save 1 to 6% of the bytes at 1
# to 3 dB more, and cost no time if macroblocks are few.
_FAST = "subme=6:trellis=0:deadzone-intra=0:psy-rd=0.01,0:chroma-qp-offset=1"
_THOROUGH = "subme=9:trellis=2:psy-rd=0.01,0:chroma-qp-offset=1"


def encode_video(
    path: str | os.PathLike,
    frames: Iterable,
    size: tuple[int, int],
    fps: int,
    encode: Mapping,
    comment: str = "",
    keyframes: Sequence[int] = (0,),
) -> int:
    """Encode yuv420p buffers, BT.709 in limited range, to an MP4 file, and return their number.

    `size` is (width, height), `encode` has the preset and either qp or crf, and `keyframes` are the
    ascending indices of frames that must be keyframes. Raises GoalreelError if a side is odd,
    ffmpeg fails, or the file does not have exactly these frames.
    """
    if size[0] % 2 or size[1] % 2:
        problem = "Width and height must be even. Change the size."
        raise GoalreelError(f"Frames of {size[0]}x{size[1]}: {problem}")
    rate = Fraction(fps)
    with replacing(path) as temporary:
        times = temporary.with_suffix(".keyframes")
        # A time forces the first frame at or after it. Half a frame earlier is safe from rounding.
        seconds = (max(frame - 0.5, 0) / fps for frame in keyframes)
        # In a file, because Linux limits an argument to 128 kB.
        times.write_text(",".join(f"{second:.6f}" for second in seconds))
        output = ["-c:v", "libx264", *_BT709, "-/force_key_frames", str(times.resolve())]
        target = _mp4_file(temporary, rate, encode, output, comment)
        written = ffmpeg.run(_raw_frames("yuv420p", size, rate, _BT709) + target, frames)
        check_frames(read_index(temporary), written, rate, keyframes)
        append_trailer(temporary)
    return written


def recording(path: Path, size: tuple[int, int], rate: Fraction, encode: Mapping) -> list[str]:
    """Return the ffmpeg arguments for an MP4 file of rgb24 frames.

    A qp of 0 stores lossless RGB. Any other qp stores yuv420p, converted by swscale and equal to
    the result of `yuv` within one level.
    """
    output = ["-c:v", "libx264rgb", *_RGB]
    if encode["qp"]:
        output = ["-vf", _TO_YUV, "-c:v", "libx264", *_BT709]
    return _raw_frames("rgb24", size, rate, _RGB) + _mp4_file(path, rate, encode, output)


def intra_stream(size: tuple[int, int], rows: int, qp: int, thorough: bool = False) -> list[str]:
    """Return the ffmpeg arguments for an Annex B stream of I slices on the standard output."""
    # rows: macroblock rows per slice; thorough: save some percent of bytes in 50 times the time
    slices = f"slice-max-mbs={rows * size[0] // 16}"
    return [
        *_raw_frames("yuv420p", size, Fraction(25), _BT709),
        *["-c:v", "libx264", *_BT709, "-preset", "veryfast", "-profile:v", "baseline"],
        *["-qp", str(qp), "-x264-params", f"{_INTRA}:{slices}:{_THOROUGH if thorough else _FAST}"],
        *[*_EXACT, "-f", "h264", "pipe:1"],
    ]


def _raw_frames(kind: str, size: tuple[int, int], rate: Fraction, color: list[str]) -> list[str]:
    """Return the ffmpeg arguments for raw frames of (width, height) on the standard input."""
    frames = ["-f", "rawvideo", "-pixel_format", kind, "-video_size", f"{size[0]}x{size[1]}"]
    return [*frames, "-framerate", str(rate), *color, "-i", "pipe:0"]


def _mp4_file(
    path: Path, rate: Fraction, encode: Mapping, output: Sequence[str], comment: str = ""
) -> list[str]:
    """Return the ffmpeg arguments for an MP4 file; output: codec, colors, filters, keyframes."""
    quantizer = "qp" if encode.get("crf") is None else "crf"
    return [
        *[*output, "-preset", encode["preset"], f"-{quantizer}", str(encode[quantizer])],
        # Without a rate, ffmpeg guesses that of large frames, and drops or repeats some.
        *["-r", str(rate), "-bf", "0", "-x264-params", _FILM, *_EXACT, "-map_metadata", "-1"],
        *["-metadata", f"comment={comment}", "-video_track_timescale", str(TICKS * rate.numerator)],
        # faststart puts the index first, so that browsers play the video while it loads.
        *["-movflags", "+faststart", "-f", "mp4", "-y", f"file:{path.resolve()}"],
    ]


def check_frames(
    index: VideoIndex, written: int, rate: Fraction, keyframes: Sequence[int] = (0,)
) -> None:
    """Raise GoalreelError if a file does not have the written frames at a constant rate."""
    if missing := sorted(set(keyframes) - set(index.keyframes)):
        raise GoalreelError(f"ffmpeg: No keyframe at frames {missing[:5]}, where episodes start.")
    expected = written, (TICKS * rate.denominator,), TICKS * rate.numerator
    found = index.frames, index.durations, index.timescale
    if found != expected:
        raise GoalreelError(
            f"ffmpeg: Got {written} frames at {rate} fps and wrote {index.frames}.\n"
            f"  durations: {index.durations} of 1/{index.timescale} s"
        )
