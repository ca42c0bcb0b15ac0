"""The end of a failed run: which jobs failed, each cause once, and the command that goes on."""

import dataclasses
import logging
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DISCRETE

from goalreel.workflow.failure_summary import (
    Failure,
    cause_of,
    command_to_go_on,
    failure_summary,
    targets_of,
)
from goalreel.workflow.job_events import Watch


def log_of(folder: Path, shard: str, text: str) -> Failure:
    """Return the failure of a shard's job whose log holds a text."""
    path = folder / f"{shard}.log"
    path.write_text(text)
    return Failure("encode", shard, [str(path)])


def test_a_cause_of_many_shards_is_told_once(tmp_path):
    texts = "warning\nerror: [Errno 28] No space left on device: 'out/.{}.mp4.goalreel-x{}_z.mp4'\n"
    failures = [log_of(tmp_path, f"{n:05d}", texts.format(n, n)) for n in range(500)]
    failures.append(log_of(tmp_path, "00600", "error: out of memory; a smaller shard_size\n"))
    told = failure_summary(failures, [], 100, 700).splitlines()
    assert told[0] == "501 jobs failed, 100 of 700 done"
    assert told[1].startswith("encode 00000, 00001, 00002, 00003, 00004 and 495 more (500 jobs")
    assert "No space left" in told[2] and told[3].endswith("00000.log")
    assert told[4:6] == ["encode 00600:", "  error: out of memory; a smaller shard_size"]
    assert len(told) == 7


def test_of_a_traceback_the_exception_tells_causes_apart(tmp_path):
    text = "Traceback (most recent call last):\n  File 'x', line {}\nKeyError: {}\n"
    failures = [log_of(tmp_path, f"{n:05d}", text.format(n, "'a'")) for n in range(3)]
    failures.append(log_of(tmp_path, "00003", text.format(0, "'b'")))
    told = failure_summary(failures, [], 0, 4)
    assert told.count("Traceback") == 2 and "(3 jobs of the same cause)" in told


def test_a_log_without_a_cause_is_shown_as_it_is(tmp_path):
    failure = log_of(tmp_path, "00000", "bash: line 1: python: command not found\n")
    assert cause_of(failure).startswith("bash: line 1: python: command not found\n")
    assert "killed" in cause_of(Failure("encode", "00000", ["no such log"]))


# As the SLURM plugin (2.8.0) and slurmstepd say them.
TIMEOUT = "SLURM-job '17' failed, SLURM status is: 'TIMEOUT'. "
ADVICE = "For further error details see the cluster/cloud log and the log files of the"
OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some of the step tasks have been"


def test_the_schedulers_word_tells_why_a_job_was_killed(tmp_path):
    stopped = log_of(tmp_path, "00001", "error: terminated (SIGTERM)\n")
    slurm = tmp_path / "9.log"
    slurm.write_text(f"host: node\n{OOM}\nStoring output\n")
    told = cause_of(Failure("encode", "00001", stopped.logs, [], TIMEOUT + ADVICE))
    assert "'TIMEOUT'" in told and "For further" not in told
    assert OOM in cause_of(Failure("encode", "00001", [], [str(slurm)], "", "9"))
    assert "job 9" in cause_of(Failure("encode", "00001", [], [], "", "9"))
    own = log_of(tmp_path, "00002", "error: no such file\n")
    message = "SLURM-job '17' failed, SLURM status is: 'FAILED'. "
    told = cause_of(Failure("encode", "00002", own.logs, [str(slurm)], message))
    assert told == "error: no such file"


def test_of_a_group_only_the_job_that_failed_is_told(tmp_path):
    (tmp_path / "render.log").write_text("474 frames from 346 distinct pictures\n")
    (tmp_path / "encode.log").write_text("error: the disk is full\n")
    members = [
        Failure(rule, "00003", [str(tmp_path / f"{rule}.log")], group="g")
        for rule in ("render", "encode")
    ]
    told = failure_summary(members, [], 0, 2)
    assert "1 job failed" in told and "encode 00003" in told and "render" not in told
    (tmp_path / "encode.log").write_text("")
    told = failure_summary(members, [], 0, 2)
    assert "1 job failed" in told and "killed" in told


def record(event: str, **values) -> logging.LogRecord:
    """Return a record of Snakemake's."""
    return logging.makeLogRecord({"event": event, "msg": event} | values)


def begin(watch: Watch, number: int, log: Path, rule: str = "encode") -> None:
    about = {"jobid": number, "rule_name": rule, "wildcards": {"shard": f"{number:05d}"}}
    watch.handle(record("job_info", **about, log=[str(log)]))


