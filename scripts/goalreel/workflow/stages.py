"""The table of stages: each stage's inputs, outputs, condition, options, tools and resources.

Rules, specs, `goalreel.film`, verification and summaries follow from this table. A new view is a
module, a program and an entry here. Snakemake imports this module while it parses the Snakefile.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from goalreel.policies.parameters import is_trained_here
from goalreel.workflow.run import Run


def _always(run: Run) -> bool:
    return True


@dataclass(frozen=True)
class Output:
    """A file that a stage writes, or a folder, whose path ends with a slash."""

    path: str  # in the results folder, with the wildcard {shard}
    when: Callable[[Run], bool] = _always
    report: Mapping | None = None  # its category and labels in Snakemake's report


@dataclass(frozen=True)
class Stage:
    """A stage of the workflow."""

    purpose: str  # a sentence, which `snakemake --list` prints
    # A source for each option of the program: "STAGE" for a stage's first output, "STAGE.OPTION"
    # for another, with "[0]" for the first shard only, or a function of the run that returns one.
    # A source that the run does not have is skipped.
    inputs: Mapping[str, str | Callable[[Run], str | None]] = field(default_factory=dict)
    outputs: Mapping[str, Output | str] = field(default_factory=dict)  # by option, or their paths
    when: Callable[[Run], bool] = _always  # whether a run has it
    needs: str = ""  # the condition of `when` in words
    config: tuple[str, ...] = ()  # options that affect its result, as keys of Run.value
    limits: tuple[str, ...] = ()  # options that limit its work but do not affect its result
    # The packages whose versions affect its result. "artist" is the package that draws, "player"
    # stands for the packages and files of the environment and the policy.
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # other files of the package that affect its result
    saves: Mapping[str, str] = field(default_factory=dict)  # files from which a retry resumes
    # The extent of a job: "shard", "run", or "any" run. "played_shard" and "played" are
    # of all episodes that are played without frames, of which the film shows some.
    scope: str = "run"
    is_of_run: bool = True  # whether it depends on the episodes of this run's policy
    local: bool = False  # whether it is too small for a job of its own on a cluster
    threads: int = 1  # 0 for the processes of the training
    conda: str = "film"  # the name of its environment in envs/

    def all_outputs(self) -> dict[str, Output]:
        """Return all outputs that it may write, by option."""
        return {name: o if isinstance(o, Output) else Output(o) for name, o in self.outputs.items()}

    def present(self, run: Run) -> dict[str, Output]:
        """Return the outputs that it writes in a run, by option."""
        return {name: output for name, output in self.all_outputs().items() if output.when(run)}

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all outputs that it may write, in the results folder."""
        return tuple(output.path.rstrip("/") for output in self.all_outputs().values())


def sources(stage: str, run: Run) -> dict[str, tuple[str, str, bool]]:
    """Return each input's stage, its path, and whether it is only the first shard's, by option."""
    found = {}
    for option, named in STAGES[stage].inputs.items():
        name = (named(run) if callable(named) else named) or ""
        maker, _, output = name.removesuffix("[0]").partition(".")
        outputs = STAGES[maker].present(run) if name and STAGES[maker].when(run) else {}
        if made := outputs.get(output or next(iter(outputs), "")):
            found[option] = maker, made.path, name.endswith("[0]")
    return found


def _frames(run: Run) -> str:
    """Return the source of frames: most environments render while they play."""
    return "render" if _is_drawn_later(run) else "simulate.frames"


def _is_drawn_later(run: Run) -> bool:
    return run.env.has_atlas or run.has_poses


def _unless_embedded(view: str) -> Callable[[Run], str | None]:
    """Return the source of a view for the report, none for a report in a single file."""
    return lambda run: None if run.config["report"]["embed"] else view


def _reported(path: str, category: str, labels: Mapping[str, str], **more: object) -> Output:
    """Return an output that Snakemake's report includes."""
    caption = f"docs/report/{path.partition('.')[0].strip('/').replace('/', '_')}.rst"
    when = more.pop("when", _always)
    return Output(path, when, {"category": category, "labels": labels, "caption": caption, **more})


