"""Choose a film's encoder and settings. The Snakefile imports this, so it avoids NumPy."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from goalreel.environments.registry import describe

# QP of the car and of the title card in assembled Mountain Car films, by quality.
_ASSEMBLED = {"small": (38, 24), "balanced": (34, 20), "best": (26, 14)}
# QP of changed macroblocks and of the first frame of an episode in other assembled films.
# benchmarks/film/encoding.py compares them with x264.
_BLOCKS = {"small": (29, 17), "balanced": (25, 12), "best": (18, 8)}
# x264 preset and QP, by quality.
_X264 = {"small": ("veryfast", 28), "balanced": ("veryfast", 23), "best": ("veryfast", 17)}
# For frames that Gymnasium renders, ultrafast takes 12 to 45% less time for 1.02 to 1.54 times the
# bytes (FrozenLake 2.07), at a PSNR 1.7 dB lower to 9 dB higher (benchmarks/results/presets.md).
_X264_DRAWN = _X264 | {"balanced": ("ultrafast", 23)}
_ONLY_X264 = ("preset", "qp", "crf")
MOST_PICTURES = 1 << 14  # per assembled episode, without its title card, as in sample_parts


@dataclass(frozen=True)
class EncoderChoice:
    """The encoder of a film and its settings."""

    assembled: bool  # the film is assembled from a coded atlas
    settings: Mapping  # `film_encoder` in the specs
    reason: str  # why it is not assembled; "" if it is, or if x264 was requested
    label: str  # one-line summary


def choose(config: Mapping) -> EncoderChoice:
    """Return the encoder for a complete, validated configuration."""
    encode, reason, environment = config["encode"], "", describe(config["env"])
    if encode["encoder"] != "x264":
        reason = next((why for _, why in encoder_errors(config)), "")
        if encode["encoder"] == "auto" and not (environment.has_atlas or environment.few_blocks):
            reason = reason or "not one of the environments whose frames have few new blocks"
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
    """Yield an (option, reason) pair for everything that prevents assembling the film."""
    for key in _ONLY_X264:
        if config["encode"][key] is not None:
            yield f"encode.{key}", f"{key} is an option of x264"
    if describe(config["env"]).has_atlas and config["overlay"]["signals"]:
        yield "overlay.signals", "its pictures have no room for signals"
    most = MOST_PICTURES - 2  # besides the empty track and the reset
    if describe(config["env"]).has_atlas and (config["max_episode_steps"] or 0) > most:
        yield "max_episode_steps", f"an assembled episode has at most {most:,} steps"


def x264(config: Mapping) -> dict:
    """Return the x264 settings: preset and crf or qp, from the options or the quality."""
    encode, drawn = config["encode"], not describe(config["env"]).has_atlas
    preset, qp = (_X264_DRAWN if drawn else _X264)[encode["quality"]]
    settings = {"encoder": "x264", "preset": encode["preset"] or preset}
    if encode["crf"] is not None:
        return settings | {"crf": encode["crf"]}
    return settings | {"qp": qp if encode["qp"] is None else encode["qp"]}


def cards(config: Mapping, choice: EncoderChoice) -> int:
    """Return the frames before each episode, at least the empty track if a coded atlas needs it."""
    frames = card_frames(config["overlay"]["title_card"], config["film"]["fps"])
    return max(frames, 1) if choice.assembled else frames


def card_frames(seconds: float, fps: int) -> int:
    """Return the frames of a title card: 0 if `seconds` is 0, else at least 2."""
    return max(round(seconds * fps), 2) if seconds > 0 else 0
