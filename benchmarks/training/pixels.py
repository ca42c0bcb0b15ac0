"""Mountain Car as a network sees it: goalreel's atlas against Gymnasium's pictures in wrappers.

Both give stacks of four frames, 84x84 and grey, by OpenCV's area interpolation, to a random policy.
Gymnasium's way is `render` (AddRenderObservation), Stable-Baselines3's WarpFrame and
FrameStackObservation. Where an action lasts several frames, Stable-Baselines3's MaxAndSkipEnv would
have each of them drawn; goalreel's MaxAndSkipEnv, which has only the last one drawn, takes its
place. Gymnasium's AtariPreprocessing fetches the last two at most. goalreel's way is lanes whose
pictures are looked up. Before anything is timed, stacks of both are compared, pixel for pixel.
Printed, and written to pixels.csv and pixels.md.

    python -m pip install -r requirements.txt -r requirements-train-test.in
    python -m benchmarks.training.pixels              two minutes
    python -m benchmarks.training.pixels --rounds 1   a first try
"""

import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np

from benchmarks.sample import MismatchError
from benchmarks.table import describe_machine
from benchmarks.training.pixel_envs import (
    CAR,
    SKIP,
    Stack,
    Stacked,
    random_lanes,
    random_play,
    warp_all,
)
from benchmarks.training.rates import MACHINE, as_csv, as_markdown, measure, of_rounds, parse

FRAMES = 4
LANES = (1, 16, 64)
COMPARED = (4, 250)  # lanes and steps
GOAL = 100
EACH, SKIPPED = "an action each frame", f"an action for {SKIP} frames"
DRAWN = {1: "in wrappers", SKIP: "of the shown frames alone, in wrappers"}


def main(argv: list[str] | None = None) -> None:
    """Compare, measure, print and write the table."""
    import cv2

    chosen = parse(__doc__, argv)
    cv2.setNumThreads(1)
    prepared = prepare()
    compared = sum(compare(skip) for skip in (1, SKIP))
    groups = {name: contenders(skip) for name, skip in ((EACH, 1), (SKIPPED, SKIP))}
    rates = measure(groups, chosen.rounds, chosen.seconds)
    machine = describe_machine(1, MACHINE)
    table = as_markdown(rates, notes(chosen.rounds, compared, prepared, machine))
    print(table)
    chosen.output.mkdir(parents=True, exist_ok=True)
    Path(chosen.output, "pixels.csv").write_text(as_csv(rates, machine), encoding="utf-8")
    Path(chosen.output, "pixels.md").write_text(table, encoding="utf-8")


def prepare() -> float:
    """Draw and warp all pictures; return the CPU time that it took."""
    start = time.process_time()
    warp_all("area")
    return time.process_time() - start


def contenders(skip: int) -> dict[str, Callable[[], int]]:
    """Return Gymnasium's way and goalreel's."""
    rows = {f"Gymnasium's render {DRAWN[skip]}": random_play(*_wrapped(skip).make(CAR))}
    for count in LANES:
        name = f"goalreel's atlas, {count} lane{'s' * (count > 1)}"
        rows[name] = random_lanes(_atlas(count, skip), count, 3)
    return rows


def _wrapped(skip: int) -> Stack:
    """Return wrappers that have no frame drawn but those that are shown."""
    skips = skip > 1
    return Stack(skip=skip, maximum=not skips, rendered=skips, clip=False, frames=FRAMES)


def _atlas(count: int, skip: int) -> Stacked:
    from goalreel.training.games.make_lanes import make_lanes
    from goalreel.training.games.settings import GameSettings

    return Stacked(make_lanes(GameSettings(CAR, skip, warp="area"), 0, count), FRAMES)


class Begun(gymnasium.Wrapper):
    """Mountain Car whose episodes begin where they are told to."""

    start = 0.0

    def reset(self, **kwargs) -> tuple[np.ndarray, dict]:
        """Reset, and put the car at `start`."""
        found = self.env.reset(**kwargs)
        self.unwrapped.state = np.array([self.start, 0.0])
        return found


def compare(skip: int) -> int:
    """Return how many stacks were compared. Raises MismatchError if any differ."""
    from goalreel.training.games.car_lanes import Lanes

    count, steps = COMPARED
    ours, cars = _atlas(count, skip), Lanes(0, count, skip)
    bare = [Begun(gymnasium.make(CAR, render_mode="rgb_array")) for _ in range(count)]
    envs = [_wrapped(skip).make(CAR, env)[0] for env in bare]
    for env, position in zip(bare, cars.positions, strict=True):
        env.start = position
    theirs = [env.reset()[0] for env in envs]
    dice = np.random.default_rng(1)
    for _ in range(steps // skip):
        if not np.array_equal(ours.stacks, np.reshape(theirs, ours.stacks.shape)):
            raise MismatchError("the atlas shows other pictures than Gymnasium")
        actions = dice.integers(3, size=count)
        ours.step(actions)
        cars.step(actions)
        for lane, action in enumerate(actions.tolist()):
            theirs[lane], _, terminated, truncated, _ = envs[lane].step(action)
            if terminated or truncated:
                bare[lane].start = cars.positions[lane]
                theirs[lane] = envs[lane].reset()[0]
    return count * (steps // skip)


def notes(rounds: int, compared: int, prepared: float, machine: str) -> list[str]:
    """Return what a reader of the table should know."""
    return [
        f"{of_rounds(rounds)} FPS counts frames of the environment per second of CPU time, one "
        "thread each, a random policy's choice of actions and the stacking included. The goal was "
        f"a ratio of {GOAL}.",
        "Where an action lasts several frames, Gymnasium draws the last of them alone, as goalreel "
        "looks up the last one alone.",
        f"{compared:,} stacks of {FRAMES} frames of both were compared in this run, pixel for "
        f"pixel, over the ends of episodes: all are equal.",
        f"All pictures were drawn and warped before, in {prepared:.2g} s of CPU time; a collector "
        "draws and warps a picture when it first sees it.",
        f"Machine: {machine}.",
    ]


if __name__ == "__main__":
    main()