WILDCARDS = {"shard": r"\d{5,9}", "row": "[^/]+"}
_ENVIRONMENT = ("env", "env_kwargs", "env_wrappers", "max_episode_steps")
_CAMERA = ("render.camera", "render.width", "render.height")
_OPENGL = ("render.opengl", "render.quality")
_PLAYED = (*_ENVIRONMENT, "policy", "check_determinism")
_FILM = ("env", "film.fps", "card_frames")
_PAGE = ("colors.css", "report.css", "report.html.j2", "report.js")
_TEXTS = ("overlay.caption", "overlay.hud", "overlay.signals")
_VIDEO = ("env", "film.fps", "view_encoder")
_EPISODES = {"frames": _frames, "trajectories": "simulate"}
# All, because the digests in `tables` fit only if the others are there.
_TABLES = {"episodes": "episodes.episodes", "attempts": "episodes.attempts"}
_TABLES |= {"tables": "episodes.tables", "summary": "episodes.summary"}
_ENCODING = ("ffmpeg", "numpy", "pillow")
_SELECTS = {
    "when": lambda run: run.select is not None,
    "needs": "a selection: film={select: {worst: 20}}",
}
_OF_ATLAS = {
    "when": lambda run: run.env.has_atlas,
    "needs": "MountainCar-v0 or MountainCarContinuous-v0",
}

