"""Tiny segments: every picture stored once, in VP9, and shown as often as the film needs.

A segment stores its episodes' key frames, which are their title cards, and of the dictionary what
it shows; a film of such segments stores that once for all of them (mp4_join). The dictionary stands
in tiny.
"""

from dataclasses import dataclass

import numpy as np

from goalreel.encoding.assembling.segment_samples import CAPTION, check_pictures, layers_of
from goalreel.encoding.tiny import TinyDictionary
from goalreel.encoding.vp9 import key_frames
from goalreel.encoding.yuv import Yuv420p
from goalreel.errors import GoalreelError
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import NOTHING, Layer
from goalreel.simulation.trajectories import Trajectories


@dataclass(frozen=True)
class StoredSamples:
    """parts: what is stored, in this order; index: (frames,) int64, the part that each shows."""

    parts: list[bytes]
    index: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Bytes of each sample, (frames,) int64."""
        return self._lengths[self.index]

    @property
    def offsets(self) -> np.ndarray:
        """Where each sample starts among the parts, (frames,) int64."""
        return (np.cumsum(self._lengths) - self._lengths)[self.index]

    @property
    def _lengths(self) -> np.ndarray:
        return np.array([len(part) for part in self.parts], np.int64)


def stored_samples(
    cache: FrameCache, dictionary: TinyDictionary, quality: str, trajectories: Trajectories
) -> StoredSamples:
    """Return the samples of a shard's frames: title cards with captions, no HUD.

    Each episode's first frame must be its card. Raises GoalreelError if it is not, there is a HUD,
    a picture is not in the dictionary, or ffmpeg fails.
    """
    picture, caption, hud = layers_of(cache)
    starts = cache.offsets[:-1]
    if hud or (picture.index[starts] != NOTHING).any():
        raise GoalreelError(
            "a tiny film's episodes begin with a title card and have no HUD; choose encode.size: "
            "normal"
        )
    coded = [dictionary.frames.get(digest) for digest in picture.patches.digests()]
    check_pictures(coded, picture, cache, trajectories)
    cards = Yuv420p(_cards(cache, caption))
    keys = key_frames(cards.frames(), cards.size, quality)
    frames = [frame or b"" for frame in coded]  # none of a patch that no frame shows
    # The index of no picture, -1, finds the last.
    shown = np.array([*range(len(frames)), len(frames)])[picture.index]
    shown[starts] = len(frames) + 1 + np.arange(len(keys))
    return StoredSamples([*frames, dictionary.skip, *keys], shown)


def _cards(cache: FrameCache, caption: Layer | None) -> FrameCache:
    """Return the title cards of a cache, a frame for each episode."""
    starts = cache.offsets[:-1]
    shown = () if caption is None else (Layer(CAPTION, caption.patches, caption.index[starts]),)
    return FrameCache(cache.background, shown, np.arange(len(starts) + 1))
