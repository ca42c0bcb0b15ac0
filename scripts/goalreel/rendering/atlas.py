"""The atlas: every distinct picture of a style, drawn once, and how a state finds its picture.

It depends on the environment, the style and the drawing libraries only, so it is kept in the
user's cache folder across runs. The file is a compressed .npz without objects:

    kind, version     "atlas" and the version of this layout
    spec              JSON: how the file was made
    keys              (pictures, k) int16, what the style's all_keys gives, sorted
    background        (H, W, 3) uint8, the empty track
    boxes, pixels     the pictures as patches (layers.Patches) over the track
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from goalreel.files import npz
from goalreel.provenance.spec import NO_SPEC, Spec, parse_spec
from goalreel.rendering.gymnasium_style import GymnasiumStyle
from goalreel.rendering.layers import Patches, cut_patches
from goalreel.rendering.vector_style import PALETTES, VectorStyle

Style = GymnasiumStyle | VectorStyle
VERSION = 1
_KIND = "atlas"


@dataclass(frozen=True)
class Atlas:
    """Every picture of a style; the arrays are those of the file."""

    keys: np.ndarray
    background: np.ndarray
    patches: Patches
    spec: Spec = NO_SPEC

    @cached_property
    def _pictures(self) -> dict[bytes, int]:
        return {name: picture for picture, name in enumerate(names_of(self.keys))}

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Return the picture of each key, (n,) int64; -1 where the atlas has none."""
        return np.array([self._pictures.get(name, -1) for name in names_of(keys)], np.int64)


def names_of(keys: np.ndarray) -> list[bytes]:
    """Return keys, (n, k) integers, as bytes to look them up by."""
    data, length = keys.astype(np.int16).tobytes(), 2 * keys.shape[1]
    return [data[start : start + length] for start in range(0, len(data), length)]


def make_style(env: str, render: Mapping) -> Style:
    """Return the style of a Mountain Car's pictures.

    render: that section of the configuration: style, width, height, palette.
    """
    if render["style"] == "gymnasium":
        return GymnasiumStyle(env)
    return VectorStyle(env, (render["width"], render["height"]), PALETTES[render["palette"]])


def draw_atlas(style: Style, spec: Spec = NO_SPEC) -> Atlas:
    """Draw every picture of a style."""
    keys = style.all_keys()
    background, pictures = style.draw(keys)
    return Atlas(keys.astype(np.int16), background, cut_patches(background, pictures), spec)


def write_atlas(path: str | os.PathLike, atlas: Atlas) -> None:
    """Write an atlas file; the same atlas gives the same bytes."""
    arrays = {"spec": np.array(atlas.spec.text), "keys": atlas.keys, "background": atlas.background}
    patches = {"boxes": atlas.patches.boxes, "pixels": atlas.patches.pixels}
    npz.write(path, npz.header(_KIND, VERSION) | arrays | patches)


def read_atlas(path: str | os.PathLike) -> Atlas:
    """Read an atlas file. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, _KIND, VERSION)
    patches = Patches(arrays["boxes"], arrays["pixels"])
    spec = parse_spec(str(arrays["spec"]), path)
    return Atlas(arrays["keys"], arrays["background"], patches, spec)


def state_keys(trajectories, style: Style) -> np.ndarray:
    """Return the key of each state of a shard, (states, k) int64, in Gymnasium's precision."""
    positions = trajectories.states[:, 0]
    keys = style.keys(positions.astype(np.float32) if style.float32_states else positions)
    if style.float32_states:  # the reset state alone is float64
        resets = trajectories.offsets[:-1]
        keys[resets] = style.keys(positions[resets])
    return keys
