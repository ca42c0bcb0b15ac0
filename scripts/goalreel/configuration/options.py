"""The options of a run: a model of each section, with the type, default and meaning of each option.

The text under an option is its description in config.schema.yaml and on the options page.
config.yaml repeats the options with short comments, and a test compares the two.
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
    """The name of the policy. `null` is `python`, `sb3` or `onnx` if `file` ends in .py, .zip or
    .onnx, `pump` for the Mountain Cars, and `random` for other environments. `pump` pushes in the
    direction of the velocity and, at its defaults, always reaches the goal. `near_optimal` switches
    at three curves in the phase plane (MountainCar-v0 only). `random` samples its actions. `python`
    calls your own function. `recording` films all episodes of a file as they are. `minari` films a
    Minari dataset and compares every observation and reward. `sb3` plays a saved Stable-Baselines3
    model, and `onnx` a network that any framework exported. `trained` trains a network with the
    section `train`, or plays one from `file` (environments with discrete actions). Only `sb3` and a
    training need PyTorch."""
    epsilon: number(ge=0, le=1) = 0.0
    """The fraction of uniformly random actions, which depend on the episode's seed."""
    force: number(gt=0, le=1) = 1.0
    """The force of `pump`'s push (MountainCarContinuous-v0 only)."""
    file: text("a path") | None = None
    """The policy's file, relative to the folder where you run snakemake. It is a Python file for
    `python`, an .npz or CSV file for `recording`, a model's .zip or an RL Zoo folder for `sb3`, an
    .onnx file for `onnx`, and a `policy.npz` for `trained`. Without one, `trained` trains a network
    if the results have none. An edit of the file reruns the simulation."""
    dataset: text("a dataset's id, or its folder") | None = None
    """The dataset of `minari`: an id in `MINARI_DATASETS_PATH` (`~/.minari/datasets`), or a folder.
    The dataset sets the environment, its arguments, wrappers and time limit."""
    allow: listed(text("a package's name without dots", r"^[^\W\d]\w*$")) = []
    """Packages whose code a dataset may run, in addition to Gymnasium, Minari, ALE,
    Gymnasium-Robotics and MiniGrid. A package may also be in the folder where you run snakemake."""
    function: text("the name of a function") = "act"
    """The function in `file` that returns actions for a batch of observations, or `make_policy`,
    which returns a new policy for each episode."""
    extra_files: listed(text("a path")) = []
    """Other files that `python` or `onnx` reads, such as weights. An edit of one reruns the
    simulation."""
    batch: Boolean = True
    """Whether the function of `python` gets the observations of all sub-environments at once.
    `false` calls it with one observation at a time, for networks that round differently in a
    batch."""
    algorithm: Literal[tuple(ALGORITHMS)] | None = None
    """The algorithm of the `sb3` model. `null` reads it from the file. TQC and those after it need
    sb3-contrib. MaskablePPO plays without masks."""
    vecnormalize: Annotated[No | text("a path") | None, Field(union_mode="left_to_right")] = None
    """The VecNormalize statistics with which `sb3` normalizes observations. `null` looks next to
    the model for `MODEL_vecnormalize.pkl`, `vecnormalize.pkl` or `vec_normalize.pkl`, and in an RL
    Zoo folder for `*/vecnormalize.pkl`. `false` uses none."""
    deterministic: Boolean = True
    """Whether `sb3` plays the best action. `false` samples actions with the episode's seed."""
    safe: Boolean = False
    """Whether `sb3` rejects a model that cannot be played without running code of its files."""
    checkpoint: Literal["best", "last"] | integer(0, 10**9, title="a number of decisions") = "best"
    """The checkpoint of `trained` that plays: the one with the best evaluation, the last, or the
    number of decisions before it, as in `train.checkpoints`."""


class Film(Section):
    """The content of the film."""

    fps: integer(1, 240) | None = None
    """Frames per second. One frame is one environment step. `null` is the environment's
    `metadata["render_fps"]`, 60 for ALE games and Super Mario Bros with the policy `trained`, and
    30 for the Mountain Cars and environments without one."""
    show_failures: Boolean = False
    """Whether a film of `reaches` also shows the failed attempts before each reach."""
    select: Selection = None
    """The episodes to film of those that `episodes` or `seeds` name. goalreel plays all of them
    without frames, then films the chosen ones. `best`, `worst` and `median` choose *k* by return,
    or by steps with `by: steps`. `failed` takes the first *k* that do not meet `success`. `rarest`
    takes those with the fewest others of the same ending within a tenth of a standard deviation of
    the return, or of the steps. `clusters` groups all endings and takes a typical episode of each.
    A list has the numbers of episodes. `null` films all."""


