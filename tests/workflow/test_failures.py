"""The end of a failed run: which jobs failed, each cause once, and how to go on."""

import fcntl
import json
import logging
import os
from types import SimpleNamespace

import pytest
from conftest import DISCRETE

from goalreel import cli
from goalreel.errors import GoalreelError, Unusable
from goalreel.workflow.failure_summary import Failure, cause_of, failure_summary
from goalreel.workflow.job_events import JobEvents
from goalreel.workflow.object_storage import with_stored_logs


def log_of(folder, shard: str, error: str = "", text: str = "", **facts) -> Failure:
    """Return the failure of a shard's job whose log holds a text, and a record if there is one."""
    path = folder / f"{shard}.log"
    said = f"error: {error}\n"
    record = {"bytes": len(said.encode()), "unusable": [], "stopped": False, **facts}
    path.write_text(text + (f"{said}{json.dumps(record)}\n" if error else ""), encoding="utf-8")
    return Failure("encode", shard, 0, [str(path)])


def test_a_cause_of_many_shards_is_shown_once(tmp_path):
    full = "[Errno 28] No space left on device: 'out/.{}.mp4.goalreel-node-12{}-x_z.mp4'"
    failures = [log_of(tmp_path, f"{n:05d}", full.format(n, n), "warning\n") for n in range(500)]
    failures.append(log_of(tmp_path, "00600", "out of memory; a smaller shard_size"))
    lines = failure_summary(failures, [], 100, 700).splitlines()
    assert lines[0] == "501 jobs failed, 100 of 700 done"
    assert lines[1].startswith("encode 00000, 00001, 00002, 00003, 00004 and 495 more: [Errno 28]")
    assert lines[2].endswith("00000.log")
    assert lines[3] == "encode 00600: out of memory; a smaller shard_size"
    assert len(lines) == 5


def test_summary_of_many_long_causes_has_15_lines(tmp_path):
    trace = (
        "env: é: it raised KeyError:\n  File 'x'\n    a[0]\n    ^^^^\n"
        + "  at y\n" * 30
        + "KeyError"
    )
    failures = [log_of(tmp_path, f"{n:05d}", f"{'a' * n} {trace}") for n in range(9)]
    lines = failure_summary(failures, ["WorkflowError"], 0, 20).splitlines()
    assert lines[0] == "9 jobs failed, 0 of 20 done (7 more causes in their logs)"
    assert lines[1:5] == [
        "encode 00000:  env: é: it raised KeyError:",
        *["    at y"] * 2,
        "  KeyError",
    ]
    assert len(lines) < 15


def test_interrupted_jobs_are_no_failures(tmp_path):
    stopped = [log_of(tmp_path, "1", "interrupted (SIGINT)", stopped=True)]
    assert failure_summary(stopped, ["gone"], 3, 9) == "run interrupted, 3 of 9 jobs done"


def test_a_log_without_a_record_is_shown_by_its_last_lines(tmp_path):
    failure = log_of(tmp_path, "00000", text="bash: line 1: python: command not found\n")
    assert cause_of(failure) == "bash: line 1: python: command not found"
    killed = log_of(tmp_path, "00002", text="3 episodes so far, 120 frames\n")
    assert "killed" in cause_of(killed)
    assert "killed" in cause_of(Failure("encode", "00000", 0, ["no such log"]))
    traceback = "Traceback (most recent call last):\n" + "  File 'x'\n" * 30 + "KeyError: 'a'\n"
    assert cause_of(log_of(tmp_path, "00001", text=traceback)).endswith("KeyError: 'a'")


# As the SLURM plugin (2.8.0) and slurmstepd say them.
TIMEOUT = "SLURM-job '17' failed, SLURM status is: 'TIMEOUT'."
OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some of the step tasks have been"


def test_the_schedulers_word_names_why_a_job_was_killed(tmp_path):
    stopped = log_of(tmp_path, "00001", "terminated (SIGTERM)", stopped=True)
    slurm = tmp_path / "9.log"
    slurm.write_text(f"host: node\n{OOM}\nStoring output\n")
    assert "'TIMEOUT'" in cause_of(Failure("encode", "00001", 0, stopped.logs, [], TIMEOUT))
    assert OOM in cause_of(Failure("encode", "00001", 0, [], [str(slurm)], "", "9"))
    assert "job 9" in cause_of(Failure("encode", "00001", 0, [], [], "", "9"))
    own = log_of(tmp_path, "00002", "no such file")
    assert cause_of(Failure("encode", "00002", 0, own.logs, [str(slurm)], TIMEOUT)) == (
        "no such file"
    )


def test_of_a_group_only_the_job_that_failed_is_shown(tmp_path):
    encode = log_of(tmp_path, "encode", "the disk is full")
    render = log_of(tmp_path, "render", text="474 frames from 346 distinct pictures\n")
    members = [
        Failure(rule, "00003", 0, failure.logs, group="g")
        for rule, failure in (("render", render), ("encode", encode))
    ]
    summary = failure_summary(members, [], 0, 2)
    assert "1 job failed" in summary and "encode 00003" in summary and "render" not in summary
    log_of(tmp_path, "encode")
    assert "1 job failed" in failure_summary(members, [], 0, 2)


def test_errors_of_no_job_are_shown_where_no_job_names_its_cause(tmp_path):
    message = 'Error:\nTraceback (most recent call last):\n  File "x"\nOSError: Read-only'
    assert failure_summary([], [message], 0, 2).splitlines()[-1] == "OSError: Read-only"
    named = log_of(tmp_path, "00000", "the disk is full")
    assert "OSError" not in failure_summary([named], [message], 0, 2)


