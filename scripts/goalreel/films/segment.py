"""Segments: from a shard's frame cache to a short MP4 file that begins each episode anew.

All segments of a film share their settings, timebase and parameter sets, so that they can be joined
as they are.
"""

import os
from collections.abc import Mapping

from goalreel.encoding.assembling.block_samples import write_block_samples
from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.segment_samples import samples_of
from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import Yuv420p
from goalreel.files.atomic import replacing
from goalreel.h264.parameter_sets import StreamParameters, configuration
from goalreel.mp4.movie_box import VideoTrack
from goalreel.mp4.writer import read_runs, write_mp4
from goalreel.rendering.frame_cache import FrameCache
from goalreel.simulation.trajectories import Trajectories


def encode_segment(
    cache: FrameCache, path: str | os.PathLike, fps: int, encode: Mapping, comment: str
) -> None:
    """Encode a frame cache to `path`, with a keyframe at each episode's first frame.

    encode, comment: see x264.encode_video. Raises GoalreelError if ffmpeg fails or the file does
    not hold exactly the cache's frames.
    """
    frames = Yuv420p(cache)
    starts = cache.offsets[:-1].tolist()
    encode_video(path, frames.frames(), frames.size, fps, encode, comment, starts)


def assemble_segment(
    cache: FrameCache,
    coded_atlas: CodedAtlas,
    trajectories: Trajectories,
    path: str | os.PathLike,
    fps: int,
    comment: str,
) -> None:
    """Write the segment of a frame cache without encoding its pictures again.

    cache: with its overlay, cards first. comment: what the file keeps about its making. Raises
    GoalreelError as samples_of.
    """
    sizes, samples = samples_of(cache, coded_atlas, trajectories)
    size = cache.background.shape[1::-1]
    setup = configuration(StreamParameters(size, fps))
    video = VideoTrack(setup, size, fps, sizes, cache.offsets[:-1])
    with replacing(path) as temporary:
        write_mp4(temporary, video, samples, comment=comment)


def assemble_blocks(
    cache: FrameCache, path: str | os.PathLike, fps: int, encode: Mapping, comment: str
) -> None:
    """Write the segment of drawn pictures, each distinct macroblock coded once.

    encode: the quantizers qp and card_qp. Raises GoalreelError as write_block_samples.
    """
    size = cache.background.shape[1::-1]
    stream = StreamParameters(size, fps, chained=True)
    quantizers = encode["qp"], encode["card_qp"]
    with replacing(path) as temporary:
        media = temporary.with_suffix(".samples")
        with media.open("wb") as file:
            sizes = write_block_samples(file, cache, *quantizers, stream.length_bytes)
        video = VideoTrack(configuration(stream), size, fps, sizes, cache.offsets[:-1])
        payload = read_runs(media, [(0, int(sizes.sum()))])
        write_mp4(temporary, video, payload, comment=comment)
