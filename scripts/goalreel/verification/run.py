"""Verification of a run: every file in the results, and what they must count together.

What makes a single file sound stands in verify_files. Shards are checked side by side, each within
the memory of one; nothing is kept of a shard but its numbers.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError, Unusable
from goalreel.film.parts import WHOLE
from goalreel.film.parts_index import index_of
from goalreel.film.shards import shard_name
from goalreel.provenance.checksums import read_digests
from goalreel.verification import single_files as files
from goalreel.verification.single_files import Plan
from goalreel.verification.verdict import Verdict
from goalreel.verification.view_files import check_views


@dataclass
class _Shard:
    """The verdicts on a shard's three files, and its episodes and attempts."""

    verdicts: tuple[Verdict, Verdict, Verdict]
    episodes: int = 0
    attempts: int = 0


def verify(results: Path, plan: Plan, threads: int) -> list[Verdict]:
    """Check all results; return a verdict for each stage, in the order of the data flow.

    Raises OSError if a folder cannot be read, GoalreelError if ffmpeg does not run.
    """
    simulate, render, encode = (Verdict(stage) for stage in ("simulate", "render", "encode"))
    episodes = attempts = 0
    with ThreadPoolExecutor(threads) as pool:
        for shard in _mapped(pool, lambda s: _check_shard(results, plan, s), range(plan.shards)):
            for whole, part in zip((simulate, render, encode), shard.verdicts, strict=True):
                whole.add(part)
            episodes, attempts = episodes + shard.episodes, attempts + shard.attempts
        for verdict in (simulate, render, encode):
            for part in _mapped(pool, _check_left, _left(results, verdict.stage, plan)):
                verdict.add(part)
    # Counts hold where nothing is damaged: a fault of one shard needs no second name.
    whole = not any(v.faults or (v.missing and v is not render) for v in (simulate, render, encode))
    frames = encode.frames if whole else None
    film = _check_film(results, plan, frames, episodes if whole else None, threads)
    tables = _check_tables(results, plan, frames, (episodes, attempts) if whole else None)
    chain = [simulate, render, encode, film, tables]
    return [*_check_pictures(results, plan), *chain, *check_views(results, plan)]


def _mapped(pool: ThreadPoolExecutor, function: Callable, items: Iterable) -> Iterator:
    """Map as the pool does, with some hundred items in it at a time."""
    items = iter(items)
    while batch := list(itertools.islice(items, 256)):
        yield from pool.map(function, batch)


def _check_shard(results: Path, plan: Plan, shard: int) -> _Shard:
    name = shard_name(shard)
    simulate, render, encode = (Verdict(stage) for stage in ("simulate", "render", "encode"))
    path = results / "trajectories" / f"{name}.npz"
    made = simulate.check(path, lambda: files.sound_trajectories(path, plan, shard))
    cache, segment = results / "frames" / f"{name}.npz", results / "segments" / f"{name}.mp4"
    render.frames = render.check(cache, lambda: files.check_cache(cache, plan, shard, made)) or 0
    told = encode.check(segment, lambda: files.check_segment(segment, plan, shard, made))
    encode.frames = told or 0
    if made is None:
        return _Shard((simulate, render, encode))
    simulate.frames = int(made.offsets[-1])
    return _Shard((simulate, render, encode), len(made), len(made.attempts.reach))


_FOLDERS = {"simulate": "trajectories", "render": "frames", "encode": "segments"}


def _left(results: Path, stage: str, plan: Plan) -> Iterator[tuple[str, Path]]:
    """Yield the files of shards that a longer film left: they need only be whole."""
    for path in sorted((results / _FOLDERS[stage]).glob("[0-9]*.*")):
        known = path.suffix in (".npz", ".mp4") and path.stem.isdigit()
        if known and int(path.stem) >= plan.shards:
            yield stage, path


def _check_left(left: tuple[str, Path]) -> Verdict:
    verdict = Verdict(left[0], spare={left[1]})
    verdict.check(left[1], lambda: files.check_whole(left[1]))
    return verdict


