"""Clocks that jump and folders with unusual names change nothing."""

import os
import shlex
import time
from pathlib import Path

import pytest
from conftest import HARSH, hashes
from project import Project
from trials import SMALL, ends_right, noted, replaced, sampled, trials

NEWLINE = HARSH + "\nand 'a second' line"
HOUR = 3600
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


@pytest.mark.parametrize("name", sampled([HARSH, NEWLINE, "-a b-"], 0), ids=ascii)
def test_a_project_in_a_folder_of_any_name(tmp_path, user_cache, expected, record_property, name):
    folder = tmp_path / name
    folder.mkdir()
    project = Project(folder, user_cache)
    output = project.run("-j", "2", config=SMALL)
    assert hashes(folder / "results") == expected, output
    assert project.jobs(config=SMALL) == {}
    noted(record_property, "project folder of an unusual name", "works")


@pytest.mark.slow
@pytest.mark.parametrize("name", [HARSH.replace(" #", "#"), NEWLINE], ids=ascii)
def test_results_in_a_folder_of_any_name(project, expected, record_property, name):
    """Snakemake reads the value as YAML, where " #" would begin a comment."""
    config = SMALL | {"results": name}
    output = project.run("-j", "2", config=config)
    assert hashes(project.folder / name) == expected, output
    segment = project.folder / name / "segments" / "00001.mp4"
    replaced(segment, segment.read_bytes()[:-1], keep_times=True)
    output = project.fail("-j", "2", "verify", config=config)
    again = shlex.split(output.split("to make them again: ")[-1])
    assert f"{name}/segments/00001.mp4" in again, output
    project.run(*again[again.index("snakemake") + 1 :])
    found = hashes(project.folder / name)
    assert {k: v for k, v in found.items() if k != "verify.csv"} == expected
    noted(record_property, "results folder of an unusual name", "works")


@trials(sample=0, count=3)
def test_time_stamps_in_the_future(project, expected, record_property, trial):
    """As a clock leaves them that was put back after the first half of a run."""
    project.run("-j", "2", "--until", ["simulate", "render", "atlas"][trial], config=SMALL)
    for path in (project.folder / "results").rglob("*"):
        os.utime(path, (time.time() + HOUR,) * 2)
    noted(record_property, "time stamps an hour ahead", ends_right(project, SMALL, expected))


@pytest.mark.slow
@pytest.mark.skipif(FAKETIME is None, reason="takes libfaketime (Debian: faketime)")
@pytest.mark.parametrize("offset", ["+1d", "-1d"])
def test_a_clock_that_jumps_between_two_runs(project, expected, record_property, offset):
    clock = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    project.run("-j", "2", "--until", "render", config=SMALL, **clock)
    made = (project.folder / "results" / "frames" / "00000.npz").stat().st_mtime
    assert abs(made - time.time()) > 20 * HOUR
    noted(record_property, "clock jumps by a day", ends_right(project, SMALL, expected))
