"""Artefacts that are cut short, changed in a byte, or another run's: none gets into a film.

In the middle of a run, the stage that reads a bad artefact refuses it by name, or the artefact is
made again before; the next run ends right. After a finished run, whose film is right, a damage that
shows in the file's time is repaired the same way; one that does not show is for `verify` to find.
"""

import shutil
from pathlib import Path

import pytest
import yaml
from conftest import VIEWED
from trials import SHARDS, SMALL, forget, generator, replaced, sampled, trials

from goalreel.provenance.spec import parse_spec
from goalreel.verification.run import Plan, verify
from goalreel.workflow.config import load_config
from goalreel.workflow.specs import Specs
from goalreel.workflow.stages import STAGES

END = ("film.mp4", "episodes.csv", "attempts.csv", "tables.json")
# What a run has not made yet when the artefact is about to be read.
AFTER = {
    "trajectories": (*END, "segments", "frames"),
    "frames": (*END, "segments"),
    "segments": END,
    "atlas.npz": (*END, "segments", "frames", "coded_atlas.npz"),
    "coded_atlas.npz": (*END, "segments"),
}
KINDS = {"trajectories": ".npz", "frames": ".npz", "segments": ".mp4"}
OTHERS = {
    "another policy": {"policy": "{name: near_optimal}"},
    "another style": {"render": "{palette: dark, style: vector}"},
    "another quality": {"encode": "{quality: small}"},
}


@pytest.fixture(scope="module")
def others(once):
    """Return the results of a run with other options."""

    def results(name: str):
        config = SMALL | OTHERS[name]
        project = once(name, lambda fresh: fresh.run("-j", "2", config=config))
        return project.folder / "results"

    return results


def files_of(kind: str) -> list[str]:
    """Return the names of a kind of artefact: a file of each shard, or the one there is."""
    return [f"{kind}/{shard}{KINDS[kind]}" for shard in SHARDS] if kind in KINDS else [kind]


def cut(content: bytes, rng) -> bytes:
    """Cut a file to any length, which is 0 in every fourth trial."""
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


MIDDLE = [(damage, kind) for kind in AFTER for damage in DAMAGES]


@pytest.mark.parametrize(("damage", "kind"), sampled(MIDDLE))
@trials(sample=1, count=3)
def test_damage_in_the_middle_of_a_run(filmed, recovers, tmp_path, damage, kind, trial):
    project, rng = filmed.copied(tmp_path / "project"), generator(damage, kind, trial)
    forget(project, *AFTER[kind])
    keep_times, names = bool(rng.randrange(2)), files_of(kind)
    if kind == "segments":  # one job reads them all, and refuses the first
        names = [rng.choice(names)]
    for name in names:
        path = project.folder / "results" / name
        replaced(path, DAMAGES[damage](path.read_bytes(), rng), keep_times)
    recovers(f"{kind}: {damage}", project, tried=len(names), culprits=names)


FOREIGN = [
    *[("another shard", kind) for kind in KINDS],
    *[("another policy", kind) for kind in KINDS],
    *[("another style", kind) for kind in ("frames", "atlas.npz", "coded_atlas.npz", "segments")],
    *[("another quality", kind) for kind in ("coded_atlas.npz", "segments")],
]


@pytest.mark.parametrize(("whose", "kind"), sampled(FOREIGN))
@trials(sample=1, count=1)
def test_a_file_of_another_run(filmed, others, recovers, tmp_path, whose, kind, trial):
    project = filmed.copied(tmp_path / "project")
    forget(project, *AFTER[kind])
    name = files_of(kind)[0]
    if whose == "another shard":
        source = project.folder / "results" / files_of(kind)[1]
    else:
        source = others(whose) / name
    path = project.folder / "results" / name
    assert path.read_bytes() != source.read_bytes()
    replaced(path, source.read_bytes(), keep_times=trial % 2 == 0)
    recovers(f"file of {whose} copied over", project, culprits=[name])


