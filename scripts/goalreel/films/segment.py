"""Turn the frame cache of a shard into a segment: an MP4 file with a keyframe per episode.

All segments of a film share their settings, timescale and parameter sets, so that they can be
joined without encoding again.
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
    """Encode a frame cache to `path` with x264, with a keyframe at the start of each episode.

    encode, comment: see x264.encode_video. Raises GoalreelError if ffmpeg fails or the file does
    not have exactly the frames of the cache.
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
    """Assemble the segment of a frame cache from the slices of a coded atlas.

    cache: the frames with overlay and title cards; comment: the comment tag, the spec. Raises
    GoalreelError as `samples_of` does.
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
    """Assemble the segment of frames from Gymnasium, each distinct macroblock coded once.

    encode: the quantization parameters `qp` and `card_qp`. Raises GoalreelError as
    `write_block_samples` does.
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
