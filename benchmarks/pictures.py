"""The README's pictures, from the run that stands in results/: a frame, and the steps to the goal.

python -m pip install -r requirements-bench.txt
python benchmarks/pictures.py
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from PIL import Image

ROOT = Path(__file__).parents[1]
RESULTS, DOCS = ROOT / "results", ROOT / "docs"
sys.path.insert(0, str(ROOT / "scripts"))

from goalreel import open_cache  # noqa: E402


def save_frame(reach: int, before_end: int) -> None:
    """Save the frame some steps before a reach's end, as the cache has it."""
    cache = open_cache(RESULTS / "frames" / "00000.npz")
    frame = cache[cache.episode(reach)[-1 - before_end]]
    Image.fromarray(frame).save(DOCS / "frame.png", optimize=True)


def save_steps() -> None:
    """Plot how often each number of steps occurs, and how it follows from the initial position."""
    table = pd.read_csv(RESULTS / "episodes.csv")
    figure, (left, right) = plt.subplots(1, 2, figsize=(6, 4), layout="constrained", sharey=True)
    steps = np.arange(table["steps"].min(), table["steps"].max() + 2) - 0.5
    left.hist(table["steps"], bins=steps, orientation="horizontal", color="#4878a8")
    left.set(xlabel="reaches", ylabel="steps to the goal")
    right.plot(table["initial_position"], table["steps"], ".", markersize=3, color="#4878a8")
    right.set(xlabel="initial position")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(DOCS / "steps.png", dpi=100)


if __name__ == "__main__":
    DOCS.mkdir(exist_ok=True)
    save_frame(reach=0, before_end=8)
    save_steps()