class Render(Section):
    """The size of frames, and what draws them."""

    scale: integer(1, 20) | None = None
    """The factor by which films and clips enlarge frames, pixel by pixel. `null` is 1 for frames of
    at least 320 rows. For smaller ones it is the smallest factor that gives 480 rows, up to 1,920
    columns. The Mountain Cars allow only 1."""
    camera: text("the name of a camera") | None = None
    """The camera of MuJoCo's frames, such as `track`. `null` is that of `env.render()`. If it or a
    size changes, frames are drawn again, without simulating."""
    width: integer(16, 4096) | None = None
    """The width of MuJoCo's frames in pixels. `null` is 480."""
    height: integer(16, 4096) | None = None
    """The height of MuJoCo's frames in pixels. `null` is 480."""
    quality: Literal["exact", "draft"] = "exact"
    """`draft` renders MuJoCo without shadows and multisampling, several times as fast. The frames
    are not those of `env.render()`, as the film's title, the tables and the page say."""
    opengl: text("the name of an OpenGL renderer") | None = None
    """The OpenGL renderer of MuJoCo's frames, such as `llvmpipe (LLVM 15.0.6, 256 bits)`. A job on
    a machine with another one stops. `null` is the renderer of the machine that starts the run."""


class Overlay(Section):
    """The texts over the frames of the film."""

    title_card: number(ge=0, le=60) = 0.5
    """The seconds of a title card before each episode, with the environment, the policy, the
    episode's number and its seed. 0 is for none."""
    caption: Template | None = None
    """The line over the episode. `""` is for none. It is a Python format
    string with the fields `episode`, `seed`, `env`, `steps`, `return`, `outcome`, `terminated`,
    `truncated` and `info`, the environment's own columns. A film of reaches also has `reach`,
    `attempt`, `initial_position` and `reached`.
    `null` is `Episode {episode} · seed {seed} · {steps} steps · return {return:g}`, or `Reach
    {reach} · seed {seed} · {steps} steps` in a film of reaches."""
    hud: Boolean = False
    """Whether frames show the step, the return so far and, for Mountain Cars, a velocity bar."""
    signals: Boolean = False
    """Whether frames show what the policy says of its choices, as bars and traces below the
    picture: values, action probabilities or Q values. The report then shows them as a curve."""


class Clips(Section):
    """The videos of single episodes and snippets that `snakemake clips` makes."""

    episode_trigger: EpisodeTrigger = "capped_cubic"
    """The episodes, counted over all attempts in the order of reach and attempt. `capped_cubic` is
    Gymnasium's choice: 0, 1, 8, 27, …, 729, 1000, 2000, … The best, worst and median *k* are chosen
    by return, or by steps with `by: steps`."""
    step_trigger: StepTrigger = None
    """The steps, counted over all attempts, at which a snippet of the episode starts."""
    video_length: Count | None = None
    """The maximum number of frames in a clip. `null` is for whole episodes."""
    name_prefix: _PREFIX = "rl-video"
    """The start of the clips' names: `rl-video-episode-8.mp4`, `rl-video-step-500.mp4`."""


class Stills(Section):
    """The images that `snakemake stills` makes."""

    episode_trigger: EpisodeTrigger = None
    """The episodes on the contact sheet, at most 20, chosen as in `clips.episode_trigger` from the
    rows of `episodes.csv`. `null` chooses 8, from the shortest to the longest."""


class Figures(Section):
    """The figures of one episode that `snakemake figures` makes."""

    episode_trigger: EpisodeTrigger = None
    """The episode, the first one that `clips.episode_trigger` would choose from the rows of
    `episodes.csv`. `null` is the median one."""
    max_mb: number(ge=0.1, le=100) = 5.0
    """The size that `episode.gif` and `episode.webp` stay below, in MB. They are made smaller until
    they do."""


class ModelCard(Section):
    """The folder that `snakemake model_card` makes, a model card for the Hugging Face Hub."""

    episode_trigger: EpisodeTrigger = None
    """The episodes of the replay video, chosen as in `clips.episode_trigger` from the rows of
    `episodes.csv`. `null` chooses the median one."""


