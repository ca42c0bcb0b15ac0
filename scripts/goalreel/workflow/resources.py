"""What a rule's job asks of a cluster: memory and time, from the configuration and the attempt.

A job that was killed is tried again and asks for twice as much, then four times. The figures are
peaks and CPU seconds as measured (README, "On a cluster") with some to spare. They are no part of a
spec: asking for more makes nothing again. What a job does stands in the stages; this module is
imported while the Snakefile is parsed, and imports little.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from goalreel.encoding.choice import Choice
from goalreel.environments.registry import describe

_OWN_MB = 400  # the Snakemake that runs the job's commands, with a cluster's plugins
_OWN_MINUTES = 3  # its start, and a file system that stalls
_SLOWER = 5  # than where it was measured: older cores, shared nodes
_PIXELS = 600 * 400  # of the frames that were measured
_STEP = 100  # MB; memory is asked for in steps


@dataclass(frozen=True)
class _Need:
    """What a stage takes: a constant, and what grows with the reaches that its job works on.

    mb, seconds: constant; kb, ms: for each reach; picture_mb: for a frame of 600x400 pixels
    """

    mb: float
    kb: float = 0.0
    seconds: float = 0.0
    ms: float = 0.0
    picture_mb: float = 0.0


_SHARDED = {
    "simulate": _Need(mb=60, kb=15, seconds=1, ms=0.4),
    "render": _Need(mb=150, kb=40, seconds=1, ms=0.7, picture_mb=25),
    "encode": _Need(mb=100, kb=200, seconds=1, ms=3, picture_mb=120),
}
_WHOLE = {
    "atlas": _Need(mb=200, seconds=3, picture_mb=25),
    "coded_atlas": _Need(mb=250, seconds=10, picture_mb=40),
    "train": _Need(mb=200, seconds=60),
    "dqn": _Need(mb=300, seconds=30),
    "pixels": _Need(mb=500, seconds=120),
    "training_table": _Need(mb=300, seconds=10),
    "learning": _Need(mb=300, seconds=60, picture_mb=50),
    "concat": _Need(mb=100, kb=0.1, seconds=1, ms=1),
    "part": _Need(mb=100, kb=0.1, seconds=1, ms=1),
    "episodes": _Need(mb=150, kb=1, seconds=5, ms=0.2),
    "plots": _Need(mb=300, kb=1, seconds=20, ms=0.2),
    "clips": _Need(mb=500, kb=6, seconds=60, ms=1, picture_mb=50),
    "grid": _Need(mb=500, kb=6, seconds=60, ms=50),
    "swarm": _Need(mb=500, kb=6, seconds=60, ms=2, picture_mb=50),
    "phase": _Need(mb=500, kb=6, seconds=60, ms=2),
    "stills": _Need(mb=500, kb=6, seconds=60, ms=1, picture_mb=50),
    "verify": _Need(mb=500, seconds=10, ms=50),
    "report": _Need(mb=500, kb=6, seconds=30, ms=2, picture_mb=50),
}
_X264_MS = 130.0  # for each reach, to encode it
_GYMNASIUM_MS = 5.0  # to step, draw and encode a frame of another environment
_STEPS = 500  # of its episodes, if max_steps does not say
_TORCH_MB = 3000  # to load PyTorch
_STEP_KB = 7.1  # of a replay buffer, or a ring, of frames of 84x84
_COLLECTOR_MB = 250
_SAMPLES = 500  # learned in a second by one core
_TRAINERS = ("dqn", "pixels")
_PLAYERS = ("simulate", "learning", "clips")  # which read the policy's file
_UNSEEN = (*_TRAINERS, "train", "training_table")  # which work on no picture of a film
_DQN_MS = 1.5  # for each frame of a training of the baseline, the slowest but for noise
_TRAINING_CORES = 2  # a training's process, and that of its player


class Needs:
    """What the rules' jobs need; the rules' `resources` are what its methods return."""

    def __init__(self, config: Mapping, encoder: Choice):
        """Take the complete configuration and what encodes its film."""
        self._config, self._encoder = config, encoder
        render = config["render"]
        self._pictures = render["width"] * render["height"] / _PIXELS
        self._shard = min(config["reaches"], config["shard_size"])

    def memory(self, rule: str) -> Callable[..., int]:
        """Return the function of (wildcards, attempt) that tells a rule's memory in MB."""
        need, reaches = self._of(rule)
        used = need.mb + need.kb * reaches / 1000 + need.picture_mb * self._pictures
        policy = self._config["policy"]["name"]
        plays = rule == "simulate" and policy == "sb3" or rule in _PLAYERS and policy == "dqn"
        if rule in _TRAINERS or plays:
            used += _TORCH_MB
        if rule == "pixels":
            pixels = self._config["pixels"]
            used += pixels["buffer"] * _STEP_KB / 1000 + pixels["collectors"] * _COLLECTOR_MB
        return _doubling(_STEP * -(-int(_OWN_MB + used) // _STEP))

    def minutes(self, rule: str) -> Callable[..., int]:
        """Return the function of (wildcards, attempt) that tells a rule's run time in minutes."""
        need, reaches = self._of(rule)
        pictures = 1.0 if rule in _UNSEEN else self._pictures
        seconds = need.seconds * pictures + self._ms(rule, need) * reaches / 1000
        if rule == "dqn":
            seconds += self._config["dqn"]["frames"] * _DQN_MS / 1000
        if rule == "pixels":
            pixels = self._config["pixels"]
            seconds += pixels["frames"] / pixels["skip"] * (pixels["replay_ratio"] or 1) / _SAMPLES
        return _doubling(_OWN_MINUTES + int(_SLOWER * seconds / 60))

    @staticmethod
    def cores(cores: int | None) -> int:
        """Return the cores of a training from the state, which is to have those of its run.

        cores: as Snakemake is told them: of a local run all that there are, of a profile for
        clusters what each job gets; None where a cluster's profile leaves it to the rules.
        """
        return cores or _TRAINING_CORES

    def _of(self, rule: str) -> tuple[_Need, int]:
        if rule in _SHARDED:
            return _SHARDED[rule], self._shard
        if rule == "part":
            return _WHOLE[rule], self._config["film"]["reaches_per_file"] or self._config["reaches"]
        return _WHOLE[rule], self._config["reaches"]

    def _ms(self, rule: str, need: _Need) -> float:
        """Return the milliseconds for each reach."""
        if rule in _SHARDED and not describe(self._config["env"]).computed:
            return _GYMNASIUM_MS * (self._config["max_steps"] or _STEPS)
        if rule != "encode":
            return need.ms
        coded = need.ms if self._encoder.assembled else _X264_MS
        return coded * self._pictures


def _doubling(first: int) -> Callable[..., int]:
    def needed(wildcards, attempt) -> int:
        return first * 2 ** (attempt - 1)

    return needed
