"""The memory and run time that a job requests from a cluster.

A retry requests twice as much, then four times. A change of these figures reruns nothing. Those of
shards and trainings come from benchmarks/film/scale.py, with a margin. Other jobs have a rough
estimate that grows with the film.
"""

from functools import cache

from goalreel.environments.gymnasium_ids import find_spec
from goalreel.workflow.run import Run
from goalreel.workflow.stages import STAGES

_OWN_MB = 400  # for the Snakemake process of the job, with a cluster's plugins
_OWN_MINUTES = 3  # for its start, and a slow file system
_SLOWER = 5  # factor for older cores and shared nodes
_STEP_MB = 100  # the unit of requested memory
_EPISODE_STEPS = 1000  # of an episode without max_episode_steps; few take as long as Atari's 27,000
# A shard that goalreel steps: MB, MB per reach, MB of frames, ms per reach.
_COMPUTED = {"simulate": (60, 0.015, 0, 0.4), "render": (150, 0.04, 25, 0.7)}
_COMPUTED |= {"encode": (100, 0.3, 120, 4), "play": (60, 0.015, 0, 0.4)}
_X264_MS = 130.0  # to encode a reach with x264
# A shard that Gymnasium steps: MB (for MuJoCo with Mesa), MB per frame, ms per frame. CarRacing
# takes 40 ms to play a frame, MuJoCo 180.
_PLAYED = {"simulate": (900, 0.001, 200), "encode": (250, 0.0005, 6), "play": (900, 0.0005, 20)}
_PLAYED["render"] = _PLAYED["simulate"]
_OTHERS = (1000, 0.006, 50, 200)  # the same four numbers for other jobs
_OTHERS_MINUTES = 60
_TORCH_MB = 3000  # to load PyTorch
_NETWORK_MB, _NETWORK_MS = 200, 200  # to play from pixels, per job and per reach of Mountain Car
_PROCESS_MB = 1000  # of a training, with PyTorch
# A decision of a training: kB in a replay buffer, and ms with two processes.
_OF_FRAMES, _OF_STATES = (7.1, 8), (0.3, 2)  # 84x84 pixels, or up to 35 numbers


@cache
def memory_mb(stage: str, run: Run, threads: int = 1) -> int:
    """Return the memory that a job of a stage needs, in MB."""
    covered, train = run.covered(STAGES[stage].scope), run.config["train"]
    mb, each, picture, _ = _COMPUTED.get(stage, _OTHERS)
    used = mb + each * covered + picture
    if stage in _PLAYED and not run.env.computed:
        mb, each, _ = _PLAYED[stage]
        used = mb + each * _steps(run) * covered
    if stage == "verify" and not run.env.computed:  # it replays episodes
        used += threads * _PLAYED["simulate"][0]
    if stage == "train":
        used += _of_decision(run)[0] * (train["buffer_size"] or 0) / 1000
        used += _PROCESS_MB * train["processes"]
    if stage in ("simulate", "play", "clips", "training_progress"):
        used += {"sb3": _TORCH_MB, "trained": _NETWORK_MB}.get(run.policy, 0)
    return _STEP_MB * -(-int(_OWN_MB + used) // _STEP_MB)


@cache
def run_minutes(stage: str, run: Run, threads: int = 1) -> int:
    """Return the run time that a job of a stage needs, in minutes."""
    covered = run.covered(STAGES[stage].scope)
    frames, reach_ms = _steps(run) * covered, _COMPUTED.get(stage, _OTHERS)[-1]
    if stage == "train":
        ms = 120_000 + _of_decision(run)[1] * run.config["train"]["total_timesteps"]
    elif stage == "verify":
        ms = 10_000 + 50 * covered + _PLAYED["simulate"][-1] * frames / threads
    elif stage not in _COMPUTED:
        ms = _OTHERS_MINUTES * 60_000 / _SLOWER + reach_ms * covered + 20 * frames
    elif not run.env.computed:
        ms = 1000 + _PLAYED[stage][-1] * frames
    else:
        reach_ms = _X264_MS if stage == "encode" and not run.encoder.assembled else reach_ms
        ms = 1000 + reach_ms * covered
        ms += _NETWORK_MS * covered if stage == run.player and run.policy == "trained" else 0
    return _OWN_MINUTES + int(_SLOWER * ms / 60_000)


def _of_decision(run: Run) -> tuple[float, float]:
    """Return the kB in a replay buffer and the ms of a decision of the training."""
    return _OF_FRAMES if isinstance(run.config["train"]["network"], str) else _OF_STATES


def _steps(run: Run) -> int:
    """Return about how many steps an episode in Gymnasium has, 0 if goalreel steps it."""
    if run.env.computed:
        return 0
    limit = find_spec(run.config["env"]).max_episode_steps or _EPISODE_STEPS
    return run.config["max_episode_steps"] or min(limit, _EPISODE_STEPS)
