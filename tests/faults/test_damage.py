"""Files that are cut, changed in a byte or from another run never get into a film.

In the middle of a run, the stage that reads a bad file rejects it by name, or the file is rebuilt
before. The next run ends right. After a finished run, the next run also repairs damage that changes
the time stamp. `verify` finds other damage.
"""

import shutil
from pathlib import Path

import pytest
from conftest import TARGETS, VIEWED
from project import Project
from trials import SHARDS, SMALL, forget, generator, recover, replaced, trials, verified

END = ("film.mp4", "episodes.csv", "attempts.csv", "tables.json")
# The results that a run has not made yet when it is about to read the file.
AFTER = {
    "trajectories": (*END, "segments", "frames"),
    "frames": (*END, "segments"),
    "segments": END,
    "atlas.npz": (*END, "segments", "frames", "coded_atlas.npz"),
    "coded_atlas.npz": (*END, "segments"),
}
KINDS = {"trajectories": ".npz", "frames": ".npz", "segments": ".mp4"}


def files_of(kind: str) -> list[str]:
    """Return the names of a kind of file: one per shard, or a single one."""
    return [f"{kind}/{shard}{KINDS[kind]}" for shard in SHARDS] if kind in KINDS else [kind]


def cut(content: bytes, rng) -> bytes:
    """Cut a file to a random length, which is 0 in every fourth trial."""
    return content[: rng.choice([0, *[rng.randrange(len(content)) for _ in range(3)]])]


def flipped(content: bytes, rng) -> bytes:
    """Change one byte."""
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ rng.randrange(1, 256)]) + content[place + 1 :]


def zeroed(content: bytes, rng) -> bytes:
    """Write zeros over a few bytes, or over a page of the disk."""
    place = rng.randrange(len(content))
    length = min(rng.choice([1, 16, 4096]), len(content) - place)
    return content[:place] + bytes(length) + content[place + length :]


def longer(content: bytes, rng) -> bytes:
    """Write more at the end."""
    return content + rng.randbytes(rng.choice([1, 16, 4096]))


DAMAGES = {"one byte changed": flipped, "cut to any length": cut}
OTHERS = {
    "another policy": ({"policy": "{name: near_optimal}"}, KINDS),
    "another environment": (
        {"env": "MountainCarContinuous-v0"},
        ("frames", "atlas.npz", "coded_atlas.npz", "segments"),
    ),
    "another quality": ({"encode": "{quality: small}"}, ("coded_atlas.npz", "segments")),
}
MIDDLE = [(damage, kind) for kind in AFTER for damage in DAMAGES]
MIDDLE += [("another shard", kind) for kind in KINDS]
MIDDLE += [(whose, kind) for whose, (_, kinds) in OTHERS.items() for kind in kinds]


@pytest.mark.parametrize(
    ("damage", "kind"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case != MIDDLE[0])) for case in MIDDLE],
)
@trials(2)
def test_run_rejects_or_rebuilds_damaged_file(
    filmed, once, expected, tmp_path, damage, kind, trial
):
    project, rng = filmed.copied(tmp_path / "project"), generator(damage, kind, trial)
    results, names = project.folder / "results", files_of(kind)
    forget(project, *AFTER[kind])
    source, keep_times = results, bool(rng.randrange(2))
    if damage in OTHERS:
        config = SMALL | OTHERS[damage][0]
        source = once(damage, lambda new: new.run("-j", "2", config=config)).folder / "results"
    if damage in DAMAGES:  # one job reads all segments, and rejects the first
        damaged = [rng.choice(names)] if kind == "segments" else names
        contents = {n: DAMAGES[damage]((results / n).read_bytes(), rng) for n in damaged}
    else:
        contents = {names[0]: (source / names[damage == "another shard"]).read_bytes()}
    for name, content in contents.items():
        assert content != (results / name).read_bytes()
        replaced(results / name, content, keep_times)
    recover(project, expected, culprits=contents)


@pytest.mark.slow
@pytest.mark.parametrize("kind", AFTER)
@trials(2)
def test_next_run_repairs_damage_of_finished_run(filmed, expected, tmp_path, kind, trial):
    """Cut the file with a new time stamp, as a power cut leaves it."""
    project, rng = filmed.copied(tmp_path / "project"), generator("finished", kind, trial)
    name = rng.choice(files_of(kind))
    path = project.folder / "results" / name
    replaced(path, cut(path.read_bytes(), rng), keep_times=False)
    recover(project, expected, culprits=[name], complete=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["atlas", "coded_atlas"])
