"""Contenders that run for as long as one likes: rounds of short samples, and their table.

    step      who did what
    FPS       frames of environments per second of CPU time, the median of the rounds
    ΔFPS      change against the group's first row, its baseline
    ratio     this row's FPS divided by the baseline's, the median of the rounds
    range     the least and the greatest ratio of a round

They take turns: in each round every contender has a sample, so that what slows the machine down
slows all of them alike. The time is the CPU time of the process, in which each contender uses one
thread.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sample import Sample
from table import csv_text, markdown

MACHINE = ("numpy", "gymnasium", "stable-baselines3", "ale-py", "opencv-python-headless", "pillow")
HEADER = ("step", "FPS", "ΔFPS", "ratio", "range")
Run = Callable[[], int]
"""Does some work; returns the frames that it took."""


@dataclass(frozen=True)
class Rate:
    """A row of the table: its samples, and those of its group's baseline, round by round."""

    step: str
    samples: tuple[Sample, ...]
    baseline: tuple[Sample, ...]

    @property
    def fps(self) -> float:
        """The median of the rounds."""
        return statistics.median(s.units / s.seconds for s in self.samples)

    @property
    def ratios(self) -> list[float]:
        """Against the baseline of the same round."""
        pairs = zip(self.samples, self.baseline, strict=True)
        return [(a.units / a.seconds) / (b.units / b.seconds) for a, b in pairs]

    def cells(self) -> tuple[str, ...]:
        """Return the cells below HEADER."""
        if self.samples is self.baseline:
            return (self.step, f"{self.fps:,.0f}", "", "", "")
        ratios = self.ratios
        ratio = statistics.median(ratios)
        change = f"{ratio - 1:+,.0%}" if ratio >= 2 else f"{ratio - 1:+.1%}"
        spread = f"{_digits(min(ratios))} to {_digits(max(ratios))}"
        return (self.step, f"{self.fps:,.0f}", change, _digits(ratio), spread)


def measure(groups: Mapping[str, Mapping[str, Run]], rounds: int, seconds: float) -> list[Rate]:
    """Return a rate per contender; the first of each group is its baseline.

    seconds: of CPU time, for each sample at least
    """
    found: dict[tuple[str, str], list[Sample]] = {}
    for number in range(rounds):
        for group, contenders in groups.items():
            for name, run in contenders.items():
                found.setdefault((group, name), []).append(_sample(run, seconds))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    samples = {key: tuple(of_rounds) for key, of_rounds in found.items()}
    firsts = {group: samples[group, next(iter(members))] for group, members in groups.items()}
    return [
        Rate(f"{group}: {name}", rounds, firsts[group]) for (group, name), rounds in samples.items()
    ]


def _sample(run: Run, seconds: float) -> Sample:
    units, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        units += run()
    return Sample(units, spent, "a random policy")


def as_csv(rates: Iterable[Rate], machine: str) -> str:
    """Return the table as CSV."""
    rows = [[*rate.cells(), len(rate.samples)] for rate in rates]
    return csv_text([*HEADER, "rounds"], rows, machine)


def as_markdown(rates: Iterable[Rate], notes: list[str]) -> str:
    """Return the table as Markdown, with the notes as a list below it."""
    return markdown(HEADER, (rate.cells() for rate in rates), notes)


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