def record(event: str, **values) -> logging.LogRecord:
    """Return a record of Snakemake's."""
    return logging.makeLogRecord({"event": event, "msg": event} | values)


def begin(events: JobEvents, number: int, log) -> None:
    about = {"jobid": number, "rule_name": "encode", "wildcards": {"shard": f"{number:05d}"}}
    events.handle(record("job_info", **about, log=[str(log)]))


def error(number: int, log, **aux):
    about = {"jobid": number, "rule_name": "encode", "rule_msg": None, "aux": aux}
    return record("job_error", **about, log=[str(log), "slurm/9.log"])


def test_failed_job_is_shown_with_its_own_stored_log():
    """Trainings have no shard by which to tell them apart."""

    class Stored(str):
        is_storage = True

    jobs = [SimpleNamespace(jobid=n, log=[Stored(f"s3/{n}.log")]) for n in (1, 2)]
    workflow = SimpleNamespace(dag=SimpleNamespace(jobs=jobs), local_exec=True)
    for number in (1, 2):
        assert with_stored_logs(workflow, Failure("dqn", "5", number)).logs == [f"s3/{number}.log"]


def test_a_job_that_succeeds_when_it_is_repeated_has_not_failed(tmp_path):
    events, log = JobEvents(), tmp_path / "log"
    begin(events, 1, log)
    log.write_text("once")
    events.handle(error(1, log, external_jobid="9"))
    assert events.failures == [Failure("encode", "00001", 1, [str(log)], ["slurm/9.log"], "", "9")]
    begin(events, 1, log)
    events.handle(record("job_finished", job_id=1))
    assert not events.failures and [job.shard for job in events.finished] == ["00001"]


def test_an_error_that_comes_with_a_jobs_failure_is_no_message_of_its_own():
    events = JobEvents()
    events.handle(record("error", exception="RuleException"))
    events.handle(record("error", exception="MissingOutputException"))
    assert events.messages == ["error"]


def test_a_log_of_an_earlier_run_is_not_this_runs_cause(tmp_path):
    events, log = JobEvents(), tmp_path / "log"
    log.write_text("of yesterday")
    begin(events, 1, log)
    events.handle(error(1, log))
    assert events.failures[0].logs == []
    begin(events, 1, log)
    os.utime(log)
    events.handle(error(1, log))
    assert events.failures[0].logs == [str(log)]


@pytest.mark.parametrize("planned", [True, False])
def test_a_program_notes_its_failure_for_the_workflow_alone(planned, tmp_path, monkeypatch, capsys):
    """Of a program by hand the message is all."""
    if planned:
        cli.note_results(tmp_path)
        monkeypatch.setenv(cli._RESULTS, str(tmp_path))
    else:
        monkeypatch.delenv(cli._RESULTS, raising=False)
    inside = tmp_path / "a.npz"
    inside.touch()

    def main():
        fault = Unusable(inside, "it is odd")
        fault.others = (Unusable("b.npz", "it is even"),)
        raise fault

    with pytest.raises(SystemExit) as ended:
        cli.run(main)
    lines = capsys.readouterr().err.splitlines()
    assert ended.value.code == 1 and inside.exists() != planned
    if planned:
        path = tmp_path / "log"
        path.write_text("a frame is odd\n" + "\n".join(lines), encoding="utf-8")
        noted, _ = cli.read_failure(str(path)), lines.pop()
        assert noted["unusable"] == [str(inside), "b.npz"] and not noted["stopped"]
        assert f"{inside}: could not be used and is deleted: it is odd" in noted["error"]
    assert len(lines) == 2 and lines[0].startswith(f"error: {inside}: ")

    def typo():
        raise GoalreelError("policy.name: unknown value 'pumpp'")

    with pytest.raises(SystemExit):
        cli.run(typo)
    assert "error: policy.name: unknown value 'pumpp'" in capsys.readouterr().err


def test_the_same_command_finishes_a_failed_run(project):
    """Also where Snakemake itself is to say nothing; the cause says what to raise."""
    config = {"reaches": 4, "shard_size": 1, "env": DISCRETE, "policy": "{epsilon: 0.45}"}
    options = ["-j", "2", "--quiet", "all", "--keep-going"]
    output = project.fail(*options, config=config | {"max_attempts": 1})
    assert "simulate 0" in output and "max_attempts" in output
    last = output.rstrip().splitlines()[-1]
    assert last.startswith("Run the same command again to continue. Snakemake's log: ")
    project.run(*options, config=config)
    assert (project.folder / "results" / "film.mp4").is_file()


def test_a_second_run_in_the_same_results_is_refused_by_name(project):
    """By its own message, since Snakemake's lock is in another folder."""
    results = project.folder / "results"
    lock = results / "logs" / "run.lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write("process 7 on node, started in /other\n")
        other.flush()
        for more in ((), ("all", "--delete-all-output")):
            said = project.fail(*more, config={"reaches": 2})
            assert "another run is at work in it (process 7 on node, started in /other)" in said
            assert "Traceback" not in said
    assert [path for path in results.rglob("*") if path.is_file()] == [lock]
    project.run(config={"reaches": 2})
    assert (results / "film.mp4").is_file()
    assert f"started in {project.folder}" in lock.read_text()
    project.run("all", "--delete-all-output", config={"reaches": 2})
    assert not (results / "film.mp4").exists()
