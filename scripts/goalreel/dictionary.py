"""The dictionary: every picture of an atlas coded once, as an H.264 slice that fits any place.

It is a non-reference P slice that refers to the title card, an IDR picture, and to nothing else.
So it depends on the atlas, the quality and the rows that it covers, and is kept in the user's
cache folder across runs. The file is a compressed .npz without objects:

    kind, version     "dictionary" and the version of this layout
    spec              JSON: how the file was made
    digests           (pictures, 16) uint8, layers.Patches.digests of the atlas
    slices, offsets   the pictures' slices end to end, as assembly.ordered; (pictures + 1,)
    quantisers        of the pictures and of the card
    rows              macroblock rows: of the captions' slice at the top, of the pictures' slices
    colours           (colours, 3, 2) int16, weights, see h264.prediction
    luma, blue, red   the empty card as it decodes, in whole macroblocks, uint8
    card, bits        the card's two I slices, captions' rows and those below: packed bits, (2,)

How patches are coded is told in h264.inter; what films are made of it, in assembled.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from goalreel import npz
from goalreel.assembly import ordered
from goalreel.atlas import Atlas
from goalreel.errors import GoalreelError
from goalreel.h264.inter import code_patches
from goalreel.h264.intra import code_intra, decode, pad16, planes, rows
from goalreel.h264.macroblocks import SIDE, Planes, Region
from goalreel.h264.nal import annex_b
from goalreel.h264.parameter_sets import Stream, pps, sps
from goalreel.h264.prediction import plain
from goalreel.h264.slices import SliceHeader, slice_nal
from goalreel.yuv import patch_planes, planar

VERSION = 1
_KIND = "dictionary"
_COLOURS = 2  # beside the track; more would cost more in every slice header than they save
_ARRAYS = {"spec": "U", "digests": "u", "slices": "u", "offsets": "i", "quantisers": "i"}
_ARRAYS |= {"rows": "i", "colours": "i", "luma": "u", "blue": "u", "red": "u"}
_ARRAYS |= {"card": "u", "bits": "i"}


@dataclass(frozen=True)
class Dictionary:
    """Coded pictures, and the track that they refer to.

    slices: of each digest, its slice; order: the bit in each at which its order begins; rows,
    quantisers, colours: see the module's docstring; planes: the card as it decodes; card: the data
    of its two I slices, bits as uint8
    """

    slices: Mapping[bytes, bytes]
    quantisers: tuple[int, int]
    rows: tuple[int, int]
    colours: tuple
    planes: Planes
    card: tuple[np.ndarray, np.ndarray]
    spec: str = "{}"

    @property
    def region(self) -> Region:
        """The macroblocks of the pictures' slices."""
        columns = self.planes[0].shape[1] // SIDE
        return Region(0, 0, self.rows[1], columns, columns)

    @property
    def header(self) -> SliceHeader:
        """The header of the pictures' slices."""
        return SliceHeader("P", 0, 1, qp=self.quantisers[0], colours=self.colours)


def build(
    atlas: Atlas,
    card: np.ndarray,
    quantisers: tuple[int, int],
    rows_: tuple[int, int],
    spec: str = "{}",
) -> Dictionary:
    """Code every picture of an atlas.

    card: (H, W, 3) uint8, the track with all that is on every title card. quantisers, rows_: see
    the module's docstring. Raises GoalreelError if pictures reach below their rows, or ffmpeg
    fails.
    """
    boxes = atlas.patches.boxes
    lowest = int((boxes[:, 0] + boxes[:, 2]).max())
    if lowest > SIDE * rows_[1] and SIDE * rows_[1] < atlas.background.shape[0]:
        raise GoalreelError(
            f"pictures reach down to row {lowest}, their slices to {SIDE * rows_[1]}; "
            f"choose encode.encoder: x264, no HUD, or another size"
        )
    slices_ = _code_card(card, quantisers[1], rows_[0])
    wanted = planes(pad16(planar(card)))
    decoded = planes(_decoded(slices_, wanted[0].shape, rows_[0], quantisers[1]))
    patches = patch_planes(atlas.patches)
    colours = _colours(patches, wanted)
    made = Dictionary({}, quantisers, rows_, colours, decoded, slices_, spec)
    data = code_patches(decoded, wanted, patches, made.region, quantisers[0], colours)
    slices = (ordered(made.header, bits) for bits in data)
    digests = atlas.patches.digests()
    return Dictionary(
        dict(zip(digests, slices, strict=True)),
        *(quantisers, rows_, colours, decoded, slices_, spec),
    )


def _code_card(card: np.ndarray, qp: int, caption_rows: int) -> tuple:
    """Return the data of the card's I slices: the captions' rows, and those below."""
    picture = pad16(planar(card))
    height, width = picture.shape[0] * 2 // 3, picture.shape[1]
    cuts = ((0, SIDE * caption_rows), (SIDE * caption_rows, height))
    parts = (code_intra([rows(picture, a, b)], (width, b - a), qp, thorough=True) for a, b in cuts)
    return tuple(part.data for (part,) in parts)


