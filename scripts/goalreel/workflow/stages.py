"""The DAG, a stage an entry: what it takes, what it leaves, when it exists, what shapes its result.

Rules, specs, `goalreel.film`, verification and summaries are derived from this table, so that a new
view is its module, its program and its entry here. Imported while the Snakefile is parsed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from goalreel.policies.parameters import LEARNERS
from goalreel.workflow.run import Run


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
    # By option of its program: "STAGE", for its first output, or "STAGE.OPTION", with "[0]" of the
    # first shard alone; or a function of the run that says so. What the run lacks is left out.
    inputs: Mapping[str, str | Callable[[Run], str | None]] = field(default_factory=dict)
    outputs: Mapping[str, Output | str] = field(default_factory=dict)  # by option, or their paths
    when: Callable[[Run], bool] = _always  # whether a run has it
    needs: str = ""  # what a run that has it is like, in words
    config: tuple[str, ...] = ()  # options that shape its bytes: dotted keys, or keys of Run.value
    limits: tuple[str, ...] = ()  # options that bound its work and shape no byte
    # The packages whose versions shape its bytes. "artist" is the package that draws, "player"
    # those of the environment and the policy, whose files it depends on too.
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # of the package, beside its modules, that shape its bytes
    saves: Mapping[str, str] = field(default_factory=dict)  # for its next try, by option
    scope: str = "run"  # what a job covers: a "shard", a "training", the whole "run", or "any" run
    is_of_run: bool = True  # whether it is about the episodes of this run's policy
    local: bool = False  # too small for a job of its own on a cluster
    threads: int = 1  # 0: all cores
    conda: str = "film"  # its environment, in envs/

    def all_outputs(self) -> dict[str, Output]:
        """Return the outputs that it may leave, by option."""
        outputs = self.outputs.items()
        return {name: o if isinstance(o, Output) else Output(o) for name, o in outputs}

    def present(self, run: Run) -> dict[str, Output]:
        """Return the outputs that it leaves in a run, by option."""
        return {name: output for name, output in self.all_outputs().items() if output.when(run)}

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all that it may leave, below the results folder."""
        return tuple(output.path.rstrip("/") for output in self.all_outputs().values())


@dataclass(frozen=True)
class Source:
    """An input, resolved for a run: the stage that makes it, and which of its outputs it is."""

    stage: str
    path: str
    is_first_shard: bool


def sources(stage: str, run: Run) -> dict[str, Source]:
    """Return the inputs that a stage has in a run, by option of its program."""
    found = {}
    for option, named in STAGES[stage].inputs.items():
        name = (named(run) if callable(named) else named) or ""
        maker, _, output = name.removesuffix("[0]").partition(".")
        outputs = STAGES[maker].present(run) if name and STAGES[maker].when(run) else {}
        if made := outputs.get(output or next(iter(outputs), "")):
            found[option] = Source(maker, made.path, name.endswith("[0]"))
    return found


def _trained_policy(run: Run) -> str | None:
    return f"{run.policy}.policy" if run.trains_policy else None


def _frames(run: Run) -> str:
    """Return who draws: where Gymnasium plays, it draws too."""
    return "render" if run.env.has_atlas else "simulate.frames"


def _reported(path: str, category: str, labels: Mapping[str, str], **more: object) -> Output:
    """Return an output that Snakemake's report shows."""
    caption = f"docs/report/{path.partition('.')[0].strip('/').replace('/', '_')}.rst"
    when = more.pop("when", _always)
    return Output(path, when, {"category": category, "labels": labels, "caption": caption, **more})


