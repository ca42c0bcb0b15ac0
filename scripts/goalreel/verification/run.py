"""Verification of a run: every file in the results, and the counts on which they must agree.

Shards are checked in parallel, each within the memory of one; only counts of a shard are kept.
What Gymnasium has played and drawn it plays and draws again.
"""

import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError, Unusable
from goalreel.files.seal import check_seal
from goalreel.provenance.checksums import fault_of, read_digests
from goalreel.verification import single_files as files
from goalreel.verification.played_again import difference
from goalreel.verification.single_files import Plan
from goalreel.verification.verdict import Verdict
from goalreel.verification.view_files import check_views

_SHARDED = ("simulate", "render", "encode")


@dataclass
class _Shard:
    """The verdicts on a shard's three files, and its episodes and attempts."""

    verdicts: list[Verdict]
    episodes: int = 0
    attempts: int = 0


def verify(results: Path, plan: Plan, threads: int) -> list[Verdict]:
    """Check all results; return a verdict for each stage, in the order of the data flow.

    Raises OSError if a folder cannot be read, GoalreelError if ffmpeg does not run.
    """
    shards = [Verdict(stage) for stage in _SHARDED]
    episodes = attempts = 0
    # A process of the second pool starts when it gets something to play.
    players = ProcessPoolExecutor(threads, multiprocessing.get_context("spawn"))
    with ThreadPoolExecutor(threads) as pool, players:
        check = partial(_check_shard, results, plan, players)
        for shard in _mapped(pool, check, range(plan.shards)):
            for whole, part in zip(shards, shard.verdicts, strict=True):
                whole.add(part)
            episodes, attempts = episodes + shard.episodes, attempts + shard.attempts
        for verdict in shards:
            left = ((verdict.stage, path) for path in _shards_left(results, verdict.stage, plan))
            for part in _mapped(pool, _check_left, left):
                verdict.add(part)
    if plan.is_drawn and shards[0].word == "sound":
        played = "every episode played again" if plan.reproducible else "not reproducible"
        shards[0].note = f"sound, {played}"
    # Counts hold where all was read and nothing is damaged: a shard's fault needs no second name.
    lacking = (v.faults or v.unchecked or (v.missing and v.stage != "render") for v in shards)
    whole = not any(lacking)
    frames = shards[-1].frames if whole else None
    film = _check_film(results, plan, frames, episodes if whole else None, threads)
    tables = _check_tables(results, plan, frames, (episodes, attempts) if whole else None)
    chain = [*_check_pictures(results, plan), *shards, film, tables]
    return [*chain, *check_views(results, plan)]


def _mapped(pool: ThreadPoolExecutor, function: Callable, items: Iterable) -> Iterator:
    """Map as the pool does, with some hundred items in it at a time."""
    items = iter(items)
    while batch := list(itertools.islice(items, 256)):
        yield from pool.map(function, batch)


def _check_shard(results: Path, plan: Plan, players: ProcessPoolExecutor, shard: int) -> _Shard:
    simulate, render, encode = verdicts = [Verdict(stage) for stage in _SHARDED]
    path, cache, segment = (plan.path(results, stage, shard) for stage in _SHARDED)
    made = simulate.check(path, lambda: files.sound_trajectories(path, plan, shard))
    render.frames = render.check(cache, lambda: files.check_cache(cache, plan, shard, made)) or 0
    check = partial(files.check_segment, segment, plan, shard, made)
    encode.frames = encode.check(segment, check) or 0
    if made is None:
        return _Shard(verdicts)
    simulate.frames = int(made.offsets[-1])
    if plan.is_drawn and plan.reproducible:
        _play_again(path, cache if render.files else None, simulate, render, players)
    return _Shard(verdicts, len(made), len(made.attempts.reach))


