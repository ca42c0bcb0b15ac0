"""The DAG, a stage an entry: what it takes, what it leaves, when it exists, what shapes its result.

Rules, specs, `goalreel.film`, verification and summaries are derived from this table, so that a new
view is its module, its program and its entry here. Imported while the Snakefile is parsed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from goalreel.workflow.run import Run

_SUMS = "SHA256SUMS"


def _always(run: Run) -> bool:
    return True


@dataclass(frozen=True)
class Output:
    """A file that a stage leaves, or a folder as one output: its path ends with a slash."""

    path: str  # below the results folder; {shard}, {variant}, {seed} are wildcards
    when: Callable[[Run], bool] = _always
    report: Mapping | None = None  # its category, labels, ... in Snakemake's report


@dataclass(frozen=True)
class Stage:
    """A stage of the workflow."""

    purpose: str  # in a sentence, as `snakemake --list` shows it
    # By option of its program: the output of another stage that it takes, as "STAGE", its first, or
    # "STAGE.OPTION", of the first shard alone with "[0]"; or a function of the run that returns it.
    # What the run does not make is left out.
    inputs: Mapping[str, str | Callable[[Run], str | None]] = field(default_factory=dict)
    # By option of its program. A text is the path of an Output.
    outputs: Mapping[str, Output | str] = field(default_factory=dict)
    # Whether a run has it, and what it needs, for who asks for it elsewhere.
    when: Callable[[Run], bool] = _always
    needs: str = ""
    # The options that shape its bytes: dotted keys of config.yaml, or keys that Run derives.
    config: tuple[str, ...] = ()
    # Options that bound its work and shape no byte, so that a change makes nothing again.
    limits: tuple[str, ...] = ()
    # The packages whose versions shape its bytes. "artist" is the package that draws, "player"
    # those of the environment and the policy.
    tools: tuple[str, ...] = ()
    # The user's files that it opens itself: of the "policy", the "environment", the runs of
    # "compare".
    reads: tuple[str, ...] = ()
    # Files of the package, beside its modules, that shape its bytes.
    files: tuple[str, ...] = ()
    # Stages whose specs it compares with the results.
    compares: tuple[str, ...] = ()
    # Files that it keeps for its next try, by option of its program: no results.
    saves: Mapping[str, str] = field(default_factory=dict)
    # What one job covers: a "shard", a "training", the whole "run", or "any" run.
    scope: str = "run"
    # Whether it is about the episodes of this run's policy.
    is_of_run: bool = True
    # The output that the summary names, "" for a stage that it does not.
    summary: str = ""
    # Too small for a job of its own on a cluster: it runs where Snakemake does.
    local: bool = False
    threads: int = 1  # 0: all cores
    conda: str = "film"  # its environment, in envs/

    def present(self, run: Run) -> dict[str, Output]:
        """Return the outputs that it leaves in a run, by option."""
        outputs = {
            name: output if isinstance(output, Output) else Output(output)
            for name, output in self.outputs.items()
        }
        return {name: output for name, output in outputs.items() if output.when(run)}

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all that it may leave, below the results folder."""
        return tuple(
            (output if isinstance(output, str) else output.path).rstrip("/")
            for output in self.outputs.values()
        )


@dataclass(frozen=True)
class Source:
    """An input, resolved for a run: the stage that makes it, and which of its outputs it is."""

    stage: str
    path: str
    is_first_shard: bool


def sources(stage: str, run: Run) -> dict[str, Source]:
    """Return the inputs that a stage has in a run, by option of its program."""
    return dict(_sources(STAGES[stage], run))


def _sources(stage: Stage, run: Run) -> Iterator[tuple[str, Source]]:
    for option, named in stage.inputs.items():
        name = named(run) if callable(named) else named
        if name is None:
            continue
        maker, _, output = name.removesuffix("[0]").partition(".")
        outputs = STAGES[maker].present(run)
        if STAGES[maker].when(run) and (output in outputs or not output):
            made = outputs[output or next(iter(outputs))]
            yield option, Source(maker, made.path, name.endswith("[0]"))


