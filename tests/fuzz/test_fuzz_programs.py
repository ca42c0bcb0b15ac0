"""Any command line works, or ends in a short message; it leaves nothing elsewhere."""

import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from fuzzing import FULL, bounded, examples, mutated_bytes, mutated_npz, put
from hypothesis import given
from hypothesis import strategies as st
from material import ARGUMENTS, MAINS, OUTPUTS, made, replayed, spec_of

import verify
from goalreel import cli
from goalreel.encoding import ffmpeg

# Programs whose every run takes long are tried less often; they need matplotlib, a second.
_RARE = ("plots", "training_table")
_LONGEST = 6000


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Return the folder of a small finished run."""
    return made(tmp_path_factory.getbasetemp() / "run")


@pytest.fixture(scope="session")
def place(run, tmp_path_factory):
    """Return a folder with links to the run's files, a place for results and odd paths."""
    folder = tmp_path_factory.mktemp("place")
    _lay_out(run, folder)
    (folder / "cache").mkdir()
    (folder / "tmp").mkdir()
    return folder


def _lay_out(run: Path, folder: Path) -> None:
    shutil.copytree(run, folder / "in", copy_function=os.link)
    odd = folder / "in" / "odd"
    odd.mkdir()
    (odd / "empty").touch()
    (odd / "empty.npz").touch()
    (odd / "words.npz").write_text("no zip")
    (odd / "folder.npz").mkdir()
    (odd / "gone.npz").symlink_to("nowhere")


def _seen(folder: Path) -> set[tuple]:
    """Return what stands in a folder but for the results and the cache: names, sizes and times."""
    found = [*folder.iterdir(), *(folder / "in").rglob("*"), *(folder / "tmp").rglob("*")]
    return {
        (str(path.relative_to(folder)), not path.is_dir() and path.lstat().st_mtime_ns)
        for path in found
    }


def _ends_well(main, argv, place: Path, run: Path, capsys, strange=False, own=("out",)) -> None:
    """Run a program as from a command line, and look at how it ends and what it leaves.

    own: the folders that it may change.
    """
    results = place / "out"
    shutil.rmtree(results, ignore_errors=True)
    (results / "a folder").mkdir(parents=True)
    before = _seen(place)
    status: object = 0
    capsys.readouterr()
    sys.stderr.reconfigure(errors="backslashreplace")  # as Python's own is
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with contextlib.chdir(place), bounded():
            cli.run(lambda: main(argv))
    except SystemExit as error:
        status = error.code
    finally:
        signal.signal(signal.SIGTERM, handler)
    completed = capsys.readouterr()
    if status == 1:
        message = completed.err[completed.err.index("error: ") :]
        assert 8 < len(message) < _LONGEST and "Traceback" not in message, message
    elif status == 2:
        assert " error: " in completed.err and completed.err.startswith("usage: "), completed.err
    else:
        assert status in (0, None)
    touched = {name for name, _ in _seen(place) ^ before if not name.startswith(own)}
    # A word too many may make an input what is to be written.
    assert not touched or (strange and touched <= set(map(os.path.normpath, argv))), touched
    hidden = [path for path in results.rglob(".*") if path.is_file()]
    assert not hidden, f"half a file was left: {hidden}"
    for name in touched:
        path = place / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if any(name.startswith("in") for name in touched):
        shutil.rmtree(place / "in", ignore_errors=True)
        _lay_out(run, place)


@pytest.fixture
def quiet(place, monkeypatch, tmp_path):
    """Give programs a cache and temporary folder of their own, and an ffmpeg that fails at once."""
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(place / "tmp"))
    ffmpeg.version()
    fails = tmp_path / "ffmpeg"
    fails.write_text("#!/bin/sh\nexit 1\n")
    fails.chmod(0o755)
    monkeypatch.setattr(ffmpeg, "executable", lambda: str(fails))


_ODD = ["empty", "empty.npz", "words.npz", "folder.npz", "gone.npz", "missing.npz"]
_WORDS = [
    "",
    "-",
    "--",
    "-h",
    "--spec",
    "--spec=",
    "--nope",
    "x",
    "\udcff",
    "é 雪",
    "a\nb",
    "--atlas",
]
_WORDS += ["--atlas", "9" * 500, "-1", "--threads", "--max-attempts", "0", "in/odd/empty", "/", "."]


