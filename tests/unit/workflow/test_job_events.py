"""The progress line, and the summary of a failed run with each cause once and the fix."""

import json
import logging
import os
import pty
import subprocess
import sys
import time

import pytest

from goalreel import cli
from goalreel.cli import FAILURE
from goalreel.errors import UnusableFileError
from goalreel.workflow.job_events import Job, JobEvents, cause_of, failure_summary, run_summary


@pytest.fixture
def events(monkeypatch) -> JobEvents:
    """Return events of a run of two rules with many jobs, at a fixed time."""
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    return JobEvents({"simulate": 20, "encode": 20, "concat": 1}, {}, lambda: None)


def tell(events: JobEvents, event: str, **values) -> None:
    events.handle(logging.makeLogRecord({"event": event, "msg": event} | values))


def start(events: JobEvents, number: int, rule: str, log, **wildcards) -> None:
    about = {"jobid": number, "rule_name": rule, "wildcards": wildcards, "log": [str(log)]}
    tell(events, "job_info", output=[f"r/{rule}"], **about)


def fail(events: JobEvents, number: int, log) -> None:
    about = {"jobid": number, "rule_name": "encode", "rule_msg": None}
    tell(events, "job_error", **about, log=[str(log), "slurm/9.log"])


def test_progress_line_counts_jobs_and_names_the_oldest(events, tmp_path, monkeypatch):
    log = tmp_path / "log"
    for number in range(3):
        start(events, number, "simulate", log, shard=f"{number:05d}")
    assert events.line() == "simulate 0 of 20, encode 0 of 20"
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    tell(events, "job_finished", job_id=0)
    start(events, 3, "encode", tmp_path / "other", shard="00000")
    log.write_text("10 episodes so far, 300 frames\n25 episodes so far, 700 frames\n")
    # 19 jobs of 10 s, three at a time
    assert events.line() == (
        "simulate 1 of 20, encode 0 of 20 · 0:01:03 left · "
        "simulate 00001 0:00:10 25 episodes so far, 700 frames"
    )


def test_summary_names_what_jobs_without_shards_made(events, tmp_path):
    for number, (rule, words) in enumerate(
        {"concat": "30 frames", "verify": "  concat ok\n  encode ok", "atlas": "made"}.items()
    ):
        start(events, number, rule, tmp_path / rule)
        (tmp_path / rule).write_text(f"{words}\n")
        tell(events, "job_finished", job_id=number)
    assert run_summary(events.finished).splitlines() == [
        *("     concat  r/concat, 30 frames", "  concat ok", "  encode ok")
    ]


@pytest.mark.slow
def test_progress_line_precedes_the_summary_on_a_terminal(project):
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
    assert moving and all(" of 2" in line for line in moving)
    assert [line for line in lines if line.startswith("\x1b[K     concat  r/film.mp4")]


def failed(folder, shard: str, error: str = "", text: str = "", **facts) -> Job:
    """Return the failed job of a shard, whose log holds a text, and a record of its error if any."""
    path = folder / f"{shard}.log"
    record = json.dumps({"error": error, "unusable": [], "stopped": False, **facts})
    noted = f"error: {error}\n{FAILURE}{record}\n" if error else ""
    path.write_text(text + noted, encoding="utf-8")
    return Job("encode", 0, shard, logs=[str(path)])


def test_summary_shows_cause_of_many_shards_once(tmp_path):
    full = "[Errno 28] No space left on device: 'out/.{}.mp4.goalreel-node-12{}-x_z.mp4'"
    jobs = [failed(tmp_path, f"{n:05d}", full.format(n, n), "warning\n") for n in range(500)]
    jobs.append(failed(tmp_path, "00600", "out of memory; a smaller shard_size"))
    lines = failure_summary(jobs, [], 100, 700).splitlines()
    assert lines[0] == "501 jobs failed, 100 of 700 done"
    assert lines[1].startswith("encode 00000, 00001, 00002, 00003, 00004 and 495 more: [Errno 28]")
    assert lines[2].endswith("00000.log")
    assert lines[3] == "encode 00600: out of memory; a smaller shard_size"
    assert len(lines) == 5


def test_summary_of_many_long_causes_has_15_lines(tmp_path):
    trace = "env: é: it raised KeyError:\n  File 'x'\n    a[0]\n    ^^^^\n"
    trace += "  at y\n" * 30 + "KeyError"
    jobs = [failed(tmp_path, f"{n:05d}", f"{'a' * n} {trace}") for n in range(9)]
    lines = failure_summary(jobs, ["WorkflowError"], 0, 20).splitlines()
    assert lines[0] == "9 jobs failed, 0 of 20 done (7 more causes in their logs)"
    head = "encode 00000:  env: é: it raised KeyError:"
    assert lines[1:5] == [head, *["    at y"] * 2, "  KeyError"]
    assert len(lines) < 15


