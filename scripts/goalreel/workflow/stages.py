"""What shapes each stage's result, as a table: options, inputs, tools, files.

How the specs are made of it stands in stages. It is imported while the Snakefile is parsed.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """What shapes a stage's bytes.

    config: dotted keys; inputs: the stages whose results it takes; tools, files (of the package).
    """

    config: tuple[str, ...]
    inputs: tuple[str, ...]
    tools: tuple[str, ...]
    files: tuple[str, ...] = ()


_ENVIRONMENT = ("env", "env_kwargs", "max_steps")
_EPISODE = (*_ENVIRONMENT, "success")
_FILM = ("env", "film.fps", "card_frames")
_CLIPS = ("env", "film.fps", "clips", "overlay.caption", "overlay.hud", "render", "encode")
_TEMPLATES = tuple(f"report/templates/report.{kind}" for kind in ("html.j2", "css", "js"))
_SWARM = ("env", "film.fps", "render", "encode")
_LEARNING = (
    *("env", "seed", "film.fps", "train.attempts", "overlay.title_card", "overlay.hud"),
    *("checkpoint", "render", "encode"),
)
_TRAININGS = ("env", "dqn.frames", "dqn.double", "dqn.variants", "dqn.seeds")
_SHARDS = ("simulate", "render")
_PIXELS = ("ffmpeg", "numpy", "pillow")
# max_attempts is not among simulate's keys: it bounds the work, but shapes no trajectory.
# `encode` is what encoders makes of that section: the film's encoder, or x264 for the views.
STAGES = {
    "simulate": Stage((*_EPISODE, "seed", "policy", "film.show"), ("train", "dqn"), ("numpy",)),
    "atlas": Stage(("env", "render"), (), ("numpy", "artist")),
    "render": Stage(("env", "render"), ("simulate", "atlas"), ("numpy", "artist")),
    "coded_atlas": Stage(("env", "render", "overlay.hud", "encode"), ("atlas",), _PIXELS),
    "encode": Stage(
        (*_FILM, "overlay.caption", "overlay.hud", "encode"), (*_SHARDS, "coded_atlas"), _PIXELS
    ),
    "grid": Stage(("env", "film.fps", "grid", "encode"), _SHARDS, _PIXELS),
    "swarm": Stage(_SWARM, ("simulate", "atlas"), (*_PIXELS, "artist")),
    "phase": Stage(("env", "film.fps", "encode"), ("simulate",), _PIXELS),
    "stills": Stage(("env", "film.fps", "stills"), _SHARDS, ("numpy", "pillow")),
    "plots": Stage(("env", "policy"), ("simulate",), ("matplotlib", "numpy", "pandas")),
    "report": Stage(
        ("env", "policy", "film.fps"),
        (
            *_SHARDS,
            "atlas",
            "encode",
            "concat",
            "episodes",
            "plots",
            "grid",
            "swarm",
            "learning",
            "training_table",
        ),
        ("jinja2", "pandas"),
        _TEMPLATES,
    ),
    "clips": Stage(_CLIPS, (*_SHARDS, "atlas", "train", "dqn"), (*_PIXELS, "artist")),
    "train": Stage(("env", "train.seed", "train.checkpoints"), (), ("numpy", "pandas")),
    "dqn": Stage(
        ("env", "dqn.frames", "dqn.double", "train.seed", "variant"), (), ("numpy", "torch")
    ),
    "training_table": Stage(_TRAININGS, (), ("matplotlib", "numpy")),
    "pixels": Stage(("pixels",), (), ("matplotlib", "numpy", "torch")),
    "learning": Stage(_LEARNING, ("train", "dqn", "atlas"), (*_PIXELS, "pandas", "artist")),
    "concat": Stage(_FILM, ("simulate", "encode"), ()),
    "episodes": Stage((*_FILM, "film.reaches_per_file"), ("simulate",), ("pandas",)),
    "films": Stage(("film.fps",), (), ()),
}
# All that is there to be verified: each by the digest of its spec.
STAGES["verify"] = Stage(_FILM, tuple(STAGES), ("ffmpeg", "numpy"))
# The package that draws a style, the tool "artist" of the stages above.
ARTISTS = {"gymnasium": "pygame-ce", "vector": "pillow"}
# Where Gymnasium plays: what it takes, and then what the environment's own package needs.
GYMNASIUM = {
    "simulate": Stage(STAGES["simulate"].config, (), ("numpy", "gymnasium")),
    "render": Stage(_ENVIRONMENT, ("simulate",), ("numpy", "gymnasium")),
}
