"""Curves of what the policy said, for the report: signals with one number per step."""

import base64
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from goalreel.simulation.trajectories import read_trajectories

_MOST, _LEAST, _ALL = 256, 16, 2_500_000  # points of a curve, and of all curves of a signal


def signal_curves(trajectories: Iterable[Path], episodes: int) -> dict | None:
    """Return the curves of all filmed episodes as JSON values, None if there are no signals.

    `of` has for each signal its least and greatest value in each episode, and between these its
    values at `points` evenly spaced steps, from 0 to 255, as base64 of (episodes, points) uint8.
    `drop` is the step after which the first signal falls most.
    """
    points = max(min(_ALL // episodes, _MOST), _LEAST)
    of: dict[str, dict[str, list]] = {}
    drops = []
    for path in trajectories:
        played = read_trajectories(path)
        single = {name: array for name, array in played.signals.items() if array.ndim == 1}
        for episode in range(len(played)):
            for place, (name, array) in enumerate(single.items()):
                values = np.nan_to_num(array[played.steps(episode)].astype(np.float64))
                if not place:
                    drops.append(int(np.argmin(np.diff(values, append=values[-1]))) + 1)
                low, high = values.min(), values.max()
                at = np.round(np.linspace(0, len(values) - 1, points)).astype(int)
                curve = (values[at] - low) / (high - low or 1) * 255
                found = of.setdefault(name, {"low": [], "high": [], "curves": []})
                found["low"].append(float(f"{low:.4g}"))
                found["high"].append(float(f"{high:.4g}"))
                found["curves"].append(np.round(curve).astype(np.uint8))
    if not of:
        return None
    for found in of.values():
        found["curves"] = base64.b64encode(np.concatenate(found["curves"]).tobytes()).decode()
    return {"points": points, "drop": drops, "of": of}
