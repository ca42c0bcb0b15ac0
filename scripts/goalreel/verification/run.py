"""Verification of all files of a run in one walk.

It computes the checksum of each file, compares its spec and content with the plan, and replays the
episodes that Gymnasium played. It keeps only the compared values of each file.
"""

import contextlib
import csv
import multiprocessing
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from goalreel.encoding import ffmpeg
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError, UnusableFileError, format_bytes, pluralize
from goalreel.files.atomic import replacing
from goalreel.files.checksum_trailer import check_trailer
from goalreel.files.damage import reporting_damage
from goalreel.mp4.reader import read_index
from goalreel.provenance import checksums
from goalreel.provenance.embedded_specs import OTHER, check_shard, read_spec
from goalreel.provenance.spec import Spec, json_digest, shard_name
from goalreel.rendering.frame_cache import open_cache
from goalreel.simulation.trajectories import read_summary, read_trajectories
from goalreel.verification.lock_file import read_lock
from goalreel.verification.replay import difference

# Other stages are views, which may be missing, or made by other options of their own.
_FILM = ("import_recording", "choose", "atlas", "coded_atlas", "simulate", "render", "encode")
_FILM += ("concat", "episodes")
_SHARDED = ("simulate", "render", "encode")
_MADE_ONCE = ("play", "train")  # needed only until a later file is made
_WHOLE = ("shards", "reaches", "size")  # in the specs of a run's views
_OTHER_RUN = "it is of another run"
_PROBLEMS = ("damaged", "missing", "not checked")  # the last may be intact


@dataclass
class File:
    """The findings on a file, or on a folder that is one output."""

    size: int = 0  # bytes
    files: int = 1
    frames: int = 0
    source: str = ""  # the digest of its trajectories
    seeds: Sequence[int] = ()  # those that it plays, if the user chose them
    status: str = "ok"
    error: str = ""

    def reject(self, error: str, status: str = "damaged") -> None:
        """Record an error of a file that seemed intact."""
        self.status, self.error = status, error

    @property
    def is_ok(self) -> bool:
        """Whether it is intact."""
        return self.status == "ok"


def inspect(path: Path, read: Callable[[], File | None]) -> File:
    """Return the findings of `read` on a file, its size if there are none, or the error raised."""
    if not path.exists():
        return File(status="missing", error="missing")
    try:
        return read() or File(path.stat().st_size)
    except UnusableFileError as error:
        return File(status="damaged", error=error.problem)
    except GoalreelError as error:
        return File(status="not checked", error=str(error).removeprefix(f"{path}: "))


@dataclass
class Verdict:
    """The findings on a stage's results."""

    stage: str
    files: dict[Path, File]
    note: str = ""

    def having(self, status: str) -> list[Path]:
        """Return the paths of the files with a status."""
        return sorted(path for path, file in self.files.items() if file.status == status)

    def total(self, name: str) -> int:
        """Return the sum of a field over all intact files."""
        return sum(getattr(file, name) for file in self.files.values() if file.is_ok)

    @property
    def row(self) -> tuple[str, int, int, int, str]:
        """The stage, its files, frames and bytes, and the verdict."""
        return self.stage, *map(self.total, ("files", "frames", "size")), self.status

    @property
    def status(self) -> str:
        """The verdict in a few words, or "" if the stage left nothing."""
        counts = {status: len(self.having(status)) for status in _PROBLEMS}
        problems = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
        ok = ", ".join(filter(None, ("ok", self.note))) if self.files else ""
        return problems or ok

    def __str__(self) -> str:
        stage, files, frames, size, status = self.row
        count = pluralize(files, "file") if files else ""
        shown = f"{frames:,} frames" if frames else ""
        return f"{stage:>11}  {count:>14}  {shown:>18}  {format_bytes(size):>12}  {status}"


