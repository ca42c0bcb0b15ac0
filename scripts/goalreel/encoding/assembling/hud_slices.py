"""The HUD of assembled films: the rows below the pictures, cut into a strip for each of its parts.

Every row of macroblocks of a strip is a slice of its own, so that step, return and velocity
combine freely. It is coded with a shard, since what a shard shows is
known only then. The card holds the HUD as at the reset, and a slice what has changed. What the HUD
says stands in hud.
"""

from dataclasses import dataclass

import numpy as np

from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.intra_slices import pad16, planes
from goalreel.encoding.assembling.sample_parts import Store
from goalreel.encoding.yuv import patch_planes, planar
from goalreel.h264.inter import code_patches
from goalreel.h264.macroblocks import SIDE, Patch, Planes, Region
from goalreel.h264.slices import SliceHeader
from goalreel.pictures.layers import Layer


@dataclass(frozen=True)
class _Strip:
    """Columns of macroblocks, from `left` to `right`, and the layers that stand in them."""

    left: int
    right: int
    layers: tuple[Layer, ...]


def strips(
    layers: list[Layer], background: np.ndarray, coded_atlas: CodedAtlas, store: Store
) -> list[np.ndarray]:
    """Return the parts of each frame below the pictures' slices: (frames,) int64 for each slice.

    layers: the HUD, each with a patch on every frame; without any there is nothing to return, as
    the pictures' slices reach to the end. background: the empty track, (H, W, 3) uint8.
    """
    if not layers:
        return []
    track = planes(pad16(planar(background)))
    rows, columns = (length // SIDE for length in track[0].shape)
    shown = [(strip, *_shown(strip, track)) for strip in _cut(layers, columns)]
    qp = sum(coded_atlas.quantisers) // 2  # as coarse as a car, letters would have dirty edges
    found = []
    for row in range(coded_atlas.rows[1], rows):
        for strip, patches, index in shown:
            region = Region(row, strip.left, 1, strip.right - strip.left, columns)
            header = SliceHeader("P", region.first, 1, qp=qp)
            data = code_patches(coded_atlas.planes, track, patches, region, qp)
            found.append(np.array([store.add(header, bits) for bits in data])[index])
    return found


def _cut(layers: list[Layer], columns: int) -> list[_Strip]:
    """Return the strips from left to right; layers that share a macroblock share a strip."""
    spans: list[tuple[int, int, tuple[Layer, ...]]] = []
    for left, right, layer in sorted(map(_span, layers), key=lambda span: span[0]):
        if spans and left < spans[-1][1]:
            start, end, others = spans.pop()
            spans.append((start, max(end, right), (*others, layer)))
        else:
            spans.append((left, right, (layer,)))
    borders = [0, *(left for left, _, _ in spans[1:]), columns]
    parts = zip(borders, borders[1:], spans, strict=False)
    return [_Strip(left, right, held) for left, right, (_, _, held) in parts]


def _span(layer: Layer) -> tuple[int, int, Layer]:
    """Return the columns of macroblocks that a layer touches, from and to, and the layer."""
    _, left, _, width = layer.patches.boxes.T
    return int(left.min()) // SIDE, -(-int((left + width).max()) // SIDE), layer


def _shown(strip: _Strip, track: Planes) -> tuple[list[Patch], np.ndarray]:
    """Return what a strip shows, each a patch over all of its layers, and each frame's number."""
    code = np.zeros(len(strip.layers[0].index), np.int64)
    for layer in strip.layers:
        code = code * len(layer.patches) + layer.index
    _, first, index = np.unique(code, return_index=True, return_inverse=True)
    held = [(patch_planes(layer.patches), layer.index[first]) for layer in strip.layers]
    boxes = np.concatenate([layer.patches.boxes for layer in strip.layers])
    top, left = boxes[:, :2].min(axis=0).tolist()
    bottom, right = (boxes[:, :2] + boxes[:, 2:]).max(axis=0).tolist()
    box = (slice(top, bottom), slice(left, right))
    half = (slice(top // 2, bottom // 2), slice(left // 2, right // 2))
    return [
        _over(track, (box, half, half), [patches[numbers[n]] for patches, numbers in held])
        for n in range(len(first))
    ], index


def _over(track: Planes, boxes: tuple, patches: list[Patch]) -> Patch:
    """Return a box of the track with patches over it, as one patch."""
    united = []
    for number, (plane, box) in enumerate(zip(track, boxes, strict=True)):
        samples = plane[box].copy()
        for place, shown in (patch[number] for patch in patches):
            inner = tuple(
                slice(p.start - b.start, p.stop - b.start) for p, b in zip(place, box, strict=True)
            )
            samples[inner] = shown
        united.append((box, samples))
    return united
