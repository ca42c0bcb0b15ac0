"""The result of a check: whether a new run behaves as the lock file says, and what differs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from goalreel.errors import pluralize
from goalreel.provenance.spec import Spec
from goalreel.report.statistics import PairedDifference, format_decimals, paired_difference
from goalreel.verification.behavior import Difference, find_difference, read_episodes, versions
from goalreel.verification.lock_file import read_lock

_MOST_SEEDS = 5  # in the report


@dataclass(frozen=True)
class CheckResult:
    """The result of a check, which is true if the check passed. Its text is a report."""

    path: str  # of the lock file
    returns: tuple[Sequence[float], Sequence[float]]  # of the locked episodes, and the new ones
    differences: Sequence[Difference]
    notes: Sequence[str]  # on versions and files that differ
    tolerance: float | None  # of the mean return, None to accept only identical episodes

    @property
    def change(self) -> PairedDifference:
        """The change of the returns."""
        return paired_difference(*self.returns)

    def __bool__(self) -> bool:
        """Return whether the check passed."""
        if not self.differences or self.tolerance is None:
            return not self.differences
        mean = self.change.mean
        return -self.tolerance <= mean.low and mean.high <= self.tolerance

    def __str__(self) -> str:
        """Return the report."""
        total, count = len(self.returns[0]), len(self.differences)
        change, fix = self.change.mean, "To accept it: snakemake lock"
        if not count:
            return "\n".join([f"{total:,} of {pluralize(total, 'episode')} identical", *self.notes])
        if self.tolerance is not None:
            is_within = "within" if self else "not within"
            head = f"The mean return changed by {change.text()}, {is_within} ±{self.tolerance:g}."
        elif all(difference.quantity == "frame" for difference in self.differences):
            head = f"States equal, frames differ in {count:,} of {pluralize(total, 'episode')}."
        else:
            head = f"The behavior changed in {count:,} of {pluralize(total, 'episode')}."
        old, new = (sum(returns) / total for returns in self.returns)
        decimals = change.decimals
        means = f"{format_decimals(new, decimals)}, was {format_decimals(old, decimals)}"
        lines = [
            f"{self.path}: {head}" + ("" if self else f" {fix}"),
            f"  first differences: {self._first()}",
            f"  seeds: {_listed([str(difference.seed) for difference in self.differences])}",
            f"  mean return: {means}, change {change.text()}",
            *(f"  {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    __repr__ = __str__  # pytest prints it

    def _first(self) -> str:
        """Return the quantities that differ first, each with its earliest step."""
        groups: dict[str, list[Difference]] = {}
        for difference in sorted(self.differences, key=lambda difference: difference.last):
            groups.setdefault(difference.quantity, []).append(difference)
        words = []
        for quantity, group in groups.items():
            first = group[0]
            place = f"between steps {first.first} and {first.last}"
            place = place if first.first < first.last else f"at step {first.first}"
            words.append(f"{quantity} in {len(group):,} (seed {first.seed} {place})")
        return ", ".join(words)


def check_run(
    check: Mapping, spec: Spec, trajectories: Iterable[Path], frames: Iterable[Path]
) -> CheckResult:
    """Compare a run with a lock file.

    Args:
        check: the section `check` of the configuration.
        spec: of the check, which has the present versions and files.
        trajectories: the trajectory files of all shards.
        frames: their frame caches.
    """
    lock, returns, differences = read_lock(check["file"]), [], []
    for locked, episode in zip(lock.episodes, read_episodes(trajectories, frames), strict=True):
        returns.append(float(f"{episode.row['return']:.10g}"))
        if difference := find_difference(locked, episode, lock.stride):
            differences.append(difference)
    notes = [
        f"{kind}: {changed}"
        for kind, changed in (
            ("versions", _changes(lock.versions, versions(spec))),
            ("files", _changes(lock.files, spec.value.get("files", {}), 8)),
        )
        if changed
    ]
    before = [episode.return_ for episode in lock.episodes]
    tolerance = check["tolerance"] if check["mode"] == "statistical" else None
    return CheckResult(check["file"], (before, returns), differences, notes, tolerance)


def _changes(before: Mapping[str, str], now: Mapping[str, str], length: int | None = None) -> str:
    """Return the names whose values differ. length: the characters of a value to show."""
    names = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    values = [[(part.get(name) or "unused")[:length] for part in (now, before)] for name in names]
    pairs = zip(names, values, strict=True)
    return _listed([f"{name} {new} (was {old})" for name, (new, old) in pairs])


def _listed(words: Sequence[str]) -> str:
    more = len(words) - _MOST_SEEDS
    return ", ".join(words[:_MOST_SEEDS]) + (f" and {more:,} more" if more > 0 else "")