def has_atlas(run: Run) -> bool:
    """Return whether all pictures of the environment are drawn beforehand."""
    return run.env.has_atlas


def _films_reaches(run: Run) -> bool:
    return run.unit == "reach"


def _played_policy(run: Run) -> str | None:
    """Return what is played: a policy that this run trains, or a recording."""
    if run.policy == "recorded":
        return "recording"
    return f"{run.policy}.policy" if run.trains_policy else None


def _trained_policy(run: Run) -> str | None:
    return f"{run.policy}.policy" if run.trains_policy else None


def _frames(run: Run) -> str:
    """Return who draws: where Gymnasium plays, it draws too."""
    return "render" if run.env.has_atlas else "simulate.frames"


def _shown(category: str, caption: str, **more: object) -> dict:
    return {"category": category, "caption": f"docs/report/{caption}.rst", **more}


_ENVIRONMENT = ("env", "env_kwargs", "env_wrappers", "max_steps")
_FILM = ("env", "film.fps", "card_frames")
_VIDEO = ("env", "film.fps", "view_encoder")
_EPISODES = {"frames": _frames, "trajectories": "simulate"}
_ENCODING = ("ffmpeg", "numpy", "pillow")
_NEEDS_ATLAS = "an environment drawn from an atlas: MountainCar-v0, MountainCarContinuous-v0"

