"""The HUD of assembled films: the rows below the pictures, cut into columns for each of its fields.

Every row of macroblocks of a field is a slice of its own, so that step, return and velocity each
have few pictures and combine freely. They are coded with a shard, since the values that it shows
are known only then. The card holds the HUD as at the reset, and a slice what has changed.
"""

import numpy as np

from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.sample_parts import PartStore
from goalreel.encoding.yuv import pasted, patch_planes, whole_planes
from goalreel.h264.inter import code_patches
from goalreel.h264.macroblocks import SIDE, Patch, Planes, Region
from goalreel.h264.slices import SliceHeader
from goalreel.rendering.layers import Layer


def hud_slices(
    layers: list[Layer], background: np.ndarray, coded_atlas: CodedAtlas, store: PartStore
) -> list[np.ndarray]:
    """Code the HUD below the pictures' slices.

    Args:
        layers: the HUD, each with a patch on every frame. Without any the pictures' slices reach
            to the end, and there is nothing to code.
        background: the empty track, (H, W, 3) uint8.
        coded_atlas: the pictures, and the card that slices refer to.
        store: takes the parts.

    Returns:
        For each slice the part of each frame, (frames,) int64.
    """
    if not layers:
        return []
    track = whole_planes(background)
    rows, columns = (length // SIDE for length in track[0].shape)
    fields = [(*span, *_values(members, track)) for *span, members in _fields(layers, columns)]
    qp = sum(coded_atlas.quantizers) // 2  # as coarse as a car, letters would have dirty edges
    parts = []
    for row in range(coded_atlas.rows[1], rows):
        for left, right, patches, index in fields:
            region = Region(row, left, 1, right - left, columns)
            header = SliceHeader("P", region.first, qp=qp)
            data = code_patches(coded_atlas.planes, track, patches, region, qp)
            parts.append(np.array([store.add_slice(header, bits) for bits in data])[index])
    return parts


def _fields(layers: list[Layer], columns: int) -> list[tuple]:
    """Return the fields from left to right; layers that share a macroblock share a field.

    Each over all rows of the HUD: from which column of macroblocks, to which, and its layers.
    """
    spans: list[tuple[int, int, tuple[Layer, ...]]] = []
    for layer in sorted(layers, key=lambda layer: layer.patches.boxes[:, 1].min() // SIDE):
        _, start, _, width = layer.patches.boxes.T
        left, right = int(start.min()) // SIDE, -(-int((start + width).max()) // SIDE)
        if spans and left < spans[-1][1]:
            start, end, others = spans.pop()
            spans.append((start, max(end, right), (*others, layer)))
        else:
            spans.append((left, right, (layer,)))
    borders = [0, *(left for left, _, _ in spans[1:]), columns]
    return list(zip(borders, borders[1:], (members for _, _, members in spans), strict=False))


def _values(layers: tuple[Layer, ...], track: Planes) -> tuple[list[Patch], np.ndarray]:
    """Return a field's distinct pictures, each a patch over all its layers, and each frame's."""
    code = np.zeros(len(layers[0].index), np.int64)
    for layer in layers:
        code = code * len(layer.patches) + layer.index
    _, first, index = np.unique(code, return_index=True, return_inverse=True)
    members = [(patch_planes(layer.patches), layer.index[first]) for layer in layers]
    boxes = np.concatenate([layer.patches.boxes for layer in layers])
    top, left = boxes[:, :2].min(axis=0).tolist()
    bottom, right = (boxes[:, :2] + boxes[:, 2:]).max(axis=0).tolist()
    box = slice(top, bottom), slice(left, right)
    return [
        pasted(track, box, [patches[numbers[n]] for patches, numbers in members])
        for n in range(len(first))
    ], index
