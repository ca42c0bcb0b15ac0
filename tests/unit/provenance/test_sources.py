"""Runs and jobs see at once whether the sources are as they were, and are right about it."""

import json
import shutil

import pytest
from project import REPOSITORY

from goalreel.cli import spec_of, stage_parser
from goalreel.errors import GoalreelError
from goalreel.provenance import fingerprint as by_syntax
from goalreel.provenance import kept_fingerprints
from goalreel.provenance.fingerprint import fingerprint
from goalreel.provenance.kept_fingerprints import kept_fingerprint
from goalreel.provenance.sources import are_as_noted, first_hash, note_sources, sources_hash


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """Return a copy of the scripts, with a user's cache folder and an environment of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GOALREEL_SOURCES", raising=False)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "scripts", tmp_path / "scripts", ignore=ignore)
    return tmp_path / "scripts"


def forget() -> None:
    """Make this process look at the sources as a new one does."""
    first_hash.cache_clear()
    for function in (by_syntax._imported, by_syntax._parse, by_syntax._tree):
        function.cache_clear()


def edit(path, old, new) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    forget()


def kept(scripts) -> dict:
    (place,) = (scripts.parent / "cache").rglob("fingerprints.json")
    return json.loads(place.read_text())


def test_a_kept_fingerprint_is_the_one_of_the_syntax_trees(scripts, monkeypatch):
    script = scripts / "render.py"
    assert kept_fingerprint(script) == fingerprint(script)
    forget()
    monkeypatch.setattr(kept_fingerprints, "fingerprint", None)  # from the file now
    assert kept_fingerprint(script) == fingerprint(script)


def test_an_edit_makes_it_another_and_its_undoing_the_same_again(scripts):
    script, module = scripts / "render.py", scripts / "goalreel" / "pictures" / "layers.py"
    before = kept_fingerprint(script)
    edit(module, "NOTHING = -1", "NOTHING = -2")
    assert kept_fingerprint(script) == fingerprint(script) != before
    edit(module, "NOTHING = -2", "NOTHING = -1  # as ever")
    assert kept_fingerprint(script) == before
    assert len(kept(scripts)) == 3


def test_an_edit_while_it_is_found_is_not_kept(scripts, monkeypatch):
    def found_during_an_edit(script):
        with (scripts / "goalreel" / "pictures" / "layers.py").open("a") as module:
            module.write("MORE = 1\n")
        return fingerprint(script)

    monkeypatch.setattr(kept_fingerprints, "fingerprint", found_during_an_edit)
    kept_fingerprint(scripts / "render.py")
    assert not list((scripts.parent / "cache").rglob("*.json"))


def test_only_the_last_sets_of_sources_are_kept(scripts):
    module = scripts / "goalreel" / "arrays.py"
    for number in range(25):
        module.write_text(f"NUMBER = {number}\n")
        forget()
        kept_fingerprint(scripts / "atlas.py")
    assert len(kept(scripts)) == 20 and sources_hash(scripts) in kept(scripts)


@pytest.mark.parametrize("rubbish", [b"", b"{", b"[]", b"\xff"])
def test_a_broken_file_is_as_good_as_none(scripts, rubbish):
    kept_fingerprint(scripts / "atlas.py")
    (place,) = (scripts.parent / "cache").rglob("fingerprints.json")
    place.write_bytes(rubbish)
    assert kept_fingerprint(scripts / "atlas.py") == fingerprint(scripts / "atlas.py")
    assert len(kept(scripts)) == 1


def test_where_nothing_can_be_kept_it_is_found_each_time(scripts):
    (scripts.parent / "cache").write_text("a file where the folder would stand")
    assert kept_fingerprint(scripts / "atlas.py") == fingerprint(scripts / "atlas.py")


@pytest.mark.parametrize(
    "name", ["render.py", "goalreel/pictures/layers.py", "goalreel/new/module.py"]
)
def test_any_change_of_a_source_is_seen(scripts, name):
    assert not are_as_noted(scripts), "nothing was noted"
    (scripts / ".#render.py").symlink_to("nowhere")  # as Emacs locks a file
    note_sources(scripts)
    assert are_as_noted(scripts)
    path = scripts / name
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as source:
        source.write("# a comment\n")
    assert not are_as_noted(scripts)


def test_a_job_refuses_a_spec_of_other_code_unless_the_sources_were_noted(monkeypatch):
    """The check by syntax trees is left out where, and only where, the bytes are the planned."""
    scripts = REPOSITORY / "scripts"
    options = stage_parser("", "atlas")
    spec = {"stage": "atlas", "config": {}, "code": "0" * 64}
    arguments = options.parse_args(["--spec", json.dumps(spec)])
    for noted in (None, "f" * 64):
        if noted:
            monkeypatch.setenv("GOALREEL_SOURCES", noted)
        with pytest.raises(GoalreelError, match="has changed since the run began"):
            spec_of(arguments)
    monkeypatch.setenv("GOALREEL_SOURCES", sources_hash(scripts))
    assert spec_of(arguments).code == "0" * 64


POLICY = """
import os, sys

print("noted:", os.environ.get("GOALREEL_SOURCES"), file=sys.stderr)


def act(observations):
    return (observations[:, 1] > 0) * 2
"""


def test_the_workflow_notes_its_sources_for_its_jobs(project):
    (project.folder / "push.py").write_text(POLICY)
    config = {"reaches": 1, "policy": "{name: file, file: push.py}"}
    project.run("results/trajectories/00000.npz", config=config)
    said = (project.folder / "results/logs/simulate/00000.log").read_text()
    assert f"noted: {sources_hash(project.folder / 'scripts')}" in said
