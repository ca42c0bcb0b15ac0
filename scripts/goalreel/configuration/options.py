"""The options of a run: a model of each section, with each option's type, default and meaning.

The text under an option is its description in config.schema.yaml and on the options page.
config.yaml repeats the options for people, and a test compares the two.
"""

from typing import Annotated, Literal

from pydantic import Field

from goalreel.configuration.values import (
    Boolean,
    Count,
    EpisodeTrigger,
    No,
    Section,
    Seed,
    StepTrigger,
    arguments,
    checked,
    different,
    integer,
    listed,
    number,
    text,
)
from goalreel.policies.parameters import ALGORITHMS, PARAMETERS
from goalreel.rendering.captions import check_template
from goalreel.training.dqn.settings import VARIANTS
from goalreel.training.games.settings import family_of

_TEMPLATE = Annotated[
    text("a template of ASCII characters and `·`, `°`, `…`"), checked(check_template)
]
_PREFIX = text(
    r"1 to 50 characters without `/`, `\`, `{`, `}` or line breaks",
    r"^[^/\\{}\x00-\x1f\x7f]{1,50}$",
)
_FOLDER = text(
    "a folder's path without `{`, `}` or `<name>` that starts with neither `-` nor `~`",
    r"^(?![-~])(?![^\x00]*<\w+>)[^{}\x00]+$",
)
_SEED_RANGE = text("a range such as `0-99`", r"^[0-9]{1,16}-[0-9]{1,16}$")
_WRAPPERS = listed(text("`module:callable`") | arguments("`{module:callable: {argument: value}}`"))
_X264_PRESETS = "ultrafast superfast veryfast faster fast medium slow slower veryslow"


class PolicyOptions(Section):
    """The policy that plays: its name, and the parameters that it takes in the chosen environment.

    `policy=random`, `policy=agent.py` and `policy=model.zip` are short for a section.
    """

    name: Literal[tuple(PARAMETERS)] | None = None
    """`null` is `pump` for the Mountain Cars and `random` for other environments, or what plays
    `file`: a Python file or a model's .zip. `pump` pushes in the direction of the velocity and, at
    its defaults, always reaches the goal. `near_optimal` follows a rule of three curves
    (MountainCar-v0 only). `random` draws its actions. `python` calls your own function. `recording`
    films all episodes of a file as they are. `minari` films a data set of Minari, and compares
    every observation and reward. `sb3` is a saved Stable-Baselines3 model. `dqn` is what the
    section `dqn` trains (MountainCar-v0 only). `pixels` is what the section `pixels` trains, or a
    kept one in `file` (MountainCar-v0 and ALE's games). Only these trainings need PyTorch."""
    epsilon: number(ge=0, le=1) = 0.0
    """The share of uniformly random actions, drawn from the episode's own generator. `random` draws
    all of its actions, whatever the value."""
    force: number(gt=0, le=1) = 1.0
    """The force of `pump`'s push (MountainCarContinuous-v0 only)."""
    file: text("a path") | None = None
    """The file, relative to the folder in which snakemake is started: for `python` a Python
    file, for `recording` an .npz or CSV file, for `sb3` a model's .zip or a folder of RL Zoo, for
    `pixels` a kept `pixels/policy.npz` (`null` is the run's own, which is trained where it is
    missing). If its content changes, the shards are made again."""
    dataset: text("a data set's id, or its folder") | None = None
    """The data set of `minari`: an id in `MINARI_DATASETS_PATH` (`~/.minari/datasets`), or a
    folder. The environment, its arguments, wrappers and time limit are those that it was recorded
    in."""
    allow: listed(text("a package's name without dots", r"^[^\W\d]\w*$")) = []
    """Packages whose environments and wrappers a dataset may name, also from the folder in which
    snakemake is started, beside those of Gymnasium, Minari, ALE, Gymnasium-Robotics and MiniGrid.
    goalreel imports and runs what you add."""
    function: text("the name of a function") = "act"
    """The function in `file` that takes a batch of observations and returns actions, or
    `make_policy`, which makes the policy of each episode."""
    extra_files: listed(text("a path")) = []
    """Further files that the policy `python` reads, such as weights. If their content changes, the
    shards are made again."""
    batch: Boolean = True
    """Whether the function of `python` gets the observations of all environments at once. `false`
    calls it with one row at a time, for networks that round differently in a batch."""
    algorithm: Literal[tuple(ALGORITHMS)] | None = None
    """The algorithm that trained the model of `sb3`. `null` reads it from the model's file. Those
    from TQC on need sb3-contrib. MaskablePPO plays without masks."""
    vecnormalize: Annotated[No | text("a path") | None, Field(union_mode="left_to_right")] = None
    """The statistics of VecNormalize with which `sb3` normalises observations. `null` takes
    `MODEL_vecnormalize.pkl`, `vecnormalize.pkl` or `vec_normalize.pkl` beside the model, or
    `*/vecnormalize.pkl` in a folder of RL Zoo, if one is there; `false` takes none."""
    deterministic: Boolean = True
    """Whether `sb3` plays the model's best action. `false` samples actions, from the episode's own
    seed."""
    variant: Literal[tuple(VARIANTS)] = "fast"
    """The variant of the training of `dqn`: the baseline, those with one change or two, or the one
    that takes the least time (`fast`)."""
    checkpoint: Literal["best", "last"] | integer(0, 10**9, title="a number of decisions") = "best"
    """The checkpoint of `dqn` or `pixels` that plays: the best, the last, or one by the decisions
    of training before it. Of `dqn` one is saved every 500 decisions and evaluated over 100
    episodes; of `pixels` those of `pixels.checkpoints` are."""


