"""Compare two runs: a side-by-side video of episodes with the same seeds, and a table."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.arrays import paste
from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import Yuv420p
from goalreel.errors import GoalreelError, pluralize
from goalreel.files.atomic import replacing
from goalreel.films.shards import shard_paths
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import Spec
from goalreel.rendering.captions import outcome
from goalreel.rendering.overlay import add_bands
from goalreel.rendering.text import Color, draw_text
from goalreel.report.reach_rate import policy_label
from goalreel.views.filmed_episodes import FilmedEpisode, FilmedEpisodes, read_filmed
from goalreel.views.grid_page import INK, PAPER, page_frames

COLUMNS = ["seed", "return_a", "return_b", "difference", "steps_a", "steps_b", "outcome_a"]
COLUMNS += ["outcome_b", "start_s"]
_SIZES = 16, 14  # font sizes of the two lines above each side, in pixels
_MARGIN, _GAP = 8, 4  # even, since a chroma sample covers 2x2 pixels
_GREY: Color = (186, 193, 202)


@dataclass(frozen=True)
class ComparedRun:
    """One of the two runs to compare."""

    name: str  # its folder, as the user typed it
    policy: str
    fps: int
    filmed: FilmedEpisodes
    table: pd.DataFrame  # the first episode of each seed, in film order, and its row


def read_run(folder: str) -> ComparedRun:
    """Read the run in a results folder. Raises GoalreelError if it cannot be used."""
    results = Path(folder)
    tables = read_spec(results / "tables.json")
    shards, unit = tables.shard["shards"], tables.config["unit"]
    firsts = (results / name / "00000.npz" for name in ("trajectories", "frames"))
    paths = (shard_paths(first, shards) for first in firsts)
    filmed = read_filmed(*paths, tables.config["env"], unit)
    rows = filmed.rows
    columns = {"seed": rows.seed.astype(np.uint64), "return": rows.return_, "steps": rows.steps}
    table = pd.DataFrame(columns | {"row": range(len(filmed))})
    table["outcome"] = [outcome(rows.row(row), unit) for row in table["row"]]
    policy = policy_label(filmed.summaries[0].spec.config["policy"])
    return ComparedRun(
        folder, policy, tables.config["film.fps"], filmed, table.drop_duplicates("seed")
    )


def pairs_of(runs: tuple[ComparedRun, ComparedRun]) -> pd.DataFrame:
    """Return a row for each seed that both runs have, in the first run's film order.

    In addition to COLUMNS, the table has each run's `row`, and the first frame and the number of
    frames of each pair in the video (`start`, `frames`). Raises GoalreelError if there is no pair.
    """
    first, second = runs
    pairs = first.table.merge(second.table, on="seed", suffixes=("_a", "_b"))
    if pairs.empty:
        seeds = (", ".join(map(str, sorted(run.table["seed"])[:3])) for run in runs)
        raise GoalreelError(
            f"compare: '{first.name}' and '{second.name}' share no seeds. Film both with the same "
            f"seed, and both with reaches or both with episodes.\n"
            f"  {first.name}: {next(seeds)}, ...\n  {second.name}: {next(seeds)}, ..."
        )
    pairs["difference"] = (pairs["return_b"] - pairs["return_a"]).round(9)  # drops rounding errors
    # Both last frames stay for half a second.
    pairs["frames"] = pairs[["steps_a", "steps_b"]].max(axis=1) + 1 + first.fps // 2
    pairs["start"] = pairs["frames"].cumsum() - pairs["frames"]
    pairs["start_s"] = (pairs["start"] / first.fps).round(6)
    return pairs


def write_differences(path: Path, pairs: pd.DataFrame) -> str:
    """Write the table as CSV, and return a summary: the number of pairs, the mean difference."""
    with replacing(path) as temporary:
        pairs.to_csv(temporary, columns=COLUMNS, index=False, lineterminator="\n")
    mean = pairs["difference"].mean()
    return f"{pluralize(len(pairs), 'seed')}, the second returns {mean:+.4g} on average"


def film_pairs(
    path: str | os.PathLike, runs: tuple[ComparedRun, ComparedRun], pairs: pd.DataFrame, spec: Spec
) -> int:
    """Film the pairs side by side. The shorter episode of a pair holds its last frame.

    Args:
        path: the MP4 file to write.
        runs: the two runs. The first run's frames per second apply.
        pairs: the result of `pairs_of`, in video order. Each pair starts with a keyframe.
        spec: the spec to store in the file, with the option view_encoder.

    Returns:
        The number of frames.

    Raises:
        GoalreelError: a frame cache cannot be used.
    """
    sizes, sides = [], []
    for run, rows in zip(runs, (pairs["row_a"], pairs["row_b"]), strict=True):
        first, _ = add_bands(next(run.filmed.episodes()).cache, None)
        sizes.append(first.background.shape[1::-1])
        sides.append(run.filmed.movies(lambda cache: Yuv420p(add_bands(cache, None)[0]), rows))
    (wide, _), (wide_b, _) = sizes
    above = 2 * _MARGIN + sum(draw_text("", size, INK, PAPER).shape[0] for size in _SIZES)
    above += above % 2
    room = max(high for _, high in sizes)
    # Frames of different heights are centered.
    tops, lefts = [above + (room - high) // 4 * 2 for _, high in sizes], (0, wide + _GAP)
    corners = list(zip(tops, lefts, strict=True))
    width, height = wide + _GAP + wide_b, above + room

    def frames() -> Iterator[np.ndarray]:
        for length, *halves in zip(pairs["frames"], *sides, strict=True):
            page = np.full((height, width, 3), PAPER, np.uint8)
            for run, (wide, _), left, (episode, _) in zip(runs, sizes, lefts, halves, strict=True):
                _write(page, left, wide, (_label(run, runs), _result(episode, run)))
            yield from page_frames(page, [movie for _, movie in halves], corners, length)

    encoder, starts = spec.config["view_encoder"], pairs["start"].tolist()
    return encode_video(path, frames(), (width, height), runs[0].fps, encoder, spec.text, starts)


def _write(page: np.ndarray, left: int, width: int, lines: Sequence[str]) -> None:
    """Write the lines above one side."""
    top = _MARGIN
    for line, size, ink in zip(lines, _SIZES, (INK, _GREY), strict=True):
        words = draw_text(line, size, ink, PAPER, width - 2 * _MARGIN)
        paste(page, words, top, left + _MARGIN)
        top += len(words)


def _label(run: ComparedRun, runs: tuple[ComparedRun, ComparedRun]) -> str:
    """Return a run's label: its folder, its policy and, if the two differ, its environment."""
    differ = len({other.filmed.env for other in runs}) > 1
    return f"{run.name} · {f'{run.filmed.env}, ' if differ else ''}{run.policy}"


def _result(episode: FilmedEpisode, run: ComparedRun) -> str:
    row = episode.row
    result = f"seed {row['seed']} · {outcome(row, run.filmed.unit)} · {row['steps']:,} steps"
    return f"{result} · return {row['return']:,.6g}"