def _play_again(
    path: Path, cache: Path | None, simulate: Verdict, render: Verdict, players: ProcessPoolExecutor
) -> None:
    """Note where Gymnasium gives something else than the sound files of a shard hold."""
    try:
        found = players.submit(difference, path, cache).result()
    except (GoalreelError, BrokenProcessPool) as error:
        simulate.unchecked[path] = f"it cannot be played again: {error}"
        return
    if found:
        (simulate if found[0] == path else render).faults |= [found]


def _shards_left(results: Path, stage: str, plan: Plan) -> Iterator[Path]:
    """Yield the files of shards that a longer film left: they need only be whole."""
    for path in sorted(results.glob(plan.outputs[stage][0].format(shard="[0-9]*"))):
        if path.stem.isdigit() and int(path.stem) >= plan.shards:
            yield path


def _check_left(left: tuple[str, Path]) -> Verdict:
    verdict = Verdict(left[0], spare={left[1]})
    verdict.check(left[1], lambda: check_seal(left[1]))
    return verdict


def _check_film(
    results: Path, plan: Plan, frames: int | None, episodes: int | None, threads: int
) -> Verdict:
    verdict, path = Verdict("concat"), results / "film.mp4"
    shard = {"shards": plan.shards, "reaches": plan.reaches}
    verdict.frames = verdict.check(path, lambda: _decoded(path, shard, plan, threads)) or 0
    if verdict.files:
        verdict.note, chapters = "sound, every frame decoded", ffmpeg.chapters(path)
        if verdict.frames != (frames or verdict.frames):
            verdict.faults[path] = f"{verdict.frames} frames come out of it, not {frames}"
        elif chapters != (episodes or chapters):
            verdict.faults[path] = f"it has {chapters} chapters, not {episodes}"
    return verdict


def _decoded(path: Path, shard: dict[str, int], plan: Plan, threads: int) -> int:
    """Return a film's frames, its file checked and every frame decoded."""
    check_seal(path)
    files.check_made(path, "concat", plan, shard)
    frames, complaints = ffmpeg.decoded(path, threads)
    if complaints:
        raise Unusable(path, f"the decoder reports: {complaints.splitlines()[0]}")
    if frames != files.read_index(path).frames:
        raise Unusable(path, f"{frames} frames can be decoded, not all")
    return frames


def _check_tables(
    results: Path, plan: Plan, frames: int | None, rows: tuple[int, int] | None
) -> Verdict:
    verdict, made, digests = Verdict("episodes"), results / "tables.json", {}

    def check_made() -> None:
        digests.update(read_digests(made))
        files.check_made(made, "episodes", plan)

    def check(path: Path, expected: int | None) -> int:
        listed = path.name in digests and path.exists()
        if listed and (fault := fault_of(path, digests[path.name])):
            raise Unusable(path, fault)
        count, shown = files.count_table(path)
        if expected is not None and count != expected:
            raise Unusable(path, f"it has {count} rows, not {expected}")
        return shown

    verdict.check(made, check_made)
    tables = ("episodes.csv", "attempts.csv")[: 2 if plan.unit == "reach" else 1]
    for number, name in enumerate(tables):
        path = results / name
        shown = verdict.check(path, partial(check, path, rows and rows[number]))
        if name == "episodes.csv" and shown is not None:
            verdict.frames = shown
            if frames is not None and shown != frames:
                verdict.faults[path] = f"it lists {shown} frames, not {frames}"
    return verdict


def _check_pictures(results: Path, plan: Plan) -> list[Verdict]:
    """Check what all shards are made of, each where it is planned or there."""
    verdicts = []
    for stage in ("recording", "atlas", "coded_atlas"):
        verdict, path = Verdict(stage), results / f"{stage}.npz"
        if stage in plan.made_of or path.is_file():
            verdict.check(path, lambda p=path, s=stage: _check_planned(p, s, plan))
            verdicts.append(verdict)
    return verdicts


def _check_planned(path: Path, stage: str, plan: Plan) -> None:
    check_seal(path)
    if stage in plan.made_of:
        files.check_made(path, stage, plan)
