"""Artefacts that are cut short, changed in a byte, or another run's: none gets into a film.

In the middle of a run, the stage that reads a bad artefact refuses it by name, or the artefact is
made again before; the next run ends right. After a finished run, whose film is right, a damage that
shows in the file's time is repaired the same way; one that does not show is for `verify` to find.
"""

import shlex
import shutil

import pytest
from conftest import hashes
from trials import SHARDS, SMALL, forget, generator, replaced, sampled, trials

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


@pytest.mark.parametrize("kind", sampled(["film.mp4", "episodes.csv", *AFTER]))
@pytest.mark.parametrize("damage", sampled(DAMAGES))
def test_damage_that_no_time_stamp_shows(filmed, expected, tmp_path, damage, kind):
    """After a finished run only `verify` looks into files; it says what to make again."""
    project, rng = filmed.copied(tmp_path / "project"), generator("kept", damage, kind)
    name = rng.choice(files_of(kind))
    path = project.folder / "results" / name
    replaced(path, DAMAGES[damage](path.read_bytes(), rng), keep_times=True)
    output = project.fail("-j", "2", "verify", config=SMALL)
    assert name in output and "Traceback" not in output, output
    again = shlex.split(output.split("make again: ")[-1].splitlines()[0])
    project.run("-j", "2", *again, config=SMALL)
    found = hashes(project.folder / "results")
    assert {k: v for k, v in found.items() if k != "verify.csv"} == expected


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