def _films_left(results: Path, plan: Plan) -> Iterator[tuple[str, Path]]:
    """Yield the films of other options, in one file or in parts, as `_left` does."""
    planned = plan.films()
    for path in [results / WHOLE, *sorted((results / "films").glob("[0-9]*.mp4"))]:
        if path.exists() and path.relative_to(results).as_posix() not in planned:
            yield "concat", path


def _check_film(
    results: Path, plan: Plan, frames: int | None, episodes: int | None, threads: int
) -> Verdict:
    verdict, chapters = Verdict("concat"), 0
    for name, shard in plan.films().items():
        path = results / name
        found = verdict.check(path, lambda p=path, s=shard: _decoded(p, s, plan, threads))
        if found is not None:
            verdict.frames, chapters = verdict.frames + found, chapters + ffmpeg.chapters(path)
    if verdict.files == len(plan.films()):
        verdict.note = "sound, every frame decoded"
        if verdict.frames != (frames or verdict.frames):
            verdict.faults[path] = f"{verdict.frames} frames come out of it, not {frames}"
        elif chapters != (episodes or chapters):
            verdict.faults[path] = f"it has {chapters} chapters, not {episodes}"
    if plan.per_file is not None:
        index = results / "films.csv"
        verdict.check(index, lambda: _check_index(index, plan))
    for left in _films_left(results, plan):
        verdict.add(_check_left(left))
    return verdict


def _decoded(path: Path, shard: dict[str, int], plan: Plan, threads: int) -> int:
    """Return a film's frames, its file checked and every frame decoded."""
    files.check_whole(path)
    files.check_made(path, "concat", plan, shard)
    found, said = ffmpeg.decoded(path, threads)
    if said:
        raise Unusable(path, f"the decoder reports: {said.splitlines()[0]}")
    if found != files.read_index(path).frames:
        raise Unusable(path, f"{found} frames can be decoded, not all")
    return found


def _check_index(path: Path, plan: Plan) -> None:
    """Hold the index of the parts against what they tell; it has no checksum of its own."""
    if not path.exists():
        raise GoalreelError(f"{path}: no such file; run snakemake to make it")
    parts = [path.parent / name for name in plan.films()]
    if path.read_bytes() != index_of(parts, path.parent, plan.fps, plan.reaches)[0].encode():
        raise Unusable(path, "it is not the index of the parts beside it")


def _check_tables(
    results: Path, plan: Plan, frames: int | None, rows: tuple[int, int] | None
) -> Verdict:
    verdict, made, told = Verdict("episodes"), results / "tables.json", {}

    def check_made() -> None:
        told.update(read_digests(made))
        files.check_made(made, "episodes", plan)

    verdict.check(made, check_made)
    for number, name in enumerate(("episodes.csv", "attempts.csv")):
        path = results / name

        def check(path: Path = path, wanted: int | None = rows and rows[number]) -> int:
            listed = path.name in told and path.exists()
            if listed and (fault := files.fault_of(path, told[path.name])):
                raise Unusable(path, fault)
            found, shown = files.count_table(path)
            if found != (wanted or found):
                raise Unusable(path, f"it has {found} rows, not {wanted}")
            return shown

        shown = verdict.check(path, check)
        if name == "episodes.csv" and shown is not None:
            verdict.frames = shown
            if shown != (frames or shown):
                verdict.faults[path] = f"it tells of {shown} frames, not {frames}"
    return verdict


def _check_pictures(results: Path, plan: Plan) -> list[Verdict]:
    """Check the atlas and the coded atlas, which the film needs where they are planned."""
    verdicts = []
    for stage in ("atlas", "coded_atlas"):
        verdict, path = Verdict(stage), results / f"{stage}.npz"
        if stage in plan.made_of:
            verdict.check(path, lambda p=path, s=stage: _check_planned(p, s, plan))
            verdicts.append(verdict)
        elif path.is_file():
            verdict.check(path, lambda p=path: files.check_whole(p))
            verdicts.append(verdict)
    return verdicts


def _check_planned(path: Path, stage: str, plan: Plan) -> None:
    files.check_whole(path)
    files.check_made(path, stage, plan)
