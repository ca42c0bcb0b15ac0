"""Segments: from a shard's frame cache to a short MP4 file that begins each episode anew.

All segments of a film share their settings, timebase and parameter sets, so that film can join
them as they are. x264's settings stand in video, how frames turn into yuv420p in yuv; how frames
are found coded, in assembled.
"""

import os
from collections.abc import Mapping

from goalreel.assembled import samples_of
from goalreel.assembly import assemble, sample_sizes
from goalreel.atomic import replacing
from goalreel.dictionary import Dictionary
from goalreel.frame_cache import FrameCache
from goalreel.h264.parameter_sets import Stream, configuration
from goalreel.mp4_movie import VideoTrack
from goalreel.mp4_writer import write_mp4
from goalreel.trajectories import Trajectories
from goalreel.video import encode_video
from goalreel.yuv import Yuv420p


def encode_segment(
    cache: FrameCache, path: str | os.PathLike, fps: int, encode: Mapping, comment: str
) -> None:
    """Encode a frame cache to `path`, with a keyframe at each episode's first frame.

    encode, comment: see video.encode_video. Raises GoalreelError if ffmpeg fails or the file does
    not hold exactly the cache's frames.
    """
    frames = Yuv420p(cache)
    starts = cache.offsets[:-1].tolist()
    encode_video(path, frames.frames(), frames.size, fps, encode, comment, starts)


def assemble_segment(
    cache: FrameCache,
    dictionary: Dictionary,
    trajectories: Trajectories,
    path: str | os.PathLike,
    fps: int,
    comment: str,
) -> None:
    """Write the segment of a frame cache without encoding its pictures again.

    cache: with its overlay, cards first. comment: what the file keeps about its making. Raises
    GoalreelError as assembled.samples_of.
    """
    samples = samples_of(cache, dictionary, trajectories)
    height, width = cache.background.shape[:2]
    video = VideoTrack(
        codec="avc1",
        configuration=configuration(Stream((width, height), fps)),
        size=(width, height),
        fps=fps,
        sizes=sample_sizes(samples),
        keyframes=cache.offsets[:-1],
    )
    with replacing(path) as temporary:
        write_mp4(temporary, video, assemble(samples), comment=comment)
