"""The stages, one entry each: what shapes a stage's result, what it leaves, and what it takes.

Specs, resources, the summary, verification and the cluster's local rules are derived from this
table, so a new view is its module, its program, its rule and its entry here.
It is imported while the Snakefile is parsed.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Stage:
    """A stage of the workflow.

    Memory and time are what one job takes on the first attempt, Snakemake's own share not counted:
    peaks and CPU seconds as measured by benchmarks/film/scale.py, with some to spare.
    """

    # The options that shape its bytes: dotted keys of config.yaml, or keys that specs derive.
    config: tuple[str, ...] = ()
    # The stages whose results it takes; those that a run does not have are left out of its spec.
    inputs: tuple[str, ...] = ()
    # The packages whose versions shape its bytes; "artist" is the package that draws the style.
    tools: tuple[str, ...] = ()
    # What it leaves, below the results folder; {shard}, {variant}, {seed} are wildcards.
    outputs: tuple[str, ...] = ()
    # What one job covers: a "shard", a "training", the whole "run", or "any" run.
    per: str = "run"
    # Files of the package, beside its modules, that shape its bytes.
    files: tuple[str, ...] = ()
    # The output that the summary names, "" for a stage that it does not.
    summary: str = ""
    # Too small for a job of its own on a cluster: it runs where Snakemake does.
    local: bool = False
    mb: float = 0.0
    kb_per_reach: float = 0.0
    mb_per_picture: float = 0.0  # for a picture of 600x400
    seconds: float = 0.0
    ms_per_reach: float = 0.0
    # Of what Gymnasium draws, for a frame of 600x400.
    kb_per_frame: float = 0.0
    ms_per_frame: float = 0.0


_ENVIRONMENT = ("env", "env_kwargs", "env_wrappers", "max_steps")
_FILM = ("env", "film.fps", "card_frames")
_VIDEO = ("env", "film.fps", "view_encoder")
_FRAMES = ("simulate", "render")
_ENCODING = ("ffmpeg", "numpy", "pillow")
_SUMS = "SHA256SUMS"
_TRAINING = "train/{variant}/{seed}"

# The film, in the order of the data.
FILM = {
    "recording": Stage(
        config=("policy",),
        tools=("numpy",),
        outputs=("recording.npz",),
        per="any",
        mb=1000,
        seconds=30,
    ),
    # max_attempts bounds the work and shapes no trajectory, so it is not among the keys.
    "simulate": Stage(
        config=(*_ENVIRONMENT, "success", "seed", "policy", "film.show"),
        inputs=("dqn", "pixels", "recording"),
        tools=("numpy",),
        outputs=("trajectories/{shard}.npz",),
        per="shard",
        mb=60,
        kb_per_reach=15,
        seconds=1,
        ms_per_reach=0.4,
    ),
    "atlas": Stage(
        config=("env", "render"),
        tools=("numpy", "artist"),
        outputs=("atlas.npz",),
        per="any",
        local=True,
        mb=200,
        mb_per_picture=25,
        seconds=3,
    ),
    "coded_atlas": Stage(
        config=("env", "render", "overlay.hud", "film_encoder"),
        inputs=("atlas",),
        tools=_ENCODING,
        outputs=("coded_atlas.npz",),
        per="any",
        local=True,
        mb=250,
        mb_per_picture=40,
        seconds=10,
    ),
    "render": Stage(
        config=("env", "render"),
        inputs=("simulate", "atlas"),
        tools=("numpy", "artist"),
        outputs=("frames/{shard}.npz",),
        per="shard",
        mb=150,
        kb_per_reach=40,
        mb_per_picture=25,
        seconds=1,
        ms_per_reach=0.7,
    ),
    "encode": Stage(
        config=(*_FILM, "overlay.caption", "overlay.hud", "render.scale", "film_encoder", "unit"),
        inputs=(*_FRAMES, "coded_atlas"),
        tools=_ENCODING,
        outputs=("segments/{shard}.mp4",),
        per="shard",
        mb=100,
        kb_per_reach=200,
        mb_per_picture=120,
        seconds=1,
        ms_per_reach=3,
    ),
    "concat": Stage(
        config=(*_FILM, "unit"),
        inputs=("simulate", "encode"),
        outputs=("film.mp4",),
        mb=100,
        kb_per_reach=0.1,
        seconds=1,
        ms_per_reach=1,
    ),
    "episodes": Stage(
        config=(*_FILM, "unit"),
        inputs=("simulate",),
        tools=("pandas",),
        outputs=("episodes.csv", "attempts.csv", "tables.json"),
        local=True,
        mb=150,
        kb_per_reach=1,
        seconds=5,
        ms_per_reach=0.2,
    ),
}
_TRAININGS = {
    "dqn": Stage(
        config=("env", "dqn.decisions", "dqn.double", "train.seed", "variant"),
        tools=("numpy", "torch"),
        outputs=tuple(f"{_TRAINING}/{file}" for file in ("policy.npz", "log.csv", "metrics.json")),
        per="training",
        mb=300,
        seconds=30,
    ),
    "training_table": Stage(
        config=("env", "dqn.decisions", "dqn.double", "dqn.variants", "dqn.seeds"),
        tools=("matplotlib", "numpy", "pandas"),
        outputs=tuple(
            f"training/{file}"
            for file in ("runs.csv", "table.csv", "table.md", "bars.svg", "curves.svg", _SUMS)
        ),
        per="any",
        summary="training/table.md",
        local=True,
        mb=300,
        seconds=10,
    ),
    "pixels": Stage(
        config=("pixels",),
        tools=("matplotlib", "numpy", "torch"),
        outputs=tuple(
            f"pixels/{file}"
            for file in ("policy.npz", "monitor.csv", "metrics.json", "training.svg")
        ),
        per="any",
        summary="pixels/policy.npz",
        mb=500,
        seconds=120,
    ),
    "learning": Stage(
        config=(
            *(*_ENVIRONMENT, "success", "seed", "learner", "train.attempts", "film.fps"),
            *("overlay.title_card", "overlay.hud", "render", "view_encoder", "unit"),
        ),
        inputs=("dqn", "pixels", "atlas"),
        tools=(*_ENCODING, "pandas", "artist"),
        outputs=("learning.mp4", "learning.csv", "learning.sha256"),
        per="any",
        summary="learning.mp4",
        mb=300,
        mb_per_picture=50,
        seconds=60,
    ),
}
_VIEW = Stage(mb=500, kb_per_reach=6, seconds=60)
_VIEWS = {
    "clips": replace(
        _VIEW,
        config=("env", "film.fps", "clips", "overlay.caption", "overlay.hud", "render")
        + ("view_encoder", "unit"),
        inputs=(*_FRAMES, "atlas", "dqn", "pixels"),
        tools=(*_ENCODING, "artist"),
        outputs=("clips",),
        summary="clips/clips.csv",
        mb_per_picture=50,
        ms_per_reach=1,
    ),
    "grid": replace(
        _VIEW,
        config=(*_VIDEO, "grid", "unit"),
        inputs=_FRAMES,
        tools=_ENCODING,
        outputs=("grid.mp4",),
        summary="grid.mp4",
        ms_per_reach=50,
    ),
    "swarm": replace(
        _VIEW,
        config=(*_VIDEO, "render"),
        inputs=("simulate", "atlas"),
        tools=(*_ENCODING, "artist"),
        outputs=("swarm.mp4",),
        summary="swarm.mp4",
        mb_per_picture=50,
        ms_per_reach=2,
    ),
    "phase": replace(
        _VIEW,
        config=_VIDEO,
        inputs=("simulate",),
        tools=(*_ENCODING, "matplotlib"),
        outputs=("phase.mp4",),
        summary="phase.mp4",
        ms_per_reach=2,
    ),
    "stills": replace(
        _VIEW,
        config=("env", "film.fps", "stills", "unit"),
        inputs=_FRAMES,
        tools=("numpy", "pillow"),
        outputs=tuple(
            f"stills/{file}" for file in ("poster.png", "contact_sheet.png", "preview.webp", _SUMS)
        ),
        summary="stills/poster.png",
        mb_per_picture=50,
        ms_per_reach=1,
    ),
    "card": replace(
        _VIEW,
        config=(*_VIDEO, *_ENVIRONMENT[1:], "card", "policy", "seed", "seeds", "unit"),
        inputs=_FRAMES,
        tools=_ENCODING,
        outputs=tuple(
            f"card/{file}" for file in ("README.md", "replay.mp4", "results.json", _SUMS)
        ),
        summary="card/replay.mp4",
        ms_per_reach=1,
    ),
    "lerobot": replace(
        _VIEW,
        config=(*_VIDEO, "unit"),
        inputs=_FRAMES,
        tools=(*_ENCODING, "pandas", "pyarrow"),
        outputs=("lerobot",),
        summary="lerobot/meta/info.json",
        mb_per_picture=50,
        ms_per_reach=200,
    ),
    "compare": Stage(
        config=("compare", "view_encoder"),
        tools=(*_ENCODING, "pandas"),
        outputs=tuple(f"compare/{file}" for file in ("compare.mp4", "compare.csv", _SUMS)),
        per="any",
        summary="compare/compare.csv",
        mb=500,
        seconds=60,
        ms_per_reach=500,
    ),
    "plots": Stage(
        config=("env", "policy", "unit"),
        inputs=("simulate",),
        tools=("matplotlib", "numpy", "pandas"),
        outputs=("plots",),
        mb=300,
        kb_per_reach=1,
        seconds=20,
        ms_per_reach=0.2,
    ),
    "report": Stage(
        config=("env", "policy", "film.fps", "unit"),
        inputs=(*_FRAMES, "atlas", "encode", "concat", "episodes", "plots", "grid", "swarm")
        + ("learning",),
        tools=("jinja2", "pandas"),
        outputs=("report",),
        files=tuple(f"report/templates/report.{kind}" for kind in ("html.j2", "css", "js")),
        summary="report/index.html",
        mb=500,
        kb_per_reach=6,
        mb_per_picture=50,
        seconds=30,
        ms_per_reach=2,
    ),
}
STAGES = FILM | _TRAININGS | _VIEWS
# Targets that are no part of a film, nor made of one: the results may be of any policy.
APART = {"compare", "training", *_TRAININGS} - {"learning"}
# A training from pixels or of a variant is no view.
VIEWS = ("training_table", "learning", *_VIEWS)
STAGES["verify"] = Stage(
    config=(*_FILM, "unit"),
    inputs=tuple(name for name in STAGES if name != "compare"),
    tools=("ffmpeg", "numpy"),
    outputs=("verify.csv",),
    mb=500,
    seconds=10,
    ms_per_reach=50,
)
# The package that draws a style, the tool "artist" of the stages above.
ARTISTS = {"gymnasium": "pygame-ce", "vector": "pillow"}
# Where Gymnasium plays it also draws: there is no stage `render`, and jobs take what frames take.
GYMNASIUM = {
    "simulate": replace(
        STAGES["simulate"],
        config=(*STAGES["simulate"].config, "check"),
        inputs=("pixels", "recording"),
        tools=("numpy", "gymnasium"),
        outputs=(*STAGES["simulate"].outputs, *STAGES["render"].outputs),
        mb=200,
        kb_per_reach=0,
        kb_per_frame=1,
        ms_per_reach=0,
        ms_per_frame=10,
    ),
    "encode": replace(
        STAGES["encode"],
        mb=250,
        kb_per_reach=0,
        kb_per_frame=0.5,
        mb_per_picture=0,
        ms_per_reach=0,
        ms_per_frame=6,
    ),
    "learning": replace(
        STAGES["learning"],
        tools=(*_ENCODING, "pandas", "gymnasium"),
        mb=500,
        mb_per_picture=0,
        ms_per_frame=16,
    ),
    "clips": replace(STAGES["clips"], ms_per_frame=6),
    "grid": replace(STAGES["grid"], ms_per_reach=0, ms_per_frame=20),
    "verify": replace(STAGES["verify"], ms_per_reach=0, ms_per_frame=3),
}
# By Mesa, without a graphics card; five instances at a time.
MUJOCO = {
    "simulate": replace(GYMNASIUM["simulate"], mb=900, ms_per_frame=200),
    "clips": replace(GYMNASIUM["clips"], mb=1200),
}
