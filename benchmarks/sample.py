"""What every contender shares: what is played, the sample that it returns, the error of a cheat."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
sys.path.insert(0, str(ROOT / "scripts"))
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # Gymnasium's renderer needs no screen

ENV = "MountainCar-v0"


class MismatchError(Exception):
    """A contender did not play or show what goalreel recorded."""


@dataclass(frozen=True)
class Sample:
    """One measurement.

    units: frames, steps or episodes; seconds: wall-clock time for all of them; played: what was
    measured, in words; lost: frames that the contender was given but did not write
    """

    units: int
    seconds: float
    played: str
    lost: int = 0
