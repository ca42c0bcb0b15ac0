"""Text put together from letters: the same pixels as Pillow's."""

import numpy as np
import pytest

from goalreel.pictures.captions import CHARACTERS
from goalreel.pictures.text import draw_text, text_mask

WHITE, BLACK = (255, 255, 255), (0, 0, 0)


def texts(count):
    draw = np.random.default_rng(2025)
    for _ in range(count):
        yield "".join(draw.choice(list(CHARACTERS), draw.integers(1, 40)))
        reach, seed, steps = draw.integers([10**6, 2**53, 200]).tolist()
        yield f"Reach {reach} · seed {seed} · {steps} steps"


@pytest.mark.parametrize("size", [8, 13.5, 15.0, 18.0, 36.0])
@pytest.mark.parametrize("width", [None, 90])
def test_letters_that_are_drawn_once_make_the_same_text_as_pillow_draws(size, width):
    for text in texts(100):
        drawn = draw_text(text, size, WHITE, BLACK, width)[:, :, 0]
        assert np.array_equal(text_mask(text, size, width), drawn), text
