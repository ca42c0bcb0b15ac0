"""CAVLC code tables as arrays: each pair of arrays holds codeword lengths in bits and values.

Source: Rec. ITU-T H.264, Tables 9-5 (coeff_token), 9-7 and 9-8 (total_zeros of 4x4 blocks), 9-9(a)
(total_zeros of 4:2:0 chroma DC), 9-10 (run_before) and 9-4 (coded_block_pattern, inter).
"""

import numpy as np

# coeff_token. Row: total_coeff from 0, column: trailing_ones from 0, ".": no codeword. Tables for
# 0 <= nC < 2, 2 <= nC < 4, 4 <= nC < 8, 8 <= nC (six bits each) and nC = -1 (chroma DC).
_TOKEN_LENGTHS = [
    "1... 62.. 863. 9875 A986 BA97 DBA8 DDB9 DDDA EEDB EEED FFEE FFFE GFFF GGGF GGGG GGGG",
    "2... 62.. 653. 7664 8664 8775 9886 B996 BBB7 CBB9 CCCB CCCB DDDC DDDD DEDD EEED EEEE",
    "4... 64.. 654. 6554 7554 7554 7664 7664 8775 8876 9887 9988 9998 A999 AAAA AAAA AAAA",
    "6... 66.. 666. 6666 6666 6666 6666 6666 6666 6666 6666 6666 6666 6666 6666 6666 6666",
    "2... 61.. 663. 6776 6887",
]
_TOKEN_VALUES = [
    "1... 51.. 741. 7653 7653 7654 F654 BE54 8AD4 FE94 BADC FE9C BAD8 F19C BED8 7A9C 4658",
    "3... B2.. 773. 7A95 7654 4656 7658 F654 BED4 FA94 BEDC 8A98 FEDC BA9C 7B68 98A1 7654",
    "F... FE.. BFD. 8CEC FABB B89A 9ED9 8A98 FEDD BEAC FADC BE9C 8AD8 D79C 9CBA 5876 1432",
    None,
    "1... 71.. 461. 3325 2320",
]
# total_zeros. Row: total_coeff from 1, column: total_zeros from 0.
_ZEROS_LENGTHS = (
    "1334455667788999 333334444556666 43334433455656 5344333434555 444333334545 65333333436 "
    "6533323436 645322336 66422325 5532224 443313 44213 3312 221 11"
)
_ZEROS_VALUES = (
    "1323232323232321 765435432323210 57654343232110 3754654332210 543765432110 11765432110 "
    "1154332110 111332210 10132111 1013211 011213 01111 0111 011 01"
)
_DC_ZEROS_LENGTHS, _DC_ZEROS_VALUES = "1233 122 11", "1110 110 10"
# run_before. Row: zerosLeft from 1 to 7 (and more), column: run_before from 0.
_RUN_LENGTHS = "11 122 2222 22233 223333 2333333 3333333456789AB"
_RUN_VALUES = "10 110 3210 32110 323210 3013254 765432111111111"


def _digits(rows: str) -> np.ndarray:
    """Parse rows of base-17 digits into a table, with 0 for missing entries."""
    texts = rows.split()
    table = np.zeros((len(texts), max(map(len, texts))), np.int64)
    for row, text in zip(table, texts, strict=True):
        row[: len(text)] = [0 if digit == "." else int(digit, 17) for digit in text]
    return table


def _tokens() -> tuple[np.ndarray, np.ndarray]:
    """Return the lengths and values of coeff_token: [table, total_coeff, trailing_ones]."""
    lengths, values = np.zeros((2, 5, 17, 4), np.int64)
    for table, (length, value) in enumerate(zip(_TOKEN_LENGTHS, _TOKEN_VALUES, strict=True)):
        rows = _digits(length)
        lengths[table, : len(rows)] = rows
        if value is not None:
            values[table, : len(rows)] = _digits(value)
    # Four bits of total_coeff - 1, then two of trailing_ones. 000011 is total_coeff 0.
    values[3] = np.maximum(np.arange(17)[:, None] - 1, 0) * 4 + np.arange(4)
    values[3, 0, 0] = 3
    return lengths, values


TOKEN_LENGTHS, TOKEN_VALUES = _tokens()
ZEROS_LENGTHS, ZEROS_VALUES = _digits(_ZEROS_LENGTHS), _digits(_ZEROS_VALUES)
DC_ZEROS_LENGTHS, DC_ZEROS_VALUES = _digits(_DC_ZEROS_LENGTHS), _digits(_DC_ZEROS_VALUES)
RUN_LENGTHS, RUN_VALUES = _digits(_RUN_LENGTHS), _digits(_RUN_VALUES)
# coded_block_pattern of an inter macroblock by codeNum. PATTERN_CODES is the inverse.
_INTER_PATTERNS = (
    *(0, 16, 1, 2, 4, 8, 32, 3, 5, 10, 12, 15, 47, 7, 11, 13),
    *(14, 6, 9, 31, 35, 37, 42, 44, 33, 34, 36, 40, 39, 43, 45, 46),
    *(17, 18, 20, 24, 19, 21, 26, 28, 23, 27, 29, 30, 22, 25, 38, 41),
)
PATTERN_CODES = np.argsort(_INTER_PATTERNS)