class Film(Section):
    """The content of the film."""

    fps: integer(1, 240) | None = None
    """Frames per second. One frame is one environment step. `null` is the environment's own
    `metadata["render_fps"]`, and 30 for the Mountain Cars and where there is none; with the policy
    `pixels`, a console's 60."""
    show_failures: Boolean = False
    """Whether a film of `reaches` also shows the failed attempts before each reach."""


class Render(Section):
    """How a frame is drawn."""

    style: Literal["gymnasium", "vector"] = "gymnasium"
    """`gymnasium` draws what `env.render()` draws, pixel for pixel; `vector` draws the Mountain
    Cars' scene with smooth edges at any size."""
    width: integer(160, 3840, multiple_of=2) = 600
    """The width in pixels. The style `gymnasium` has 600."""
    height: integer(120, 2160, multiple_of=2) = 400
    """The height in pixels. The style `gymnasium` has 400. With another aspect ratio than 3:2 the
    scene is centred, and the hill continues to the borders."""
    theme: Literal["light", "dark"] = "light"
    """The colours of the style `vector`; the style `gymnasium` is light."""
    scale: integer(1, 20) | None = None
    """How many times films and clips enlarge frames, except of Mountain Car, pixel by pixel. `null`
    is 1 for pictures of 320 rows and more; smaller ones get the least number that gives 480 rows,
    as far as 1,920 columns allow. The Mountain Cars have 1."""


class Overlay(Section):
    """What is drawn over the frames of the film."""

    title_card: number(ge=0, le=60) = 0.5
    """The seconds of a title card before each episode: the empty track with the caption. With 0
    there is none, but an assembled episode still starts with one such frame."""
    caption: _TEMPLATE | None = None
    """A line on the card and over the episode; `""` for none. It is a template with the fields
    `episode`, `seed`, `env`, `steps`, `return`, `outcome`, `terminated` and `truncated` of the
    episode, and of a reach also `reach`, `attempt`, `initial_position` and `reached`. `null` is
    `Episode {episode} · seed {seed} · {steps} steps · return {return:g}`, and `Reach {reach} · seed
    {seed} · {steps} steps` where reaches are filmed."""
    hud: Boolean = False
    """Whether each frame shows the step, the return so far and, for the Mountain Cars, a bar for
    the velocity."""


