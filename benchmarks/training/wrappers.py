"""Which wrappers of games cost what: the ordinary stack, each change of it alone, all together.

For Mountain Car from pixels and for a game of ALE's, played by a random policy. The ordinary stack
is Stable-Baselines3's: no-ops, the maximum of the last two of four frames, an episode for each
life, fire, 84x84 grey by OpenCV's area interpolation, clipped rewards, and a stack of four frames.
Printed, and written to wrappers.csv and wrappers.md.

    python -m pip install -r requirements.txt -r requirements-train-test.in
    python -m benchmarks.training.wrappers              six minutes
    python -m benchmarks.training.wrappers --rounds 1   a first try
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.table import describe_machine
from benchmarks.training.pixel_envs import (
    BREAKOUT,
    CAR,
    SKIP,
    Stack,
    Stacked,
    random_lanes,
    random_play,
    warp_all,
)
from benchmarks.training.rates import MACHINE, as_csv, as_markdown, measure, of_rounds, parse

ORDINARY = Stack()
EVERYWHERE = {
    "skip without max": {"maximum": False},
    "pictures of the shown frames alone": {"rendered": True},
    "stack 2": {"frames": 2},
    "resize by Pillow": {"warp": "pillow"},
    "resize by a slice": {"warp": "slice"},
    "without clipped rewards": {"clip": False},
}
OF_ALE = {
    "without no-ops": {"noop": False},
    "without episodic life": {"episodic_life": False},
    "without fire": {"fire": False},
}
TOGETHER = "all of these"
LANES = 16


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    import cv2

    chosen = parse(__doc__, argv)
    cv2.setNumThreads(1)
    groups = {CAR: car(), BREAKOUT: breakout()}
    rates = measure(groups, chosen.rounds, chosen.seconds)
    machine = describe_machine(1, MACHINE)
    table = as_markdown(rates, notes(chosen.rounds, machine))
    print(table)
    chosen.output.mkdir(parents=True, exist_ok=True)
    Path(chosen.output, "wrappers.csv").write_text(as_csv(rates, machine), encoding="utf-8")
    Path(chosen.output, "wrappers.md").write_text(table, encoding="utf-8")


def car() -> dict[str, Callable[[], int]]:
    """Return what plays Mountain Car: Gymnasium's pictures in wrappers, and the atlas's."""
    from goalreel.training.games.make_lanes import make_lanes
    from goalreel.training.games.settings import GameSettings

    warp_all("slice")
    rows = _rows(CAR, "ordinary wrappers of Gymnasium's render", EVERYWHERE)
    for lanes in (1, LANES):
        stacked = Stacked(make_lanes(GameSettings(CAR, warp="slice"), 0, lanes), 2)
        name = "1 lane" if lanes == 1 else f"{lanes} lanes"
        rows[f"{TOGETHER}, from the atlas, {name}"] = random_lanes(stacked, lanes, 3)
    return rows


def breakout() -> dict[str, Callable[[], int]]:
    """Return what plays the game of ALE's."""
    return _rows(BREAKOUT, "ordinary wrappers", OF_ALE | EVERYWHERE)


def _rows(game: str, ordinary: str, changes: dict[str, dict]) -> dict[str, Callable[[], int]]:
    stacks = {ordinary: ORDINARY}
    stacks |= {name: replace(ORDINARY, **change) for name, change in changes.items()}
    together = {key: value for change in changes.values() for key, value in change.items()}
    stacks[TOGETHER] = replace(ORDINARY, **together)
    return {name: random_play(*stack.make(game)) for name, stack in stacks.items()}


def notes(rounds: int, machine: str) -> list[str]:
    """Return what a reader of the table should know."""
    return [
        f"{of_rounds(rounds)} FPS counts frames of the environment, {SKIP} to an action, per "
        "second of CPU time, one thread each; the frames of a reset are not counted, but its time "
        "is. A random policy chooses the actions.",
        'Each change is made alone to the first row of its group. "All of these" resizes by a '
        "slice. Mountain Car has no lives, no fire and no action that does "
        "nothing; Breakout needs fire once a life, which a random policy presses by itself.",
        "The atlas was drawn and its pictures were warped before.",
        f"Machine: {machine}.",
    ]


if __name__ == "__main__":
    main()