def test_interrupted_jobs_are_not_failures(tmp_path):
    stopped = [failed(tmp_path, "1", "interrupted (SIGINT)", stopped=True)]
    assert failure_summary(stopped, ["gone"], 3, 9) == "run interrupted, 3 of 9 jobs done"
    stop = "Stopped by SIGINT.\n  Saved after 7 of 9 decisions"
    lines = failure_summary([failed(tmp_path, "1", stop, stopped=True)], [], 0, 1).splitlines()
    assert lines[1:] == ["Saved after 7 of 9 decisions"]


def test_log_without_record_shows_its_last_lines(tmp_path):
    text = "bash: line 1: python: command not found\n"
    assert cause_of(failed(tmp_path, "00000", text=text)) == text.strip()
    assert "killed" in cause_of(failed(tmp_path, "00002", text="3 episodes so far, 120 frames\n"))
    assert "killed" in cause_of(Job("encode", logs=["no such log"]))


# Messages of the SLURM plugin (2.8.0) and of slurmstepd.
TIMEOUT = "SLURM-job '17' failed, SLURM status is: 'TIMEOUT'."
OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some of the step tasks have been"


def test_summary_quotes_the_scheduler_on_killed_job(tmp_path):
    stopped = failed(tmp_path, "00001", "terminated (SIGTERM)", stopped=True)
    (tmp_path / "9.log").write_text(f"host: node\n{OOM}\nStoring output\n")
    slurm = [str(tmp_path / "9.log")]
    assert "'TIMEOUT'" in cause_of(Job("encode", logs=stopped.logs, message=TIMEOUT))
    assert OOM in cause_of(Job("encode", system_logs=slurm))
    own = failed(tmp_path, "00002", "no such file")
    own.system_logs, own.message = slurm, TIMEOUT
    assert cause_of(own) == "no such file"


def test_summary_shows_only_the_failed_job_of_a_group(events, tmp_path):
    logs = [tmp_path / "render.log", tmp_path / "encode.log"]
    members = [{"jobid": number} for number in range(2)]
    for number, log in enumerate(logs):
        start(events, number, log.stem, log, shard="00003")
    failed(tmp_path, "render", text="474 frames from 346 distinct pictures\n")
    failed(tmp_path, "encode", "the disk is full")
    tell(events, "group_error", job_error_info=members, aux_logs=["slurm/8.log"], groupid="g")
    for number, log in enumerate(logs):
        fail(events, number, log)
    jobs = list(events.failed.values())
    summary = failure_summary(jobs, [], 0, 2)
    assert "1 job failed" in summary and "encode 00003" in summary and "render" not in summary
    assert "slurm/8.log" in summary
    assert "1 job failed" in failure_summary(jobs[:1], [], 0, 2), "though it names no cause"


def test_workflow_errors_are_shown_if_no_job_has_a_cause(events, tmp_path):
    message = 'Error:\nTraceback (most recent call last):\n  File "x"\nOSError: Read-only'
    tell(events, "error", exception="RuleException")  # it comes with a job's failure
    tell(events, "error", exception="MissingOutputException", msg=message)
    assert events.messages == [message]
    assert failure_summary([], events.messages, 0, 2).splitlines()[-1] == "OSError: Read-only"
    named = failed(tmp_path, "00000", "the disk is full")
    assert "OSError" not in failure_summary([named], [message], 0, 2)


def test_job_that_succeeds_on_retry_has_not_failed(events, tmp_path):
    (log,) = failed(tmp_path, "log", "of yesterday, an earlier run's").logs
    start(events, 1, "encode", log, shard="00001")
    fail(events, 1, log)
    (job,) = events.failed.values()
    assert "killed" in cause_of(job)
    assert (job.shard, job.logs, job.system_logs) == ("00001", [str(log)], ["slurm/9.log"])
    start(events, 1, "encode", log, shard="00001")
    tell(events, "job_finished", job_id=1)
    assert not events.failed and len(events.finished) == 1


@pytest.mark.parametrize("planned", [True, False])
def test_program_records_its_failure_only_in_a_workflow(planned, tmp_path, monkeypatch, capsys):
    """A program that a user runs prints only the message."""
    monkeypatch.setenv(cli.PLANS, cli.packed({str(tmp_path): {}}))
    if not planned:
        monkeypatch.delenv(cli.PLANS)
    inside = tmp_path / "a.npz"
    inside.touch()

    def main():
        error = UnusableFileError(inside, "it is odd")
        error.others = (UnusableFileError("b.npz", "it is even"),)
        raise error

    with pytest.raises(SystemExit) as ended:
        cli.run(main)
    lines = capsys.readouterr().err.splitlines()
    assert ended.value.code == 1 and inside.exists() != planned
    if planned:
        path = tmp_path / "log"
        path.write_text("a frame is odd\n" + "\n".join(lines), encoding="utf-8")
        noted, _ = cli.read_failure(str(path)), lines.pop()
        assert noted["unusable"] == [str(inside), "b.npz"] and not noted["stopped"]
        assert f"{inside}: It is odd. goalreel deleted it" in noted["error"]
    assert len(lines) == 2 and lines[0].startswith(f"error: {inside}: ")
