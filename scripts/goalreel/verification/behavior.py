"""The behavior of a run: the checksums of its episodes, and their differences from a lock file.

Each checksum covers an episode from the reset up to a step, so a difference changes all later ones.
Those of a trace have 6 bits: of 64 differences, one appears only at the end of the next stride.
"""

import hashlib
import platform
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import goalreel
from goalreel.provenance.spec import Spec
from goalreel.rendering.frame_cache import open_cache
from goalreel.report.statistics import mean_interval
from goalreel.simulation.trajectories import read_summary, read_trajectories
from goalreel.verification.lock_file import Lock, LockedEpisode

_WHOLE, _FRAME = 6, 2  # characters of a checksum, 6 bits each, of all steps and of a frame
_TRACES, _TRACE = 20_000, 20  # characters of all traces, or of each in a run of many episodes
_FRAMES, _LEAST_FRAMES = 300, 3  # checksums of frames, of all episodes or of each
# A step is an action, the observation after it and its reward.
_QUANTITIES = ("action", "observation", "reward")


class Difference(NamedTuple):
    """The first difference of a new episode from the locked one."""

    seed: int
    quantity: str  # a quantity, several, "seed", "ending" or "frame"
    first: int  # the step, or the first and the last one that it may be
    last: int


class PlayedEpisode(NamedTuple):
    """An episode of a run."""

    row: dict[str, object]  # seed, steps, return, terminated, truncated
    steps: tuple[np.ndarray, np.ndarray, np.ndarray]  # states, actions, rewards
    frame: Callable[[int], np.ndarray] | None = None  # takes a step

    def lock(self, stride: int, frames: int) -> LockedEpisode:
        """Return its behavior, with checksums of each stride and of at most `frames` frames."""
        seed, steps, return_ = (self.row[name] for name in ("seed", "steps", "return"))
        ending = "+".join(word for word in ("terminated", "truncated") if self.row[word]) or "open"
        whole, trace = self.checksums(_ends(steps, stride))
        hashes = (_hash(self.frame(step)) for step in _shown(steps, frames))
        shown = "".join(_code(hashed, _FRAME) for hashed in hashes)
        return LockedEpisode(seed, steps, float(f"{return_:.10g}"), ending, *whole, shown, trace)

    def checksums(self, ends: Sequence[int]) -> tuple[list[str], str]:
        """Return the checksum of each quantity up to the last of some steps, and the trace.

        The trace has a character for the reset, and one of each quantity for each of the steps.
        """
        states, actions, rewards = self.steps
        hashes = [_hash(actions[:0]), _hash(states[:1]), _hash(rewards[:0])]
        trace = [_code(hashes[1], 1)]
        for start, end in pairwise([0, *ends]):
            for hashed, part in zip(hashes, (actions, states[1:], rewards), strict=True):
                hashed.update(part[start:end].tobytes())
                trace.append(_code(hashed, 1))
        return [_code(hashed, _WHOLE) for hashed in hashes], "".join(trace)

    def difference(self, locked: LockedEpisode, stride: int) -> Difference | None:
        """Return the first difference from the locked episode, None if there is none."""
        count = len(locked.frames) // _FRAME
        now, found = self.lock(stride, count), partial(Difference, locked.seed)
        if now._replace(frames=locked.frames) == locked:
            for i, (before, step) in enumerate(pairwise([-1, *_shown(now.steps, count)])):
                code = slice(_FRAME * i, _FRAME * (i + 1))
                if now.frames[code] != locked.frames[code]:
                    return found("frame", before + 1, step)
            return None
        if now.seed != locked.seed:
            return found("seed", 0, 0)
        # A stride in which the new episode ends cannot be compared.
        ends = [end for end in _ends(locked.steps, stride) if end <= now.steps]
        whole, trace = self.checksums(ends)
        if trace[0] != locked.trace[0]:
            return found("observation", 0, 0)
        for i, (before, end) in enumerate(pairwise([0, *ends])):
            codes = slice(3 * i + 1, 3 * i + 4)
            names = _differing(trace[codes], locked.trace[codes])
            if end == locked.steps:  # the checksums of all steps have more bits
                names = names or _differing(whole, locked[4:7])
            if names:
                quantity = names[0] if end == before + 1 else " or ".join(names)
                return found(quantity, before + 1, end)
        end = min(now.steps, locked.steps)
        return found("ending", min(end, ends[-1] + 1 if ends else 1), end)


def read_episodes(trajectories: Iterable[Path], frames: Iterable[Path]) -> Iterator[PlayedEpisode]:
    """Yield the filmed episodes of all shards."""
    for path, images in zip(trajectories, frames, strict=True):
        shard, cache = read_trajectories(path), open_cache(images)
        for index, first in enumerate(shard.offsets[:-1].tolist()):
            frame = partial(lambda cache, first, step: cache[first + step], cache, first)
            yield PlayedEpisode(shard.episodes.row(index), shard.episode(index), frame)


def lock_run(spec: Spec, trajectories: Sequence[Path], frames: Sequence[Path]) -> Lock:
    """Return the lock of a run."""
    steps = np.concatenate([read_summary(path).episodes.steps for path in trajectories])
    room, stride = max(_TRACES, _TRACE * len(steps)), 1
    while stride < steps.max() and (1 + 3 * -(-steps // stride)).sum() > room:
        stride += 1
    shown = max(_FRAMES // len(steps), _LEAST_FRAMES)
    episodes = [played.lock(stride, shown) for played in read_episodes(trajectories, frames)]
    facts = present_facts(spec) | {
        "options": {key: value for key, value in spec.config.items() if "." not in key}
        | {"film": {"fps": spec.config["film.fps"]}},
        "mean_return": mean_interval([episode.return_ for episode in episodes]).text(),
        "stride": stride,
    }
    return Lock(facts, episodes)


def present_facts(spec: Spec) -> dict[str, dict[str, str]]:
    """Return the versions of all software that plays and renders, and the sha256 of all files."""
    own = {"goalreel": goalreel.__version__, "python": platform.python_version()}
    return {"versions": own | spec.tools, "files": spec.value.get("files", {})}


def _differing(codes: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the quantities whose checksums differ."""
    pairs = zip(_QUANTITIES, codes, others, strict=True)
    return [name for name, code, other in pairs if code != other]


def _ends(steps: int, stride: int) -> list[int]:
    """Return the last step of each stride."""
    return [*range(stride, steps, stride), steps]


def _shown(steps: int, frames: int) -> list[int]:
    """Return the steps whose frames have a checksum."""
    count = min(frames, steps + 1)
    return [steps * number // max(count - 1, 1) for number in range(count)]


def _hash(array: np.ndarray):
    hashed = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    hashed.update(array.tobytes())
    return hashed


def _code(hashed, length: int) -> str:
    return urlsafe_b64encode(hashed.digest()).decode()[:length]
