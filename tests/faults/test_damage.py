"""Artefacts that are cut short, changed in a byte, or another run's: none gets into a film.

In the middle of a run, the stage that reads a bad artefact refuses it by name, or the artefact is
made again before; the next run ends right. After a finished run, whose film is right, a damage that
shows in the file's time is repaired the same way; one that does not show is for `verify` to find.
"""

import pytest
from conftest import Project, hashes
from trials import (
    SHARDS,
    SMALL,
    copy_of,
    dice,
    ends_right,
    forget,
    noted,
    replaced,
    trials,
)

END = ("film.mp4", "episodes.csv", "attempts.csv", "tables.json")
# What a run has not made yet when the artefact is about to be read.
AFTER = {
    "trajectories": (*END, "segments", "frames"),
    "frames": (*END, "segments"),
    "segments": END,
    "atlas.npz": (*END, "segments", "frames", "dictionary.npz"),
    "dictionary.npz": (*END, "segments"),
}
KINDS = {"trajectories": ".npz", "frames": ".npz", "segments": ".mp4"}
OTHERS = {
    "another policy": {"policy": "{name: near_optimal}"},
    "another style": {"render": "{palette: dark, style: vector}"},
    "another quality": {"encode": "{quality: small}"},
}


@pytest.fixture(scope="module")
def done(tmp_path_factory, user_cache) -> Project:
    """Return a project with its finished film; tests take copies."""
    project = Project(tmp_path_factory.mktemp("done"), user_cache)
    project.run("-j", "2", config=SMALL)
    project.wanted = hashes(project.folder / "results")
    return project


@pytest.fixture(scope="module")
def others(tmp_path_factory, user_cache):
    """Return the results of a run with other options."""
    made = {}

    def run(name: str):
        if name not in made:
            project = Project(tmp_path_factory.mktemp("other"), user_cache)
            project.run("-j", "2", config=SMALL | OTHERS[name])
            made[name] = project.folder / "results"
        return made[name]

    return run


def files_of(kind: str) -> list[str]:
    """Return the names of a kind of artefact: a file of each shard, or the one there is."""
    return [f"{kind}/{shard}{KINDS[kind]}" for shard in SHARDS] if kind in KINDS else [kind]


def cut(content: bytes, random) -> bytes:
    """Cut a file to any length, which is 0 in every fourth trial."""
    return content[: random.choice([0, *[random.randrange(len(content)) for _ in range(3)]])]


def flipped(content: bytes, random) -> bytes:
    """Change one byte."""
    place = random.randrange(len(content))
    return (
        content[:place] + bytes([content[place] ^ random.randrange(1, 256)]) + content[place + 1 :]
    )


DAMAGES = {"cut to any length": cut, "one byte changed": flipped}


@pytest.mark.parametrize("kind", AFTER)
@pytest.mark.parametrize("damage", DAMAGES)
@trials(sample=1, full=5)
def test_damage_in_the_middle_of_a_run(done, tmp_path, record_property, damage, kind, trial):
    project, random = copy_of(done, tmp_path / "project"), dice(damage, kind, trial)
    forget(project, *AFTER[kind])
    keep_times, names = bool(random.randrange(2)), files_of(kind)
    if kind == "segments":  # one job reads them all, and refuses the first
        names = [random.choice(names)]
    for name in names:
        path = project.folder / "results" / name
        replaced(path, DAMAGES[damage](path.read_bytes(), random), keep_times)
    outcome = ends_right(project, SMALL, done.wanted, culprits=names)
    noted(record_property, f"{kind}: {damage}", outcome, len(names))
