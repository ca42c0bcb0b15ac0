"""Turn the frame cache of a shard into a segment: an MP4 file with a keyframe per episode.

All segments of a film share their settings, timescale and parameter sets, so that they can be
joined without encoding again.
"""

import itertools
import os
from collections.abc import Callable, Mapping
from typing import IO

import numpy as np

from goalreel.encoding.assembling.block_samples import write_block_samples
from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.segment_samples import write_samples
from goalreel.encoding.assembling.title_samples import write_title_samples
from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import Yuv420p
from goalreel.files.atomic import replacing
from goalreel.h264.parameter_sets import StreamParameters, configuration
from goalreel.mp4.movie_box import VideoTrack
from goalreel.mp4.writer import read_runs, write_mp4
from goalreel.rendering.frame_cache import FrameCache


def encode_segment(
    cache: FrameCache, path: str | os.PathLike, fps: int, encode: Mapping, comment: str
) -> None:
    """Encode a frame cache to `path` with x264, with keyframes at title cards and episodes."""
    caches = [(part, Yuv420p(part)) for part in (cache.titles, cache) if part]
    parts = [(yuv, part.episode(n)) for n in range(len(cache.offsets) - 1) for part, yuv in caches]
    starts = list(itertools.accumulate((len(frames) for _, frames in parts), initial=0))[:-1]
    pictures = itertools.chain.from_iterable(yuv.frames(frames) for yuv, frames in parts)
    encode_video(path, pictures, caches[0][1].size, fps, encode, comment, starts)


def assemble_segment(
    cache: FrameCache, coded_atlas: CodedAtlas, path: str | os.PathLike, fps: int, comment: str
) -> None:
    """Assemble the segment of a frame cache from the slices of a coded atlas."""
    # In `cache`, each episode comes after a frame of the empty track, to which all others refer.
    stream = StreamParameters(cache.background.shape[1::-1], fps)
    _assemble(path, cache, stream, comment, lambda file: write_samples(file, cache, coded_atlas))


def assemble_blocks(
    cache: FrameCache, path: str | os.PathLike, fps: int, encode: Mapping, comment: str
) -> None:
    """Assemble the segment of frames from Gymnasium, each distinct macroblock coded once."""
    stream = StreamParameters(cache.background.shape[1::-1], fps, chained=True)
    how = encode["qp"], encode["card_qp"], stream.length_bytes
    _assemble(path, cache, stream, comment, lambda file: write_block_samples(file, cache, *how))


def _assemble(
    path: str | os.PathLike,
    cache: FrameCache,
    stream: StreamParameters,
    comment: str,
    write: Callable[[IO[bytes]], np.ndarray],
) -> None:
    """Write a segment. write: writes the samples of `cache` to a file and returns their sizes."""
    with replacing(path) as temporary:
        media = temporary.with_suffix(".samples")
        with media.open("wb") as file:
            # The sizes of the samples of each card, and of each episode.
            kinds = [write_title_samples(file, cache.titles, stream)] if cache.titles else []
            kinds.append(np.split(write(file), cache.offsets[1:-1]))
        lengths = np.array([[part.sum() for part in kind] for kind in kinds])
        places = np.cumsum(lengths).reshape(lengths.shape) - lengths
        runs = np.stack([places.T.ravel(), lengths.T.ravel()], axis=1).tolist()
        parts = list(itertools.chain(*zip(*kinds, strict=True)))
        starts = np.cumsum([0, *map(len, parts[:-1])])
        sizes = np.concatenate(parts)
        video = VideoTrack(configuration(stream), stream.size, stream.fps, sizes, starts)
        write_mp4(temporary, video, read_runs(media, runs), comment=comment)
