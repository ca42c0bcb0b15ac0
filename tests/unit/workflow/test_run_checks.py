"""Checks before a run keep the locks of runs that work, and name a GPU that is not used."""

from pathlib import Path

import pytest

from goalreel.workflow import run_checks

COPY = ".snakemake/storage/s3/bucket"


def test_note_names_a_cpu_that_draws_on_a_machine_with_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "egl")
    config = {"render": {"opengl": "llvmpipe (LLVM 15.0.6, 256 bits)"}}
    assert not run_checks.software_note(config, tmp_path)
    (tmp_path / "nvidia0").touch()
    assert "draws on the CPU, although this machine" in run_checks.software_note(config, tmp_path)
    on_gpu = {"render": {"opengl": "NVIDIA H100/PCIe/SSE2"}}
    assert not run_checks.software_note(on_gpu, tmp_path)


@pytest.mark.parametrize(
    ("killed", "working", "locked", "planned", "is_removed"),
    [
        (["a"], [], ["a/film.mp4", "a/plots"], ["a"], True),
        (["s", "s/x"], [], ["s/index.html", "s/x/film.mp4"], ["s", "s/x"], True),
        (["a"], [], [f"{COPY}/a/film.mp4"], ["a"], True),
        (["a"], [], ["a/film.mp4"], ["b"], False),
        ([], ["a"], ["a/film.mp4"], ["a"], False),
        (["s", "s/x"], ["s/y"], ["s/x/film.mp4", "s/y/film.mp4"], ["s", "s/x"], False),
        (["s", "s/x"], ["s/solo"], ["s/solo/film.mp4"], ["s", "s/x"], False),
        (["s/x"], ["s", "s/y"], ["s/index.html", "s/y/film.mp4"], ["s", "s/x"], False),
        (["a"], ["b/a"], [f"{COPY}/b/a/film.mp4"], ["a"], False),
        ([], [], ["other/film.mp4"], ["a"], False),
    ],
)
def test_lock_is_removed_only_if_its_runs_were_killed(
    killed, working, locked, planned, is_removed, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_checks, "_LOCKS", [])
    for folder in killed:
        run_checks.lock_results(Path(folder))
    while run_checks._LOCKS:
        run_checks._LOCKS.pop().close()
    for folder in working:
        run_checks.lock_results(Path(folder))
    locks = tmp_path / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("\n".join(locked) + "\n")
    run_checks.release_lock([Path(folder) for folder in planned])
    assert locks.exists() != is_removed
    while run_checks._LOCKS:
        run_checks._LOCKS.pop().close()
