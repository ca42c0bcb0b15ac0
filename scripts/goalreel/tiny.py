"""Tiny films: every picture stored once, in VP9, and shown as often as the film needs.

Such a dictionary depends on the atlas and the quality, as the other one does; a segment stores its
episodes' key frames, which are their title cards, and of the dictionary what it shows. A film of
such segments stores it once for all of them (mp4_join). The file is a compressed .npz:

    kind, version     "tiny dictionary" and the version of this layout
    spec              JSON: how the file was made
    digests           (pictures, 16) uint8, layers.Patches.digests of the atlas
    frames, offsets   the pictures' VP9 frames end to end; (pictures + 1,)
    skip              the frame that shows the key frame again, as uint8

What makes a frame fit any place is told in vp9.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goalreel import npz
from goalreel.assembled import CAPTION, PICTURE, check_pictures
from goalreel.errors import GoalreelError
from goalreel.frame_cache import FrameCache
from goalreel.layers import NOTHING, Layer, Patches
from goalreel.trajectories import Trajectories
from goalreel.vp9 import caption_box, inter_frames, key_frames, skip_frame
from goalreel.yuv import Yuv420p, planar

VERSION = 1
_KIND = "tiny dictionary"
_ARRAYS = {"spec": "U", "digests": "u", "frames": "u", "offsets": "i", "skip": "u"}


@dataclass(frozen=True)
class TinyDictionary:
    """frames: of each digest, its VP9 frame; skip: the frame that shows the key frame again."""

    frames: Mapping[bytes, bytes]
    skip: bytes
    spec: str = "{}"


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


def code_tiny(
    background: np.ndarray, patches: Patches, quality: str, spec: str = "{}"
) -> TinyDictionary:
    """Code pictures, patches over a background, (H, W, 3) uint8, H and W even.

    quality: see vp9.QUALITIES. Raises GoalreelError as vp9.inter_frames.
    """
    layer = Layer(PICTURE, patches, np.arange(len(patches), dtype=np.int32))
    pictures = Yuv420p(FrameCache(background, (layer,), np.array([0, len(patches)])))
    size = pictures.size
    frames = inter_frames(planar(background), pictures, size, quality, caption_box(size))
    coded = dict(zip(patches.digests(), frames, strict=True))
    return TinyDictionary(coded, skip_frame(size), spec)


def stored_samples(
    cache: FrameCache, dictionary: TinyDictionary, quality: str, trajectories: Trajectories
) -> StoredSamples:
    """Return the samples of a shard's frames: title cards with captions, no HUD.

    Each episode's first frame must be its card. Raises GoalreelError if it is not, there is a HUD,
    a picture is not in the dictionary, or ffmpeg fails.
    """
    layers = {layer.name: layer for layer in cache.layers}
    picture, starts = layers.pop(PICTURE), cache.offsets[:-1]
    caption = layers.pop(CAPTION, None)
    if layers or (picture.index[starts] != NOTHING).any():
        raise GoalreelError(
            "a tiny film's episodes begin with a title card and have no HUD; choose encode.size: "
            "normal"
        )
    check_pictures(dictionary.frames, picture, cache, trajectories)
    cards = Yuv420p(_cards(cache, caption))
    keys = key_frames(cards.frames(), cards.size, quality)
    frames = [dictionary.frames.get(digest, b"") for digest in picture.patches.digests()]
    # The index of no picture, -1, finds the last.
    shown = np.array([*range(len(frames)), len(frames)])[picture.index]
    shown[starts] = len(frames) + 1 + np.arange(len(keys))
    return StoredSamples([*frames, dictionary.skip, *keys], shown)


def _cards(cache: FrameCache, caption: Layer | None) -> FrameCache:
    """Return the title cards of a cache, a frame for each episode."""
    starts = cache.offsets[:-1]
    shown = () if caption is None else (Layer(CAPTION, caption.patches, caption.index[starts]),)
    return FrameCache(cache.background, shown, np.arange(len(starts) + 1))


def write_tiny(path: str | os.PathLike, dictionary: TinyDictionary) -> None:
    """Write a dictionary file; the same dictionary gives the same bytes."""
    frames = list(dictionary.frames.values())
    arrays = {
        "spec": np.array(dictionary.spec),
        "digests": np.frombuffer(b"".join(dictionary.frames), np.uint8).reshape(-1, 16),
        "frames": np.frombuffer(b"".join(frames), np.uint8),
        "offsets": np.cumsum([0, *map(len, frames)]),
        "skip": np.frombuffer(dictionary.skip, np.uint8),
    }
    npz.write(path, npz.header(_KIND, VERSION) | arrays)


def read_tiny(path: str | os.PathLike) -> TinyDictionary:
    """Read a dictionary file. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, _KIND, VERSION, _ARRAYS)
    offsets = arrays["offsets"]
    sound = offsets.ndim == 1 and len(offsets) > 1 and offsets[0] == 0
    sound = sound and arrays["digests"].shape == (len(offsets) - 1, 16)
    sound = sound and (np.diff(offsets) > 0).all() and offsets[-1] == len(arrays["frames"])
    npz.check(path, bool(sound), "its arrays do not fit together")
    frames, bounds = arrays["frames"].tobytes(), offsets.tolist()
    cut = zip(arrays["digests"], bounds, bounds[1:], strict=False)
    coded = {digest.tobytes(): frames[a:b] for digest, a, b in cut}
    return TinyDictionary(coded, arrays["skip"].tobytes(), str(arrays["spec"]))