class Clips(Section):
    """The videos of single episodes and snippets that `snakemake clips` makes."""

    episode_trigger: EpisodeTrigger = "capped_cubic"
    """Which episodes, counted over all attempts in the order of reach and attempt. `capped_cubic`
    is Gymnasium's choice: 0, 1, 8, 27, …, 729, 1000, 2000, …; the best, worst and median *k* are
    chosen by return, or by steps with `by: steps`."""
    step_trigger: StepTrigger = None
    """The steps, counted over all attempts, at which a snippet of the episode starts."""
    video_length: Count | None = None
    """The maximum number of frames of a clip; `null` for whole episodes."""
    name_prefix: _PREFIX = "rl-video"
    """The start of the clips' names: `rl-video-episode-8.mp4`, `rl-video-step-500.mp4`."""


class Stills(Section):
    """The pictures that `snakemake stills` makes."""

    episode_trigger: EpisodeTrigger = None
    """The episodes on the contact sheet, at most 20, by their rows in `episodes.csv`, as in
    `clips.episode_trigger`. `null` takes 8, from the shortest to the longest."""


class Card(Section):
    """The folder that `snakemake card` makes, a model card for Hugging Face's hub."""

    episode_trigger: EpisodeTrigger = None
    """The episodes of the replay, one after another, by their rows in `episodes.csv`, as in
    `clips.episode_trigger`. `null` takes the median one."""


class Grid(Section):
    """The video that `snakemake grid` makes, with episodes side by side, page after page."""

    rows: integer(1, 20) | None = None
    """The rows of a page; `null` is as many as the episodes need, or, if `columns` is given, as
    fit. With neither a page has up to 12 episodes, in Mountain Car three rows of four."""
    columns: integer(1, 20) | None = None
    """The columns of a page, as `rows`. The video is at most 1920x1080, and no picture is larger
    than in the film."""
    caption: _TEMPLATE | None = None
    """A line in each cell; `""` for none. `null` is `Episode {episode} · return {return:g}`, and
    `Reach {reach} · {steps} steps` where reaches are filmed."""


class Train(Section):
    """The training of the policy `dqn`, and the film of `snakemake training_progress`."""

    seed: Seed = 7
    """The seed of the training of the policy `dqn`."""
    attempts: integer(1, 1000) | None = None
    """The number of episodes of each checkpoint in the learning film; null is 4 of the Mountain
    Cars, 1 of other environments, whose episodes may take minutes (`max_episode_steps` ends them
    sooner)."""


class Dqn(Section):
    """Deep Q-learning of MountainCar-v0 from its states, for the policy `dqn`.

    `snakemake compare_training` compares its variants. It needs PyTorch.
    """

    total_timesteps: integer(100, 10**9) = 20000
    """The decisions after which a training gives up. It ends before when it has solved the
    environment. An action lasts 12 frames."""
    variants: different(Literal[tuple(VARIANTS)]) = list(VARIANTS)
    """The variants that `snakemake compare_training` compares."""
    seeds: different(Seed) = [1, 2, 3, 4, 5]
    """The seeds with which `snakemake compare_training` trains each variant."""


