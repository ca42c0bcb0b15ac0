"""Turn the frame cache of a shard into a segment: an MP4 file with a keyframe per episode.

Title cards have a frame cache of their own, with an episode for each. They come before the episodes
and begin with keyframes.

All segments of a film share their settings, timescale and parameter sets, so that they can be
joined without encoding again.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import IO

import numpy as np

from goalreel.encoding.assembling.block_samples import write_block_samples
from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.segment_samples import samples_of
from goalreel.encoding.assembling.title_samples import title_samples
from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import Yuv420p
from goalreel.files.atomic import replacing
from goalreel.h264.parameter_sets import StreamParameters, configuration
from goalreel.mp4.movie_box import VideoTrack
from goalreel.mp4.writer import read_runs, write_mp4
from goalreel.rendering.frame_cache import FrameCache
from goalreel.simulation.trajectories import Trajectories


def encode_segment(
    cache: FrameCache,
    path: str | os.PathLike,
    fps: int,
    encode: Mapping,
    comment: str,
    titles: FrameCache | None = None,
) -> None:
    """Encode a frame cache to `path` with x264, with a keyframe at the start of each episode.

    encode, comment: see x264.encode_video. Raises GoalreelError if ffmpeg fails or the file does
    not have exactly the frames of the caches.
    """
    caches = [(part, Yuv420p(part)) for part in (titles, cache) if part]
    parts = [(yuv, part.episode(n)) for n in range(len(cache.offsets) - 1) for part, yuv in caches]
    starts = list(itertools.accumulate((len(frames) for _, frames in parts), initial=0))[:-1]
    pictures = itertools.chain.from_iterable(yuv.frames(frames) for yuv, frames in parts)
    encode_video(path, pictures, caches[0][1].size, fps, encode, comment, starts)


def assemble_segment(
    cache: FrameCache,
    coded_atlas: CodedAtlas,
    trajectories: Trajectories,
    path: str | os.PathLike,
    fps: int,
    comment: str,
    titles: FrameCache | None = None,
) -> None:
    """Assemble the segment of a frame cache from the slices of a coded atlas.

    cache: the frames with overlay, each episode after a frame of the empty track, to which all
    others refer; comment: the comment tag, the spec. Raises GoalreelError as `samples_of` does.
    """

    def write(file: IO[bytes]) -> np.ndarray:
        sizes, samples = samples_of(cache, coded_atlas, trajectories)
        file.writelines(samples)
        return sizes

    stream = StreamParameters(cache.background.shape[1::-1], fps)
    _assemble(path, cache, titles, stream, comment, write)


def assemble_blocks(
    cache: FrameCache,
    path: str | os.PathLike,
    fps: int,
    encode: Mapping,
    comment: str,
    titles: FrameCache | None = None,
) -> None:
    """Assemble the segment of frames from Gymnasium, each distinct macroblock coded once.

    encode: the quantization parameters `qp` and `card_qp`. Raises GoalreelError as
    `write_block_samples` does.
    """
    quantizers = encode["qp"], encode["card_qp"]
    stream = StreamParameters(cache.background.shape[1::-1], fps, chained=True)

    def write(file: IO[bytes]) -> np.ndarray:
        return write_block_samples(file, cache, *quantizers, stream.length_bytes)

    _assemble(path, cache, titles, stream, comment, write)


def _assemble(
    path: str | os.PathLike,
    cache: FrameCache,
    titles: FrameCache | None,
    stream: StreamParameters,
    comment: str,
    write: Callable[[IO[bytes]], np.ndarray],
) -> None:
    """Write a segment. write: writes the samples of `cache` to a file and returns their sizes."""
    with replacing(path) as temporary:
        media = temporary.with_suffix(".samples")
        with media.open("wb") as file:
            episodes = np.split(write(file), cache.offsets[1:-1])
        cards = title_samples(titles, stream) if titles else [[]] * len(episodes)
        frames = cache.offsets[:-1] + len(cards[0]) * np.arange(len(episodes))  # of the cards
        lengths = [np.array([*map(len, card)], np.int64) for card in cards]
        sizes = np.concatenate(
            [part for parts in zip(lengths, episodes, strict=True) for part in parts]
        )
        starts = np.union1d(frames, frames + len(cards[0]))

        def payload() -> Iterator[bytes | memoryview]:
            start = 0
            for card, own in zip(cards, episodes, strict=True):
                yield from card
                yield from read_runs(media, [(start, int(own.sum()))])
                start += int(own.sum())

        video = VideoTrack(configuration(stream), stream.size, stream.fps, sizes, starts)
        write_mp4(temporary, video, payload(), comment=comment)