@trials(3)
def test_run_repairs_damaged_user_cache(filmed, expected, tmp_path, kind, trial):
    project, rng = filmed.copied(tmp_path / "project"), generator("cache", kind, trial)
    project.cache = tmp_path / "cache"
    shutil.copytree(filmed.cache, project.cache, ignore=shutil.ignore_patterns(".*"))
    forget(project, f"{kind}.npz", *AFTER[f"{kind}.npz"])
    for path in project.cache.rglob(f"{kind}-*.npz"):
        damage = rng.choice([cut, flipped])
        path.write_bytes(damage(path.read_bytes(), rng))
    recover(project, expected)
    assert not list(project.cache.rglob(".*")), "no temporary files stay"


LAKE = {"env": "FrozenLake-v1", "shard_size": 2}
SELECTED = LAKE | {"film": {"select": {"worst": 4}}}
# For each run another one that differs only in its seeds.
RUNS = {
    "viewed and locked": (VIEWED, {"seed": 7}, (*TARGETS, "lock")),
    "drawn with views": (LAKE | {"seeds": "0-5"}, {"seeds": "6-11"}, ("clips", "grid", "report")),
    "selected": (SELECTED | {"seeds": "0-9"}, {"seeds": "10-19"}, ("all", "stills")),
}
SWAPS = ("swap", "of another run", "a view or all shards of another run")


def content(results: Path) -> dict[str, bytes]:
    """Return the content of each result, without times."""
    paths = (path for path in results.rglob("*") if path.is_file())
    names = {path.relative_to(results).as_posix(): path for path in paths}
    left_out = ("logs/", "benchmarks/", "verify.csv")
    is_result = {n: not n.startswith(left_out) and "snakemake_time" not in n for n in names}
    return {name: names[name].read_bytes() for name in sorted(names) if is_result[name]}


def damaged(kind, made: dict[str, bytes], others: dict[str, bytes], rng) -> dict[str, bytes]:
    """Return the new content of damaged files, which may be equal."""
    first, second = rng.sample(sorted(made), 2)
    if kind == "swap":
        return {first: made[second], second: made[first]}
    if kind == "of another run":
        name = rng.choice(sorted(made.keys() & others.keys()))
        return {name: others[name]}
    if kind == "a view or all shards of another run":
        top = rng.choice(sorted({name.partition("/")[0] for name in made if name in others}))
        return {n: others[n] for n in made if n.partition("/")[0] == top and n in others}
    return {first: kind(made[first], rng)}


def found(project: Project, config: dict) -> set[Path]:
    """Return the files that `verify` names."""
    files = (item for verdict in verified(project, config) for item in verdict.files.items())
    return {path for path, file in files if not file.is_ok}


def damage(project: Project, config: dict, others: dict, rng, kinds: list, count: int) -> None:
    """Damage and restore results, and check that `verify` finds each damage and nothing else."""
    results, files = project.folder / "results", content(project.folder / "results")
    for place in range(count):
        kind = rng.choice(kinds)
        new = damaged(kind, files, others, rng)
        for name, changed in new.items():
            replaced(results / name, changed, keep_times=True)
        is_same = all(files[name] == changed for name, changed in new.items())
        assert is_same or found(project, config), (place, kind, sorted(new))
        for name in new:
            replaced(results / name, files[name], keep_times=True)
    assert not found(project, config)


def test_verify_finds_some_damage_without_new_time_stamp(viewed, tmp_path):
    kinds = [cut, flipped, zeroed, longer, "swap"]
    damage(viewed.copied(tmp_path / "project"), VIEWED, {}, generator("some"), kinds, 6)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
@trials(12)
def test_verify_finds_damage_without_new_time_stamp(once, tmp_path, run, trial):
    """After a finished run `verify` finds the damage of any file, and the files of another run."""
    config, change, targets = RUNS[run]
    made = once(run, lambda new: new.run("-j", "2", *targets, config=config))
    other = once(f"other {run}", lambda new: new.run("-j", "2", *targets, config=config | change))
    project = made.copied(tmp_path / "project")
    sound = {verdict.stage: verdict.status for verdict in verified(project, config)}
    remarks = {"", "every frame decoded", "every episode played again"}
    assert {status.removeprefix("ok").strip(", ") for status in sound.values()} <= remarks
    others, kinds = content(other.folder / "results"), [cut, flipped, zeroed, longer, *SWAPS]
    damage(project, config, others, generator(run, trial), kinds, 30)
