"""Verification: one walk over all files of a run's results.

Each file's checksum is computed again, its spec and its content are compared with the plan, and
Gymnasium plays the episodes that it played and drew again. Only what is compared is kept of a file.
"""

import csv
import multiprocessing
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from goalreel.encoding import ffmpeg
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError, Unusable
from goalreel.files.seal import check_seal
from goalreel.films.shards import shard_name
from goalreel.mp4.reader import read_index
from goalreel.pictures.frame_cache import open_cache
from goalreel.provenance.checksums import SUMS, check_folder, fault_of, read_digests, read_sums
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import Spec
from goalreel.simulation.trajectories import read_trajectories
from goalreel.verification.replay_check import difference
from goalreel.verification.verdict import OTHER, Content, Verdict

NO_LIST = "the list of checksums is missing"
# Every other stage is a view: one that was not made, or was made by other options, is no error.
_FILM = ("recording", "atlas", "coded_atlas", "simulate", "render", "encode", "concat", "episodes")
_SHARDED = ("simulate", "render", "encode")
_SEALED = (".mp4", ".npz")
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

    def shard(self, number: int) -> dict[str, int]:
        """Return the part of a shard's spec that says which reaches the shard holds."""
        size, reaches = self.spec.shard["size"], self.spec.shard["reaches"]
        return {"first": number * size, "count": min(size, reaches - number * size)}

    def has_made(self, path: Path, stage: str) -> bool:
        """Return whether a file of a stage has the spec that is planned now, if one is planned."""
        spec = read_spec(path)
        return spec.stage != stage or spec.digest == self.spec.made_of.get(stage, spec.digest)


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
    verdicts = {stage: Verdict(stage) for stage in stages if stage != "verify"}
    # A process of the second pool starts when it gets something to play.
    players = ProcessPoolExecutor(threads, multiprocessing.get_context("spawn"))
    with ThreadPoolExecutor(threads) as pool, players:
        check = partial(_check_shard, results, plan, verdicts, players)
        list(pool.map(check, range(plan.spec.shard["shards"])))
        list(pool.map(partial(_check_left, results, plan), map(verdicts.get, _SHARDED)))
    for stage in verdicts.keys() - set(_SHARDED):
        verdicts[stage] = check_stage(results, stage, plan)
    film = results / "film.mp4"
    if film in verdicts["concat"].contents:
        verdicts["concat"].check(film, partial(_decode, film, threads))
    _compare_counts(results, verdicts)
    verdicts["concat"].note = "every frame decoded"
    if plan.is_drawn:
        played = "every episode played again" if plan.spec.reproducible else "not reproducible"
        verdicts["simulate"].note = played
    return [verdict for verdict in verdicts.values() if str(verdict)]


def _check_shard(
    results: Path,
    plan: Plan,
    verdicts: Mapping[str, Verdict],
    players: ProcessPoolExecutor,
    number: int,
) -> None:
    paths = {s: results / plan.outputs[s][0].format(shard=shard_name(number)) for s in _SHARDED}
    found = {
        stage: verdicts[stage].check(path, partial(_read, path, stage, plan, plan.shard(number)))
        for stage, path in paths.items()
    }
    if (made := found["simulate"]) is None:
        return
    cards = made.episodes * plan.spec.config["card_frames"]
    for stage, frames in (("render", made.frames), ("encode", made.frames + cards)):
        content = found[stage]
        if content and (content.source, content.frames) != (made.source, frames):
            error = f"it does not show the trajectories of its shard: {content.frames} frames"
            verdicts[stage].reject(paths[stage], f"{error}, not {frames}")
    if not (plan.is_drawn and plan.spec.reproducible):
        return
    trajectories = paths["simulate"]
    cache = paths["render"] if paths["render"] in verdicts["render"].contents else None
    try:
        if other := players.submit(difference, trajectories, cache).result():
            verdicts["render" if other[0] == cache else "simulate"].reject(*other)
    except (GoalreelError, BrokenProcessPool) as error:
        verdicts["simulate"].unchecked[trajectories] = f"it cannot be played again: {error}"


def _check_left(results: Path, plan: Plan, verdict: Verdict) -> None:
    """Check the shards that a longer film left, which need only be as they were written."""
    shards, pattern = plan.spec.shard["shards"], plan.outputs[verdict.stage][0]
    for path in results.glob(pattern.format(shard="[0-9]*")):
        if path.stem.isdigit() and int(path.stem) >= shards:
            verdict.spare.add(path)
            verdict.check(path, lambda p=path: check_seal(p) or Content(p.stat().st_size))