def verify_results(
    results: Path,
    outputs: Mapping[str, Sequence[str]],
    spec: Spec,
    plan: Callable[[Mapping], Spec],
    threads: int,
) -> list[Verdict]:
    """Return a verdict for each stage that left or should have left a file.

    `outputs` are the output paths of each stage, with wildcards, in the order of the data. `plan`
    returns the spec of this check in the run of a configuration. `threads` shards are checked at a
    time, each in the memory of one.
    """
    is_played = not describe(spec.config["env"]).has_atlas  # by Gymnasium
    is_drawn = "render" not in spec.input_digests  # while it played
    verdicts, walk = {}, _Walk(results, spec, is_drawn, threads)
    with ThreadPoolExecutor(threads) as pool:
        for stage in (stage for stage in outputs if stage not in ("index", "verify")):
            files = walk.shards if stage in _SHARDED else walk.outputs
            checks = dict(files(stage, outputs[stage]))
            found = pool.map(inspect, checks, checks.values())
            verdicts[stage] = Verdict(stage, dict(zip(checks, found, strict=True)))
    simulate, render, encode = (verdicts[stage] for stage in _SHARDED)
    made = {path.stem: file for path, file in simulate.files.items()}
    for path, file in (*render.files.items(), *encode.files.items()):
        if made[path.stem].is_ok and file.is_ok and file.source != made[path.stem].source:
            file.reject("it does not show the trajectories of its shard")
    player = verdicts["play" if "play" in spec.input_digests else "simulate"]
    played = [seed for file in player.files.values() for seed in file.seeds]
    is_read = player.files and all(file.is_ok for file in player.files.values())
    if is_read and "seeds" in spec.value and json_digest(played) != spec.value["seeds"]:
        for file in player.files.values():
            file.reject(_OTHER_RUN)
    if is_played and spec.reproducible:
        _play_again(simulate, render, threads)
    if is_played:
        simulate.note = "every episode played again" if spec.reproducible else "not reproducible"
    verdicts["concat"].note, joined = "every frame decoded", encode.total("frames")
    for film in verdicts["concat"].files.values():
        if film.is_ok and film.frames != joined and encode.status == "ok":
            film.reject(f"it has {film.frames} frames, not {joined}")
    run_file, lock = results / checksums.RUN_FILE, results / outputs["lock"][0]
    checks = {run_file: partial(_read_run_file, run_file, spec, plan)}
    checks[lock] = partial(_read_lock, lock, [p for p, f in simulate.files.items() if f.is_ok])
    records = {path: inspect(path, read) for path, read in checks.items() if path.exists()}
    verdicts["records"] = Verdict("records", records)
    return [verdict for verdict in verdicts.values() if verdict.status]


def verify_suite(results: Path, lists: Mapping[str, str]) -> Verdict:
    """Return a verdict on the page of a suite, and on its comparisons.

    `lists` has the digest of the planned spec of each list of checksums, by its path.
    """

    def read(path: Path, digest: str) -> None:
        if read_spec(path).digest != digest:
            raise UnusableFileError(path, _OTHER_RUN)

    checks: dict[Path, Callable] = {}
    for name, digest in lists.items():
        checks |= _listed(results / name, partial(read, results / name, digest))
    return Verdict("suite", {path: inspect(path, check) for path, check in checks.items()})


