"""Read and write coded atlases: every picture of an atlas coded once as a P slice.

Each slice refers only to the empty track, an IDR picture, and no picture refers to it. It therefore
fits any frame of a film. A coded atlas depends on the atlas, the quality and the rows that its
slices cover, and is kept in the user's cache folder across runs.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goalreel.files import npz
from goalreel.h264.macroblocks import SIDE, Planes, Region
from goalreel.h264.slices import SliceHeader
from goalreel.provenance.spec import NO_SPEC, Spec, parse_spec

VERSION = 1
_KIND = "coded atlas"


@dataclass(frozen=True)
class CodedAtlas:
    """Coded pictures and the empty track that they refer to."""

    slices: Mapping[bytes, bytes]  # slice by digest of the picture
    quantizers: tuple[int, int]  # QP of the pictures and of the track
    rows: tuple[int, int]  # macroblock rows of the caption slice and of the picture slices
    colors: tuple  # weights from h264.prediction.plain_color
    planes: Planes  # the decoded track
    card: tuple[np.ndarray, np.ndarray]  # slice data of its two I slices, one bit per element
    spec: Spec = NO_SPEC

    @property
    def region(self) -> Region:
        """The macroblocks of the picture slices."""
        columns = self.planes[0].shape[1] // SIDE
        return Region(0, 0, self.rows[1], columns, columns)

    @property
    def header(self) -> SliceHeader:
        """The header of the picture slices."""
        return SliceHeader("P", 0, qp=self.quantizers[0], colors=self.colors)


def write_coded_atlas(path: str | os.PathLike, coded_atlas: CodedAtlas) -> None:
    """Write a coded atlas file; equal atlases give equal bytes."""
    slices = list(coded_atlas.slices.values())
    arrays = {
        "spec": np.array(coded_atlas.spec.text),
        "digests": np.frombuffer(b"".join(coded_atlas.slices), np.uint8).reshape(-1, 16),
        "slices": np.frombuffer(b"".join(slices), np.uint8),
        "offsets": np.cumsum([0, *map(len, slices)]),
        "quantisers": np.array(coded_atlas.quantizers),
        "rows": np.array(coded_atlas.rows),
        "colours": np.array(coded_atlas.colors, np.int16).reshape(-1, 3, 2),
        "card": np.concatenate([np.packbits(data) for data in coded_atlas.card]),
        "bits": np.array([len(data) for data in coded_atlas.card]),
    }
    planes_ = dict(zip(("luma", "blue", "red"), coded_atlas.planes, strict=True))
    npz.write(path, npz.header(_KIND, VERSION) | arrays | planes_)


def read_coded_atlas(path: str | os.PathLike) -> CodedAtlas:
    """Read a coded atlas file. Raises GoalreelError if it cannot be used."""
    arrays = npz.read(path, _KIND, VERSION)
    slices, bounds = arrays["slices"].tobytes(), arrays["offsets"].tolist()
    cut = zip(bounds, bounds[1:], strict=False)
    first, second = arrays["bits"].tolist()
    card = zip(np.split(arrays["card"], [-(-first // 8)]), (first, second), strict=True)
    return CodedAtlas(
        {d.tobytes(): slices[a:b] for d, (a, b) in zip(arrays["digests"], cut, strict=True)},
        tuple(arrays["quantisers"].tolist()),
        tuple(arrays["rows"].tolist()),
        tuple(tuple(map(tuple, color)) for color in arrays["colours"].tolist()),
        (arrays["luma"], arrays["blue"], arrays["red"]),
        tuple(np.unpackbits(packed, count=count) for packed, count in card),
        parse_spec(str(arrays["spec"]), path),
    )