@pytest.mark.parametrize("kind", sampled(AFTER, 0))
@trials(sample=1, count=2)
def test_damage_after_a_finished_run(filmed, recovers, tmp_path, kind, trial):
    """Cut as a power cut leaves it: with a new time stamp."""
    project, rng = filmed.copied(tmp_path / "project"), generator("finished", kind, trial)
    name = rng.choice(files_of(kind))
    path = project.folder / "results" / name
    replaced(path, cut(path.read_bytes(), rng), keep_times=False)
    recovers("cut after a finished run, time stamp new", project, culprits=[name], complete=True)


@pytest.mark.parametrize("kind", ["atlas", "coded_atlas"])
@trials(sample=0, count=3)
def test_damage_in_the_users_cache(filmed, recovers, tmp_path, kind, trial):
    project, rng = filmed.copied(tmp_path / "project"), generator("cache", kind, trial)
    project.cache = tmp_path / "cache"
    shutil.copytree(filmed.cache, project.cache, ignore=shutil.ignore_patterns(".*"))
    forget(project, f"{kind}.npz", *AFTER[f"{kind}.npz"])
    for path in project.cache.rglob(f"{kind}-*.npz"):
        damage = rng.choice([cut, flipped])
        path.write_bytes(damage(path.read_bytes(), rng))
    recovers("user cache damaged", project)
    assert not list(project.cache.rglob(".*")), "no temporary files stay"


DRAWN = {"env": "FrozenLake-v1", "episodes": 6, "shard_size": 2, "policy": "{name: random}"}
RUNS = {  # a film, one with all views, and one of an environment that Gymnasium draws
    "filmed": (SMALL, ()),
    "viewed": (VIEWED, ()),
    "drawn with views": (DRAWN, ("all", "clips", "grid", "stills", "card")),
}


def found(results: Path, plan: Plan) -> set[Path]:
    """Return the files that `verify` names."""
    verdicts, statuses = verify(results, plan, 2), ("damaged", "missing", "not checked")
    return {path for v in verdicts for status in statuses for path in v.having(status)}


@pytest.mark.parametrize("run", sampled(RUNS))
@trials(sample=1, count=10)
def test_damage_that_no_time_stamp_shows(request, once, tmp_path, record_property, run, trial):
    """After a finished run only `verify` looks into files: it misses no damage of any file."""
    config, targets = RUNS[run]
    if targets:
        made = once(run, lambda fresh: fresh.run("-j", "2", *targets, config=config))
    else:
        made = request.getfixturevalue(run)
    results, rng = made.copied(tmp_path / "project").folder / "results", generator(run, trial)
    specs = Specs(
        load_config({key: yaml.safe_load(str(value)) for key, value in config.items()}),
        made.folder / "scripts",
    )
    outputs = {name: stage.paths for name, stage in STAGES.items()}
    plan = Plan(outputs, parse_spec(specs.spec("verify", {})))
    assert not found(results, plan)
    unchecked = (".snakemake_timestamp", "config.yaml", "logs", "benchmarks")
    files = [
        path
        for path in sorted(results.rglob("*"))
        if path.is_file() and not {path.name, path.relative_to(results).parts[0]} & {*unchecked}
    ]
    for place in range(25):
        damage = rng.choice([cut, flipped, zeroed, longer, None])  # None: two files swapped
        paths = rng.sample(files, 2) if damage is None else [rng.choice(files)]
        contents = [path.read_bytes() for path in paths]
        damaged = contents[::-1] if damage is None else [damage(contents[0], rng)]
        for path, content in zip(paths, damaged, strict=True):
            replaced(path, content, keep_times=True)
        assert damaged == contents or found(results, plan), (place, damage, paths)
        for path, content in zip(paths, contents, strict=True):
            replaced(path, content, keep_times=True)
    assert not found(results, plan)
    record_property("fault", ("any file of a finished run damaged", "found by `verify`", 25))
