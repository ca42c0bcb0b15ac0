"""The bar of a run: its estimate ends where the run does, and it fits a terminal of 80 columns."""

import io
import os
import pty
import re
import subprocess
import sys

import pytest
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from goalreel.workflow.job_events import Watch
from goalreel.workflow.progress import Estimate, estimate, told
from goalreel.workflow.progress_bar import show_bar

PLANNED = {"simulate": 4, "atlas": 1, "render": 4, "encode": 4, "concat": 1, "all": 1}
COSTS = {"simulate": 3.0, "atlas": 1.0, "render": 2.0, "encode": 20.0, "concat": 1.0, "all": 0.0}


def test_the_estimate_comes_true():
    """One core, costs that are not those guessed: half-way through encoding it is right."""
    done, seconds, elapsed, found = dict.fromkeys(PLANNED, 0), {}, 0.0, []
    total = sum(COSTS[rule] * jobs for rule, jobs in PLANNED.items())
    for rule, jobs in PLANNED.items():
        for _ in range(jobs):
            elapsed += COSTS[rule]
            done[rule] += 1
            seconds[rule] = seconds.get(rule, 0.0) + COSTS[rule]
            frames = {"simulate": 100.0} | ({"encode": 120.0} if done["encode"] else {})
            found.append((elapsed, estimate(PLANNED, done, seconds, frames, elapsed)))
    for passed, now in found[-4:]:
        assert now.left == pytest.approx(total - passed, abs=3.0)
        assert now.share == pytest.approx(passed / total, abs=0.04)
    assert found[-1][1] == Estimate(1.0, 4 * 120 / total, 0.0)


def test_nothing_is_claimed_before_a_job_has_finished():
    assert estimate(PLANNED, {}, {}, {}, 5.0) == Estimate(0.0, None, None)
    assert told(Estimate(0.0, None, None), 3.0) == ""


def test_views_alone_tell_their_time_and_no_frames():
    found = estimate({"grid": 1, "phase": 1}, {"grid": 1}, {"grid": 16.0}, {}, 16.0)
    assert found.rate is None and found.left == pytest.approx(10.0)
    assert told(found, 3.0) == "0:00:07 left"
    assert told(Estimate(0.5, 12345.6, 3723.0), 0.0) == "12,346 frames/s, 1:02:03 left"
    assert told(found, 30.0) == "0:00:00 left"


class Handler:
    """As the rich logger's, with its columns."""

    def __init__(self, terminal: bool):
        """Draw for a terminal of 80 columns, or for a file."""
        self.console = Console(file=io.StringIO(), force_terminal=terminal, width=80)
        self.progress = Progress(
            TextColumn("{task.fields[active]}"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            console=self.console,
            expand=True,
        )


def test_the_bar_stands_in_one_line_of_80_columns(tmp_path):
    handler, watch = Handler(terminal=True), Watch({"encode": 2})
    watch.started -= 10
    show_bar([handler], watch)
    handler.progress.add_task("Total Progress", total=2, active=1)
    for number in (1, 2):
        log = tmp_path / f"{number}.log"
        about = {"event": "job_info", "jobid": number, "rule_name": "encode", "log": [str(log)]}
        watch.handle(record(**about, wildcards={"shard": "00000"}))
    (tmp_path / "1.log").write_text("1234567 frames in 999 bytes\n")
    watch.handle(record(event="job_finished", job_id=1))
    handler.console.print(handler.progress.make_tasks_table(handler.progress.tasks))
    lines = re.sub(r"\x1b\[[\d;]*m", "", handler.console.file.getvalue()).splitlines()
    assert len(lines) == 2 and all(len(line) <= 80 for line in lines)
    assert re.search(r"Film.* 50% .*12\d,\d{3} frames/s, 0:00:(10|09) left", lines[0])


def test_there_is_no_bar_where_nobody_sees_it():
    handler, watch = Handler(terminal=False), Watch({"encode": 2})
    show_bar([handler, object()], watch)
    assert not handler.progress.tasks and not watch.listeners


def record(**values):
    import logging

    return logging.makeLogRecord({"msg": ""} | values)


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_run_in_a_terminal_shows_it(project):
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "-j",
        "2",
        "--config",
        "reaches=4",
        "shard_size=1",
    ]
    environment = os.environ | {"XDG_CACHE_HOME": str(project.cache), "TERM": "xterm"}
    environment |= {"COLUMNS": "80", "LINES": "40"}
    process = subprocess.Popen(
        command, cwd=project.folder, env=environment, stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 1 << 16):
            shown += piece
    except OSError:  # Linux's way to tell that the other side is closed
        pass
    finally:
        os.close(ours)
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown.decode(errors="replace"))
    assert re.search(r"Film .*[\d,]+ frames/s, \d:\d\d:\d\d left", text), text
    assert "goal reaches in" in text
