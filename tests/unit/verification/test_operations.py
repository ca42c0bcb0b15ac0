"""`verify` finds any changed byte, and removes only damaged files."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess

import pytest
from conftest import SMALL, VIEWED, hashes
from trials import replaced, verified

from goalreel.encoding import ffmpeg
from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.provenance.checksums import SUMS, read_sums, write_folder_sums
from goalreel.verification.run import error_report, remove


def flip(path, place: int) -> None:
    """Change one bit of a file but not its time stamp, like bit rot."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << place % 8
    replaced(path, content, keep_times=True)


def found(verdicts) -> set:
    return {path for verdict in verdicts for path in verdict.having("damaged")}


def test_verify_finds_truncated_missing_and_swapped_files(done):
    results = done.folder / "results"
    shards = [results / "segments" / f"{shard}.mp4" for shard in ("00000", "00001")]
    os.truncate(shards[0], shards[0].stat().st_size - 1)
    shutil.copyfile(results / "trajectories" / "00000.npz", results / "trajectories" / "00001.npz")
    (results / "attempts.csv").unlink()
    (results / "frames" / "00001.npz").unlink()
    verdicts = verified(done, SMALL)
    assert found(verdicts) == {shards[0], results / "trajectories" / "00001.npz"}
    statuses = {verdict.stage: verdict.status for verdict in verdicts}
    assert statuses["episodes"] == "1 missing" and statuses["render"] == "ok"
    again = remove(verdicts)
    assert set(again) == found(verdicts) | {results / "attempts.csv"}
    assert not any(path.exists() for path in again)


def test_verify_finds_results_of_other_options(done):
    verdicts = {v.stage: v for v in verified(done, SMALL | {"seed": 7})}
    assert len(verdicts["simulate"].having("damaged")) == 2
    assert all("other options" in file.error for file in verdicts["concat"].files.values())
    assert all(verdicts[name].status == "ok" for name in ("atlas", "coded_atlas"))


def test_verify_accepts_a_view_of_other_options(viewed):
    verdicts = verified(viewed, VIEWED | {"grid": {"columns": 1}})
    statuses = {verdict.stage: verdict.status for verdict in verdicts}
    assert statuses["grid"] == statuses["report"] == "ok"


@pytest.mark.slow
def test_damaged_options_are_rejected_before_a_run(done):
    record = done.folder / "results" / "config.yaml"
    before, text = hashes(done.folder / "results"), record.read_bytes()
    record.write_bytes(text.replace(b"seed: 2025", b"seed: 2024"))
    for target in ("all", "verify"):
        said = done.fail(target, "--configfile", "results/config.yaml")
        assert "results/config.yaml: Edited or damaged (checksum mismatch). Restore it" in said
    said = done.fail("verify", config=SMALL)
    assert "results/config.yaml: it is truncated or corrupt (its lines differ" in said
    assert hashes(done.folder / "results") == before
    record.rename(done.folder / "mine.yaml")
    assert done.jobs("--configfile", "mine.yaml")["simulate"] == 2  # of the other seed
    done.run("verify", config=SMALL)
    assert record.read_bytes() == text


@pytest.mark.slow
def test_targets_that_verify_prints_rebuild_everything(done):
    results = done.folder / "results"
    before = hashes(results)
    for name in ("trajectories/00000.npz", "segments/00001.mp4", "episodes.csv", "atlas.npz"):
        flip(results / name, 500)
    said = done.fail("-j", "2", "verify", config=SMALL)
    lines = [line.strip() for line in said.splitlines()]
    log = (results / "logs" / "verify.log").read_text().splitlines()
    line = next(line for line in log if line.split()[:1] == ["coded_atlas"])
    assert line.split()[1:] == [*["1", "file"], *line.split()[3:5], "ok"]
    assert not (results / "verify.csv").exists()
    last = [line for line in lines if line.startswith("To make them again: ")][-1]
    done.run("-j", "2", *shlex.split(last.removeprefix("To make them again: snakemake ")))
    assert hashes(results) == before
    assert done.jobs(config=SMALL) == {}
    for _ in range(2):  # it always runs
        said = done.run("-j", "2", "verify", config=SMALL)
        assert re.search(r"concat +1 file .* ok, every frame decoded", said), said
    assert (results / "verify.csv").read_text().startswith("stage,files,frames,bytes,verdict\n")


def test_checksums_fit_sha256sum_and_name_nothing_outside(tmp_path):
    folder = tmp_path / "clips"
    (folder / "deep").mkdir(parents=True)
    odd = "odd \udcff é"  # a byte that is not UTF-8
    (folder / odd).write_text("a")
    (folder / "deep" / "c").write_text("c")
    write_folder_sums(folder)
    subprocess.run(["sha256sum", "--check", "--strict", SUMS], cwd=folder, check=True)
    assert set(read_sums(folder / SUMS)) == {folder / odd, folder / "deep" / "c"}
    whole = (folder / SUMS).read_text(errors="surrogateescape")
    line = whole.splitlines(keepends=True)[-1]
    for other in ("", line, whole.removesuffix(line), whole + line):
        (folder / SUMS).write_text(other, errors="surrogateescape")
        with pytest.raises(UnusableFileError, match="It is truncated"):
            read_sums(folder / SUMS)
    for name in ("../x", "/etc/passwd"):
        text = f"{0:064d}  {name}\n"
        head = f"# sha256 of the lines below: {hashlib.sha256(text.encode()).hexdigest()}\n"
        (folder / SUMS).write_text(head + text)
        with pytest.raises(UnusableFileError, match="names another folder's file"):
            read_sums(folder / SUMS)


def mine(folder):
    """Put a file of the user into a folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.txt").write_text("mine")
    return folder / "mine.txt"


@pytest.mark.slow
def test_verify_removes_no_file_of_the_user(done):
    """The user has a folder with a view's name, and a file in a damaged view."""
    done.run("clips", config=SMALL | {"clips": "{episode_trigger: [0]}"})
    results = done.folder / "results"
    kept = [mine(results / name) for name in ("clips", "stills", "report")]
    (results / "plots").mkdir()
    assert "plots" not in {verdict.stage for verdict in verified(done, SMALL)}
    (clip,) = results.glob("clips/*.mp4")
    flip(clip, 50)
    said = done.fail("verify", config=SMALL)
    assert "mine.txt may be yours. Move it" in said
    assert all(path.read_text() == "mine" for path in kept)
    for path in kept:
        path.unlink()
    (results / "stills").rmdir()
    (results / "report").rmdir()
    done.fail("verify", config=SMALL)
    assert not (results / "clips").exists()


def test_verify_keeps_unreadable_files(done, monkeypatch):
    """After a killed decoder or a disk error, the files may be intact."""
    results = done.folder / "results"
    before = hashes(results)

    def killed(*_):
        raise GoalreelError("ffmpeg was killed by SIGKILL")

    def failing(stream, length):
        raise OSError(5, "Input/output error", stream.name)

    monkeypatch.setattr(ffmpeg, "count_frames", killed)
    monkeypatch.setattr("goalreel.files.checksum_trailer._sha256", failing)
    verdicts = verified(done, SMALL)
    told = {v.stage: (v.status, set(v.having("damaged"))) for v in verdicts}
    assert told["simulate"] == ("2 not checked", set()) and told["concat"][1] == set()
    assert remove(verdicts) == [] and hashes(results) == before
    assert "incomplete" in error_report(verdicts, [], results)


def test_verify_rejects_other_targets(done):
    said = done.fail("verify", "grid", config=SMALL)
    assert "verify: Checks only existing files. Make grid first" in said
    assert not (done.folder / "results" / "grid.mp4").exists()
