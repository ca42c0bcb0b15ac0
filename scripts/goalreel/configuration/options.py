"""The options of a run: a model of each section, with the type and default of each option.

Their descriptions, for editors and the options page, are in config.schema.yaml: write that of a new
option there. config.yaml repeats the options with short comments, and a test compares the two.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from goalreel.configuration.values import (
    Boolean,
    Count,
    EpisodeTrigger,
    No,
    Section,
    Seed,
    Selection,
    StepTrigger,
    Template,
    arguments,
    different,
    integer,
    listed,
    name_sides,
    number,
    text,
)
from goalreel.policies.parameters import ALGORITHMS, PARAMETERS

_PREFIX = text(
    r"1 to 50 characters without `/`, `\`, `{`, `}` or line breaks",
    r"^[^/\\{}\x00-\x1f\x7f]{1,50}$",
)
_FOLDER = text(
    "a folder's path without `{`, `}` or `<name>` that starts with neither `-` nor `~`",
    r"^(?![-~])(?![^\x00]*<\w+>)[^{}\x00]+$",
)
_SEED_RANGE = text("a range such as `0-99`", r"^[0-9]{1,16}-[0-9]{1,16}$")
_CALLABLE = text("`module:callable`", r"^[\w.]+:\w+$")
_WRAPPERS = listed(text("`module:callable`") | arguments("`{module:callable: {argument: value}}`"))
_SIDES = listed(text("a folder"), "two or more folders, as `[a, b]`", least=2) | arguments(
    "`{name: folder, ...}`", least=2
)
_X264_PRESETS = "ultrafast superfast veryfast faster fast medium slow slower veryslow"


class PolicyOptions(Section):
    """The policy that plays: its name, and the options that it takes in the chosen environment.

    You can write `policy=random`, `policy=agent.py` or `policy=model.zip` instead of a section.
    """

    name: Literal[tuple(PARAMETERS)] | None = None
    epsilon: number(ge=0, le=1) = 0.0
    force: number(gt=0, le=1) = 1.0
    file: text("a path") | None = None
    dataset: text("a dataset's id, or its folder") | None = None
    allow: listed(text("a package's name without dots", r"^[^\W\d]\w*$")) = []
    function: text("the name of a function") = "act"
    extra_files: listed(text("a path")) = []
    batch: Boolean | None = None
    algorithm: Literal[tuple(ALGORITHMS)] | None = None
    vecnormalize: Annotated[No | text("a path") | None, Field(union_mode="left_to_right")] = None
    deterministic: Boolean = True
    safe: Boolean = False
    checkpoint: Literal["best", "last"] | integer(0, 10**9, title="a number of decisions") = "best"


class Film(Section):
    """The content of the film."""

    fps: integer(1, 240) | None = None
    show_failures: Boolean = False
    select: Selection = None


class Render(Section):
    """The size of frames, and what draws them."""

    scale: integer(1, 20) | None = None
    camera: text("the name of a camera") | None = None
    width: integer(16, 4096) | None = None
    height: integer(16, 4096) | None = None
    quality: Literal["exact", "draft"] = "exact"
    opengl: text("the name of an OpenGL renderer") | None = None


class Overlay(Section):
    """The texts over the frames of the film."""

    title_card: number(ge=0, le=60) = 0.5
    caption: Template | None = None
    hud: Boolean = False
    signals: Boolean = False


class Clips(Section):
    """The videos of single episodes and snippets that `snakemake clips` makes."""

    episode_trigger: EpisodeTrigger = "capped_cubic"
    step_trigger: StepTrigger = None
    video_length: Count | None = None
    name_prefix: _PREFIX = "rl-video"


class Stills(Section):
    """The images that `snakemake stills` makes."""

    episode_trigger: EpisodeTrigger = None


class Figures(Section):
    """The figures of one episode that `snakemake figures` makes."""

    episode_trigger: EpisodeTrigger = None
    max_mb: number(ge=0.1, le=100) = 5.0


class ModelCard(Section):
    """The folder that `snakemake model_card` makes, a model card for the Hugging Face Hub."""

    episode_trigger: EpisodeTrigger = None


class Grid(Section):
    """The video that `snakemake grid` makes, with pages of episodes side by side."""

    rows: integer(1, 20) | None = None
    columns: integer(1, 20) | None = None
    caption: Template | None = None


class Check(Section):
    """The lock file of `snakemake lock`, with which `snakemake check` compares new episodes."""

    file: text("a path") = "goalreel.lock"
    mode: Literal["exact", "statistical"] = "exact"
    tolerance: number(ge=0, title="a number from 0") | None = None


class Report(Section):
    """The page that `snakemake report` makes."""

    embed: Boolean = False


class Train(Section):
    """The training of the policy `trained`, and the film of `snakemake training_progress`.

    It needs PyTorch. `null` is the value of the environment's preset. All counts are in decisions,
    over all environments. An action lasts `frame_skip` frames.
    """

    algorithm: Literal["dqn", "ppo"] | None = None
    pixels: Boolean = False
    screen_size: integer(42, 84, multiple_of=42) | None = None
    network: (
        Literal["small", "nature", "narrow", "tiny"]
        | listed(integer(1, 10**5), "a list of numbers of hidden units", 1)
        | _CALLABLE
        | None
    ) = None
    dueling: Boolean | None = None
    double: Boolean | None = None
    total_timesteps: integer(100, 10**11) | None = None
    learning_rate: number(gt=0, le=1) | None = None
    gamma: number(ge=0, le=1) | None = None
    batch_size: integer(1, 65536) | None = None
    max_grad_norm: number(ge=0, le=10**6) | None = None
    n_envs: integer(1, 10**5) | None = None
    processes: integer(1, 1024) | None = None
    threads: integer(1, 1024) | None = None
    frame_skip: integer(1, 60) | None = None
    seed: Seed = 7
    eval_freq: integer(100, 10**11) | None = None
    n_eval_episodes: integer(1, 1000) | None = None
    checkpoints: listed(integer(0, 10**11), "a list of numbers") | None = None
    reward_threshold: number(title="a number") | None = None
    attempts: integer(1, 1000) | None = None
    n_steps: integer(1, 10**6) | None = None
    buffer_size: integer(100, 10**11) | None = None
    learning_starts: integer(0, 10**11) | None = None
    train_freq: integer(1, 10**6) | None = None
    gradient_steps: integer(1, 10**6) | None = None
    target_update_interval: integer(1, 10**8) | None = None
    exploration_fraction: number(ge=0, le=1) | None = None
    exploration_final_eps: number(ge=0, le=1) | None = None
    n_epochs: integer(1, 1000) | None = None
    gae_lambda: number(ge=0, le=1) | None = None
    clip_range: number(gt=0, le=10) | None = None
    ent_coef: number(ge=0, le=10) | None = None
    vf_coef: number(ge=0, le=10) | None = None
    starts: Literal["reset", "failures"] | None = None


class Encode(Section):
    """The encoding of the video."""

    encoder: Literal["auto", "prebuilt", "x264"] = "auto"
    quality: Literal["small", "balanced", "best"] = "balanced"
    preset: Literal[tuple(_X264_PRESETS.split())] | None = None
    qp: integer(0, 51) | None = None
    crf: number(ge=0, le=51) | None = None


class Options(Section):
    """goalreel configuration."""

    results: _FOLDER | None = None
    env: text("the id of a Gymnasium environment that `rgb_array` draws") = "MountainCar-v0"
    env_kwargs: arguments("a mapping") = {}
    env_wrappers: _WRAPPERS = []
    sticky_actions: number(ge=0, le=1) | None = None
    max_episode_steps: integer(1, 10**6) | None = None
    check_determinism: Boolean = True
    success: Literal["terminated", "truncated"] | number(title="a number") | None = None
    seed: Seed = 2025
    episodes: Count | None = None
    reaches: Count | None = None
    seeds: different(Seed) | _SEED_RANGE | None = None
    max_attempts_per_reach: integer(1, 10**6) = 100
    max_step_seconds: integer(1, 10**6) | None = None
    max_memory_mb: integer(100, 10**9) | None = None
    shard_size: integer(1, 10**5) | None = None
    suite: arguments("a mapping of options to lists of values") | None = None
    policy: PolicyOptions = {}
    film: Film = {}
    render: Render = {}
    overlay: Overlay = {}
    clips: Clips = {}
    stills: Stills = {}
    figures: Figures = {}
    model_card: ModelCard = {}
    grid: Grid = {}
    report: Report = {}
    compare: Annotated[_SIDES | None, AfterValidator(name_sides)] = None
    compare_different: Boolean = False
    check: Check = {}
    train: Train = {}
    encode: Encode = {}