class Grid(Section):
    """The video that `snakemake grid` makes, with pages of episodes side by side."""

    rows: integer(1, 20) | None = None
    """The rows of a page. `null` is as many as the episodes need, or, if you set `columns`, as many
    as fit. By default a page has up to 12 episodes, and for Mountain Car three rows of four."""
    columns: integer(1, 20) | None = None
    """The columns of a page, as `rows`. The video is at most 1920x1080, and no cell is larger than
    the film."""
    caption: Template | None = None
    """The line in each cell. `""` is for none. `null` is `Episode {episode} · return {return:g}`,
    or `Reach {reach} · {steps} steps` in a film of reaches."""


class Check(Section):
    """The lock file of `snakemake lock`, with which `snakemake check` compares new episodes."""

    file: text("a path") = "goalreel.lock"
    """The lock file, relative to the folder where you run snakemake."""
    mode: Literal["exact", "statistical"] = "exact"
    """`exact` accepts only episodes and frames that are equal in every bit. `statistical` accepts
    any episodes if the 95% interval of the change of the mean return lies within `tolerance`."""
    tolerance: number(ge=0, title="a number from 0") | None = None
    """The greatest change of the mean return, up or down, that `statistical` accepts."""


class Report(Section):
    """The page that `snakemake report` makes."""

    embed: Boolean = False
    """Whether the page is a single file, `report/index.html`, that contains the film, the tables
    and the plots. The film can have up to 50 MB. `false` makes a page that loads these files from
    its folder and also shows the grid and other videos."""


class Train(Section):
    """The training of the policy `trained`, and the film of `snakemake training_progress`.

    It needs PyTorch. `null` is the value of the environment's preset. All counts are in decisions,
    over all environments. An action lasts `frame_skip` frames.
    """

    algorithm: Literal["dqn", "ppo"] | None = None
    """`dqn` is deep Q-learning (Mnih et al., 2015), `ppo` is proximal policy optimization (Schulman
    et al., 2017)."""
    pixels: Boolean = False
    """Whether MountainCar-v0 shows its frames instead of its state. ALE games, Super Mario Bros and
    your own environments with images always show frames."""
    screen_size: integer(42, 84, multiple_of=42) | None = None
    """The side in pixels of the gray frames that the network sees, 42 or 84."""
    network: (
        Literal["small", "nature", "narrow", "tiny"]
        | listed(integer(1, 10**5), "a list of numbers of hidden units", 1)
        | _CALLABLE
        | None
    ) = None
    """The layers. For frames, `small` has 16 and 32 filters and 256 units (Mnih et al., 2013),
    `nature` has 32, 64 and 64 filters and 512 units (Mnih et al., 2015), and `narrow` has half of
    these. `tiny` has 16 and 32 filters and 256 units for a `screen_size` of 42. For states, a list
    such as `[64, 64]` has the units of the hidden layers. A callable of your own takes the shape of
    an observation and returns a `torch.nn.Module` that turns a batch of observations into features,
    (batch, n). An edit of its file trains again."""
    dueling: Boolean | None = None
    """DQN: whether the network has one layer for the value of a state and one for the advantages of
    the actions (Wang et al., 2016)."""
    double: Boolean | None = None
    """DQN: whether the network that learns chooses the action whose value the target network gives
    (Double DQN, van Hasselt et al., 2016)."""
    total_timesteps: integer(100, 10**11) | None = None
    """The maximum number of decisions of the training."""
    learning_rate: number(gt=0, le=1) | None = None
    """The learning rate of Adam at the start of the training."""
    gamma: number(ge=0, le=1) | None = None
    """The discount factor per action, however many frames the action lasts."""
    batch_size: integer(1, 65536) | None = None
    """The number of samples in a batch."""
    max_grad_norm: number(ge=0, le=10**6) | None = None
    """The maximum norm of the gradient. 0 is for no limit."""
    n_envs: integer(1, 10**5) | None = None
    """The number of environments, a multiple of `processes`."""
    processes: integer(1, 1024) | None = None
    """The number of processes. Each plays its share of the environments and computes its share of
    each batch. Another number gives other weights."""
    threads: integer(1, 1024) | None = None
    """PyTorch's threads in each process. Another number gives other weights."""
    frame_skip: integer(1, 60) | None = None
    """The number of frames for which each action is repeated. A network that sees frames sees one
    of them."""
    seed: Seed = 7
    """The seed of the initial weights and of all random choices."""
    eval_freq: integer(100, 10**11) | None = None
    """The number of decisions between evaluations, which play without exploration and with the same
    seeds each time. The best evaluation determines the checkpoint `best`."""
    n_eval_episodes: integer(1, 1000) | None = None
    """The number of episodes of an evaluation."""
    checkpoints: listed(integer(0, 10**11), "an increasing list of numbers") | None = None
    """The numbers of decisions after which weights are kept, besides the best and last ones."""
    reward_threshold: number(title="a number") | None = None
    """The mean return of an evaluation that ends the training."""
    attempts: integer(1, 1000) | None = None
    """The number of episodes per checkpoint in the film of the training. `null` is 4 for the
    Mountain Cars and 1 for other environments. Set `max_episode_steps` to shorten long episodes."""
    n_steps: integer(1, 10**6) | None = None
    """DQN: the number of steps whose rewards a target sums before it takes a value. PPO: the number
    of decisions in each environment between updates."""
    buffer_size: integer(100, 10**11) | None = None
    """DQN: the size of the replay buffer in decisions, of 7 kB each for frames of
    84x84 pixels. It must fit into memory."""
    learning_starts: integer(0, 10**11) | None = None
    """DQN: the number of decisions before the first update."""
    train_freq: integer(1, 10**6) | None = None
    """DQN: the number of decisions for every `gradient_steps` updates."""
    gradient_steps: integer(1, 10**6) | None = None
    """DQN: the number of updates after every `train_freq` decisions."""
    target_update_interval: integer(1, 10**8) | None = None
    """DQN: the number of decisions after which the target network gets the current weights."""
    exploration_fraction: number(ge=0, le=1) | None = None
    """DQN: the share of `total_timesteps` in which epsilon falls from 1 to
    `exploration_final_eps`."""
    exploration_final_eps: number(ge=0, le=1) | None = None
    """DQN: the fraction of random actions after that."""
    n_epochs: integer(1, 1000) | None = None
    """PPO: the number of times that an update uses each decision."""
    gae_lambda: number(ge=0, le=1) | None = None
    """PPO: the factor between bias and variance in generalized advantage estimation (Schulman et
    al., 2016)."""
    clip_range: number(gt=0, le=10) | None = None
    """PPO: the greatest relative change of an action's probability that an update rewards."""
    ent_coef: number(ge=0, le=10) | None = None
    """PPO: the weight of the entropy in the loss."""
    vf_coef: number(ge=0, le=10) | None = None
    """PPO: the weight of the value's error in the loss."""
    starts: Literal["reset", "failures"] | None = None
    """PPO: the starts of training episodes. `reset` is the environment's. `failures` also starts
    from snapshots before the places where the policy fails (Super Mario Bros only). Evaluations
    always start with a reset."""


