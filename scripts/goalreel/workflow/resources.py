"""What a job asks of a cluster: memory and run time, from the configuration and the attempt.

A job that was killed is tried again and asks for twice as much, then four times. The figures are no
part of a spec: asking for more makes nothing again. Measured by benchmarks/film/scale.py, with some
to spare: shards and trainings; other jobs get what suits most, growing with the film.
"""

from collections.abc import Callable
from functools import cache

from goalreel.environments.gymnasium_ids import find_spec
from goalreel.workflow.run import Run
from goalreel.workflow.stages import STAGES

_OWN_MB = 400  # the Snakemake that runs the job's commands, with a cluster's plugins
_OWN_MINUTES = 3  # its start, and a file system that stalls
_SLOWER = 5  # than where it was measured: older cores, shared nodes
_PICTURE = 600 * 400  # pixels of the frames that were measured
_STEP_MB = 100  # memory is asked for in steps
# Of an episode without max_episode_steps: few take as long as Atari's 27,000.
_EPISODE_STEPS = 1000
# Of a shard that is computed here: MB, and for each reach, and for a picture's size; ms for each.
_COMPUTED = {"simulate": (60, 0.015, 0, 0.4), "render": (150, 0.04, 25, 0.7)}
_COMPUTED |= {"encode": (100, 0.2, 120, 3)}
_X264_MS = 130.0  # to encode a reach, where its pictures are not assembled
# Of one that Gymnasium plays: MB, which MuJoCo's take, drawn by Mesa; MB and ms for each frame, of
# which CarRacing's take 40 to play, MuJoCo's 180.
_PLAYED = {"simulate": (900, 0.001, 200), "encode": (250, 0.0005, 6)}
_OTHERS = (1000, 0.006, 50, 200)  # as of a shard that is computed; and minutes beside
_OTHERS_MINUTES = 60
_TORCH_MB = 3000  # to load PyTorch
_NETWORK_MB, _NETWORK_MS = 200, 200  # to play from pixels: a job, and a reach of Mountain Car
_BUFFER_KB = 7.1  # a step in a replay buffer, or a ring, of frames of 84x84
_COLLECTOR_MB = 250
_SAMPLES = 500  # learned in a second by one core
_DQN_MS = 2.5  # a decision of a training of the baseline, the slowest variant but for noise


@cache
def memory_mb(stage: str, run: Run, threads: int = 1) -> int:
    """Return the memory that a job of a stage takes, in MB."""
    covered, pixels = run.covered(STAGES[stage].scope), run.config["pixels"]
    mb, each, picture, _ = _COMPUTED.get(stage, _OTHERS)
    used = mb + each * covered + picture * _pictures(run)
    if stage in _PLAYED and not run.env.computed:
        mb, each, _ = _PLAYED[stage]
        used = mb + each * _steps(run) * covered
    if stage == "verify" and not run.env.computed:  # which plays again
        used += threads * _PLAYED["simulate"][0]
    if stage == "pixels":
        used += pixels["buffer_size"] * _BUFFER_KB / 1000 + pixels["collectors"] * _COLLECTOR_MB
    if stage in ("simulate", "clips", "training_progress"):
        used += {"sb3": _TORCH_MB, "dqn": _TORCH_MB, "pixels": _NETWORK_MB}.get(run.policy, 0)
    if "torch" in STAGES[stage].tools:
        used += _TORCH_MB
    return _STEP_MB * -(-int(_OWN_MB + used) // _STEP_MB)


@cache
def run_minutes(stage: str, run: Run, threads: int = 1) -> int:
    """Return the run time that a job of a stage takes, in minutes."""
    covered, pixels = run.covered(STAGES[stage].scope), run.config["pixels"]
    frames, reach_ms = _steps(run) * covered, _COMPUTED.get(stage, _OTHERS)[-1]
    if stage == "dqn":
        ms = 30_000 + run.config["dqn"]["total_timesteps"] * _DQN_MS
    elif stage == "pixels":
        samples = pixels["batch_size"] * pixels["gradient_steps"] / pixels["train_freq"]
        ms = 120_000 + 1000 * pixels["total_timesteps"] * samples / _SAMPLES
    elif stage == "verify":
        ms = 10_000 + 50 * covered + _PLAYED["simulate"][-1] * frames / threads
    elif stage not in _COMPUTED:
        ms = _OTHERS_MINUTES * 60_000 / _SLOWER + reach_ms * covered * _pictures(run) + 20 * frames
    elif not run.env.computed:
        ms = 1000 + _PLAYED[stage][-1] * frames
    else:
        reach_ms = _X264_MS if stage == "encode" and not run.encoder.assembled else reach_ms
        ms = (1000 + reach_ms * covered) * _pictures(run)
        ms += _NETWORK_MS * covered if stage == "simulate" and run.policy == "pixels" else 0
    return _OWN_MINUTES + int(_SLOWER * ms / 60_000)


def asked(need: Callable[..., int], stage: str, run: Run, wildcards, attempt, threads=1) -> int:
    """Return what an attempt at a job asks for: what it needs, then twice and four times that."""
    return need(stage, run, threads) * 2 ** (attempt - 1)


def _steps(run: Run) -> int:
    """Return the steps of an episode that Gymnasium plays, about; 0 for what is computed here."""
    if run.env.computed:
        return 0
    limit = find_spec(run.config["env"]).max_episode_steps or _EPISODE_STEPS
    return run.config["max_episode_steps"] or min(limit, _EPISODE_STEPS)


def _pictures(run: Run) -> float:
    """Return the size of a frame, in frames of 600x400; 1 for what Gymnasium draws."""
    render = run.config["render"]
    return render["width"] * render["height"] / _PICTURE if run.env.has_atlas else 1