class Pixels(Section):
    """Deep Q-learning from pixels (`snakemake pixels`, and the policy `pixels`).

    It needs PyTorch. `null` is the value of the game's preset. Everything is counted in decisions:
    an action lasts `frame_skip` frames.
    """

    game: Annotated[text("the id of a game"), checked(family_of)] | None = None
    """The game: `MountainCar-v0`, a game of ale-py such as `ALE/Breakout-v5`, or one of
    gym-super-mario-bros such as `SuperMarioBros-1-1-v0`, which needs a Python interpreter of its
    own (`pixels.python`). `null` is `env`, and `MountainCar-v0` where that is no game."""
    frame_skip: integer(1, 60) | None = None
    """The number of frames that each action is repeated; the network sees one of them."""
    network: Literal["small", "nature"] | None = None
    """The layers: `small` has 16 and 32 filters and 256 units (Mnih et al., 2013), `nature` has 32,
    64 and 64 filters and 512 units (Mnih et al., 2015)."""
    dueling: Boolean | None = None
    """Whether the network has one layer for the value of a state and one for the advantages of the
    actions (Wang et al., 2016)."""
    double: Boolean | None = None
    """Whether the network that learns chooses the action whose value the target network gives
    (Double DQN, van Hasselt et al., 2016)."""
    n_step: integer(1, 100) | None = None
    """The number of steps whose rewards a target sums before it takes a value."""
    collectors: integer(1, 1024) | None = None
    """The number of processes that play."""
    n_envs: integer(1, 10**6) | None = None
    """The number of environments, a multiple of `collectors`."""
    total_timesteps: integer(1000, 10**11) | None = None
    """The number of decisions that the training uses."""
    buffer_size: integer(1000, 10**11) | None = None
    """The size of the replay buffer in decisions of 7 kB each, over all environments. A buffer that
    does not fit into the memory of the machine, or of the GPU that learns, is refused."""
    learning_starts: integer(0, 10**11) | None = None
    """The number of decisions before the first update."""
    exploration_fraction: number(ge=0, le=1) | None = None
    """The fraction of `total_timesteps` over which the share of random actions falls from 1 to
    `exploration_final_eps`."""
    exploration_final_eps: number(ge=0, le=1) | None = None
    """The share of random actions after that."""
    python: text("the path of a Python interpreter", r".") | None = None
    """The collectors' Python interpreter, 3.11 or newer, with NumPy, Pillow and the game installed;
    `null` is the workflow's own."""
    seed: Seed = 7
    """The seed of the initial weights and of all random choices. Two trainings with the same seed
    still differ, because the collectors run concurrently with the learner."""
    train_freq: integer(1, 10**6) | None = None
    """The number of decisions, over all environments, for every `gradient_steps` updates. The
    faster side waits for the other."""
    gradient_steps: integer(1, 10**6) | None = None
    """The number of updates after every `train_freq` decisions."""
    batch_size: integer(1, 65536) | None = None
    """The number of samples in a batch."""
    learning_rate: number(gt=0, le=1) | None = None
    """The learning rate of Adam."""
    gamma: number(ge=0, le=1) | None = None
    """The discount factor per action, however many frames the action lasts."""
    max_grad_norm: number(ge=0, le=10**6) | None = None
    """The maximum norm of the gradient; 0 for no limit."""
    publish_every: integer(1, 10**6) | None = None
    """The number of updates after which the collectors get new weights."""
    target_update_interval: integer(1, 10**8) | None = None
    """The number of decisions after which the target network gets the current weights."""
    eval_freq: integer(100, 10**11) | None = None
    """The number of decisions after which greedy games are played beside the training, on the same
    seeds each time. The best evaluation chooses the policy `best`."""
    n_eval_episodes: integer(1, 1000) | None = None
    """The number of games of an evaluation."""
    checkpoints: listed(integer(0, 10**11), "an increasing list of numbers") | None = None
    """The decisions after which weights are kept for films, beside the best and the last ones."""


class Encode(Section):
    """How frames become video."""

    encoder: Literal["auto", "assemble", "x264"] = "auto"
    """`assemble` codes each distinct picture of the Mountain Cars, or each distinct block of 16x16
    pixels of other environments, once, and joins the film from these, hundreds of times faster than
    `x264` encodes every frame. `auto` assembles where that pays (the Mountain Cars, CartPole, toy
    texts, ALE's games, MiniGrid, without `preset`, `qp`, `crf`); otherwise the summary says why it
    did not. `clips`, `grid`, `swarm`, `phase` and `training_progress` always use x264."""
    quality: Literal["small", "balanced", "best"] = "balanced"
    """One scale of quality for both encoders; docs/benchmarks/encoding.md says what each costs.
    With x264, `preset`, `qp` and `crf` take precedence."""
    preset: Literal[tuple(_X264_PRESETS.split())] | None = None
    """x264's preset; `null` is that of the quality, `veryfast`, or `ultrafast` if the quality is
    balanced and the environment is no Mountain Car."""
    qp: integer(0, 51) | None = None
    """x264's constant quantiser, with which a frame depends on its episode alone. 0 is lossless,
    which browsers do not play; `null` is that of the quality."""
    crf: number(ge=0, le=51) | None = None
    """x264's constant rate factor, instead of `qp`. It carries rate control from one episode to the
    next, so that a frame's bits depend on its shard."""