class Encode(Section):
    """The encoding of the video."""

    encoder: Literal["auto", "prebuilt", "x264"] = "auto"
    """`prebuilt` encodes each distinct frame of the Mountain Cars once, or each distinct block of
    16x16 pixels of other environments, and assembles the film from these parts. `x264` encodes
    every frame. `auto` is `prebuilt` if that is faster: for the Mountain Cars, CartPole, toy texts,
    ALE games and MiniGrid, unless `preset`, `qp` or `crf` is set. The summary names the reason for
    `x264`. `clips`, `grid`, `swarm` and `training_progress` always use x264."""
    quality: Literal["small", "balanced", "best"] = "balanced"
    """One quality scale for both encoders. docs/benchmarks/encoding.md has the sizes and times.
    With x264, `preset`, `qp` and `crf` take precedence."""
    preset: Literal[tuple(_X264_PRESETS.split())] | None = None
    """The x264 preset. `null` is `veryfast`, or `ultrafast` if the quality is balanced and the
    environment is not a Mountain Car."""
    qp: integer(0, 51) | None = None
    """The constant quantizer of x264. A frame then depends only on its episode. 0 is lossless,
    which browsers do not play. `null` is the value of the quality."""
    crf: number(ge=0, le=51) | None = None
    """The constant rate factor of x264, instead of `qp`. Its rate control continues from one
    episode to the next, so a frame also depends on its shard."""


