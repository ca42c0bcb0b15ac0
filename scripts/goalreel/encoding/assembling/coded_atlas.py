"""The coded atlas: every picture of an atlas coded once, as an H.264 slice that fits any place.

It is a non-reference P slice that refers to the title card, an IDR picture, and to nothing else.
So it depends on the atlas, the quality and the rows that it covers, and is kept in the user's
cache folder across runs. The file is a compressed .npz without objects:

    kind, version     "coded atlas" and the version of this layout
    spec              JSON: how the file was made
    digests           (pictures, 16) uint8, layers.Patches.digests of the atlas
    slices, offsets   the pictures' slices end to end, as sample_parts.ordered; (pictures + 1,)
    quantisers        of the pictures and of the card
    rows              macroblock rows: of the captions' slice at the top, of the pictures' slices
    colours           (colors, 3, 2) int16, weights, see h264.prediction
    luma, blue, red   the empty card as it decodes, in whole macroblocks, uint8
    card, bits        the card's two I slices, captions' rows and those below: packed bits, (2,)
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
    """Coded pictures, and the track that they refer to."""

    slices: Mapping[bytes, bytes]  # of each digest, its slice
    quantizers: tuple[int, int]  # of the pictures and of the card
    rows: tuple[int, int]  # of macroblocks: of the captions' slice, of the pictures' slices
    colors: tuple  # weights, see h264.prediction
    planes: Planes  # the card as it decodes
    card: tuple[np.ndarray, np.ndarray]  # the data of its two I slices, bits as uint8
    spec: Spec = NO_SPEC

    @property
    def region(self) -> Region:
        """The macroblocks of the pictures' slices."""
        columns = self.planes[0].shape[1] // SIDE
        return Region(0, 0, self.rows[1], columns, columns)

    @property
    def header(self) -> SliceHeader:
        """The header of the pictures' slices."""
        return SliceHeader("P", 0, qp=self.quantizers[0], colors=self.colors)


def write_coded_atlas(path: str | os.PathLike, coded_atlas: CodedAtlas) -> None:
    """Write a coded atlas file; the same coded atlas gives the same bytes."""
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
    """Read a coded atlas file. Raises GoalreelError, naming the file, if it cannot be used."""
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
