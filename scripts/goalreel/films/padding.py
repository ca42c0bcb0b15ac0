"""Padding: segments of pictures that change size become segments of one size.

A shard does not know how large the pictures of other shards are, so its segment has their own size.
Before segments are joined, those that are smaller than the film are encoded again.
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
    """Yield the segments of a film, all of one size, and the least and most H and W of pictures.

    The latter is None where all pictures have one size.

    Args:
        segments: of the shards; their frame caches are in frames/, beside the segments' folder.
            That is no input of the rule: a finished film does not need them.
        trajectories: of the same shards.
        folder: where segments that are made again lie meanwhile.

    Raises:
        GoalreelError: a file cannot be used, or a frame cache is missing.
    """
    found = [read_spec(segment).value.get("sizes") for segment in segments]
    sizes = np.array(found)  # (shards, 2, 2)
    if None in found or (sizes == sizes[0, 0]).all():
        yield segments, None
        return
    size = sizes[:, 1].max(axis=0)
    smaller = np.flatnonzero((sizes[:, 1] < size).any(axis=1)).tolist()
    caches = [segments[n].parents[1] / "frames" / f"{segments[n].stem}.npz" for n in smaller]
    for cache in caches:
        if not cache.is_file():
            raise GoalreelError(
                f"{cache}: missing, and pictures of several sizes are padded from it. "
                f"Type: rm -r {segments[0].parent}"
            )
    with tempfile.TemporaryDirectory(prefix=".goalreel-", dir=folder) as name:
        whole = list(segments)
        for n, cache in zip(smaller, caches, strict=True):
            whole[n] = Path(name, segments[n].name)
            files = ["--frames", cache, "--trajectories", trajectories[n], "--output", whole[n]]
            words = ["--spec", read_spec(segments[n]).text, *files]
            words += ["--height", size[0], "--width", size[1]]
            program("encode").main([str(word) for word in words])
        yield whole, [sizes[:, 0].min(axis=0).tolist(), size.tolist()]