WILDCARDS = {"shard": r"\d{5,9}", "variant": "[a-z0-9_]+", "seed": r"\d+"}
_ENVIRONMENT = ("env", "env_kwargs", "env_wrappers", "max_episode_steps")
_FILM = ("env", "film.fps", "card_frames")
_VIDEO = ("env", "film.fps", "view_encoder")
_EPISODES = {"frames": _frames, "trajectories": "simulate"}
_ENCODING = ("ffmpeg", "numpy", "pillow")
_OF_ATLAS = {
    "when": lambda run: run.env.has_atlas,
    "needs": "an environment drawn from an atlas: MountainCar-v0, MountainCarContinuous-v0",
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
    "simulate": Stage(
        "Play a shard's episodes, bit for bit as Gymnasium would.",
        inputs={
            "policy": lambda r: (
                "import_recording" if r.policy == "recording" else _trained_policy(r)
            )
        },
        outputs={
            "trajectories": "trajectories/{shard}.npz",
            "frames": Output("frames/{shard}.npz", when=lambda run: not run.env.has_atlas),
        },
        config=(*_ENVIRONMENT, "success", "seed", "policy", "film.show_failures", "check"),
        limits=("max_attempts_per_reach",),
        tools=("numpy", "player"),
        scope="shard",
    ),
    "atlas": Stage(
        "Draw every picture that the environment can show, once.",
        outputs={"output": "atlas.npz"},
        **_OF_ATLAS,
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
        needs="an assembled film: encode={encoder: prebuilt}",
        config=("env", "render", "overlay.hud", "film_encoder"),
        tools=_ENCODING,
        scope="any",
        local=True,
    ),
    "render": Stage(
        "Find the picture of every state of a shard.",
        inputs={"atlas": "atlas", "trajectories": "simulate"},
        outputs={"output": "frames/{shard}.npz"},
        **_OF_ATLAS,
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
            "episodes": _reported("episodes.csv", "Tables", {"table": "filmed episodes"}),
            "attempts": _reported(
                "attempts.csv",
                "Tables",
                {"table": "all attempts"},
                when=lambda run: run.unit == "reach",
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
        config=("env", "dqn.total_timesteps", "train.seed", "variant"),
        tools=("numpy", "torch"),
        scope="training",
        is_of_run=False,
        threads=0,  # its time is measured: nothing else runs beside it
        conda="training",
    ),
    "training_table": Stage(
        "Compare the trainings: a table, and learning curves with their bands.",
        inputs={"metrics": "dqn.metrics"},
        outputs={
            "runs": "compare_training/runs.csv",
            "rows": _reported("compare_training/table.csv", "Training", {"table": "variants"}),
            "table": "compare_training/table.md",
            "curves": _reported(
                "compare_training/curves.svg", "Training", {"plot": "learning curves"}
            ),
            "sums": "compare_training/SHA256SUMS",
        },
        config=("env", "dqn.total_timesteps", "dqn.variants", "dqn.seeds"),
        tools=("matplotlib", "numpy", "pandas"),
        scope="any",
        is_of_run=False,
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
        threads=0,  # those that no collector has are the learner's
        conda="training",
    ),
    "training_progress": Stage(
        "Film the learner's first attempts at each checkpoint.",
        inputs={"policy": _trained_policy, "atlas": "atlas"},
        outputs={
            "film": _reported("training_progress.mp4", "Training", {"film": "training progress"}),
            "table": "training_progress.csv",
            "sums": "training_progress.sha256",
        },
        when=lambda run: run.policy in LEARNERS,
        needs="a policy that is trained here: policy=dqn in MountainCar-v0, policy=pixels in games",
        config=(
            *(*_ENVIRONMENT, "success", "seed", "learner", "train.attempts", "film.fps"),
            *("overlay.title_card", "overlay.hud", "render", "view_encoder", "unit"),
        ),
        tools=(*_ENCODING, "pandas", "artist", "player"),
        scope="any",
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
        threads=4,
    ),
    "grid": Stage(
        "Play all episodes side by side, page after page.",
        inputs=_EPISODES,
        outputs={"output": "grid.mp4"},
        config=(*_VIDEO, "grid", "unit"),
        tools=_ENCODING,
    ),
    "swarm": Stage(
        "Put all reaches on one track at the same time.",
        inputs={"atlas": "atlas", "trajectories": "simulate"},
        outputs={"output": "swarm.mp4"},
        **_OF_ATLAS,
        config=(*_VIDEO, "render"),
        tools=(*_ENCODING, "artist"),
    ),
    "phase": Stage(
        "Draw all trajectories in the phase plane as they grow.",
        inputs={"trajectories": "simulate"},
        outputs={"output": "phase.mp4"},
        config=_VIDEO,
        tools=(*_ENCODING, "matplotlib"),
        conda="report",
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
    "card": Stage(
        "Make a folder that can be pushed to Hugging Face's hub as a model card.",
        inputs=_EPISODES,
        outputs={
            "readme": "card/README.md",
            "replay": "card/replay.mp4",
            "results": "card/results.json",
            "sums": "card/SHA256SUMS",
        },
        config=(*_VIDEO, *_ENVIRONMENT[1:], "card", "policy", "seed", "seeds", "unit"),
        tools=_ENCODING,
        conda="report",
    ),
    "lerobot": Stage(
        "Write all episodes as a LeRobot data set.",
        inputs=_EPISODES,
        outputs={"output": "lerobot/"},
        config=(*_VIDEO, "unit"),
        tools=(*_ENCODING, "pandas", "pyarrow"),
        threads=4,
        conda="report",
    ),
    "compare": Stage(
        "Film the same seeds of two finished runs side by side, and list their differences.",
        outputs={
            "video": "compare/compare.mp4",
            "table": "compare/compare.csv",
            "sums": "compare/SHA256SUMS",
        },
        config=("compare", "view_encoder"),
        tools=(*_ENCODING, "pandas"),
        scope="any",
        is_of_run=False,
    ),
    "plots": Stage(
        "Plot the returns, the steps, what was done and, where they can be drawn, the states.",
        inputs={
            "episodes": "episodes.episodes",
            "attempts": "episodes.attempts",
            "trajectories": "simulate",
        },
        outputs={
            "output": _reported("plots/", "Plots", {"plot": "{name}"}, patterns=["{name}.svg"])
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
            "training_progress": "training_progress",
        },
        outputs={
            "output": _reported(
                "report/", "Film", {"page": "the film and all its reaches"}, htmlindex="index.html"
            )
        },
        config=("env", "policy", "film.fps", "unit"),
        tools=("jinja2", "pandas"),
        files=tuple(f"report/templates/report.{kind}" for kind in ("html.j2", "css", "js")),
        conda="report",
    ),
}
STAGES = FILM | _TRAININGS | _VIEWS
STAGES["verify"] = Stage(
    "Check every file of the results against its checksum, its counts and its spec.",
    inputs={"film": "concat", "tables": "episodes.tables"},
    outputs={"output": _reported("verify.csv", "Tables", {"table": "verdicts on all files"})},
    config=(*_FILM, "unit"),
    tools=("ffmpeg", "numpy"),
    threads=16,  # as many as there are, if there are fewer
)
# Targets that are no part of a film, nor made of one: the results may be of any policy.
APART = {"compare_training", *(name for name, stage in STAGES.items() if not stage.is_of_run)}
# Trainings are no views: a film may be made of them.
VIEWS = {*_TRAININGS, *_VIEWS} - {"dqn", "pixels"}
# The package that draws a style, the tool "artist" of the stages above.
ARTISTS = {"gymnasium": "pygame-ce", "vector": "pillow"}