class _Walk:
    """The files of each stage, with the readers that raise their errors."""

    def __init__(self, results: Path, spec: Spec, is_drawn: bool, threads: int):
        self._results, self._spec, self._is_drawn, self._threads = results, spec, is_drawn, threads

    def shards(self, stage: str, names: Sequence[str]) -> Iterator[tuple[Path, Callable]]:
        """Yield the file of each shard, and its reader."""
        for number in range(self._spec.shard["shards"]):
            path = self._results / names[0].format(shard=shard_name(number))
            if stage != "render" or path.exists():  # a user may delete frames after encoding
                yield path, partial(self._read, path, stage, self._spec.shard_of(number))

    def outputs(self, stage: str, names: Sequence[str]) -> Iterator[tuple[Path, Callable]]:
        """Yield each file of a stage without shards, and its reader.

        Videos and archives contain their checksum. The checksums of other files are in a list: a
        folder's SHA256SUMS, a .sha256, or a .json.
        """
        is_film = stage in ("concat", "episodes", *(set(_FILM) & self._spec.input_digests.keys()))
        whole = {name: self._spec.shard[name] for name in _WHOLE}
        sums = [name for name in names if name.endswith((checksums.SUMS, ".sha256"))]
        lists = sums or [n for n in names if n.endswith(".json") and n != "summary.json"]
        is_made = any((self._results / name).is_file() for name in names)
        for name in names:
            found = sorted(self._results.glob(re.sub(r"\{\w+\}", "*", name)))
            if is_film or (name in sums and is_made):
                found = [self._results / name]
            for path in found:
                if path.is_dir():
                    if any(path.iterdir()):
                        yield path, partial(self._read_folder, path, stage)
                elif path.suffix in (".mp4", ".npz"):
                    yield path, partial(self._read, path, stage, whole if stage == "concat" else {})
                elif name in lists:
                    yield from _listed(path, partial(self._read_list, path, stage))

    def _read(self, path: Path, stage: str, shard: Mapping) -> File:
        """Return the findings on a file that contains its checksum."""
        check_trailer(path)
        spec = self._check_spec(path, "simulate" if stage == "render" and self._is_drawn else stage)
        if shard:
            check_shard(path, spec, shard)
        content = {"seeds": spec.value.get("seeds", ())} if stage in ("play", "simulate") else {}
        if stage == "simulate":
            made = read_trajectories(path)
            content |= {"frames": int(made.offsets[-1]), "source": made.digest()}
        elif stage == "render":
            cache = open_cache(path)
            content = {"frames": len(cache), "source": cache.source}
        elif stage == "encode":
            content = {"frames": read_index(path).frames, "source": spec.source}
        elif stage == "concat":
            frames, complaints = ffmpeg.count_frames(path, self._threads)
            if complaints:
                raise UnusableFileError(path, f"the decoder reports: {complaints.splitlines()[0]}")
            content = {"frames": frames}
        return File(path.stat().st_size, **content)

    def _read_list(self, path: Path, stage: str) -> None:
        checksums.read_list(path)
        self._check_spec(path, stage)

    def _read_folder(self, folder: Path, stage: str) -> File:
        """Return the findings on a folder that is one output, and is rebuilt as a whole."""
        paths = checksums.check_folder(folder)
        self._check_spec(folder / checksums.SUMS, stage)
        return File(sum(path.stat().st_size for path in paths), len(paths))

    def _check_spec(self, path: Path, stage: str) -> Spec:
        spec, digests = read_spec(path), self._spec.input_digests
        if spec.stage != stage:
            raise UnusableFileError(path, f"it was made by the stage {spec.stage!r}, not {stage!r}")
        views = digests.keys() - {*_FILM, *_MADE_ONCE}
        if stage not in views and spec.digest != digests.get(stage, spec.digest):
            raise UnusableFileError(path, OTHER)
        # A view of this run has its shards and seeds, and was made of its files.
        used = {digest for name, digest in spec.input_digests.items() if name not in views}
        is_other = not used <= {*digests.values()}
        if "shards" in spec.shard:
            names = () if stage == "choose" else _WHOLE  # it has the shards of `play`
            is_other |= any(spec.shard[name] != self._spec.shard[name] for name in names)
            is_other |= spec.value.get("seeds") != self._spec.value.get("seeds")
        if digests and is_other:
            raise UnusableFileError(path, _OTHER_RUN)
        return spec


def _listed(path: Path, read: Callable) -> Iterator[tuple[Path, Callable]]:
    """Yield a list of checksums and each file in it, with their readers."""
    yield path, read
    with contextlib.suppress(GoalreelError):
        for file, digest in checksums.read_list(path).items():
            yield file, partial(_read_listed, file, digest)


def _read_listed(path: Path, digest: str) -> None:
    if error := checksums.checksum_error(path, digest):
        raise UnusableFileError(path, error)


