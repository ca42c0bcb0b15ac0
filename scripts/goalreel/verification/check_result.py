"""The result of a check: whether a new run behaves as the lock file says, and what differs."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from goalreel.errors import GoalreelError, listed, pluralize
from goalreel.provenance.spec import Spec
from goalreel.report.statistics import PairedDifference, paired_difference
from goalreel.simulation.trajectories import first_difference
from goalreel.verification.behavior import Difference, PlayedEpisode, present_facts, read_episodes
from goalreel.verification.lock_file import read_lock

_MOST_LISTED = 5  # seeds or versions in the report


class CheckResult(NamedTuple):
    """The result of a check, which is true if it passed. Its text is a report."""

    path: str  # of the lock file
    returns: tuple[Sequence[float], Sequence[float]]  # of the locked episodes, and the new ones
    differences: Sequence[Difference]
    notes: Sequence[str]  # versions and files that differ
    tolerance: float | None  # of the mean return, None to accept only identical episodes

    @property
    def change(self) -> PairedDifference:
        """The change of the returns."""
        return paired_difference(*self.returns)

    def __bool__(self) -> bool:
        if not self.differences or self.tolerance is None:
            return not self.differences
        return -self.tolerance <= self.change.mean.low and self.change.mean.high <= self.tolerance

    def __str__(self) -> str:
        total, change = len(self.returns[0]), self.change.mean
        of_all = f"{len(self.differences):,} of {pluralize(total, 'episode')}"
        if not self.differences:
            head = f"{total:,} of {pluralize(total, 'episode')} identical"
            return "\n".join([head, *self.notes])
        if self.tolerance is not None:
            place = f"{'' if self else 'not '}within ±{self.tolerance:g}"
            head = f"The mean return changed by {change.text()}, {place}."
        elif all(difference.quantity == "frame" for difference in self.differences):
            head = f"States equal, frames differ in {of_all}."
        else:
            head = f"The behavior changed in {of_all}."
        old, new = (sum(returns) / total for returns in self.returns)
        details = [
            f"first differences: {self._first_differences()}",
            f"seeds: {listed([found.seed for found in self.differences], _MOST_LISTED)}",
            f"mean return: {new:,.6g}, was {old:,.6g}, change {change.text()}",
            *self.notes,
        ]
        fix = "" if self else " To accept it: snakemake lock"
        return "\n  ".join([f"{self.path}: {head}{fix}", *details])

    __repr__ = __str__  # pytest prints it

    def _first_differences(self) -> str:
        """Return the quantities that differ first, each with its earliest step."""
        groups: dict[str, list[Difference]] = {}
        for difference in sorted(self.differences, key=lambda difference: difference.last):
            groups.setdefault(difference.quantity, []).append(difference)
        words = []
        for quantity, (found, *others) in groups.items():
            steps = f"between steps {found.first} and {found.last}"
            place = steps if found.first < found.last else f"at step {found.last}"
            words.append(f"{quantity} in {1 + len(others):,} (seed {found.seed} {place})")
        return ", ".join(words)


def check_run(
    check: Mapping, spec: Spec, trajectories: Iterable[Path], frames: Iterable[Path]
) -> CheckResult:
    """Compare the trajectory files and frame caches of a run with the lock file of `check`."""
    (facts, locked), now = read_lock(check["file"]), present_facts(spec)
    returns, differences = [], []
    for before, episode in zip(locked, read_episodes(trajectories, frames), strict=True):
        returns.append(float(f"{episode.row['return']:.10g}"))
        differences.append(episode.difference(before))
    changes = {kind: _changes(facts[kind], now[kind]) for kind in ("versions", "files")}
    return CheckResult(
        check["file"],
        ([episode.return_ for episode in locked], returns),
        list(filter(None, differences)),
        [f"{kind}: {changed}" for kind, changed in changes.items() if changed],
        check["tolerance"] if check["mode"] == "statistical" else None,
    )


def film_changes(
    result: CheckResult, before: Path, after: Path, video: Path, spec: Spec
) -> CheckResult:
    """Film the worst changes side by side, and return the result with the exact steps."""
    # If the folder `before` does not hold the locked run, return the result as it is.
    from goalreel.report import compare
    from goalreel.report.compare_film import film_seeds

    locked = {episode.seed: episode for episode in read_lock(result.path).episodes}
    differences = []
    try:
        runs = [compare.read_run(str(before), "before"), compare.read_run(str(after), "after")]
        for found in result.differences:
            steps = [run.steps(run.table["row"][found.seed]) for run in runs]
            episode = locked[found.seed]
            if PlayedEpisode({}, steps[0]).checksums([episode.steps])[0] != [*episode[4:7]]:
                return result
            if exact := first_difference(*steps):  # None for frames
                step = exact[0] - (exact[1] == "ending")  # of the last step
                found = Difference(found.seed, exact[1], step, step)  # noqa: PLW2901
            differences.append(found)
        pairs, changes = compare.compare_pairs(runs)
        table = compare.table_of_seeds(runs).loc[[found.seed for found in differences]]
        seeds = compare.choose_seeds(pairs, changes, table, [run.name for run in runs])
        film_seeds(video, runs, seeds, table, spec)
    except (GoalreelError, KeyError):  # it holds no run, or one of other seeds
        return result
    return result._replace(differences=differences, notes=[*result.notes, f"film: {video}"])


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return the names whose values differ, with the first characters of both."""
    names = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    values = [[part.get(name, "unused")[:10] for part in (now, before)] for name in names]
    changed = [f"{n} {new} (was {old})" for n, (new, old) in zip(names, values, strict=True)]
    return listed(changed, _MOST_LISTED)
