"""Transform and quantize the residual of inter macroblocks into transform coefficient levels.

Each 4x4 block is independent of all others, except for chroma DC within its macroblock.
Source: Rec. ITU-T H.264, 8.5 (decoding); Malvar, Hallapuro, Karczewicz and Kerofsky,
"Low-complexity transform and quantization in H.264/AVC" (2003), for the forward direction.
"""

import numpy as np

_FORWARD = np.array([[1, 1, 1, 1], [2, 1, -1, -2], [1, -1, -1, 1], [1, -2, 2, -1]])
# Rows and columns in one product. All numbers stay below 2**24, so float32 is exact in any order of
# summation, and NumPy multiplies integer matrices ten times more slowly.
_BOTH = np.kron(_FORWARD, _FORWARD).T.astype(np.float32)
_MULTIPLIERS = [(13107, 5243, 8066), (11916, 4660, 7490), (10082, 4194, 6554)]
_MULTIPLIERS += [(9362, 3647, 5825), (8192, 3355, 5243), (7282, 2893, 4559)]
# Column of _MULTIPLIERS by position: both indices even, both odd, other (8.5.9).
_KIND = np.array([[0, 2, 0, 2], [2, 1, 2, 1], [0, 2, 0, 2], [2, 1, 2, 1]])
# 8.5.6, Figure 8-8: the frame (zigzag) scan, as raster indices of a 4x4 block.
ZIGZAG = np.array([0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15])
# Table 8-15: QPC for a qPI of 30 or more.
_CHROMA_QP = (29, 30, 31, 32, 32, 33, 34, 34, 35, 35, 36)
_CHROMA_QP += (36, 37, 37, 37, 38, 38, 38, 39, 39, 39, 39)
# A coefficient rounds up from 0.6 of a step: the best quality per byte of all tested, 0.5 to 0.83.
_ROUNDING = 0.4


def luma_levels(residual: np.ndarray, qp: int) -> np.ndarray:
    """Return the levels of (..., 4, 4) residuals, (..., 16) int32 in zigzag order."""
    levels = _quantize(_forward(residual), _multipliers(qp), 15 + qp // 6)
    return levels.reshape(*residual.shape[:-2], 16)[..., ZIGZAG]


def chroma_levels(residual: np.ndarray, qp: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the DC levels (n, 4) of a chroma plane, and its AC levels (n, 4, 15) in zigzag order.

    `residual` has the four blocks of each macroblock, (n, 4, 4, 4). `qp` is that of luma, for
    chroma_qp_index_offset 0.
    """
    qp = qp if qp < 30 else _CHROMA_QP[qp - 30]
    coefficients = _forward(residual)
    a, b, c, d = coefficients[:, :, 0, 0].T
    dc = np.stack([a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d], axis=1)  # Hadamard
    dc = _quantize(dc, _multipliers(qp)[0, 0], 16 + qp // 6)
    ac = _quantize(coefficients, _multipliers(qp), 15 + qp // 6).reshape(-1, 4, 16)
    return dc, ac[:, :, ZIGZAG[1:]]


def _forward(residual: np.ndarray) -> np.ndarray:
    # The stacked product is small per macroblock, so BLAS starts no threads for it.
    blocks = residual.reshape(*residual.shape[:-2], 16).astype(np.float32)
    return (blocks @ _BOTH).astype(np.int32).reshape(residual.shape)


def _quantize(coefficients: np.ndarray, multipliers: np.ndarray, bits: int) -> np.ndarray:
    # Chroma DC is the largest: 4 * 16 * 255 * 13107 plus the rounding stays below 2**31.
    levels = np.abs(coefficients)
    levels *= multipliers
    levels += int((1 << bits) * _ROUNDING)
    levels >>= bits
    return np.negative(levels, out=levels, where=coefficients < 0)


def _multipliers(qp: int) -> np.ndarray:
    return np.array(_MULTIPLIERS[qp % 6], np.int32)[_KIND]
