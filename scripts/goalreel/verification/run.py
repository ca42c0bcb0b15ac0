"""Verification: one walk over all files of a run's results.

Each file's checksum is computed again, its spec and its content are compared with the plan, and
Gymnasium plays the episodes that it played and drew again. Only what is compared is kept of a file.
"""

import multiprocessing
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.checksum_trailer import check_trailer
from goalreel.films.shards import shard_name
from goalreel.mp4.reader import read_index
from goalreel.provenance.checksums import (
    SUMS,
    check_folder,
    checksum_error,
    read_digests,
    read_sums,
)
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import Spec
from goalreel.rendering.frame_cache import open_cache
from goalreel.simulation.trajectories import read_trajectories
from goalreel.verification.replay_check import difference
from goalreel.verification.verdict import OTHER, File, Verdict, inspect

# Every other stage is a view: one that was not made, or was made by other options, is no error.
_FILM = ("recording", "atlas", "coded_atlas", "simulate", "render", "encode", "concat", "episodes")
_SHARDED = ("simulate", "render", "encode")
_WITH_TRAILER = (".mp4", ".npz", ".pt")
_LISTS = (SUMS, ".sha256")


@dataclass(frozen=True)
class Plan:
    """What the workflow plans now."""

    outputs: Mapping[str, Sequence[str]]  # of each stage, with wildcards, in the results folder
    spec: Spec  # of verify

    @property
    def is_drawn(self) -> bool:
        """Whether Gymnasium draws while it plays."""
        return not describe(self.spec.config["env"]).has_atlas

    def has_made(self, spec: Spec) -> bool:
        """Return whether a file's spec is the one that is planned now for its stage, if any is."""
        return spec.digest == self.spec.input_digests.get(spec.stage, spec.digest)


def verify(results: Path, plan: Plan, threads: int) -> list[Verdict]:
    """Check all results, shards in parallel, each within the memory of one.

    Args:
        results: the run's folder.
        plan: what each file is compared with.
        threads: shards that are checked at the same time.

    Returns:
        A verdict for each stage that left or should have left a file, in the order of the data.

    Raises:
        OSError: a folder cannot be read.
    """
    stages = dict.fromkeys((*_FILM, *plan.outputs))
    with ThreadPoolExecutor(threads) as pool:
        verdicts = {s: check_stage(results, s, plan, pool.map) for s in stages if s != "verify"}
    simulate, render, encode = shards = [verdicts[stage] for stage in _SHARDED]
    for made, *shown in zip(*(verdict.files.values() for verdict in shards), strict=True):
        for file in shown:
            if made.is_ok and file.is_ok and file.source != made.source:
                file.reject("it does not show the trajectories of its shard")
    if plan.is_drawn:
        simulate.note = "not reproducible"
        if plan.spec.reproducible:
            simulate.note = "every episode played again"
            _play_again(simulate, render, threads)
    concat, film = verdicts["concat"], results / "film.mp4"
    concat.note = "every frame decoded"
    if (found := concat.files.get(film)) and found.is_ok:
        is_known = all(file.is_ok for file in encode.files.values())
        frames = encode.total("frames") if is_known else None
        concat.files[film] = inspect(film, partial(_decode, film, frames, threads))
    return [verdict for verdict in verdicts.values() if str(verdict)]


def check_stage(results: Path, stage: str, plan: Plan, run: Callable = map) -> Verdict:
    """Check the files of a stage, each by itself; run: applies a function to items, as `map` does.

    Videos, archives and networks have a checksum in themselves, the other files in a list: a
    folder's SHA256SUMS, a .sha256, or a .json.
    """
    checks = dict((_shards if stage in _SHARDED else _outputs)(results, stage, plan))
    files = run(inspect, checks, checks.values())
    return Verdict(stage, dict(zip(checks, files, strict=True)))


def _shards(results: Path, stage: str, plan: Plan) -> Iterator[tuple[Path, Callable]]:
    """Yield the file of each shard, and what reads it."""
    size, reaches = plan.spec.shard["size"], plan.spec.shard["reaches"]
    for number in range(plan.spec.shard["shards"]):
        path = results / plan.outputs[stage][0].format(shard=shard_name(number))
        shard = {"first": number * size, "count": min(size, reaches - number * size)}
        yield path, partial(_read, path, stage, plan, shard)


