"""Which encoder makes the film, with what settings, and why: the section `encode`, resolved.

Imported while the Snakefile is parsed, so without NumPy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from goalreel.environments.registry import describe

# For each quality, of assembled films: the quantizers of the car and of the title card.
_ASSEMBLED = {"small": (38, 24), "balanced": (34, 20), "best": (26, 14)}
# The same of what Gymnasium draws: of macroblocks that change, and of an episode's first picture;
# benchmarks/film/encoding.py holds them against x264's.
_BLOCKS = {"small": (29, 17), "balanced": (25, 12), "best": (18, 8)}
# For each quality, of x264: preset and quantizer.
_X264 = {"small": ("veryfast", 28), "balanced": ("veryfast", 23), "best": ("veryfast", 17)}
# Of what Gymnasium draws: 12 to 45% less time, 1.02 to 1.54 times (FrozenLake 2.07) the bytes, PSNR
# from 1.7 dB lower to 9 dB higher (benchmarks/results/presets.md). Mountain Cars are assembled:
# whoever asks for x264 there gets the smaller file.
_X264_DRAWN = _X264 | {"balanced": ("ultrafast", 23)}
_ONLY_X264 = ("preset", "qp", "crf")
MOST_PICTURES = 1 << 14  # of an assembled episode, title card included; as in sample_parts
# Mountain Car's scene is 400 units tall and 600 wide; the car comes no lower than this row of it,
# its wheels' edges included, and the HUD begins so many rows from the picture's lower border.
_ROWS, _COLUMNS, _LOWEST, _HUD_ROWS, _SMALLEST = 400, 600, 366, 26, 8 / 15
_MACROBLOCK = 16
# It comes no higher than this row; the caption begins so many rows from the upper border and, where
# its letters are the smallest, ends so many pixels below that.
_HIGHEST, _CAPTION_ROWS, _LETTERS, _SMALLEST_LETTERS = 34, 7, 12, 8 / 18


@dataclass(frozen=True)
class EncoderChoice:
    """How a film is encoded."""

    assembled: bool  # whether it is joined from a coded atlas's pictures, not coded shard by shard
    settings: Mapping  # `film_encoder` in the specs
    reason: str  # why it is not assembled, "" if it is or x264 was asked for
    label: str  # all that in a few words


def choose(config: Mapping) -> EncoderChoice:
    """Return how the film of a complete, checked configuration is encoded."""
    encode, reason, environment = config["encode"], "", describe(config["env"])
    if encode["encoder"] != "x264":
        reason = next((why for _, why in encoder_errors(config)), "")
        if encode["encoder"] == "auto" and not (environment.has_atlas or environment.few_blocks):
            reason = reason or "much of a picture of this environment may be new"
        if not reason:
            has_atlas = environment.has_atlas
            qp, card = (_ASSEMBLED if has_atlas else _BLOCKS)[encode["quality"]]
            settings = {"encoder": "assemble" if has_atlas else "blocks", "qp": qp, "card_qp": card}
            what = "pictures" if has_atlas else "blocks"
            return EncoderChoice(has_atlas, settings, "", f"assembled from H.264 {what}, qp {qp}")
    settings = x264(config)
    values = ", ".join(f"{key} {value}" for key, value in settings.items() if key != "encoder")
    why = f" (not assembled: {reason})" if reason else ""
    return EncoderChoice(False, settings, reason, f"x264, {values}{why}")


def encoder_errors(config: Mapping) -> Iterator[tuple[str, str]]:
    """Yield why a film cannot be assembled: the option, and the reason in a few words."""
    encode, overlay = config["encode"], config["overlay"]
    for key in _ONLY_X264:
        if encode[key] is not None:
            yield f"encode.{key}", f"{key} is an option of x264"
    if not describe(config["env"]).has_atlas:
        return
    if overlay["hud"] and not _hud_fits(config["render"]):
        yield "overlay.hud", "the HUD would share macroblocks with the car at this size"
    if overlay["caption"] and not _caption_fits(config["render"]):
        yield "overlay.caption", "the caption would share pixels with the car at this size"
    card = max(card_frames(overlay["title_card"], config["film"]["fps"]), 1)
    if card + (config["max_episode_steps"] or 0) + 1 > MOST_PICTURES:
        most = MOST_PICTURES - card - 1
        yield (
            "max_episode_steps",
            f"an assembled episode has at most {most:,} steps after its title card",
        )


def _hud_fits(render: Mapping) -> bool:
    height, width = render["height"], render["width"]
    scale = min(height / _ROWS, width / _COLUMNS)
    top = max(height - round(_HUD_ROWS * max(scale, _SMALLEST)), 0) & ~1
    return top // _MACROBLOCK * _MACROBLOCK >= height / 2 + (_LOWEST - _ROWS / 2) * scale


def _caption_fits(render: Mapping) -> bool:
    height = render["height"]
    scale = min(height / _ROWS, render["width"] / _COLUMNS)
    car = height / 2 - (_ROWS / 2 - _HIGHEST) * scale
    return scale > _SMALLEST_LETTERS or car >= _CAPTION_ROWS * scale + _LETTERS


def x264(config: Mapping) -> dict:
    """Return x264's settings: preset, and crf or qp, as given or else as the quality has them."""
    encode, drawn = config["encode"], not describe(config["env"]).has_atlas
    preset, qp = (_X264_DRAWN if drawn else _X264)[encode["quality"]]
    settings = {"encoder": "x264", "preset": encode["preset"] or preset}
    if encode["crf"] is not None:
        return settings | {"crf": encode["crf"]}
    return settings | {"qp": qp if encode["qp"] is None else encode["qp"]}


def cards(config: Mapping, choice: EncoderChoice) -> int:
    """Return the frames of each title card: the reference of an assembled episode is always one."""
    frames = card_frames(config["overlay"]["title_card"], config["film"]["fps"])
    return max(frames, 1) if choice.assembled else frames


def card_frames(seconds: float, fps: int) -> int:
    """Return the frames of a title card: at least one, unless it is turned off."""
    return max(round(seconds * fps), 1) if seconds > 0 else 0
