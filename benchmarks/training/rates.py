"""Contenders that run for as long as one likes: rounds of short samples, and their table.

    step      who did what
    FPS       frames of environments per second of CPU time, the median of the rounds
    ΔFPS      change against the group's first row, its baseline, where the range tells one
    ratio     this row's FPS divided by the baseline's, the median of the rounds
    range     the quartiles of the rounds' ratios: half of them lie between

They take turns: in each round every contender has a sample, so that what slows the machine down
slows all of them alike; each round begins with another one of a group, so that none always follows
the same. Samples are long enough to hold ends of episodes. Where the range holds 1 the table says
that no difference is seen: of 21 rounds at least 16 must agree on which is faster, which between
equals they do by chance in 2.7% of cases. The time is the CPU time of the process, in which each
contender uses one thread.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sample import RESULTS, Sample
from benchmarks.table import csv_text, markdown

MACHINE = ("numpy", "gymnasium", "stable-baselines3", "ale-py", "opencv-python-headless", "pillow")
HEADER = ("step", "FPS", "ΔFPS", "ratio", "range")
UNSEEN = "no difference seen"
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

    @property
    def quartiles(self) -> tuple[float, float]:
        """Between which half of the ratios lie."""
        ratios = self.ratios
        if len(ratios) == 1:
            return ratios[0], ratios[0]
        first, _, third = statistics.quantiles(ratios, n=4, method="inclusive")
        return first, third

    def cells(self) -> tuple[str, ...]:
        """Return the cells below HEADER."""
        if self.samples is self.baseline:
            return (self.step, f"{self.fps:,.0f}", "", "", "")
        ratio, (low, high) = statistics.median(self.ratios), self.quartiles
        change = f"{ratio - 1:+,.0%}" if ratio >= 2 else f"{ratio - 1:+.1%}"
        if low <= 1 <= high:
            change = UNSEEN
        spread = f"{_digits(low)} to {_digits(high)}"
        return (self.step, f"{self.fps:,.0f}", change, _digits(ratio), spread)


def measure(groups: Mapping[str, Mapping[str, Run]], rounds: int, seconds: float) -> list[Rate]:
    """Return a rate per contender; the first of each group is its baseline.

    seconds: of CPU time, for each sample at least
    """
    taken: dict[tuple[str, str], list[Sample]] = {
        (group, name): [] for group, contenders in groups.items() for name in contenders
    }
    for number in range(rounds):
        for group, contenders in groups.items():
            for name in _turned(list(contenders), number):
                taken[group, name].append(_sample(contenders[name], seconds))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    samples = {key: tuple(of_rounds) for key, of_rounds in taken.items()}
    firsts = {group: samples[group, next(iter(members))] for group, members in groups.items()}
    return [
        Rate(f"{group}: {name}", rounds, firsts[group]) for (group, name), rounds in samples.items()
    ]


def _turned(names: list[str], number: int) -> list[str]:
    first = number % len(names)
    return names[first:] + names[:first]


def _sample(run: Run, seconds: float) -> Sample:
    units, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        units += run()
    return Sample(units, spent, "a random policy")


def as_csv(rates: Iterable[Rate], machine: str) -> str:
    """Return the table as CSV."""
    rows = [
        [rate.step, *(cell.replace(",", "") for cell in rate.cells()[1:]), len(rate.samples)]
        for rate in rates
    ]
    return csv_text([*HEADER, "rounds"], rows, machine)


def as_markdown(rates: Iterable[Rate], notes: list[str]) -> str:
    """Return the table as Markdown, with the notes as a list below it."""
    return markdown(HEADER, (rate.cells() for rate in rates), notes)


def of_rounds(rounds: int) -> str:
    """Return the beginning of the notes: what the figures are taken over, in sentences."""
    if rounds == 1:
        return "One round, which has no spread."
    return (
        f"Medians of {rounds} rounds, in which all take turns; the range is the middle half "
        f'of the rounds\' ratios, and where it contains 1 the table says "{UNSEEN}".'
    )


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def parse(description: str, argv: list[str] | None) -> argparse.Namespace:
    """Return the options of a benchmark's command line: rounds, seconds, output."""
    options = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = options.add_argument
    add("--rounds", type=int, default=21, help="rounds, of which the median is shown (21)")
    add("--seconds", type=float, default=0.7, help="of CPU time for each sample (0.7)")
    add("--output", type=Path, default=RESULTS, help="folder for the tables")
    chosen = options.parse_args(argv)
    if chosen.rounds < 1:
        options.error("--rounds must be positive")
    return chosen