def _outputs(results: Path, stage: str, plan: Plan) -> Iterator[tuple[Path, Callable]]:
    """Yield each file of a stage that makes no shards, and what reads it."""
    names = plan.outputs[stage]
    is_film = stage in ("concat", "episodes") or (
        stage in _FILM and stage in plan.spec.input_digests
    )
    whole = {name: plan.spec.shard.get(name) for name in ("shards", "reaches")}
    sums = [name for name in names if name.endswith(_LISTS)]
    lists = sums or [name for name in names if name.endswith(".json")]
    for name in names:
        found = sorted(results.glob(re.sub(r"\{\w+\}", "*", name)))
        for path in [results / name] if is_film else found:
            if path.is_dir() and not path.is_symlink():
                if (path / SUMS).exists():
                    yield path, partial(_read_folder, path, stage, plan)
                elif any(file.is_file() for file in path.iterdir()):
                    yield path / SUMS, _unlisted
            elif path.suffix in _WITH_TRAILER:
                yield path, partial(_read, path, stage, plan, whole if stage == "concat" else None)
            elif name in lists:
                yield path, partial(_read_list, path, stage, plan)
                yield from ((file, partial(_read_listed, file, sha)) for file, sha in _listed(path))
        if name in sums and not found and any((results / other).is_file() for other in names):
            yield results / name, _unlisted


def _unlisted() -> File:
    return File(status="not checked", error="the list of checksums is missing")


def _listed(path: Path) -> list[tuple[Path, str]]:
    """Return the files that a list names, with their checksums; [] if it cannot be read."""
    try:
        if path.suffix == ".json":
            return [(path.parent / name, sha) for name, sha in read_digests(path).items()]
        return list(read_sums(path).items())
    except GoalreelError:
        return []


def _read(path: Path, stage: str, plan: Plan, shard: Mapping | None) -> File:
    """Return what a file holds that has its checksum in itself.

    Raises UnusableFileError unless it is intact, by the stage and of the shard that are planned.
    """
    check_trailer(path)
    spec = _check_spec(path, "simulate" if stage == "render" and plan.is_drawn else stage, plan)
    if shard is not None and spec.shard != shard:
        raise UnusableFileError(path, f"it is of {spec.shard}, not of {dict(shard)}")
    file = File(path.stat().st_size, is_planned=plan.has_made(spec))
    if stage == "simulate":
        made = read_trajectories(path)
        return replace(file, frames=int(made.offsets[-1]), source=made.digest())
    if stage == "render":
        cache = open_cache(path)
        return replace(file, frames=len(cache), source=cache.source)
    if stage == "encode":
        return replace(file, frames=read_index(path).frames, source=spec.source)
    return file


def _read_folder(folder: Path, stage: str, plan: Plan) -> File:
    """Return what a folder holds that is one output, so that it is made again as a whole."""
    paths = check_folder(folder)
    videos = [path for path in folder.glob("*.mp4") if path in paths]
    # The report keeps copies of other stages' videos.
    is_planned = all(plan.has_made(spec) or spec.stage != stage for spec in map(read_spec, videos))
    return File(sum(path.stat().st_size for path in paths), len(paths), is_planned=is_planned)


def _read_list(path: Path, stage: str, plan: Plan) -> File:
    if path.suffix == ".json":
        _check_spec(path, stage, plan)
    (read_digests if path.suffix == ".json" else read_sums)(path)
    return File(path.stat().st_size)


def _read_listed(path: Path, digest: str) -> File:
    if not path.exists():
        raise GoalreelError("missing")
    if error := checksum_error(path, digest):
        raise UnusableFileError(path, error)
    return File(path.stat().st_size)


def _check_spec(path: Path, stage: str, plan: Plan) -> Spec:
    spec = read_spec(path)
    if spec.stage != stage:
        raise UnusableFileError(path, f"it was made by the stage {spec.stage!r}, not {stage!r}")
    if stage in _FILM and not plan.has_made(spec):
        raise UnusableFileError(path, f"it was {OTHER} than this run's")
    return spec


def _decode(film: Path, planned: int | None, threads: int) -> File:
    """Return what a film holds, every frame decoded; planned: frames of the segments, if known."""
    frames, complaints = ffmpeg.decoded(film, threads)
    if complaints:
        raise UnusableFileError(film, f"the decoder reports: {complaints.splitlines()[0]}")
    if planned not in (None, frames):
        raise UnusableFileError(film, f"it has {frames} frames, not {planned}")
    return File(film.stat().st_size, frames=frames)


def _play_again(simulate: Verdict, render: Verdict, threads: int) -> None:
    """Reject what is not as Gymnasium plays and draws it."""
    shards = zip(simulate.files, render.files.items(), strict=True)
    pairs = [(path, cache if file.is_ok else None) for path, (cache, file) in shards]
    with ProcessPoolExecutor(threads, multiprocessing.get_context("spawn")) as players:
        pairs = [pair for pair in pairs if simulate.files[pair[0]].is_ok]
        again = [(path, players.submit(difference, path, cache)) for path, cache in pairs]
        for path, played in again:
            try:
                if found := played.result():
                    (simulate if found[0] == path else render).files[found[0]].reject(found[1])
            except (GoalreelError, BrokenProcessPool) as error:
                simulate.files[path].reject(f"it cannot be played again: {error}", "not checked")
