"""Captions are readable, agree with the tables, and reject unknown fields and characters."""

import numpy as np
import pytest
from PIL import ImageFont

from goalreel.errors import GoalreelError
from goalreel.rendering.captions import CHARACTERS, caption, check_template
from goalreel.rendering.text import draw_text


def test_captions_accept_exactly_the_characters_of_the_font():
    font = ImageFont.load_default(40)
    missing = font.getmask("雪").getbbox(), bytes(font.getmask("雪"))
    for character in CHARACTERS.strip():
        mask = font.getmask(character)
        assert (mask.getbbox(), bytes(mask)) != missing, character
    for text in ("é", "雪", "–", "a\nb"):
        marks = text.translate(dict.fromkeys(map(ord, set(text) - set(CHARACTERS)), "?"))
        assert np.array_equal(
            *(draw_text(t, 16, (0, 0, 0), (255, 255, 255)) for t in (text, marks))
        )


def test_long_line_is_scaled_to_fit_its_room():
    text = "Reach 999999 · seed 9007199254740991 · 200 steps"
    wide = draw_text(text, 18, (0, 0, 0), (255, 255, 255))
    narrow = draw_text(text, 18, (0, 0, 0), (255, 255, 255), width=300)
    assert wide.shape[1] > 300 >= narrow.shape[1] > 270 and wide.shape[0] == narrow.shape[0]
    cut = draw_text(text, 18, (0, 0, 0), (255, 255, 255), width=60)
    assert cut.shape[1] <= 60
    assert np.array_equal(cut, draw_text("Reach 999999…", 18, (0, 0, 0), (255, 255, 255), width=60))


@pytest.mark.parametrize(
    ("template", "parts"),
    [
        ("Reach {reach", ["is not a template", "'}'"]),
        ("Reach reach}", ["is not a template", "'}'"]),
        ("{}", ["Unknown field ''"]),
        ("{sede}", ["Unknown field 'sede'", "Did you mean 'seed'?"]),
        ("{seed.__class__}", ["Unknown field 'seed.__class__'"]),
        ("{reach:{seed}}", ["has a field in its width. Write a number"]),
        ("{seed[0]}", ["Unknown field 'seed[0]'"]),
        ("{env:d}", ["cannot be formatted"]),
        ("{seed:c}", ["cannot be formatted"]),
        ("{attempt:c}", ["The font has no '\\x00'"]),
        ("{steps:1000000000}", ["is too long", "widths below 1000"]),
        ("W" * 301, ["is too long", "300 characters"]),
    ],
)
def test_wrong_template_raises(template, parts):
    with pytest.raises(GoalreelError) as error:
        check_template(template)
    for part in parts:
        assert part in str(error.value)


def test_caption_fills_in_the_columns_of_the_episode():
    row = {"reach": 3, "return": -110.0, "initial_position": -0.51234}
    row |= {"reached": True, "terminated": False, "truncated": True}
    row["info"] = {"return_left": 1.0, "return_right": -0.123456}
    template = "Reach {reach} {{{return:.0f}}} from {initial_position:+.3f}"
    check_template(template)
    check_template("Filmed: 2025")
    check_template("")
    assert caption(template, row, "Car-v0", "reach") == "Reach 3 {-110} from -0.512"
    template = "{env} {episode}: {outcome}"
    assert caption(template, row, "Car-v0", "reach") == "Car-v0 3: reached"
    assert caption(template, row, "Car-v0", "episode") == "Car-v0 3: truncated"
    assert caption("{outcome}", row | {"truncated": False}, "Car-v0", "episode") == "stopped"
    assert caption("{info}", row, "Car-v0", "reach") == "return_left 1 · return_right -0.1235"
