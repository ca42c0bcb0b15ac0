"""Code the pictures of an atlas, and the empty track that they refer to, as H.264 slices."""

from dataclasses import replace

import numpy as np

from goalreel.encoding import ffmpeg
from goalreel.encoding.assembling.coded_atlas import CodedAtlas
from goalreel.encoding.assembling.intra_slices import code_strips
from goalreel.encoding.assembling.sample_parts import to_part
from goalreel.encoding.yuv import cut_rows, patch_planes, planes, whole_planes
from goalreel.h264.bits import annex_b
from goalreel.h264.inter import code_patches
from goalreel.h264.macroblocks import SIDE, Planes
from goalreel.h264.parameter_sets import StreamParameters, pps, sps
from goalreel.h264.prediction import plain_color
from goalreel.h264.slices import SliceHeader, slice_nal
from goalreel.provenance.spec import NO_SPEC, Spec
from goalreel.rendering.atlas import Atlas

_COLORS = 2  # plain-color references, as more cost more in slice headers than they save


def code_atlas(
    atlas: Atlas,
    card: np.ndarray,
    clear: tuple[int, int],
    quantizers: tuple[int, int],
    spec: Spec = NO_SPEC,
) -> CodedAtlas:
    """Code every picture of an atlas. Raises GoalreelError if ffmpeg fails.

    `card` is the empty track, (H, W, 3) uint8, see overlay.empty_track, and `clear` the (start,
    end) of the pixel rows between captions and HUD. `quantizers` are the QP of the pictures and of
    the track, 1 to 51.
    """
    track = whole_planes(card)
    captions, hud = clear
    # Macroblock rows of the caption slice and of the picture slices.
    cuts = -(-captions // SIDE), -(-hud // SIDE) if hud == len(card) else hud // SIDE
    # Two I slices of the track: above the row `cut` (captions) and below.
    cut = SIDE * cuts[0]
    parts = cut_rows(track, 0, cut), cut_rows(track, cut, len(track[0]))
    strips = (tuple(plane[None] for plane in part) for part in parts)
    slices = tuple(code_strips(strip, quantizers[1], thorough=True).unpack()[0] for strip in strips)
    decoded = planes(_decoded(slices, track[0].shape[::-1], cuts[0], quantizers[1]))
    patches = patch_planes(atlas.patches)
    colors = _colors(patches, track)
    empty = CodedAtlas({}, quantizers, cuts, colors, decoded, slices, spec)
    data = code_patches(decoded, track, patches, empty.region, quantizers[0], colors, cuts[0])
    parts = (to_part(empty.header, bits) for bits in data)
    return replace(empty, slices=dict(zip(atlas.patches.digests(), parts, strict=True)))


def _decoded(card: tuple, size: tuple[int, int], caption_rows: int, qp: int) -> np.ndarray:
    """Decode the card to yuv420p, (H * 3 / 2, W) uint8, in whole macroblocks."""
    starts = (0, caption_rows * size[0] // SIDE)
    slices = [
        slice_nal(SliceHeader("I", first, idr_pic_id=0, ref_idc=3, qp=qp), data)
        for first, data in zip(starts, card, strict=True)
    ]
    stream = StreamParameters(size, 1)
    arguments = ["-xerror", "-threads", "1", "-f", "h264", "-i", "pipe:0"]
    arguments += ["-f", "rawvideo", "-pix_fmt", "yuv420p", "pipe:1"]
    samples = ffmpeg.output(arguments, [annex_b([sps(stream), pps(stream), *slices])])
    return np.frombuffer(samples, np.uint8).reshape(-1, size[0])


def _colors(patches: list, track: Planes) -> tuple:
    """Return the weights of the most frequent colors of 2x2 pixels, chroma's unit, in patches."""
    under = _most_frequent([_packed(*track)], 1)[0]
    parts = [_packed(*(samples for _, samples in patch)) for patch in patches]
    others = [color for color in _most_frequent(parts, _COLORS + 1) if color != under]
    below, *above = ((c >> 16, c >> 8 & 255, c & 255) for c in (under, *others[:_COLORS]))
    return tuple(plain_color(color, below) for color in above)


def _packed(luma: np.ndarray, blue: np.ndarray, red: np.ndarray) -> np.ndarray:
    """Return the colors of the 2x2 blocks with equal luma as (n,) integers."""
    corner = luma[::2, ::2]
    even = (corner == luma[1::2, ::2]) & (corner == luma[::2, 1::2]) & (corner == luma[1::2, 1::2])
    packed = corner.astype(np.int64) << 16 | blue.astype(np.int64) << 8 | red
    return packed[even]


def _most_frequent(parts: list[np.ndarray], count: int) -> list[int]:
    colors, counts = np.unique(np.concatenate(parts), return_counts=True)
    # Ties are sorted by color, so that the order is the same everywhere.
    return colors[np.lexsort((colors, -counts))][:count].tolist()