@st.composite
def _lines(draw, stage: str, run: Path):
    """Return a program's arguments with something wrong, and a file to be put at in/odd/x."""
    outputs = OUTPUTS.get(stage, 1)
    argv = [
        argument if argument.startswith("--") else
        f"{'out' if place >= len(ARGUMENTS[stage]) - outputs else 'in'}/{argument}"
        for place, argument in enumerate(ARGUMENTS[stage])
    ]  # fmt: skip
    inputs = [place for place, name in enumerate(argv) if name.startswith("in/")]
    spec, content = spec_of(stage), None
    how = draw(st.sampled_from(["file", "file", "odd", "word", "output"]))
    if how == "file" and inputs:
        place = draw(st.sampled_from(inputs))
        name = (
            draw(st.sampled_from(sorted(_files(run)))) if draw(st.booleans()) else argv[place][3:]
        )
        suffix = Path(argv[place]).suffix
        strategy = mutated_npz(run / name) if name.endswith(".npz") else mutated_bytes(
            (run / name).read_bytes())  # fmt: skip
        content = f"x{suffix}", draw(strategy)
        argv[place] = f"in/odd/x{suffix}"
    elif how == "odd" and inputs:
        argv[draw(st.sampled_from(inputs))] = f"in/odd/{draw(st.sampled_from(_ODD))}"
    elif how == "output":
        odd = ["out/a folder", "in/odd/empty/under", "/proc/x", f"out/{'n' * 300}", "", "out/new/x"]
        argv[draw(st.integers(len(argv) - outputs, len(argv) - 1))] = draw(st.sampled_from(odd))
    line = [*argv, "--spec", json.dumps(spec)]
    strange = how == "word" or not inputs
    for _ in range(draw(st.integers(1, 3)) if strange else 0):
        at = draw(st.integers(0, len(line) - 1))
        line[at : at + draw(st.integers(0, 2))] = [draw(st.sampled_from(_WORDS))]
    return line, content, strange


def _files(run: Path) -> list[str]:
    names = (str(path.relative_to(run)) for path in run.rglob("*") if path.is_file())
    return [name for name in names if not name.startswith(("odd/", "cache/"))]


@pytest.mark.parametrize("stage", MAINS)
def test_any_command_line_ends_well(stage, run, place, quiet, capsys):
    if stage in _RARE and not FULL:
        pytest.skip("takes long: with GOALREEL_FUZZ=full alone")

    @examples(sample=12, full=200 if stage in _RARE else 800)
    @given(_lines(stage, run))
    def check(line):
        argv, content, strange = line
        for path in (place / "in" / "odd").glob("x*"):
            path.unlink()
        if content:
            put(place / "in" / "odd" / content[0], content[1])
        _ends_well(MAINS[stage], argv, place, run, capsys, strange)

    check()


def _linked(run: Path, where: Path, names) -> None:
    """Make a folder anew, with links to files of the run."""
    shutil.rmtree(where, ignore_errors=True)
    for name in names:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(run / name, where / name)


def _harmed(data, where: Path, name: str) -> None:
    """Put a mutated file in the place of a sound one; the run that it is a link of keeps it."""
    sound = where / name
    strategy = mutated_npz(sound) if name.endswith("npz") else mutated_bytes(sound.read_bytes())
    content = data.draw(strategy)
    sound.unlink()
    put(sound, content)


def test_verify_on_any_folder_ends_well(run, place, quiet, capsys):
    @examples(sample=12, full=800)
    @given(st.data())
    def check(data):
        where, names = place / "in" / "run", sorted(_files(run))
        _linked(run, where, names)
        if data.draw(st.booleans()):
            _harmed(data, where, data.draw(st.sampled_from(names)))
        for name in data.draw(st.lists(st.sampled_from(["frames/x.npz", "a b", "logs/x/0.log"]))):
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            (where / name).write_text("mine")
        odd = [f"in/odd/{name}" for name in _ODD]
        results = data.draw(st.sampled_from(["in/run"] * 9 + odd))
        argv = [f"{results}/verify.csv", "--spec", json.dumps(spec_of("verify"))]
        argv[:0] = data.draw(st.lists(st.sampled_from(["--threads", "2", "-1", "x"]), max_size=1))
        own = ("in/run", os.path.normpath(results))
        try:
            _ends_well(verify.main, argv, place, run, capsys, own=own)
            assert not (where / "a b").exists() or (where / "a b").read_text() == "mine"
        finally:
            shutil.rmtree(where, ignore_errors=True)

    check()


@examples(sample=12, full=800)
@given(st.data())
def test_replay_ends_well(run, place, quiet, capsys, data):
    where = place / "in" / "run"
    names = ["tables.json", "attempts.csv", "trajectories/00000.npz"]
    _linked(run, where, names)
    if data.draw(st.booleans()):
        _harmed(data, where, data.draw(st.sampled_from(names)))
    words = st.sampled_from(["0", "1", "5", "-1", "x", "9" * 30, "--attempt", "--gif", "out/x.gif"])
    more = data.draw(st.lists(words, max_size=3))
    argv = [*more, "--results", "in/run", "--png", "out/png"]
    try:
        _ends_well(replayed, argv, place, run, capsys, strange=True)
    finally:
        shutil.rmtree(where)
