"""Clocks and folder names do not change the results, and another libm stops the run."""

import time
from pathlib import Path

import pytest
from conftest import HARSH
from project import Project
from trials import SMALL, forget, recover

pytestmark = pytest.mark.slow
NEWLINE = HARSH + "\nand 'a second' line"
HOUR = 3600
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


@pytest.mark.parametrize("name", [HARSH, NEWLINE, "-a b-"], ids=ascii)
def test_project_works_in_folder_of_any_name(tmp_path, user_cache, expected, name):
    (tmp_path / name).mkdir()
    project = Project(tmp_path / name, user_cache)
    project.run("-j", "2", config=SMALL)
    assert project.jobs(config=SMALL) == {}
    recover(project, expected)


@pytest.mark.skipif(FAKETIME is None, reason="needs libfaketime (apt-get install faketime)")
@pytest.mark.parametrize("offset", ["+1d", "-1d"])
def test_run_accepts_jumping_clock(project, expected, offset):
    clock = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    project.run("-j", "2", "--until", "render", config=SMALL, **clock)
    made = (project.folder / "results" / "frames" / "00000.npz").stat().st_mtime
    assert abs(made - time.time()) > 20 * HOUR
    recover(project, expected)


@pytest.mark.skipif(
    " fma " not in Path("/proc/cpuinfo").read_text(encoding="utf-8"),
    reason="needs a processor on which glibc chooses between two versions of math.cos",
)
def test_shards_of_another_libm_are_rejected_by_name(project):
    project.run("-j", "2", "--until", "simulate", config=SMALL)
    forget(project, "trajectories/00001.npz")
    other = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable"}
    output = project.fail("-j", "2", config=SMALL, **other)
    assert "trajectories/00001.npz: Simulated with a libm that rounds differently" in output
    forget(project, "trajectories/00001.npz")
    project.run("-j", "2", config=SMALL)