# The film, in the order of the data.
FILM = {
    "recording": Stage(
        "Read the recording that is played, once, so that a shard reads its episodes alone.",
        outputs={"output": "recording.npz"},
        when=lambda run: run.policy == "recorded",
        needs="policy={name: recorded, file: FILE}",
        config=("policy",),
        tools=("numpy",),
        reads=("policy",),
        scope="any",
    ),
    "simulate": Stage(
        "Play a shard's episodes, bit for bit as Gymnasium would.",
        inputs={"policy": _played_policy},
        outputs={
            "trajectories": "trajectories/{shard}.npz",
            "frames": Output("frames/{shard}.npz", when=lambda run: not run.env.has_atlas),
        },
        config=(*_ENVIRONMENT, "success", "seed", "policy", "film.show", "check"),
        limits=("max_attempts",),
        tools=("numpy", "player"),
        reads=("policy", "environment"),
        scope="shard",
    ),
    "atlas": Stage(
        "Draw every picture that the environment can show, once.",
        outputs={"output": "atlas.npz"},
        when=has_atlas,
        needs=_NEEDS_ATLAS,
        config=("env", "render"),
        tools=("numpy", "artist"),
        scope="any",
        local=True,
    ),
    "coded_atlas": Stage(
        "Code every picture once, so that films are joined from them and not encoded.",
        inputs={"atlas": "atlas"},
        outputs={"output": "coded_atlas.npz"},
        when=lambda run: run.encoder.assembled,
        needs="an assembled film: encode={encoder: assemble}",
        config=("env", "render", "overlay.hud", "film_encoder"),
        tools=_ENCODING,
        scope="any",
        local=True,
    ),
    "render": Stage(
        "Find the picture of every state of a shard.",
        inputs={"atlas": "atlas", "trajectories": "simulate"},
        outputs={"output": "frames/{shard}.npz"},
        when=has_atlas,
        needs=_NEEDS_ATLAS,
        config=("env", "render"),
        tools=("numpy", "artist"),
        scope="shard",
    ),
    "encode": Stage(
        "Make a shard's video, captions over its frames and a keyframe at each episode's start.",
        inputs={"coded_atlas": "coded_atlas", **_EPISODES},
        outputs={"output": "segments/{shard}.mp4"},
        config=(*_FILM, "overlay.caption", "overlay.hud", "render.scale", "film_encoder", "unit"),
        tools=_ENCODING,
        scope="shard",
    ),
    "concat": Stage(
        "Join all segments as they are, with a chapter for each episode.",
        inputs={"segments": "encode", "trajectories": "simulate"},
        outputs={"output": "film.mp4"},
        config=(*_FILM, "unit"),
    ),
    "episodes": Stage(
        "List every episode's seed, its outcome and its place in the film.",
        inputs={"trajectories": "simulate"},
        outputs={
            "episodes": Output(
                "episodes.csv",
                report=_shown("Tables", "episodes", labels={"table": "filmed episodes"}),
            ),
            "attempts": Output(
                "attempts.csv",
                when=_films_reaches,
                report=_shown("Tables", "attempts", labels={"table": "all attempts"}),
            ),
            "tables": "tables.json",
        },
        config=(*_FILM, "unit"),
        tools=("pandas",),
        local=True,
    ),
}
_TRAININGS = {
    "dqn": Stage(
        "Train by deep Q-learning, a variant from a seed.",
        outputs={
            "policy": "train/{variant}/{seed}/policy.npz",
            "table": "train/{variant}/{seed}/log.csv",
            "metrics": "train/{variant}/{seed}/metrics.json",
        },
        config=("env", "dqn.decisions", "dqn.double", "train.seed", "variant"),
        tools=("numpy", "torch"),
        scope="training",
        is_of_run=False,
        threads=0,  # its time is measured: nothing else runs beside it
        conda="training",
    ),
    "training_table": Stage(
        "Compare the trainings: a table, its bars, and learning curves with their bands.",
        inputs={"metrics": "dqn.metrics"},
        outputs={
            "runs": "training/runs.csv",
            "rows": Output(
                "training/table.csv",
                report=_shown("Training", "training_table", labels={"table": "variants"}),
            ),
            "table": "training/table.md",
            "bars": Output(
                "training/bars.svg",
                report=_shown("Training", "training_bars", labels={"plot": "speed"}),
            ),
            "curves": Output(
                "training/curves.svg",
                report=_shown("Training", "training_curves", labels={"plot": "learning curves"}),
            ),
            "sums": f"training/{_SUMS}",
        },
        config=("env", "dqn.decisions", "dqn.double", "dqn.variants", "dqn.seeds"),
        tools=("matplotlib", "numpy", "pandas"),
        scope="any",
        is_of_run=False,
        summary="training/table.md",
        local=True,
        conda="report",
    ),
    "pixels": Stage(
        "Train a policy from pixels, or go on from where a training was stopped.",
        outputs={
            "policy": "pixels/policy.npz",
            "table": "pixels/monitor.csv",
            "metrics": "pixels/metrics.json",
            "plot": "pixels/training.svg",
        },
        config=("pixels",),
        tools=("matplotlib", "numpy", "torch"),
        saves={"saved": "pixels/checkpoint.pt"},
        scope="any",
        is_of_run=False,
        summary="pixels/policy.npz",
        threads=0,  # those that no collector has are the learner's
        conda="training",
    ),
    "learning": Stage(
        "Film the learner's first attempts at each checkpoint.",
        inputs={"policy": _trained_policy, "atlas": "atlas"},
        outputs={
            "film": Output(
                "learning.mp4", report=_shown("Training", "learning", labels={"film": "learning"})
            ),
            "table": "learning.csv",
            "sums": "learning.sha256",
        },
        when=lambda run: run.has_checkpoints,
        needs="a policy that is trained here: policy=dqn in MountainCar-v0, policy=pixels in games",
        config=(
            *(*_ENVIRONMENT, "success", "seed", "learner", "train.attempts", "film.fps"),
            *("overlay.title_card", "overlay.hud", "render", "view_encoder", "unit"),
        ),
        tools=(*_ENCODING, "pandas", "artist", "player"),
        reads=("policy", "environment"),
        scope="any",
        summary="learning.mp4",
    ),
}
_VIEWS = {
    "clips": Stage(
        "Film chosen episodes and snippets as videos of their own.",
        inputs={"atlas": "atlas", "policy": _trained_policy, **_EPISODES},
        outputs={"output": "clips/"},
        config=("env", "film.fps", "clips", "overlay.caption", "overlay.hud", "render")
        + ("view_encoder", "unit"),
        tools=(*_ENCODING, "artist"),
        summary="clips/clips.csv",
        threads=4,
    ),
    "grid": Stage(
        "Play all episodes side by side, page after page.",
        inputs=_EPISODES,
        outputs={"output": "grid.mp4"},
        config=(*_VIDEO, "grid", "unit"),
        tools=_ENCODING,
        summary="grid.mp4",
    ),
    "swarm": Stage(
        "Put all reaches on one track at the same time.",
        inputs={"atlas": "atlas", "trajectories": "simulate"},
        outputs={"output": "swarm.mp4"},
        when=has_atlas,
        needs=_NEEDS_ATLAS,
        config=(*_VIDEO, "render"),
        tools=(*_ENCODING, "artist"),
        summary="swarm.mp4",
    ),
    "phase": Stage(
        "Draw all trajectories in the phase plane as they grow.",
        inputs={"trajectories": "simulate"},
        outputs={"output": "phase.mp4"},
        config=_VIDEO,
        tools=(*_ENCODING, "matplotlib"),
        summary="phase.mp4",
        conda="report",
    ),
    "stills": Stage(
        "Draw a poster, a contact sheet and a short animated preview.",
        inputs=_EPISODES,
        outputs={
            "poster": "stills/poster.png",
            "contact_sheet": "stills/contact_sheet.png",
            "preview": "stills/preview.webp",
            "sums": f"stills/{_SUMS}",
        },
        config=("env", "film.fps", "stills", "unit"),
        tools=("numpy", "pillow"),
        summary="stills/poster.png",
    ),
    "card": Stage(
        "Make a folder that can be pushed to Hugging Face's hub as a model card.",
        inputs=_EPISODES,
        outputs={
            "readme": "card/README.md",
            "replay": "card/replay.mp4",
            "results": "card/results.json",
            "sums": f"card/{_SUMS}",
        },
        config=(*_VIDEO, *_ENVIRONMENT[1:], "card", "policy", "seed", "seeds", "unit"),
        tools=_ENCODING,
        summary="card/replay.mp4",
        conda="report",
    ),
    "lerobot": Stage(
        "Write all episodes as a LeRobot data set.",
        inputs=_EPISODES,
        outputs={"output": "lerobot/"},
        config=(*_VIDEO, "unit"),
        tools=(*_ENCODING, "pandas", "pyarrow"),
        summary="lerobot/meta/info.json",
        threads=4,
        conda="report",
    ),
    "compare": Stage(
        "Film the same seeds of two finished runs side by side, and list their differences.",
        outputs={
            "video": "compare/compare.mp4",
            "table": "compare/compare.csv",
            "sums": f"compare/{_SUMS}",
        },
        config=("compare", "view_encoder"),
        tools=(*_ENCODING, "pandas"),
        reads=("compare",),  # no inputs: rules of this run must not make them again
        scope="any",
        is_of_run=False,
        summary="compare/compare.csv",
    ),
    "plots": Stage(
        "Plot the returns, the steps, what was done and, where they can be drawn, the states.",
        inputs={
            "episodes": "episodes.episodes",
            "attempts": "episodes.attempts",
            "trajectories": "simulate",
        },
        outputs={
            "output": Output(
                "plots/",
                report=_shown("Plots", "plots", patterns=["{name}.svg"], labels={"plot": "{name}"}),
            )
        },
        config=("env", "policy", "unit"),
        tools=("matplotlib", "numpy", "pandas"),
        conda="report",
    ),
    "report": Stage(
        "Make the page that plays the film, finds each reach in it, and shows the plots.",
        inputs={
            "film": "concat",
            "episodes": "episodes.episodes",
            "attempts": "episodes.attempts",
            "tables": "episodes.tables",
            "plots": "plots",
            "trajectories": "simulate[0]",
            "frames": lambda run: f"{_frames(run)}[0]",
            "segments": "encode[0]",
            "atlas": "atlas",
            "grid": "grid",
            "swarm": "swarm",
            "learning": "learning",
        },
        outputs={
            "output": Output(
                "report/",
                report=_shown(
                    "Film",
                    "page",
                    htmlindex="index.html",
                    labels={"page": "the film and all its reaches"},
                ),
            )
        },
        config=("env", "policy", "film.fps", "unit"),
        tools=("jinja2", "pandas"),
        files=tuple(f"report/templates/report.{kind}" for kind in ("html.j2", "css", "js")),
        summary="report/index.html",
        conda="report",
    ),
}
STAGES = FILM | _TRAININGS | _VIEWS
STAGES["verify"] = Stage(
    "Check every file of the results against its checksum, its counts and its spec.",
    inputs={"film": "concat", "tables": "episodes.tables"},
    outputs={
        "output": Output(
            "verify.csv",
            report=_shown("Tables", "verify", labels={"table": "verdicts on all files"}),
        )
    },
    config=(*_FILM, "unit"),
    tools=("ffmpeg", "numpy"),
    compares=tuple(name for name in STAGES if name != "compare"),
    threads=16,  # as many as there are, if there are fewer
)
# Targets that are no part of a film, nor made of one: the results may be of any policy.
APART = {"training", *(name for name, stage in STAGES.items() if not stage.is_of_run)}
# A training from pixels is no view: a film may be made of it.
VIEWS = tuple(name for name in (*_TRAININGS, *_VIEWS) if name != "pixels" and STAGES[name].summary)
# The package that draws a style, the tool "artist" of the stages above.
ARTISTS = {"gymnasium": "pygame-ce", "vector": "pillow"}