# The film, in the order of the data.
FILM = {
    "import_recording": Stage(
        "Import the recording once, so that each shard reads only its own episodes.",
        outputs={"output": "recording.npz"},
        when=lambda run: run.policy == "recording",
        needs="policy={name: recording, file: FILE}",
        config=("policy",),
        tools=("numpy",),
        scope="any",
    ),
    "play": Stage(
        "Play a shard of all episodes without frames.",
        inputs={"policy": "train"},
        outputs={"output": "play/{shard}.npz"},
        **_SELECTS,
        config=(*_PLAYED, "seed"),
        limits=("max_step_seconds", "max_memory_mb"),
        tools=("numpy", "player"),
        scope="played_shard",
    ),
    "choose": Stage(
        "Choose the episodes to film from all that were played.",
        inputs={"played": "play"},
        outputs={"output": "selection.npz", "table": "played.csv", "sums": "played.json"},
        **_SELECTS,
        config=("env", "selection"),
        tools=("gymnasium", "numpy", "pandas"),
        scope="played",
    ),
    "simulate": Stage(
        "Play a shard's episodes, bit for bit as Gymnasium would.",
        inputs={
            "policy": lambda run: "import_recording" if run.policy == "recording" else "train",
            "selection": "choose",
        },
        outputs={
            "trajectories": "trajectories/{shard}.npz",
            "frames": Output("frames/{shard}.npz", when=lambda run: not _is_drawn_later(run)),
        },
        config=(*_PLAYED, "success", "seed", "film.show_failures", "played_opengl"),
        limits=("max_attempts_per_reach", "max_step_seconds", "max_memory_mb"),
        tools=("numpy", "player"),
        scope="shard",
    ),
    "atlas": Stage(
        "Draw each distinct frame of the environment once.",
        outputs={"output": "atlas.npz"},
        **_OF_ATLAS,
        config=("env",),
        tools=("numpy", "artist"),
        scope="any",
        local=True,
    ),
    "coded_atlas": Stage(
        "Encode each frame of the atlas once, for an assembled film.",
        inputs={"atlas": "atlas"},
        outputs={"output": "coded_atlas.npz"},
        when=lambda run: run.encoder.assembled,
        needs="an assembled film: encode={encoder: prebuilt}",
        config=("env", "overlay.hud", "film_encoder"),
        tools=_ENCODING,
        scope="any",
        local=True,
    ),
    "render": Stage(
        "Draw the frame of each state of a shard, or look it up.",
        inputs={"atlas": "atlas", "trajectories": "simulate"},
        outputs={"output": "frames/{shard}.npz"},
        when=_is_drawn_later,
        needs="a Mountain Car, or Gymnasium's MuJoCo without wrappers",
        config=("env", *_CAMERA, *_OPENGL),
        tools=("numpy", "artist"),
        scope="shard",
    ),
    "encode": Stage(
        "Encode a shard's video, with captions and a keyframe at the start of each episode.",
        inputs={"coded_atlas": "coded_atlas", **_EPISODES},
        outputs={"output": "segments/{shard}.mp4"},
        config=(*_FILM, "title_card", *_TEXTS, "render.scale", "film_encoder", "unit"),
        tools=_ENCODING,
        scope="shard",
    ),
    "concat": Stage(
        "Join all segments into the film, with a chapter for each episode.",
        inputs={"segments": "encode", "trajectories": "simulate", "selection": "choose"},
        outputs={"output": "film.mp4"},
        config=(*_FILM, "unit"),
    ),
    "episodes": Stage(
        "Write the table of episodes: seeds, outcomes and positions in the film.",
        inputs={"trajectories": "simulate", "selection": "choose", "played": "choose.table"},
        outputs={
            "episodes": _reported("episodes.csv", "Tables", {"table": "filmed episodes"}),
            "attempts": _reported(
                "attempts.csv",
                "Tables",
                {"table": "all attempts"},
                when=lambda run: run.unit == "reach",
            ),
            "tables": "tables.json",
            "summary": "summary.json",
        },
        config=(*_FILM, "unit", "success_criterion"),
        tools=("numpy", "pandas"),
        local=True,
    ),
}
_TRAININGS = {
    "train": Stage(
        "Train the policy by deep Q-learning or PPO, or resume its training.",
        outputs={
            "policy": "train/policy.npz",
            "table": "train/progress.csv",
            "metrics": "train/metrics.json",
            "plot": "train/curve.svg",
        },
        when=lambda run: is_trained_here(run.config["policy"]),
        needs="policy=trained, without a file",
        config=(*_ENVIRONMENT, "train"),
        tools=("gymnasium", "matplotlib", "numpy", "player", "torch"),
        saves={"saved": "train/checkpoint.pt"},
        scope="any",
        is_of_run=False,
        threads=0,
        conda="training",
    ),
    "training_progress": Stage(
        "Film the first attempts of the policy at each checkpoint of its training.",
        inputs={"policy": "train", "atlas": "atlas"},
        outputs={
            "film": _reported("training_progress.mp4", "Training", {"film": "training progress"}),
            "table": "training_progress.csv",
            "sums": "training_progress.sha256",
        },
        when=lambda run: run.policy == "trained",
        needs="policy=trained",
        config=(
            *(*_ENVIRONMENT, "success", "seed", "learner", "train.attempts", "film.fps"),
            *("overlay.title_card", "overlay.hud", "render.scale"),
            *("render.opengl", "view_encoder", "unit"),
        ),
        tools=(*_ENCODING, "pandas", "artist", "player"),
        scope="any",
    ),
}
_VIEWS = {
    "clips": Stage(
        "Write chosen episodes and snippets as separate videos.",
        inputs={"atlas": "atlas", "policy": "train", **_EPISODES},
        outputs={"output": "clips/"},
        config=("env", "film.fps", "clips", *_TEXTS, "render.scale", "view_encoder", "unit"),
        tools=(*_ENCODING, "artist"),
        threads=4,
    ),
    "grid": Stage(
        "Show all episodes side by side, in pages.",
        inputs=_EPISODES,
        outputs={"output": "grid.mp4"},
        config=(*_VIDEO, "grid", "unit"),
        tools=_ENCODING,
    ),
    "swarm": Stage(
        "Show all reaches on one track at the same time.",
        inputs={"atlas": "atlas", "trajectories": "simulate"},
        outputs={"output": "swarm.mp4"},
        **_OF_ATLAS,
        config=_VIDEO,
        tools=(*_ENCODING, "artist"),
    ),
    "stills": Stage(
        "Draw a poster, a contact sheet and a short animated preview.",
        inputs=_EPISODES,
        outputs={
            "poster": "stills/poster.png",
            "contact_sheet": "stills/contact_sheet.png",
            "preview": "stills/preview.webp",
            "sums": "stills/SHA256SUMS",
        },
        config=("env", "film.fps", "stills", "unit"),
        tools=("numpy", "pillow"),
    ),
    "figures": Stage(
        "Draw figures of an episode for a README or a paper.",
        inputs=_EPISODES,
        outputs={"output": "figures/"},
        config=("env", "film.fps", "figures", "unit"),
        tools=("matplotlib", "numpy", "pillow"),
        conda="report",
    ),
    "model_card": Stage(
        "Write a model card for the Hugging Face Hub.",
        inputs=_EPISODES | {"played": "choose.table"},
        outputs={
            "readme": "model_card/README.md",
            "replay": "model_card/replay.mp4",
            "results": "model_card/results.json",
            "sums": "model_card/SHA256SUMS",
        },
        config=(*_VIDEO, *_ENVIRONMENT[1:], "model_card", "policy", "seed", "seeds", "unit"),
        tools=_ENCODING,
        conda="report",
    ),
    "compare": Stage(
        "Compare finished runs: their differences, and the seeds that differ most side by side.",
        outputs={
            "video": "compare/compare.mp4",
            "pairs": "compare/pairs.csv",
            "table": "compare/compare.csv",
            "sums": "compare/SHA256SUMS",
        },
        config=("compare", "view_encoder"),
        tools=(*_ENCODING, "pandas"),
        scope="any",
        is_of_run=False,
    ),
    "plots": Stage(
        "Plot the returns, steps, actions and, if possible, states.",
        inputs={"episodes": "episodes.episodes", "trajectories": "simulate"},
        outputs={
            "output": _reported("plots/", "Plots", {"plot": "{name}"}, patterns=["{name}.svg"])
        },
        config=("env", "env_wrappers", "unit"),
        tools=("matplotlib", "numpy", "pandas"),
        files=("environments/dimension_names.toml",),
        conda="report",
    ),
    "report": Stage(
        "Write a page with the film, a list of its episodes, and the plots.",
        inputs={
            "film": "concat",
            **_TABLES,
            "plots": "plots",
            "trajectories": "simulate[0]",
            "frames": lambda run: f"{_frames(run)}[0]",
            "segments": "encode[0]",
            "atlas": "atlas",
            **{view: _unless_embedded(view) for view in ("grid", "swarm", "training_progress")},
            "signals": lambda run: "simulate" if run.value("overlay.signals") else None,
        },
        outputs={
            "output": _reported(
                "report/", "Film", {"page": "the film and all its reaches"}, htmlindex="index.html"
            )
        },
        config=("env", "policy", "film.fps", "film.select", "unit", "report.embed"),
        tools=("jinja2", "numpy", "pandas", "pillow"),
        files=tuple(f"report/templates/{name}" for name in _PAGE),
        conda="report",
    ),
}
_LOCK = {
    "inputs": _EPISODES | _TABLES,
    "when": lambda run: not is_trained_here(run.config["policy"]),
    "needs": "a policy that the run does not train, such as policy={name: trained, file: FILE}",
    "tools": ("numpy", "player", "artist"),
    "local": True,
}
_VIEWS["index"] = Stage(
    "Write the page of all runs of a suite: a matrix, differences in pairs, and films.",
    outputs={"output": "index.html", "table": "suite.csv"}
    | {"summary": "summary.json", "sums": "suite.sha256"},
    when=lambda run: False,  # it is planned by SuitePlan
    needs="suite={env: [A, B]}",
    tools=("jinja2", "matplotlib", "numpy", "pandas"),
    files=("report/templates/colors.css", "report/templates/suite.html.j2")
    + ("report/templates/suite.css", "report/templates/suite.js"),
    scope="any",
    local=True,
    conda="report",
)
STAGES = FILM | _TRAININGS | _VIEWS
STAGES["lock"] = Stage(
    "Write goalreel.lock, the behavior of the episodes.",
    outputs={"output": "goalreel.lock"},
    config=(*_PLAYED, *_OPENGL, *_CAMERA, "film.fps", "render.scale", "check.file"),
    **_LOCK,
)
STAGES["check"] = Stage(
    "Play the episodes of goalreel.lock again, and report differences.",
    outputs={"output": "check.txt"},
    config=("env", "check", "render.opengl", "view_encoder"),
    **_LOCK,
)
STAGES["verify"] = Stage(
    "Check every file of the results against its checksum, its counts and its spec.",
    inputs={"film": "concat", "tables": "episodes.tables"},
    outputs={"output": _reported("verify.csv", "Tables", {"table": "verdicts on all files"})},
    config=(*_FILM, "unit"),
    tools=("ffmpeg", "numpy"),
    threads=16,  # or all cores, if there are fewer
)
# Targets that are independent of the film. The results folder may hold a run of any policy.
APART = {name for name, stage in STAGES.items() if not stage.is_of_run}
VIEWS = {*_TRAININGS, *_VIEWS} - {"train"}  # a film may need the training
