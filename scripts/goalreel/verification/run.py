"""Verification: one walk over all files of a run's results.

Each file's checksum is computed again, its spec and its content are compared with the plan, and
Gymnasium plays the episodes that it played and drew again. Only what is compared is kept of a file.
"""

import contextlib
import multiprocessing
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.checksum_trailer import check_trailer
from goalreel.films.shards import shard_name
from goalreel.mp4.reader import read_index
from goalreel.provenance.checksums import SUMS, check_folder, checksum_error, read_list
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.input_checks import check_shard
from goalreel.provenance.spec import Spec
from goalreel.rendering.frame_cache import open_cache
from goalreel.simulation.trajectories import read_trajectories
from goalreel.verification.replay_check import difference
from goalreel.verification.verdict import File, Verdict, inspect

# Every other stage is a view: one that was not made, or was made by other options, is no error.
_FILM = ("recording", "atlas", "coded_atlas", "simulate", "render", "encode", "concat", "episodes")
_SHARDED = ("simulate", "render", "encode")


def verify_results(
    results: Path, outputs: Mapping[str, Sequence[str]], spec: Spec, threads: int
) -> list[Verdict]:
    """Check all results, shards in parallel, each within the memory of one.

    Args:
        results: the run's folder.
        outputs: of each stage in the order of the data, with wildcards, in the results folder.
        spec: of verify, which says what the workflow plans now.
        threads: shards that are checked at the same time.

    Returns:
        A verdict for each stage that left or should have left a file.
    """
    is_drawn = not describe(spec.config["env"]).has_atlas  # by Gymnasium, while it plays
    verdicts, walk = {}, _Walk(results, spec, is_drawn, threads)
    with ThreadPoolExecutor(threads) as pool:
        for stage in (stage for stage in outputs if stage != "verify"):
            files = walk.shards if stage in _SHARDED else walk.outputs
            checks = dict(files(stage, outputs[stage]))
            found = pool.map(inspect, checks, checks.values())
            verdicts[stage] = Verdict(stage, dict(zip(checks, found, strict=True)))
    simulate, render, encode = (verdicts[stage] for stage in _SHARDED)
    made = {path.stem: file for path, file in simulate.files.items()}
    for path, file in (*render.files.items(), *encode.files.items()):
        if made[path.stem].is_ok and file.is_ok and file.source != made[path.stem].source:
            file.reject("it does not show the trajectories of its shard")
    if is_drawn and spec.reproducible:
        _play_again(simulate, render, threads)
    if is_drawn:
        simulate.note = "every episode played again" if spec.reproducible else "not reproducible"
    verdicts["concat"].note, joined = "every frame decoded", encode.total("frames")
    for film in verdicts["concat"].files.values():
        if film.is_ok and film.frames != joined and encode.status == "ok":
            film.reject(f"it has {film.frames} frames, not {joined}")
    return [verdict for verdict in verdicts.values() if verdict.status]


class _Walk:
    """What is to be read of each stage's files, and how; each `_read` raises for what it finds."""

    def __init__(self, results: Path, spec: Spec, is_drawn: bool, threads: int):
        self._results, self._spec, self._is_drawn, self._threads = results, spec, is_drawn, threads

    def shards(self, stage: str, names: Sequence[str]) -> Iterator[tuple[Path, Callable]]:
        """Yield the file of each shard, and what reads it."""
        for number in range(self._spec.shard["shards"]):
            path = self._results / names[0].format(shard=shard_name(number))
            if stage != "render" or path.exists():  # once encoded, frames may be freed
                yield path, partial(self._read, path, stage, self._spec.shard_of(number))

    def outputs(self, stage: str, names: Sequence[str]) -> Iterator[tuple[Path, Callable]]:
        """Yield each file of a stage that makes no shards, and what reads it.

        Videos and archives have a checksum in themselves, the other files in a list: a folder's
        SHA256SUMS, a .sha256, or a .json.
        """
        is_film = stage in ("concat", "episodes", *(set(_FILM) & self._spec.input_digests.keys()))
        shard = self._spec.shard
        whole = {name: shard[name] for name in ("shards", "reaches", "size")}
        sums = [name for name in names if name.endswith((SUMS, ".sha256"))]
        lists = sums or [name for name in names if name.endswith(".json")]
        is_made = any((self._results / name).is_file() for name in names)
        for name in names:
            found = sorted(self._results.glob(re.sub(r"\{\w+\}", "*", name)))
            if is_film or (name in sums and is_made):
                found = [self._results / name]
            for path in found:
                if path.is_dir():
                    if any(path.iterdir()):
                        yield path, partial(_read_folder, path)
                elif path.suffix in (".mp4", ".npz"):
                    yield path, partial(self._read, path, stage, whole if stage == "concat" else {})
                elif name in lists:
                    yield path, partial(self._read_list, path, stage)
                    with contextlib.suppress(GoalreelError):
                        for file, digest in read_list(path).items():
                            yield file, partial(_read_listed, file, digest)

    def _read(self, path: Path, stage: str, shard: Mapping) -> File:
        """Return what a file holds that has its checksum in itself."""
        check_trailer(path)
        spec = self._check_spec(path, "simulate" if stage == "render" and self._is_drawn else stage)
        if shard:
            check_shard(path, spec, shard)
        content = {}
        if stage == "simulate":
            made = read_trajectories(path)
            content = {"frames": int(made.offsets[-1]), "source": made.digest()}
        elif stage == "render":
            cache = open_cache(path)
            content = {"frames": len(cache), "source": cache.source}
        elif stage == "encode":
            content = {"frames": read_index(path).frames, "source": spec.source}
        elif stage == "concat":
            frames, complaints = ffmpeg.decoded(path, self._threads)
            if complaints:
                raise UnusableFileError(path, f"the decoder reports: {complaints.splitlines()[0]}")
            content = {"frames": frames}
        return File(path.stat().st_size, **content)

    def _read_list(self, path: Path, stage: str) -> File:
        if path.suffix == ".json":
            self._check_spec(path, stage)
        read_list(path)
        return File(path.stat().st_size)

    def _check_spec(self, path: Path, stage: str) -> Spec:
        spec = read_spec(path)
        if spec.stage != stage:
            raise UnusableFileError(path, f"it was made by the stage {spec.stage!r}, not {stage!r}")
        if stage in _FILM and spec.digest != self._spec.input_digests.get(stage, spec.digest):
            raise UnusableFileError(path, "it was made by other options, code or tools")
        return spec


def _read_listed(path: Path, digest: str) -> File:
    if error := checksum_error(path, digest):
        raise UnusableFileError(path, error)
    return File(path.stat().st_size)


def _read_folder(folder: Path) -> File:
    """Return what a folder holds that is one output, so that it is made again as a whole."""
    paths = check_folder(folder)
    return File(sum(path.stat().st_size for path in paths), len(paths))


def _play_again(simulate: Verdict, render: Verdict, threads: int) -> None:
    """Reject what is not as Gymnasium plays and draws it."""
    frames = {path.stem: path for path, file in render.files.items() if file.is_ok}
    with ProcessPoolExecutor(threads, multiprocessing.get_context("spawn")) as players:
        shards = [path for path, file in simulate.files.items() if file.is_ok]
        again = [(p, players.submit(difference, p, frames.get(p.stem))) for p in shards]
        for path, played in again:
            try:
                if found := played.result():
                    (simulate if found[0] == path else render).files[found[0]].reject(found[1])
            except (GoalreelError, BrokenProcessPool) as error:
                simulate.files[path].reject(f"it cannot be played again: {error}", "not checked")
