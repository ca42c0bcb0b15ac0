"""What a job asks of a cluster: memory and run time, from the configuration and the attempt.

A job that was killed is tried again and asks for twice as much, then four times. The figures are no
part of a spec: asking for more makes nothing again. It is imported while the Snakefile is parsed.
"""

from collections.abc import Callable, Mapping
from functools import cache

from goalreel.encoding.choice import Choice
from goalreel.environments.gymnasium_ids import find_spec
from goalreel.environments.registry import describe
from goalreel.workflow.stages import GYMNASIUM, MUJOCO, STAGES, Stage

_OWN_MB = 400  # the Snakemake that runs the job's commands, with a cluster's plugins
_OWN_MINUTES = 3  # its start, and a file system that stalls
_SLOWER = 5  # than where it was measured: older cores, shared nodes
_PICTURE = 600 * 400  # pixels of the frames that were measured
_STEP = 100  # MB; memory is asked for in steps
_X264_MS = 130.0  # to encode a reach, where its pictures are not assembled
# Of an episode that Gymnasium plays, if max_steps does not say: few take as long as Atari's 27,000.
_MOST_STEPS = 1000
_TORCH_MB = 3000  # to load PyTorch
_NETWORK_MB, _NETWORK_MS = 200, 200  # to play from pixels: a job, and a reach of Mountain Car
_GAMES = 8  # times as many steps as others' episodes: games of an emulator, each frame a step
_TRAININGS = ("dqn", "pixels", "training_table")  # which work on no picture of a film
_BUFFER_KB = 7.1  # a step in a replay buffer, or a ring, of frames of 84x84
_COLLECTOR_MB = 250
_SAMPLES = 500  # learned in a second by one core
_DQN_MS = 2.5  # a decision of a training of the baseline, the slowest variant but for noise


@cache
def stage_of(name: str, env: str) -> Stage:
    """Return a stage as it is for an environment."""
    if describe(env).computed:
        return STAGES[name]
    classes = getattr(find_spec(env)[1], "__mro__", ())
    of_mujoco = any("mujoco" in f"{c.__module__}.{c.__name__}".lower() for c in classes)
    return (STAGES | GYMNASIUM | (MUJOCO if of_mujoco else {}))[name]


def memory_mb(stage: str, config: Mapping, covered: int, threads: int = 1) -> int:
    """Return the memory that a job of a stage takes, in MB; covered: its number of reaches."""
    need, pixels = stage_of(stage, config["env"]), config["pixels"]
    policy = config["policy"]["name"]
    kb = need.kb_per_reach + need.kb_per_frame * _steps(config)
    used = need.mb + kb * covered / 1000 + need.mb_per_picture * _pictures(config)
    if stage == "verify" and not describe(config["env"]).computed:  # which plays again
        used += threads * stage_of("simulate", config["env"]).mb
    if policy == "pixels" and stage in ("simulate", "clips", "learning"):
        used += _NETWORK_MB
    plays = policy == "sb3" and stage in ("simulate", "clips")
    if plays or "torch" in need.tools:
        used += _TORCH_MB
    if stage == "pixels":
        used += pixels["buffer"] * _BUFFER_KB / 1000 + pixels["collectors"] * _COLLECTOR_MB
    return _STEP * -(-int(_OWN_MB + used) // _STEP)


def run_minutes(
    stage: str, config: Mapping, covered: int, encoder: Choice, threads: int = 1
) -> int:
    """Return the run time that a job of a stage takes, in minutes; covered: as above."""
    env, pixels, pictures = config["env"], config["pixels"], _pictures(config)
    need, is_computed = stage_of(stage, env), describe(env).computed
    ms = need.ms_per_reach + need.ms_per_frame * _steps(config)
    if stage == "simulate" and is_computed and config["policy"]["name"] == "pixels":
        ms += _NETWORK_MS
    if stage == "encode" and is_computed:
        ms = (ms if encoder.assembled else _X264_MS) * pictures
    if stage == "verify" and not is_computed:
        ms += stage_of("simulate", env).ms_per_frame * _steps(config) / threads
    seconds = need.seconds * (1 if stage in _TRAININGS else pictures) + ms * covered / 1000
    if stage == "dqn":
        seconds += config["dqn"]["decisions"] * _DQN_MS / 1000
    if stage == "pixels":
        samples = pixels["decisions"] * (pixels["replay_ratio"] or 1)
        seconds += samples / _SAMPLES
    return _OWN_MINUTES + int(_SLOWER * seconds / 60)


def doubling(first: Callable[[int], int]) -> Callable[..., int]:
    """Return a function of a job's attempt and threads: `first`, then twice and four times it."""
    first = cache(first)

    def asked(wildcards, attempt, threads=1) -> int:
        return first(threads) * 2 ** (attempt - 1)

    return asked


def _steps(config: Mapping) -> int:
    """Return the steps of an episode that Gymnasium plays, at most; 0 for what is computed here."""
    if describe(config["env"]).computed:
        return 0
    most = _MOST_STEPS * (_GAMES if config["policy"]["name"] == "pixels" else 1)
    limit = find_spec(config["env"])[0].max_episode_steps or most
    return config["max_steps"] or min(limit, most)


def _pictures(config: Mapping) -> float:
    """Return the size of a frame, in frames of 600x400; 1 for what Gymnasium draws."""
    if not describe(config["env"]).has_atlas:
        return 1
    return config["render"]["width"] * config["render"]["height"] / _PICTURE
