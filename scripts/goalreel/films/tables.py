"""Write episodes.csv, one row per filmed episode, and attempts.csv, one row per attempt.

Rows are written shard by shard, so that memory does not grow with the film.
"""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd

from goalreel.errors import GoalreelError, pluralize
from goalreel.files.atomic import replacing
from goalreel.simulation.played_episodes import Selection
from goalreel.simulation.trajectories import Attempts, read_summary

_SUMMARIZED = ["return", "truncated", "reached"]
_PLAYED = ["steps", "return", "terminated", "truncated", "shard"]
_SHOWN = ["first_frame", "frames", "start_s", "card_frames"]
ATTEMPT_COLUMNS = ["reach", "attempt", "seed", "env", "initial_position", *_PLAYED, "reached"]
# Columns of episodes.csv by the unit of the run.
EPISODE_COLUMNS = {
    "reach": [*ATTEMPT_COLUMNS[:-1], *_SHOWN, "reached"],
    "episode": ["episode", "seed", "env", *_PLAYED, *_SHOWN],
}
SHARE_COLUMNS = ["share", "share_low", "share_high", "played"]  # with film.select


def write_tables(
    trajectories: Iterable[Path],
    episodes_csv: str | os.PathLike,
    attempts_csv: str | os.PathLike | None,
    env: str,
    fps: int,
    cards: int,
    selection: Selection | None = None,
    remarks: Iterable[str] = (),
) -> str:
    """Write the tables of filmed episodes and, for goal reaches, of all attempts; summarize them.

    In episodes.csv, `first_frame` is the frame of the film that shows the reset state, and
    `start_s` is its time. Each number in `info` and each of the `remarks` gets a column.
    `cards` are the frames of the title card before each episode. With a `selection`, which the
    film shows, its shares are columns.
    """
    first_frame, played, named = 0, [], None
    columns = EPISODE_COLUMNS["reach" if attempts_csv else "episode"]
    with contextlib.ExitStack() as files:
        episodes_part = files.enter_context(replacing(episodes_csv))
        attempts_part = files.enter_context(replacing(attempts_csv)) if attempts_csv else None
        for shard, path in enumerate(trajectories):
            summary = read_summary(path)
            names = list(summary.episodes.info.dtype.names)
            named = names if named is None else named
            if names != named:
                problem = f"The last info['columns'] has the names {named} in shard 0, {names} in"
                raise GoalreelError(f"env: {problem} shard {shard}. Return the same names.")
            table = _attempts_table(summary.episodes, env, shard)
            table["frames"], table["card_frames"] = table["steps"] + 1, cards
            shown = table["card_frames"] + table["frames"]
            table["first_frame"] = first_frame + shown.cumsum() - table["frames"]
            table["start_s"] = table["first_frame"] / fps
            mark = [*names, *remarks]
            if selection is not None:
                mark += SHARE_COLUMNS
                places = np.searchsorted(selection.rows.reach, table["episode"])
                table[SHARE_COLUMNS[:3]] = selection.shares[places]
                table["played"] = selection.played
            _append(table[columns + mark], episodes_part, shard == 0)
            if attempts_part:
                tried = _attempts_table(summary.attempts, env, shard)
                _append(tried[ATTEMPT_COLUMNS + mark], attempts_part, shard == 0)
            first_frame += int(shown.sum())
            played.append(table[[name for name in _SUMMARIZED if name in columns]])
    return f"{_summary(pd.concat(played))}, {pluralize(first_frame, 'frame')}"


def write_played_table(path: Path, rows: Attempts, filmed: np.ndarray, env: str) -> None:
    """Write the table of all episodes that were played, with the numbers of those `filmed`."""
    columns = [name for name in EPISODE_COLUMNS["episode"][:-4] if name != "shard"]
    table = _attempts_table(rows, env, 0)[[*columns, *rows.info.dtype.names]]
    table["filmed"] = np.isin(rows.reach, filmed)
    with replacing(path) as temporary:
        _append(table, temporary, True)


def _summary(played: pd.DataFrame) -> str:
    episodes = pluralize(len(played), "episode")
    if "reached" in played:
        return f"{pluralize(int(played['reached'].sum()), 'goal reach')} in {episodes}"
    mean, spread = played["return"].mean(skipna=False), played["return"].std(ddof=0, skipna=False)
    return f"{episodes}, return {mean:.4g} ± {spread:.3g}, {played['truncated'].sum():,} truncated"


def _attempts_table(rows: Attempts, env: str, shard: int) -> pd.DataFrame:
    columns = {field.name.rstrip("_"): getattr(rows, field.name) for field in fields(rows)}
    info = columns.pop("info")
    columns |= {name: info[name] for name in info.dtype.names}
    columns |= {"episode": rows.reach, "env": env, "shard": shard}
    columns |= {"reproducible": False, "draft": True, "batched": True}
    return pd.DataFrame(columns)


def _append(table: pd.DataFrame, path: Path, header: bool) -> None:
    table.to_csv(path, mode="a", header=header, index=False, lineterminator="\n")
