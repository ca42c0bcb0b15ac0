"""The dictionary of tiny films: every picture of an atlas as a VP9 frame that fits any place.

It depends on the atlas and the quality alone, as the other dictionary does. The file is a
compressed .npz without objects:

    kind, version     "tiny dictionary" and the version of this layout
    spec              JSON: how the file was made
    digests           (pictures, 16) uint8, layers.Patches.digests of the atlas
    frames, offsets   the pictures' VP9 frames end to end; (pictures + 1,)
    skip              the frame that shows the key frame again, as uint8

What makes a frame fit any place is told in vp9, what films are made of it in stored.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goalreel.encoding.vp9 import caption_box, inter_frames, skip_frame
from goalreel.encoding.yuv import Yuv420p, planar
from goalreel.files import npz
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.layers import Layer, Patches

VERSION = 1
_KIND = "tiny dictionary"
_ARRAYS = {"spec": "U", "digests": "u", "frames": "u", "offsets": "i", "skip": "u"}


@dataclass(frozen=True)
class TinyDictionary:
    """frames: of each digest, its VP9 frame; skip: the frame that shows the key frame again."""

    frames: Mapping[bytes, bytes]
    skip: bytes
    spec: str = "{}"


def code_tiny(
    background: np.ndarray, patches: Patches, quality: str, spec: str = "{}"
) -> TinyDictionary:
    """Code pictures, patches over a background, (H, W, 3) uint8, H and W even.

    quality: see vp9.QUALITIES. Raises GoalreelError as vp9.inter_frames.
    """
    layer = Layer("car", patches, np.arange(len(patches), dtype=np.int32))
    pictures = Yuv420p(FrameCache(background, (layer,), np.array([0, len(patches)])))
    size = pictures.size
    frames = inter_frames(planar(background), pictures, size, quality, caption_box(size))
    coded = dict(zip(patches.digests(), frames, strict=True))
    return TinyDictionary(coded, skip_frame(size), spec)


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
    sound = sound and arrays["frames"].ndim == 1
    sound = sound and arrays["digests"].shape == (len(offsets) - 1, 16)
    sound = sound and (np.diff(offsets) > 0).all() and offsets[-1] == len(arrays["frames"])
    npz.check(path, bool(sound), "its arrays do not fit together")
    frames, bounds = arrays["frames"].tobytes(), offsets.tolist()
    cut = zip(arrays["digests"], bounds, bounds[1:], strict=False)
    coded = {digest.tobytes(): frames[a:b] for digest, a, b in cut}
    return TinyDictionary(coded, arrays["skip"].tobytes(), str(arrays["spec"]))