class Options(Section):
    """goalreel configuration."""

    results: _FOLDER | None = None
    """The folder for everything that is made. `null` is `results/ENV-POLICY`, such as
    `results/CartPole-v1-random`; for a policy's file, its name without the suffix."""
    env: text("the id of a Gymnasium environment that `rgb_array` draws") = "MountainCar-v0"
    """The Gymnasium environment: `CartPole-v1`, `ALE/Breakout-v5` if ale-py is installed,
    `module:Name-v0` as in `gymnasium.make`. goalreel steps the Mountain Cars itself, and, without
    wrappers, CartPole, Acrobot and Pendulum."""
    env_kwargs: arguments("a mapping") = {}
    """Arguments for `gymnasium.make`. The Mountain Cars take `goal_velocity`."""
    env_wrappers: _WRAPPERS = []
    """Wrappers around the environment, the first innermost, such as
    `gymnasium.wrappers:GrayscaleObservation` or `gymnasium.wrappers:FrameStackObservation:
    {stack_size: 4}`, or your own from the folder in which snakemake is started; if a module of
    your own changes, the shards are made again. Pictures are those of the wrapped environment."""
    max_episode_steps: integer(1, 10**6) | None = None
    """The time limit of an episode, as `gymnasium.make(max_episode_steps=)`; `null` is the
    environment's own."""
    check: Boolean = True
    """`true` plays the first episode of each shard twice, and stops unless both are the same: an
    episode must depend on its seed alone. `false` plays each episode once, whatever it depends on,
    also where `reset` takes no seed; the results are marked as not reproducible. The Mountain Cars
    need no check."""
    success: Literal["terminated", "truncated"] | number(title="a number") = "terminated"
    """What counts as a reach, where `reaches` are filmed. `terminated`: the environment ends the
    episode, as Mountain Car does at its flag. `truncated`: the episode lasts until its time limit.
    A number: the episode's return is at least this."""
    seed: Seed = 2025
    """The root seed. The seed of each episode is derived from it and the episode's number; of a
    reach, from its number and the attempt's."""
    episodes: Count | None = None
    """The number of episodes to film, whatever their outcome. At most one of `episodes`, `reaches`
    and `seeds` is set. Without any, 1,000 reaches of a Mountain Car are filmed, all episodes of a
    recording or a data set, and 50 episodes of other environments."""
    reaches: Count | None = None
    """The number of goal reaches to film: each is the first attempt that reaches the goal, by
    `success`."""
    seeds: different(Seed) | _SEED_RANGE | None = None
    """The seeds of the episodes to film, as `env.reset(seed=)` takes them: a list, or a range with
    both ends."""
    max_attempts_per_reach: integer(1, 10**6) = 100
    """The number of attempts at one reach after which the run stops with an error."""
    shard_size: integer(1, 10**5) | None = None
    """The number of episodes, or of reaches, in a shard, the unit of parallel work. It changes no
    frame. `null` is 250 for the Mountain Cars, 100 for MiniGrid and toy texts, 50 for CartPole, 25
    for Pendulum and `ALE/` games, 20 for Acrobot, 15 for LunarLander and 7 for other environments,
    or fewer if the first steps show that a shard would take more than a minute."""
    policy: PolicyOptions = {}
    film: Film = {}
    render: Render = {}
    overlay: Overlay = {}
    clips: Clips = {}
    stills: Stills = {}
    card: Card = {}
    grid: Grid = {}
    compare: listed(text("a folder"), "two folders, as `[a, b]`", least=2, most=2) | None = None
    """The two finished runs, by their results folders, whose episodes of the same seeds `snakemake
    compare` shows side by side."""
    train: Train = {}
    dqn: Dqn = {}
    pixels: Pixels = {}
    encode: Encode = {}
