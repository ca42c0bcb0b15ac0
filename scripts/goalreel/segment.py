"""Segments: from a shard's frame cache to a short MP4 file of closed GOPs.

All segments of a film share their settings, timebase and parameter sets, so that film can join
them as they are. The encoder's settings stand in video; how frames turn into yuv420p, in yuv.
"""

import os
from collections.abc import Mapping

from goalreel.frame_cache import FrameCache
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
