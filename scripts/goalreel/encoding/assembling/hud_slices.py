"""Code the HUD of assembled films, the rows below the pictures, one field at a time.

Every macroblock row of a field is its own slice, so that step, return and velocity combine freely
and each has few values to code. HUD slices are coded per shard, because only a shard knows its
values. The empty track has the HUD of the reset state, and the slices refer to it.
"""

import numpy as np

from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.sample_parts import PartStore
from goalreel.encoding.yuv import paste_patches, patch_planes, whole_planes
from goalreel.h264.inter import code_patches
from goalreel.h264.macroblocks import SIDE, Patch, Planes, Region
from goalreel.h264.slices import SliceHeader
from goalreel.rendering.layers import Layer


def hud_slices(
    layers: list[Layer], background: np.ndarray, coded_atlas: CodedAtlas, store: PartStore
) -> list[np.ndarray]:
    """Code the HUD below the picture slices into the store.

    `layers` are those of the HUD, each with a patch in every frame, and `background` is the empty
    track, (H, W, 3) uint8. Returns an array per slice: the part number of each frame, (frames,).
    """
    track = whole_planes(background)
    rows, columns = (length // SIDE for length in track[0].shape)
    fields = [(*span, *_values(members, track)) for *span, members in _fields(layers, columns)]
    qp = sum(coded_atlas.quantizers) // 2  # the QP of the car would smear the edges of letters
    parts = []
    for row in range(coded_atlas.rows[1], rows):
        for left, right, patches, index in fields:
            region = Region(row, left, 1, right - left, columns)
            header = SliceHeader("P", region.first, qp=qp)
            data = code_patches(coded_atlas.planes, track, patches, region, qp)
            parts.append(np.array([store.add_slice(header, bits) for bits in data])[index])
    return parts


def _fields(layers: list[Layer], columns: int) -> list[tuple]:
    """Return (first column, end column, layers), in macroblocks, of fields from left to right."""
    # Layers that share a macroblock share a field.
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
    """Return the distinct values of a field as patches, and the value index of each frame."""
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
        paste_patches(track, box, [patches[numbers[n]] for patches, numbers in members])
        for n in range(len(first))
    ], index
