"""Verification of the views: those that were made, each whole. See verify for the film's files."""

from collections.abc import Sequence
from pathlib import Path

from goalreel.errors import GoalreelError, Unusable
from goalreel.provenance.checksums import SUMS, read_digests
from goalreel.verification import single_files as files
from goalreel.verification.single_files import Plan
from goalreel.verification.verdict import Verdict


def check_views(results: Path, plan: Plan) -> list[Verdict]:
    """Check the views that were made; one that is out of date is no fault."""
    verdicts = []
    for stage, outputs in plan.views.items():
        patterns, sums = _sealed_and_listed(stage, outputs)
        verdict = Verdict(stage)
        for path in sorted(path for pattern in patterns for path in results.glob(pattern)):
            verdict.check(path, lambda p=path: files.check_whole(p))
            if path not in verdict.faults:
                verdict.note = verdict.note or _age(path, stage, plan)
        _check_listed(verdict, results / sums if sums else None)
        if list(outputs) == [stage] and verdict.faults:  # a folder, which is made as one
            path, fault = next(iter(verdict.faults.items()))
            verdict.faults = {results / stage: f"{path.name}: {fault}"}
            verdict.listed = {results / sums, *results.glob(f"{stage}/*.mp4"), *verdict.listed}
        verdicts.append(verdict)
    return [*verdicts, _check_trainings(results)]


def _sealed_and_listed(stage: str, outputs: Sequence[str]) -> tuple[list[str], str]:
    """Return the patterns of a view's files with seals, and its list of checksums, "" for none."""
    if list(outputs) == [stage]:  # a folder; the report's videos are copies of other stages'
        return [f"{stage}/*.mp4"] if stage != "report" else [], f"{stage}/{SUMS}"
    lists = [name for name in outputs if name.endswith((SUMS, ".sha256"))]
    sealed = [name for name in outputs if name.endswith((".mp4", ".npz"))]
    return sealed, lists[0] if lists else ""


def _check_trainings(results: Path) -> Verdict:
    """Check the trainings by deep Q-learning, of whatever variants and seeds."""
    verdict = Verdict("dqn")
    for policy in sorted(results.glob("train/*/*/policy.pt")):
        verdict.check(policy, lambda p=policy: files.check_whole(p))
    for metrics in sorted(results.glob("train/*/*/metrics.json")):
        verdict.check(metrics, lambda m=metrics: _check_log(m))
    return verdict


def _check_log(metrics: Path) -> None:
    """Raise Unusable unless a training's metrics, and the log that they tell of, are as written."""
    for name, digest in read_digests(metrics).items():
        if fault := files.fault_of(metrics.parent / name, digest):
            raise Unusable(metrics, f"{name} beside it: {fault}")


def _age(path: Path, stage: str, plan: Plan) -> str:
    try:
        files.check_made(path, stage, plan)
    except GoalreelError:
        return "sound, of other options, code or tools than now"
    return ""


def _check_listed(verdict: Verdict, sums: Path | None) -> None:
    """Check the files that a list of checksums tells of; those without a list cannot be."""
    if sums is None or not sums.parent.is_dir():
        return
    if not sums.exists():
        if verdict.files or (sums.name == SUMS and any(map(Path.is_file, sums.parent.iterdir()))):
            verdict.unchecked[sums] = "the list of checksums is missing"
        return
    try:
        verdict.listed = set(files.read_sums(sums))
        damaged = files.check_sums(sums)
    except Unusable as error:
        verdict.faults[sums] = error.fault
        return
    except GoalreelError as error:
        verdict.unchecked[sums] = str(error).removeprefix(f"{sums}: ")
        return
    for path in verdict.listed:
        if path in damaged and not path.exists():  # or it is the list that is damaged
            verdict.faults[sums] = f"it tells of {path.name}, which is missing"
        elif path in damaged:
            verdict.faults.setdefault(path, damaged[path])
        elif path.suffix != ".mp4" or verdict.stage == "report":
            verdict.files, verdict.size = verdict.files + 1, verdict.size + path.stat().st_size
