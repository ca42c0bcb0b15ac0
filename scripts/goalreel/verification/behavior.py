"""The behavior of a run: the checksums of its episodes, and their differences from a lock file.

Each checksum covers an episode from the reset up to a step, so a difference changes all later ones.
Those of a trace have 6 bits: of 64 differences, one appears only at the next checksum.
"""

import hashlib
import math
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
from goalreel.simulation.trajectories import read_trajectories
from goalreel.verification.lock_file import Lock, LockedEpisode

_WHOLE, _FRAME = 6, 2  # characters of a checksum, 6 bits each, of all steps and of a frame
# Checksums in a lock file: steps and frames of all episodes, but no fewer than these of each.
_STEPS, _LEAST_STEPS, _FRAMES, _LEAST_FRAMES = 6000, 6, 300, 3
# A step is an action, the observation after it and its reward.
_QUANTITIES = ("action", "observation", "reward")
_RENDER = ("scale", "quality", "camera", "width", "height")  # options that change frames


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

    def lock(self, steps: int, frames: int) -> LockedEpisode:
        """Return its behavior, with checksums of at most so many steps and frames."""
        seed, length, return_ = (self.row[name] for name in ("seed", "steps", "return"))
        ending = "+".join(word for word in ("terminated", "truncated") if self.row[word]) or "open"
        whole, trace = self.checksums(_places(length, steps))
        hashes = (_hash(self.frame(step)) for step in _shown(length, frames))
        shown = "".join(_code(hashed, _FRAME) for hashed in hashes)
        return LockedEpisode(seed, length, float(f"{return_:.10g}"), ending, *whole, shown, trace)

    def checksums(self, ends: Sequence[int]) -> tuple[list[str], str]:
        """Return the checksum of each quantity up to the last of some steps, and the trace."""
        # The trace has a character for the reset, and one of each quantity for each step.
        states, actions, rewards = self.steps
        hashes = [_hash(actions[:0]), _hash(states[:1]), _hash(rewards[:0])]
        trace = [_code(hashes[1], 1)]
        for start, end in pairwise([0, *ends]):
            for hashed, part in zip(hashes, (actions, states[1:], rewards), strict=True):
                hashed.update(part[start:end].tobytes())
                trace.append(_code(hashed, 1))
        return [_code(hashed, _WHOLE) for hashed in hashes], "".join(trace)

    def difference(self, locked: LockedEpisode) -> Difference | None:
        """Return the first difference from the locked episode, None if there is none."""
        steps, frames = len(locked.trace) // 3, len(locked.frames) // _FRAME
        now, found = self.lock(steps, frames), partial(Difference, locked.seed)
        if math.isnan(now.return_) and math.isnan(locked.return_):
            now = now._replace(return_=locked.return_)  # a tuple compares the same object as equal
        if now == locked:
            return None
        if now._replace(frames=locked.frames) == locked:
            for i, (before, step) in enumerate(pairwise([-1, *_shown(now.steps, frames)])):
                if now.frames[: _FRAME * (i + 1)] != locked.frames[: _FRAME * (i + 1)]:
                    return found("frame", before + 1, step)
        # A span in which the new episode ends cannot be compared.
        ends = [end for end in _places(locked.steps, steps) if end <= now.steps]
        whole, trace = self.checksums(ends)
        if now.seed != locked.seed or trace[0] != locked.trace[0]:
            return found("seed" if now.seed != locked.seed else "observation", 0, 0)
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


def lock_run(spec: Spec, trajectories: Iterable[Path], frames: Iterable[Path]) -> Lock:
    """Return the lock of a run."""
    count = spec.shard["reaches"]
    sizes = max(_STEPS // count, _LEAST_STEPS), max(_FRAMES // count, _LEAST_FRAMES)
    episodes = [played.lock(*sizes) for played in read_episodes(trajectories, frames)]
    facts = present_facts(spec) | {
        "options": {key: value for key, value in spec.config.items() if "." not in key}
        | {"film": {"fps": spec.config["film.fps"]}}
        | {"render": {k: v for k in _RENDER if (v := spec.config[f"render.{k}"]) is not None}},
        "mean_return": mean_interval([episode.return_ for episode in episodes]).text(),
    }
    return Lock(facts, episodes)


def present_facts(spec: Spec) -> dict[str, dict[str, str]]:
    """Return the versions of all software that plays and renders, and the sha256 of all files."""
    own = {"goalreel": goalreel.__version__, "python": platform.python_version()}
    own |= {"opengl": renderer} if (renderer := spec.config["render.opengl"]) else {}
    return {"versions": own | spec.tools, "files": spec.value.get("files", {})}


def _differing(codes: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the quantities whose checksums differ."""
    pairs = zip(_QUANTITIES, codes, others, strict=True)
    return [name for name, code, other in pairs if code != other]


def _places(steps: int, most: int) -> list[int]:
    """Return the last step of each of at most so many equal spans."""
    count = min(steps, most)
    return [steps * number // count for number in range(1, count + 1)]


def _shown(steps: int, most: int) -> list[int]:
    """Return the steps whose frames have a checksum, from the reset on."""
    return [0, *_places(steps, most - 1)]


def _hash(array: np.ndarray):
    hashed = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    hashed.update(array.tobytes())
    return hashed


def _code(hashed, length: int) -> str:
    return urlsafe_b64encode(hashed.digest()).decode()[:length]
