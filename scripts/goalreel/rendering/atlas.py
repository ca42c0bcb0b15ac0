"""The atlas: every distinct frame of a Mountain Car, rendered once.

An atlas depends only on the environment and the drawing libraries, so the user's cache
folder keeps it across runs. `Atlas.find` looks up the image of a state by its key.
"""

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from goalreel.environments.registry import describe
from goalreel.files import npz
from goalreel.provenance.spec import NO_SPEC, Spec, parse_spec
from goalreel.rendering import gymnasium_style as style
from goalreel.rendering.layers import Patches, cut_patches

VERSION = 1
_KIND = "atlas"


@dataclass(frozen=True)
class Atlas:
    """Every image of a Mountain Car. The arrays are those of the file."""

    keys: np.ndarray
    background: np.ndarray
    patches: Patches
    spec: Spec = NO_SPEC

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {name: number for number, name in enumerate(key_bytes(self.keys))}

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the index of each key's image, (n,) int64, or -1 if the atlas lacks it."""
        return np.array([self._numbers.get(name, -1) for name in key_bytes(keys)], np.int64)


def key_bytes(keys: np.ndarray) -> list[bytes]:
    """Return each row of `keys`, (n, k) integers, as bytes that a dict can look up."""
    data, length = keys.astype(np.int16).tobytes(), 2 * keys.shape[1]
    return [data[start : start + length] for start in range(0, len(data), length)]


def draw_atlas(env: str, spec: Spec = NO_SPEC) -> Atlas:
    """Render every image of a Mountain Car."""
    keys = style.all_keys(env)
    background, images = style.draw_frames(env, keys)
    return Atlas(keys.astype(np.int16), background, cut_patches(background, images), spec)


def write_atlas(path: str | os.PathLike, atlas: Atlas) -> None:
    """Write an atlas file. Equal atlases give equal bytes."""
    arrays = {"spec": np.array(atlas.spec.text), "keys": atlas.keys, "background": atlas.background}
    patches = {"boxes": atlas.patches.boxes, "pixels": atlas.patches.pixels}
    npz.write(path, npz.header(_KIND, VERSION) | arrays | patches)


def read_atlas(path: str | os.PathLike) -> Atlas:
    """Read an atlas file. Raises GoalreelError, naming the file, if it is unusable."""
    arrays = npz.read(path, _KIND, VERSION)
    patches = Patches(arrays["boxes"], arrays["pixels"])
    spec = parse_spec(str(arrays["spec"]), path)
    return Atlas(arrays["keys"], arrays["background"], patches, spec)


def state_keys(trajectories, env: str) -> np.ndarray:
    """Return the key of each state of a shard, (states, k) int64, in Gymnasium's precision."""
    positions = trajectories.states[:, 0]
    if not describe(env).float32_states:
        return style.keys(positions)
    keys, resets = style.keys(positions.astype(np.float32)), trajectories.offsets[:-1]
    keys[resets] = style.keys(positions[resets])  # only the reset state is float64
    return keys