def _read_run_file(path: Path, spec: Spec, plan: Callable[[Mapping], Spec]) -> None:
    """Check the options of a run.

    Raises GoalreelError if they are damaged, because they may be edited, and no rule makes them.
    """
    try:
        lines = checksums.checked_lines(path)
        with reporting_damage(path, "it lacks options"):
            planned = plan(yaml.safe_load(lines))
        here, there = (
            [s.value.get("seeds"), *map(s.input_digests.get, _FILM), *map(s.shard.get, _WHOLE)]
            for s in (spec, planned)
        )
        if here != there:
            raise UnusableFileError(path, _OTHER_RUN)
    except UnusableFileError as error:
        fix = "Move it elsewhere, then run snakemake verify with the options of this run"
        raise GoalreelError(f"{error.problem}. {fix}") from None


def _read_lock(path: Path, trajectories: Sequence[Path]) -> None:
    """Check the lock file of a run, which may have grown or changed since.

    Raises UnusableFileError if the file is damaged, or locks other seeds.
    """
    try:
        locked = read_lock(str(path)).episodes
    except GoalreelError as error:
        raise UnusableFileError(path, str(error)) from None
    seeds = [seed for file in trajectories for seed in read_summary(file).episodes.seed.tolist()]
    if any(seed != episode.seed for seed, episode in zip(seeds, locked, strict=False)):
        raise UnusableFileError(path, _OTHER_RUN)


def _play_again(simulate: Verdict, render: Verdict, threads: int) -> None:
    """Reject files that differ from Gymnasium's steps and frames."""
    frames = {path.stem: path for path, file in render.files.items() if file.is_ok}
    with ProcessPoolExecutor(threads, multiprocessing.get_context("spawn")) as players:
        shards = [path for path, file in simulate.files.items() if file.is_ok]
        again = [(p, players.submit(difference, p, frames.get(p.stem))) for p in shards]
        for path, played in again:
            try:
                if found := played.result():
                    (simulate if found[0] == path else render).files[found[0]].reject(found[1])
            except (GoalreelError, BrokenProcessPool) as error:
                simulate.files[path].reject(f"it cannot be replayed: {error}", "not checked")


def remove(verdicts: Iterable[Verdict]) -> list[Path]:
    """Remove damaged files, and return the damaged and missing files to make again.

    A folder that is one output stays, as "not checked", if it may hold a file of the user, because
    Snakemake would treat the rest as complete. Raises OSError if a file cannot be removed.
    """
    again = []
    for verdict in verdicts:
        again += verdict.having("missing")
        for path in verdict.having("damaged"):
            if not path.is_dir() or path.is_symlink():
                path.unlink(missing_ok=True)
            elif other := _other_file(path):
                hint = f"Move it elsewhere, then run rm -r {shlex.quote(str(path))}"
                error = f"{verdict.files[path].error}. {other} may be yours. {hint}"
                verdict.files[path].reject(error, "not checked")
                continue
            else:
                shutil.rmtree(path)
            again.append(path)
    return again


def _other_file(folder: Path) -> str:
    """Return the name of a file that no list of goalreel's contains, or ""."""
    try:
        others = checksums.other_files(folder)
    except UnusableFileError:  # the list is damaged
        others = folder.rglob("*")
    return max((path.name for path in others), default="")


def error_report(verdicts: Sequence[Verdict], again: Sequence[Path], results: Path) -> str:
    """Return a report on incomplete results, or "". `again` is the result of `remove`."""
    errors = [f"{p}: {f.error}" for v in verdicts for p, f in v.files.items() if not f.is_ok]
    if not errors:
        return ""
    head = f"The results are incomplete.{' Damaged files were removed.' if again else ''}"
    run_file = results / checksums.RUN_FILE
    is_known = any(v.files[run_file].is_ok for v in verdicts if run_file in v.files)
    words = [*map(str, again), *(["--configfile", str(run_file)] if is_known else [])]
    options = "" if is_known else ", with the options of this run"
    last = [f"To make them again: snakemake {shlex.join(words)}{options}"] if again else []
    return "\n".join([head, *map(str, verdicts), *errors, *last])


def write_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write the verdicts as a table."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        head = ("stage", "files", "frames", "bytes", "verdict")
        csv.writer(stream, lineterminator="\n").writerows([head, *(v.row for v in verdicts)])
