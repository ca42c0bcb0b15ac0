"""Pad segments to one frame size if frames change size between shards.

Each shard is encoded at its own largest frame size, because the other shards are unknown then.
Before joining, segments smaller than the film are encoded again with padding.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from goalreel.cli import program
from goalreel.errors import GoalreelError
from goalreel.provenance.embedded_specs import read_spec


@contextlib.contextmanager
def padded(
    segments: Sequence[Path], trajectories: Sequence[Path], folder: Path
) -> Iterator[tuple[Sequence[Path], list[list[int]] | None]]:
    """Yield the segments of a film, all of one size, and the range of frame sizes.

    The range is [[min height, min width], [max height, max width]], or None if all frames have one
    size. Temporary segments go to `folder`. The frame caches are read from frames/ next to the
    segments' folder; they are no inputs of the rule, as a finished film does not need them.
    """
    recorded_sizes = [read_spec(segment).value.get("sizes") for segment in segments]
    sizes = np.array(recorded_sizes)  # (shards, 2, 2): min and max of (height, width)
    if None in recorded_sizes or (sizes == sizes[0, 0]).all():
        yield segments, None
        return
    size = sizes[:, 1].max(axis=0)
    smaller = np.flatnonzero((sizes[:, 1] < size).any(axis=1)).tolist()
    caches = [segments[n].parents[1] / "frames" / f"{segments[n].stem}.npz" for n in smaller]
    for cache in caches:
        if not cache.is_file():
            raise GoalreelError(
                f"{cache}: File not found, but needed to pad frames of several sizes. "
                f"To encode again: rm -r {segments[0].parent}"
            )
    with tempfile.TemporaryDirectory(prefix=".goalreel-", dir=folder) as name:
        same_size = list(segments)
        for n, cache in zip(smaller, caches, strict=True):
            same_size[n] = Path(name, segments[n].name)
            files = ["--frames", cache, "--trajectories", trajectories[n], "--output", same_size[n]]
            arguments = ["--spec", read_spec(segments[n]).text, *files]
            arguments += ["--height", size[0], "--width", size[1]]
            program("encode").main([str(word) for word in arguments])
        yield same_size, [sizes[:, 0].min(axis=0).tolist(), size.tolist()]
