"""Verification of the views and trainings that were made: each file whole, whatever its stage.

What is checked of a file follows from its kind: videos, archives and networks have a seal, folders
and SHA256SUMS a list of checksums, a table's .json the checksums of what is beside it.
"""

import re
from pathlib import Path

from goalreel.errors import GoalreelError, Unusable
from goalreel.files.seal import check_seal
from goalreel.provenance.checksums import SUMS, check_digests, fault_of, has_digests, read_sums
from goalreel.provenance.embedded_specs import read_spec
from goalreel.verification import single_files as files
from goalreel.verification.single_files import Plan
from goalreel.verification.verdict import Verdict

# Whose files are checked against one another, by `run`.
_FILM = ("recording", "simulate", "atlas", "coded_atlas", "render", "encode", "concat", "episodes")
_FILM += ("verify",)
_SEALED = (".mp4", ".npz", ".pt")


def check_views(results: Path, plan: Plan) -> list[Verdict]:
    """Check what all stages but the film's left; what is missing or out of date is no fault."""
    return [_check_view(results, stage, plan) for stage in plan.outputs if stage not in _FILM]


def _check_view(results: Path, stage: str, plan: Plan) -> Verdict:
    verdict = Verdict(stage)
    outputs = plan.outputs[stage]
    for pattern in outputs:
        for path in sorted(results.glob(re.sub(r"\{\w+\}", "*", pattern))):
            if path.is_dir() and not path.is_symlink():
                _check_folder(verdict, path, plan)
            elif path.suffix in _SEALED:
                verdict.check(path, lambda p=path: _check_sealed(p, stage))
                _note_age(verdict, path, plan)
            elif path.suffix == ".json" and has_digests(path):
                verdict.check(path, lambda p=path: check_digests(p))
    for sums in (results / name for name in outputs if name.endswith((SUMS, ".sha256"))):
        if sums.exists():
            _check_listed(verdict, sums)
        elif any((results / name).is_file() for name in outputs):
            verdict.unchecked[sums] = "the list of checksums is missing"
    return verdict


def _check_folder(verdict: Verdict, folder: Path, plan: Plan) -> None:
    """Check a folder that is one output, so that it is made again as a whole."""
    sums = folder / SUMS
    if sums.exists():
        _check_listed(verdict, sums)
    elif any(path.is_file() for path in folder.iterdir()):
        verdict.unchecked[sums] = "the list of checksums is missing"
    verdict.listed |= {sums, *folder.glob("*.mp4")}
    if verdict.faults:
        path, fault = next(iter(verdict.faults.items()))
        verdict.faults = {folder: f"{path.name}: {fault}"}
    else:
        for path in sorted(folder.glob("*.mp4")):
            _note_age(verdict, path, plan)


def _check_sealed(path: Path, stage: str) -> None:
    """Raise Unusable unless a file is as it was written, by this stage."""
    check_seal(path)
    if (made := read_spec(path).stage) != stage:
        raise Unusable(path, f"it was made by the stage {made!r}, not {stage!r}")


def _note_age(verdict: Verdict, path: Path, plan: Plan) -> None:
    """Note that a file of the stage was made by other options, code or tools than now."""
    try:
        # The report's page keeps copies of other stages' files.
        if path not in verdict.faults and read_spec(path).stage == verdict.stage:
            files.check_made(path, verdict.stage, plan)
    except GoalreelError:
        verdict.note = "sound, of other options, code or tools than now"


def _check_listed(verdict: Verdict, sums: Path) -> None:
    """Check the files that a list of checksums names."""
    try:
        digests = read_sums(sums)
        faults = {path: fault_of(path, digest) for path, digest in digests.items()}
    except Unusable as error:
        verdict.faults[sums] = error.fault
        return
    except GoalreelError as error:
        verdict.unchecked[sums] = str(error).removeprefix(f"{sums}: ")
        return
    verdict.listed |= digests.keys()
    for path, fault in faults.items():
        if not path.exists():  # or it is the list that is damaged
            verdict.faults[sums] = f"it names {path.name}, which is missing"
        elif fault:
            verdict.faults.setdefault(path, fault)
        else:
            verdict.files, verdict.size = verdict.files + 1, verdict.size + path.stat().st_size
