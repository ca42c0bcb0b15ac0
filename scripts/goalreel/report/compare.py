"""Two runs side by side: a video of the episodes of the same seeds, and a table of differences."""

import csv
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from goalreel.encoding.x264 import encode_video
from goalreel.encoding.yuv import Yuv420p, planar, planes
from goalreel.errors import GoalreelError, counted
from goalreel.files.atomic import replacing
from goalreel.films.shards import shard_paths
from goalreel.pictures.captions import CHARACTERS, outcome
from goalreel.pictures.frame_cache import FrameCache
from goalreel.pictures.overlay import framed
from goalreel.pictures.text import Colour, draw_text
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import Spec
from goalreel.report.reach_rate import policy_label
from goalreel.simulation.trajectories import Attempts
from goalreel.views.filmed_episodes import FilmedEpisodes, read_filmed

COLUMNS = ("seed", "return_a", "return_b", "difference", "steps_a", "steps_b", "outcome_a")
COLUMNS += ("outcome_b", "start_s")
_SIZES = 16, 14  # of the lines above a half, in pixels
_MARGIN, _GAP = 8, 4  # even, as chroma samples cover 2x2 pixels
_PAPER: Colour = (33, 37, 43)
_INK: Colour = (255, 255, 255)
_GREY: Colour = (186, 193, 202)


@dataclass(frozen=True)
class Run:
    """A run that is compared."""

    name: str  # its folder, as the user named it
    env: str
    policy: str
    fps: int
    filmed: FilmedEpisodes

    @cached_property
    def rows(self) -> Attempts:
        """The rows of its episodes in film order."""
        return self.filmed.rows

    @cached_property
    def by_seed(self) -> dict[int, int]:
        """Each seed's first row."""
        return {seed: row for row, seed in reversed(list(enumerate(self.rows.seed.tolist())))}

    def outcome(self, row: int) -> str:
        """Return an episode's outcome in a word."""
        return outcome(self.rows.row(row), self.filmed.unit)


@dataclass(frozen=True)
class Pair:
    """An episode of each run, of one seed."""

    seed: int
    rows: tuple[int, int]
    start: int  # its first frame in the video
    frames: int


def read_run(folder: str) -> Run:
    """Return the run in a folder of results. Raises GoalreelError if it cannot be used."""
    results = Path(folder)
    tables = read_spec(results / "tables.json")
    shards, env = tables.shard["shards"], tables.config["env"]
    paths = (
        shard_paths(results / name / "00000.npz", shards) for name in ("trajectories", "frames")
    )
    filmed = read_filmed(*paths, env, tables.config["unit"])
    policy = policy_label(filmed.summaries[0].spec.config["policy"])
    return Run(folder, env, policy, tables.config["film.fps"], filmed)


def pairs_of(runs: tuple[Run, Run]) -> list[Pair]:
    """Return the pairs of the seeds that two runs share, in the first one's film order.

    Raises GoalreelError if they share none.
    """
    first, second = runs
    shared = [seed for seed in first.by_seed if seed in second.by_seed]
    shared.sort(key=first.by_seed.__getitem__)
    if not shared:
        begin = (", ".join(map(str, sorted(run.by_seed)[:3])) for run in runs)
        raise GoalreelError(
            f"compare: {first.name} and {second.name} share no seed: theirs are {next(begin)}, ... "
            f"and {next(begin)}, ...; runs of the same option seed, and filmed alike, share them"
        )
    pairs, start = [], 0
    for seed in shared:
        rows = first.by_seed[seed], second.by_seed[seed]
        longest = max(int(run.rows.steps[row]) for run, row in zip(runs, rows, strict=True)) + 1
        pairs.append(Pair(seed, rows, start, longest + _hold(first)))
        start += pairs[-1].frames
    return pairs


def _hold(run: Run) -> int:
    """Return for how many frames both last pictures stay: half a second."""
    return run.fps // 2


def write_differences(path: Path, runs: tuple[Run, Run], pairs: list[Pair]) -> str:
    """Write the table of differences, CSV, and return their number and mean in words."""
    differences = []
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(COLUMNS)
        for pair in pairs:
            both = list(zip(runs, pair.rows, strict=True))
            returns = [float(run.rows.return_[row]) for run, row in both]
            steps = [int(run.rows.steps[row]) for run, row in both]
            outcomes = [run.outcome(row) for run, row in both]
            difference = round(returns[1] - returns[0], 9)  # of a sum's last bits
            differences.append(difference)
            start = round(pair.start / runs[0].fps, 6)
            table.writerow([pair.seed, *returns, difference, *steps, *outcomes, start])
    mean = np.mean(differences)
    return f"{counted(len(pairs), 'seed')}, the second returns {mean:+.4g} on average"


