"""A recording as the run keeps it: read once, in blocks of rows, so that a shard reads its own.

It is a compressed .npz without objects:

    kind, version     "recording" and the version of this layout
    spec              JSON: how the file was made
    offsets, seeds    those of a Recording
    columns           "actions" or "states", which its rows are
    actions_0, ...    or states_0, ...: its rows, so many to a block
"""

import os

import numpy as np

from goalreel.errors import GoalreelError, pluralize
from goalreel.files import npz
from goalreel.provenance.spec import Spec
from goalreel.simulation.recording_file import RecordedEpisode, Recording

VERSION = 3
_KIND = "recording"
_ROWS = 1 << 16  # of a block


def write_blocks(path: str | os.PathLike, recording: Recording, spec: Spec) -> None:
    """Write a recording; the same one gives the same bytes."""
    arrays = npz.header(_KIND, VERSION) | {"spec": np.array(spec.text)}
    arrays |= {"offsets": recording.offsets, "seeds": recording.seeds}
    arrays |= {"columns": np.array(recording.columns)}
    for block, first in enumerate(range(0, len(recording.rows), _ROWS)):
        arrays[f"{recording.columns}_{block}"] = recording.rows[first : first + _ROWS]
    npz.write(path, arrays)


def read_blocks(path: str | os.PathLike, episodes: range, label: str) -> list[RecordedEpisode]:
    """Return some of a recording's episodes; of the file no more is read than they need.

    Args:
        path: what `write_blocks` wrote.
        episodes: which, one or more.
        label: the option that names the recording, and its value.

    Raises:
        GoalreelError: there is no such file, or the recording has fewer episodes.
        UnusableFileError: the file is corrupt, or another.
    """
    whole = npz.read(path, _KIND, VERSION, ("offsets", "seeds", "columns"))
    offsets, seeds, columns = whole["offsets"], whole["seeds"], str(whole["columns"])
    if episodes.stop > len(seeds):
        raise GoalreelError(
            f"{label} has {pluralize(len(seeds), 'episode')}, and {episodes.stop} were asked for; "
            f"set episodes to {len(seeds)} or fewer"
        )
    first, end = int(offsets[episodes.start]), int(offsets[episodes.stop])
    blocks = range(first // _ROWS, (end - 1) // _ROWS + 1)
    parts = npz.read(path, _KIND, VERSION, [f"{columns}_{block}" for block in blocks])
    rows = np.concatenate(list(parts.values()))[first - blocks.start * _ROWS :]
    found = []
    for number in episodes:
        own = rows[offsets[number] - first : offsets[number + 1] - first]
        name = f"{label}, episode {number}"
        found.append(RecordedEpisode(name, number, seeds[number], **{columns: own}))
    return found