class Options(Section):
    """goalreel configuration."""

    results: _FOLDER | None = None
    """The folder for all files of the run. `null` is `results/ENV-POLICY`, such as
    `results/CartPole-v1-random`, or `results` if you set `compare`. The POLICY of a file is its
    name without suffix."""
    env: text("the id of a Gymnasium environment that `rgb_array` draws") = "MountainCar-v0"
    """The id of the environment as in `gymnasium.make`, such as `CartPole-v1`, `ALE/Breakout-v5`,
    or `module:Name-v0` for your own."""
    env_kwargs: arguments("a mapping") = {}
    """Arguments for `gymnasium.make`. The Mountain Cars take `goal_velocity`."""
    env_wrappers: _WRAPPERS = []
    """Wrappers around the environment, the first innermost, such as
    `gymnasium.wrappers:GrayscaleObservation` or `gymnasium.wrappers:FrameStackObservation:
    {stack_size: 4}`, or your own from the folder where you run snakemake. An edit of your own
    module reruns the simulation. The film shows the frames of the wrapped environment."""
    sticky_actions: number(ge=0, le=1) | None = None
    """The probability with which the environment repeats the previous action instead of the chosen
    one (Machado et al., 2018), in each frame of `ALE/` and Super Mario Bros games and in each step
    of others. `null` is the environment's own: 0.25 in `ALE/...-v5` and Super Mario Bros, 0 in
    others."""
    max_episode_steps: integer(1, 10**6) | None = None
    """The time limit, as in `gymnasium.make(max_episode_steps=)`. `null` is the environment's."""
    check_determinism: Boolean = True
    """Whether goalreel plays the first episode of each shard twice and stops if the two differ,
    because an episode must depend only on its seed. `false` accepts any environment, also without
    `reset(seed=)`, and marks the results as not reproducible. The Mountain Cars need no check."""
    success: Literal["terminated", "truncated"] | number(title="a number") | None = None
    """The condition of a reach, and of the successes that are counted in a film of episodes.
    `terminated`: the environment ends the episode, as Mountain Car does at its flag. `truncated`:
    the episode lasts until its time limit. A number: the episode's return is at least this. `null`
    is `terminated` for `reaches` and the Mountain Cars. For other episodes it is the environment's
    `reward_threshold`."""
    seed: Seed = 2025
    """The root seed. The seed of an episode follows from it and the episode's number, or the
    numbers of the reach and the attempt."""
    episodes: Count | None = None
    """The number of episodes to film, whatever their outcome. Set at most one of `episodes`,
    `reaches` and `seeds`. The default is 1,000 reaches for a Mountain Car, all episodes of a
    recording or a dataset, and 50 episodes for other environments."""
    reaches: Count | None = None
    """The number of goal reaches to film. A reach is the first attempt that meets `success`."""
    seeds: different(Seed) | _SEED_RANGE | None = None
    """The seeds of the episodes to film, as in `env.reset(seed=)`: a list or an inclusive range."""
    max_attempts_per_reach: integer(1, 10**6) = 100
    """The number of failed attempts at one reach after which the run stops with an error."""
    max_step_seconds: integer(1, 10**6) | None = None
    """The seconds after which a step, a reset or a rendering of the environment is an error. `null`
    waits forever."""
    max_memory_mb: integer(100, 10**9) | None = None
    """The memory of a simulation's job in megabytes. More is an error. `null` sets no limit."""
    shard_size: integer(1, 10**5) | None = None
    """The number of episodes or reaches in a shard, the unit of parallel work. It changes no frame.
    `null` is 250 for the Mountain Cars, 100 for MiniGrid and toy texts, 50 for CartPole, 25 for
    Pendulum and 20 for Acrobot. It is 15 for LunarLander and BipedalWalker, 10 for `ALE/` games,
    5 for CarRacing and MuJoCo, and 7 for other environments. It is smaller if a shard would take
    more than a minute, by the first steps in an environment that goalreel does not know."""
    suite: arguments("a mapping of options to lists of values") | None = None
    """Several runs in one call. Each combination of the listed values is a run in `results/NAME`. A
    key is an option, such as `env` or `policy.checkpoint`. Its values are a list, or a mapping of
    names to values, in which `{env}` stands for the value of `env`. `checkpoint` takes a pattern of
    files, `runs` a mapping of names to options, and `rl_zoo` an RL Zoo folder."""
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
    """The results folders of the finished runs whose episodes with equal seeds `snakemake compare`
    compares. The first run is the reference. Without names, the folders are the names."""
    compare_different: Boolean = False
    """Whether `compare` takes runs of different environments, or with different `env_kwargs`,
    `env_wrappers`, `max_episode_steps` or `success`."""
    check: Check = {}
    train: Train = {}
    encode: Encode = {}