def _decoded(card: tuple, shape: tuple[int, int], caption_rows: int, qp: int) -> np.ndarray:
    """Return the card as it decodes, whole macroblocks in yuv420p."""
    size = shape[1], shape[0]
    starts = (0, caption_rows * size[0] // SIDE)
    slices = [
        slice_nal(SliceHeader("I", first, idr_pic_id=0, ref_idc=3, qp=qp), data)
        for first, data in zip(starts, card, strict=True)
    ]
    stream = Stream(size, 1)
    return decode(annex_b([sps(stream), pps(), *slices]), size)[0]


def _colours(patches: list, wanted: Planes) -> tuple:
    """Return the weights of the colours that most of the patches' pixels have.

    Only colours of whole 2x2 blocks count, as chroma has no finer ones.
    """
    under = _most_frequent([_packed(*wanted)], 1)[0]
    parts = [_packed(*(samples for _, samples in patch)) for patch in patches]
    found = [colour for colour in _most_frequent(parts, _COLOURS + 1) if colour != under]
    return tuple(plain(_unpacked(c), _unpacked(under)) for c in found[:_COLOURS])


def _packed(luma: np.ndarray, blue: np.ndarray, red: np.ndarray) -> np.ndarray:
    """Return the colours of 2x2 blocks of equal luma as (n,) integers."""
    corner = luma[::2, ::2]
    even = (corner == luma[1::2, ::2]) & (corner == luma[::2, 1::2]) & (corner == luma[1::2, 1::2])
    packed = corner.astype(np.int64) << 16 | blue.astype(np.int64) << 8 | red
    return packed[even]


def _unpacked(colour: int) -> tuple[int, int, int]:
    return colour >> 16, colour >> 8 & 255, colour & 255


def _most_frequent(parts: list[np.ndarray], count: int) -> list[int]:
    colours, counts = np.unique(np.concatenate(parts), return_counts=True)
    # Of equally frequent ones the smaller: nothing may hang on the sort's whims.
    return colours[np.lexsort((colours, -counts))][:count].tolist()


def write_dictionary(path: str | os.PathLike, dictionary: Dictionary) -> None:
    """Write a dictionary file; the same dictionary gives the same bytes."""
    slices = list(dictionary.slices.values())
    arrays = {
        "spec": np.array(dictionary.spec),
        "digests": np.frombuffer(b"".join(dictionary.slices), np.uint8).reshape(-1, 16),
        "slices": np.frombuffer(b"".join(slices), np.uint8),
        "offsets": np.cumsum([0, *map(len, slices)]),
        "quantisers": np.array(dictionary.quantisers),
        "rows": np.array(dictionary.rows),
        "colours": np.array(dictionary.colours, np.int16).reshape(-1, 3, 2),
        "card": np.concatenate([np.packbits(data) for data in dictionary.card]),
        "bits": np.array([len(data) for data in dictionary.card]),
    }
    planes_ = dict(zip(("luma", "blue", "red"), dictionary.planes, strict=True))
    npz.write(path, npz.header(_KIND, VERSION) | arrays | planes_)


def read_dictionary(path: str | os.PathLike) -> Dictionary:
    """Read a dictionary file. Raises GoalreelError, naming the file, if it cannot be used."""
    arrays = npz.read(path, _KIND, VERSION, _ARRAYS)
    npz.check(path, _fits(arrays), "its arrays do not fit together")
    slices, bounds = arrays["slices"].tobytes(), arrays["offsets"].tolist()
    cut = zip(bounds, bounds[1:], strict=False)
    first, second = arrays["bits"].tolist()
    middle = -(-first // 8)
    return Dictionary(
        {d.tobytes(): slices[a:b] for d, (a, b) in zip(arrays["digests"], cut, strict=True)},
        tuple(arrays["quantisers"].tolist()),
        tuple(arrays["rows"].tolist()),
        tuple(tuple(map(tuple, colour)) for colour in arrays["colours"].tolist()),
        (arrays["luma"], arrays["blue"], arrays["red"]),
        (
            np.unpackbits(arrays["card"][:middle], count=first),
            np.unpackbits(arrays["card"][middle:], count=second),
        ),
        str(arrays["spec"]),
    )


def _fits(arrays: Mapping[str, np.ndarray]) -> bool:
    offsets, bits, luma = arrays["offsets"], arrays["bits"], arrays["luma"]
    half = tuple(length // 2 for length in luma.shape)
    shapes = (arrays["quantisers"].shape, arrays["rows"].shape, bits.shape)
    return bool(
        shapes == ((2,), (2,), (2,))
        and arrays["digests"].shape == (len(offsets) - 1, 16)
        and offsets[0] == 0
        and (np.diff(offsets) > 0).all()
        and offsets[-1] == len(arrays["slices"])
        and arrays["colours"].shape[1:] == (3, 2)
        and luma.ndim == 2
        and luma.shape[0] % SIDE == luma.shape[1] % SIDE == 0
        and arrays["blue"].shape == arrays["red"].shape == half
        and 0 < arrays["rows"][0] < arrays["rows"][1] <= luma.shape[0] // SIDE
        and (bits > 0).all()
        and (-(-bits // 8)).sum() == len(arrays["card"])
    )