def _plays(*policies: str) -> Callable[[Run], bool]:
    return lambda run: run.policy in policies


def _plays_gymnasium(run: Run) -> bool:
    return not run.env.computed


# Code that some runs use, and which: the fingerprints of the others leave it out, so that its edit
# makes nothing of theirs again.
USED_WHEN: dict[str, Callable[[Run], bool]] = {
    "goalreel.policies.network": _plays("dqn"),
    "goalreel.policies.network_file": _plays("dqn", "pixels"),
    "goalreel.policies.user_function": _plays("file"),
    "goalreel.policies.stable_baselines3": _plays("sb3"),
    **dict.fromkeys(
        (
            "goalreel.policies.pixel_policy",
            "goalreel.policies.pixel_network",
            "goalreel.policies.preprocessing",
        ),
        _plays("pixels"),
    ),
    **dict.fromkeys(
        (
            "goalreel.simulation.minari_episodes",
            "goalreel.simulation.recorded_episodes",
            "goalreel.simulation.recording_file",
            "goalreel.simulation.recording_blocks",
        ),
        _plays("minari", "recorded"),
    ),
    # Which shows what goalreel plays to a network.
    "goalreel.rendering.warped": lambda run: run.env.computed and run.policy == "pixels",
    "goalreel.rendering.frame_recorder": _plays_gymnasium,
    # A user's function is told Gymnasium's spaces.
    "goalreel.environments.gymnasium_env": lambda run: (
        _plays_gymnasium(run) or run.policy == "file"
    ),
    "goalreel.environments.classic_control": lambda run: run.is_classic_control,
    "goalreel.rendering.classic_control_scene": lambda run: run.is_classic_control,
    "goalreel.encoding.assembling.block_samples": lambda run: (
        run.encoder.settings["encoder"] == "blocks"
    ),
    "goalreel.encoding.assembling.segment_samples": lambda run: run.encoder.assembled,
}


def excluded_modules(run: Run) -> list[str]:
    """Return the full names of the modules that stages of this run import and do not use."""
    return [module for module, is_used in USED_WHEN.items() if not is_used(run)]
