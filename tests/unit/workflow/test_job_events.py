"""While jobs run, a line says how far the shards are; Snakemake's routine output is left out."""

import logging
import os
import pty
import subprocess
import sys
import time

from goalreel.cli import ProgressLog, read_progress
from goalreel.workflow.job_events import JobEvents, ProgressLine, is_plan

SIZES = {"00000": 50, "00001": 50}


def start(events, number: int, rule: str, log, **wildcards) -> None:
    about = {"event": "job_info", "jobid": number, "rule_name": rule, "wildcards": wildcards}
    events.handle(logging.makeLogRecord(about | {"log": [str(log)]}))


def finish(events, number: int) -> None:
    events.handle(logging.makeLogRecord({"event": "job_finished", "job_id": number}))


def test_progress_line_adds_up_finished_and_running_jobs(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    events = JobEvents()
    line = ProgressLine(events, {"simulate": SIZES, "encode": SIZES}, 1000, "episode")
    line.end()
    logs = [tmp_path / name for name in "abc"]
    for number, log in enumerate(logs[:2]):
        start(events, number, "simulate", log, shard=f"{number:05d}")
        log.write_text("")
    assert line.text() == "simulate 900, encode 900 of 1,000 episodes"
    now[0] += 10
    logs[0].write_text("20 episodes so far, 600 frames\n50 episodes, 2,000 frames\n")
    logs[1].write_text("10 episodes so far, 300 frames\n25 episodes so far, 700 frames\n")
    finish(events, 0)
    start(events, 2, "encode", logs[2], shard="00000")
    said = line.text()
    # 25 episodes of 75 are left, which took 20 s, for two jobs; none is encoded yet.
    assert said == "simulate 975, encode 900 of 1,000 episodes · 270 frames/s · 0:00:03 left"


def test_progress_line_names_a_long_job_without_shards(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    events, log = JobEvents(), tmp_path / "pixels.log"
    line = ProgressLine(events, {}, 50, "episode")
    line.end()
    start(events, 0, "pixels", log)
    log.write_text("10,000 decisions\n20,000 decisions, mean -20.1\n")
    assert line.text() == ""
    now[0] += 754
    assert line.text() == "pixels 0:12:34 20,000 decisions, mean -20.1"


def test_progress_log_has_few_lines_that_can_be_read_again(tmp_path, monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    log = ProgressLog()
    for second in range(0, 36000, 2):
        now[0] = second / 10
        log.update(second // 100, second)
    lines = capsys.readouterr().err.splitlines()
    assert 100 < len(lines) < 400
    (tmp_path / "log").write_text("\n".join(lines), encoding="utf-8")
    episodes, frames = read_progress([str(tmp_path / "log")])
    assert frames > 35000 and episodes == frames // 100


def test_snakemakes_routine_is_not_printed():
    routine = ["Building DAG of jobs...", "Provided cores: 2", "Complete log(s): a"]
    news = ["Nothing to be done (all requested files are present and up to date).", "Job stats:"]
    kept = [t for t in routine + news if is_plan(logging.makeLogRecord({"msg": t}))]
    assert kept == news


def test_progress_line_moves_on_a_terminal(project):
    """Also where nothing is left of it in the end: the summary follows."""
    master, terminal = pty.openpty()
    words = ["-j", "1", "--config", "env=CartPole-v1", "episodes=100", "results=r"]
    with subprocess.Popen(
        [sys.executable, "-m", "snakemake", *words],
        cwd=project.folder,
        env=os.environ | {"XDG_CACHE_HOME": str(project.cache)},
        stderr=terminal,
        stdout=terminal,
    ) as run:
        os.close(terminal)
        shown = b""
        while True:
            try:
                shown += os.read(master, 4096)
            except OSError:  # the terminal is closed
                break
    assert run.returncode == 0
    lines = shown.decode().split("\r")
    moving = [line for line in lines if line.startswith("\x1b[Ksimulate")]
    assert moving and all("of 100 episodes" in line for line in moving)
    assert [line for line in lines if line.startswith("\x1b[K    film  r/film.mp4")]
