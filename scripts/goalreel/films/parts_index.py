"""The index of a film in parts: a row for each file, from what the files say of themselves."""

import csv
import io
import os
from collections.abc import Iterable
from pathlib import Path

from goalreel.errors import GoalreelError, Unusable
from goalreel.files.atomic import replacing
from goalreel.mp4.reader import Outline, read_outline
from goalreel.provenance.spec import parse_spec


def write_index(
    parts: Iterable[Path], path: str | os.PathLike, fps: int, count: int, unit: str
) -> int:
    """Write a row for each part, in order, to `path`; return the frames of all.

    Raises as `index_of`.
    """
    text, frames = index_of(parts, Path(path).parent, fps, count, unit)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")
    return frames


def index_of(
    parts: Iterable[Path], folder: Path, fps: int, count: int, unit: str
) -> tuple[str, int]:
    """Return the text of the index that stands in `folder`, and the frames of all parts.

    unit: what is counted, "reach" or "episode". Raises Unusable, naming the file, if a part is not
    whole, is not at `fps`, or does not begin where the one before ends, up to `count`.
    """
    total, begin, text = 0, 0, io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    counts = "reaches" if unit == "reach" else "episodes"
    table.writerow(("file", f"first_{unit}", counts, "frames", "seconds", "bytes"))
    for part in parts:
        film = read_outline(part)
        first, end = _covered(part, film)
        if first != begin or film.timescale != fps * film.durations[0]:
            raise Unusable(part, f"not the part that begins with {unit} {begin}, at {fps} fps")
        name = Path(os.path.relpath(part, folder)).as_posix()
        size, seconds = part.stat().st_size, film.frames / fps
        table.writerow([name, first, end - first, film.frames, seconds, size])
        total, begin = total + film.frames, end
    if begin != count:
        raise Unusable(part, f"the last part ends at {unit} {begin}, the run at {count}")
    return text.getvalue(), total


def _covered(path: Path, film: Outline) -> tuple[int, int]:
    """Return a part's first episode or reach, and the one after its last."""
    try:
        shard = parse_spec(film.comment, path).shard
        return int(shard["first"]), int(shard["reaches"])
    except GoalreelError as error:
        raise Unusable(path, f"its comment does not say what it covers ({error})") from None