def check_stage(results: Path, stage: str, plan: Plan) -> Verdict:
    """Check the files of a stage that makes no shards.

    Videos, archives and networks have a checksum in themselves, the other files in a list: a
    folder's SHA256SUMS, a .sha256, or a .json.

    Args:
        results: the run's folder.
        stage: the stage's name.
        plan: what each file is compared with.

    Returns:
        The verdict.
    """
    verdict, outputs = Verdict(stage), plan.outputs[stage]
    is_film = stage in ("concat", "episodes") or (stage in _FILM and stage in plan.spec.made_of)
    sums = [name for name in outputs if name.endswith(_LISTS)]
    lists = sums or [name for name in outputs if name.endswith(".json")]
    for output in outputs:
        found = sorted(results.glob(re.sub(r"\{\w+\}", "*", output)))
        for path in [results / output] if is_film else found:
            if path.is_dir() and not path.is_symlink():
                _check_folder(verdict, path, plan)
            elif path.suffix in _SEALED:
                verdict.check(path, partial(_read, path, stage, plan))
            elif output in lists:
                _check_list(verdict, path, plan)
        if output in sums and not found and any((results / name).is_file() for name in outputs):
            verdict.unchecked[results / output] = NO_LIST
    return verdict


def _check_folder(verdict: Verdict, folder: Path, plan: Plan) -> None:
    """Check a folder that is one output, so that it is made again as a whole."""

    def read() -> Content:
        paths = check_folder(folder)
        videos = [path for path in folder.glob("*.mp4") if path in paths]
        # The report keeps copies of other stages' videos.
        planned = all(plan.has_made(path, verdict.stage) for path in videos)
        return Content(sum(path.stat().st_size for path in paths), len(paths), is_planned=planned)

    if (folder / SUMS).exists():
        verdict.check(folder, read)
    elif any(path.is_file() for path in folder.iterdir()):
        verdict.unchecked[folder / SUMS] = NO_LIST


def _check_list(verdict: Verdict, path: Path, plan: Plan) -> None:
    """Check a list of checksums, and the files that it names."""
    listed: dict[Path, str] = {}

    def read() -> Content:
        if path.suffix == ".json":
            listed.update({path.parent / name: sha for name, sha in read_digests(path).items()})
            _check_spec(path, verdict.stage, plan)
        else:
            listed.update(read_sums(path))
        return Content(path.stat().st_size)

    def read_listed(file: Path) -> Content:
        if not file.exists():
            raise GoalreelError("missing")
        if error := fault_of(file, listed[file]):
            raise Unusable(file, error)
        frames = _frames(file) if file.name == "episodes.csv" else []
        return Content(file.stat().st_size, frames=sum(frames), episodes=len(frames))

    verdict.check(path, read)
    for file in listed:
        verdict.check(file, partial(read_listed, file))


def _frames(table: Path) -> list[int]:
    """Return the number of frames of each episode in a table."""
    with table.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream)
        return [int(row["card_frames"]) + int(row["steps"]) + 1 for row in rows]


def _read(path: Path, stage: str, plan: Plan, shard: Mapping | None = None) -> Content:
    """Return what a file holds that has its checksum in itself.

    Raises Unusable unless it is intact, by the stage and of the shard that are planned.
    """
    check_seal(path)
    spec = _check_spec(path, "simulate" if stage == "render" and plan.is_drawn else stage, plan)
    if stage == "concat":
        shard = {name: plan.spec.shard[name] for name in ("shards", "reaches")}
    if shard is not None and spec.shard != shard:
        raise Unusable(path, f"it is of {spec.shard}, not of {dict(shard)}")
    content = Content(path.stat().st_size, is_planned=plan.has_made(path, spec.stage))
    if stage == "simulate":
        made = read_trajectories(path)
        frames, episodes = int(made.offsets[-1]), len(made)
        return replace(content, frames=frames, episodes=episodes, source=made.digest())
    if stage == "render":
        cache = open_cache(path)
        return replace(content, frames=len(cache), source=cache.source)
    if stage == "encode":
        return replace(content, frames=read_index(path).frames, source=spec.source)
    return content


def _check_spec(path: Path, stage: str, plan: Plan) -> Spec:
    spec = read_spec(path)
    if spec.stage != stage:
        raise Unusable(path, f"it was made by the stage {spec.stage!r}, not {stage!r}")
    if stage in _FILM and not plan.has_made(path, stage):
        raise Unusable(path, f"it was {OTHER} than this run's")
    return spec


def _decode(film: Path, threads: int) -> Content:
    """Return what a film holds, every frame decoded."""
    frames, complaints = ffmpeg.decoded(film, threads)
    if complaints:
        raise Unusable(film, f"the decoder reports: {complaints.splitlines()[0]}")
    return Content(film.stat().st_size, frames=frames, episodes=ffmpeg.chapters(film))


def _compare_counts(results: Path, verdicts: Mapping[str, Verdict]) -> None:
    """Reject a film or table that does not hold all frames and episodes of intact segments."""
    simulate, encode = verdicts["simulate"], verdicts["encode"]
    if any(v.errors or v.unchecked or v.missing for v in (simulate, encode)):
        return  # an error of a shard needs no second name
    planned = encode.frames, simulate.episodes
    for stage, name in (("concat", "film.mp4"), ("episodes", "episodes.csv")):
        content, counts = verdicts[stage].contents.get(results / name), "{} frames, {} episodes"
        if content and (held := (content.frames, content.episodes)) != planned:
            error = f"it has {counts.format(*held)}, not {counts.format(*planned)}"
            verdicts[stage].reject(results / name, error)