def error(number: int, log: Path, **aux):
    about = {"jobid": number, "rule_name": "encode", "rule_msg": None, "aux": aux}
    return record("job_error", **about, log=[str(log), "slurm/9.log"])


def test_a_job_that_succeeds_when_it_is_repeated_has_not_failed(tmp_path):
    watch, log = Watch({"encode": 2}), tmp_path / "log"
    begin(watch, 1, log)
    log.write_text("error: once")
    watch.handle(error(1, log, external_jobid="9"))
    assert watch.failures == [
        Failure("encode", "00001", [str(log)], ["slurm/9.log"], "", "9"),
    ]
    begin(watch, 1, log)
    watch.handle(record("job_finished", job_id=1))
    assert not watch.failures and watch.done == {"encode": 1} and watch.begun == {"encode": 1}


def test_a_log_of_an_earlier_run_is_not_this_runs_cause(tmp_path):
    watch, log = Watch({"encode": 1}), tmp_path / "log"
    log.write_text("error: of yesterday")
    begin(watch, 1, log)
    watch.handle(error(1, log))
    assert watch.failures[0].logs == []
    os.utime(log)
    watch.handle(error(1, log))
    assert watch.failures[0].logs == [str(log)]


@pytest.mark.parametrize("words", [["-j", "2", "--config", "caption=it's $HOME"], []])
def test_the_command_that_goes_on_is_the_command_that_was_given(words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/elsewhere/bin/snakemake", *words, "--forceall"])
    assert shlex.split(command_to_go_on()) == ["/elsewhere/bin/snakemake", *words]
    monkeypatch.setattr(sys, "argv", ["/lib/snakemake/__main__.py", *words, "verify", "-k"])
    monkeypatch.setattr(sys, "orig_argv", [".venv/bin/python", "-m", "snakemake"])
    given = [".venv/bin/python", "-m", "snakemake", *words]
    assert shlex.split(command_to_go_on()) == [*given, "verify", "-k"]
    assert shlex.split(command_to_go_on(["a b", "c"])) == [*given, "a b", "c", "-k"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("-Fj2 verify", "-j2 a b"),
        ("-j 2 -R render encode -k verify", "-j 2 -k a b"),
        ("-d verify -j2 verify -F", "-d verify -j2 a b"),
        ("-nF verify --forcerun x", "-n a b"),
    ],
)
def test_the_command_makes_nothing_again_that_is_made(given, wanted, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/elsewhere/bin/snakemake", *given.split()])
    assert command_to_go_on(["a", "b"]) == f"/elsewhere/bin/snakemake {wanted}"


def test_snakemakes_tracebacks_and_late_interrupts_are_told_in_a_line(tmp_path):
    said = 'Error:\nTraceback (most recent call last):\n  File "x"\nOSError: [Errno 30] Read-only\n'
    assert failure_summary([], [said], 0, 2).splitlines()[1:] == ["OSError: [Errno 30] Read-only"]
    text = "Traceback (most recent call last):\n  import ast\nKeyboardInterrupt\n"
    assert cause_of(log_of(tmp_path, "00000", text)) == "error: interrupted (SIGINT)"


def test_names_with_line_breaks_are_made_again(tmp_path):
    text = "error: the results are not whole\nmake again: 'odd\nplace/film.mp4' b\n"
    failure = dataclasses.replace(log_of(tmp_path, "", text), rule="verify")
    assert targets_of([failure]) == ["odd\nplace/film.mp4", "b"]


def test_the_command_of_a_failed_run_finishes_it(project):
    """Also where Snakemake itself is told to say nothing."""
    config = {"reaches": 4, "shard_size": 1, "env": DISCRETE, "policy": "{epsilon: 0.45}"}
    options = ["-j", "2", "--quiet", "all", "--keep-going", "--config"]
    options += [f"{key}={value}" for key, value in config.items()]
    said = project.fail(*options, "max_attempts=1")
    assert "simulate 0" in said and "1 are still open" in said, said
    last = said.rstrip().splitlines()[-1]
    assert last.startswith("to go on: ") and last.endswith("max_attempts=1")
    command = shlex.split(last.removeprefix("to go on: "))[:-1]  # which the cause says to raise
    ended = subprocess.run(
        command, cwd=project.folder, env=os.environ | {"XDG_CACHE_HOME": str(project.cache)}
    )
    assert ended.returncode == 0 and (project.folder / "results" / "film.mp4").is_file()