def film_pairs(
    path: str | os.PathLike, runs: tuple[Run, Run], pairs: list[Pair], spec: Spec
) -> int:
    """Film the pairs side by side; the shorter episode holds its last picture.

    Args:
        path: the MP4 file.
        runs: the two; the frames per second are the first one's.
        pairs: of them, in the order of the video; each starts with a keyframe.
        spec: with view_encoder; the file keeps it.

    Returns:
        The number of frames.

    Raises:
        GoalreelError: if a frame cache cannot be used.
    """
    frames = _frames(runs, pairs)
    first = next(frames)
    size = first.shape[1], first.shape[0] * 2 // 3
    keyframes = [pair.start for pair in pairs]
    # The first frame, which tells the size, is written over by the second.
    frames = itertools.chain([first.copy()], frames)
    encoder = spec.config["view_encoder"]
    return encode_video(path, frames, size, runs[0].fps, encoder, spec.text, keyframes)


def _frames(runs: tuple[Run, Run], pairs: list[Pair]) -> Iterator[np.ndarray]:
    """Yield the video's frames, yuv420p buffers; each is written over by the next."""
    sides = [
        run.filmed.episodes([run.filmed.places[pair.rows[side]] for pair in pairs])
        for side, run in enumerate(runs)
    ]
    views: list[Yuv420p | None] = [None, None]
    caches: list[FrameCache | None] = [None, None]
    halves: list[_Half] = []
    for pair, *episodes in zip(pairs, *sides, strict=True):
        for side, episode in enumerate(episodes):
            if episode.cache is not caches[side]:
                caches[side] = episode.cache
                views[side] = Yuv420p(framed(episode.cache, None)[0])
        halves = halves or _halves([view.size for view in views])
        canvas = np.full((halves[0].height, halves[1].right, 3), _PAPER, np.uint8)
        for half, view, run, row in zip(halves, views, runs, pair.rows, strict=True):
            half.write(canvas, _label(run, runs), _result(pair.seed, run, row))
            if view.size != half.size:
                raise GoalreelError(f"{run.name}: its frames differ in size; make that run again")
        buffer = planar(canvas)
        shown = planes(buffer)
        movies = [v.frames(e.frames) for v, e in zip(views, episodes, strict=True)]
        for _ in range(pair.frames):
            for half, movie in zip(halves, movies, strict=True):
                picture = next(movie, None)  # none is left: the last stays
                if picture is not None:
                    half.paste(shown, planes(picture))
            yield buffer


@dataclass(frozen=True)
class _Half:
    """Where a run is in the picture."""

    left: int
    right: int
    height: int  # of the whole picture
    above: int  # pixels for its labels
    size: tuple[int, int]  # width and height of its pictures

    def write(self, canvas: np.ndarray, *lines: str) -> None:
        """Write the lines above the picture; canvas: (H, W, 3)."""
        top = _MARGIN
        for line, size, ink in zip(lines, _SIZES, (_INK, _GREY), strict=True):
            words = draw_text(line, size, ink, _PAPER, self.right - self.left - 2 * _MARGIN)
            high, wide = words.shape[:2]
            canvas[top : top + high, self.left + _MARGIN : self.left + _MARGIN + wide] = words
            top += high

    def paste(self, canvas: Sequence[np.ndarray], picture: Sequence[np.ndarray]) -> None:
        """Put a picture in the middle of the room that it has; both are planes Y, U and V."""
        wide, high = self.size
        top = self.above + (self.height - self.above - high) // 4 * 2
        left = self.left + (self.right - self.left - wide) // 4 * 2
        for plane, samples, half in zip(canvas, picture, (1, 2, 2), strict=True):
            rows = slice(top // half, (top + high) // half)
            columns = slice(left // half, (left + wide) // half)
            plane[rows, columns] = samples


def _halves(sizes: list[tuple[int, int]]) -> list[_Half]:
    """Return both halves, given the sizes of their pictures."""
    above = 2 * _MARGIN + sum(draw_text("", size, _INK, _PAPER).shape[0] for size in _SIZES)
    above += above % 2
    height = above + max(high for _, high in sizes)
    halves, left = [], 0
    for size in sizes:
        right = left + size[0]
        halves.append(_Half(left, right, height, above, size))
        left = right + _GAP
    return halves


def _label(run: Run, runs: tuple[Run, Run]) -> str:
    """Return what a run is called: its folder, its policy and, where they differ, environment."""
    differ = len({other.env for other in runs}) > 1
    text = f"{run.name} · {f'{run.env}, ' if differ else ''}{run.policy}"
    return "".join(letter if letter in CHARACTERS else "?" for letter in text)


def _result(seed: int, run: Run, row: int) -> str:
    steps, returned = int(run.rows.steps[row]), float(run.rows.return_[row])
    return f"seed {seed} · {run.outcome(row)} · {steps:,} steps · return {returned:,.6g}"
