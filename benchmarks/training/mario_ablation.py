"""Short trainings of Super Mario Bros 1-1, each without one part of the preset.

    preset                  as target `train`, with one process
    starts at the reset     no games begin before the places where the policy fails
    no mark                 pictures do not show the previous action
    gray pictures           ordinary gray, in which Mario is as bright as the sky
    pixels from 0 to 255    enter the network as -1 to 1, instead of those of random play
    no noise                no repeated or random decisions besides sticky actions
    gamma 0.97              of the other levels, instead of 0.92

A training has 300,000 decisions of a learning rate that falls to 0. Trainings run side by side, one
on each core. The table is mario_ablation.csv and mario_ablation.md.

    python -m benchmarks.training.mario_ablation    an hour on two cores
"""

import json
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

from benchmarks.harness import (
    TRAINING_PACKAGES,
    available_cores,
    parser,
    row_process,
    write_table,
)
from benchmarks.training.pong import config_of

ENV, DECISIONS, EVERY, SEED = "SuperMarioBros-1-1-v0", 300_000, 100_000, 1
HEADER = ("training", "flags, %", "mean distance", "CPU minutes")
BOUNDS = {"low": 0.0, "high": 255.0}
# Options of `train`, preprocessing, fields of the task, and the noise of games.
VARIANTS = {
    "preset": ({}, {}, {}, None),
    "starts at the reset": ({"starts": "reset"}, {}, {}, None),
    "no mark": ({}, {"marks": False}, {}, None),
    "gray pictures": ({}, {"warp": "pillow"}, {}, None),
    "pixels from 0 to 255": ({}, {}, BOUNDS, None),
    "no noise": ({}, {}, {}, ((0.0, 0.0),)),
    "gamma 0.97": ({"gamma": 0.97}, {}, {}, None),
}


def learn(name: str) -> list[str]:
    """Train a variant, and return its cells below HEADER, after the name."""
    from goalreel.training import mario_envs, session, training

    options, preprocessing, fields, noises = VARIANTS[name]

    def make_task(config: Mapping, settings):
        task = session_task(config, settings)
        return replace(task, preprocessing={**task.preprocessing, **preprocessing}, **fields)

    session_task = session.make_task
    short = {"total_timesteps": DECISIONS, "eval_freq": EVERY, "processes": 1, "seed": SEED}
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(session, "make_task", make_task))
        if noises:
            stack.enter_context(mock.patch.object(mario_envs, "_NOISES", noises))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        config = config_of(ENV, {}, **short | {"checkpoints": []} | options)
        record = training.train(config, Path(folder, "checkpoint.pt")).record
    last = record.evaluations[-1]
    flags, distance = 100 * last.mean("success"), last.mean("distance")
    return [f"{flags:.0f}", f"{distance:,.0f}", f"{record.cpu_seconds / 60:.1f}"]


def main(argv: list[str] | None = None) -> None:
    """Train all variants, and write the table."""
    command = parser(__doc__)
    command.add_argument("--row", choices=VARIANTS, help="train this variant here, and print JSON")
    options = command.parse_args(argv)
    if options.row:
        print(json.dumps(learn(options.row)))
        return
    with ThreadPoolExecutor(available_cores()) as pool:
        cells = list(pool.map(partial(row_process, "benchmarks.training.mario_ablation"), VARIANTS))
    rows = [[name, *row] for name, row in zip(VARIANTS, cells, strict=True)]
    note = (
        f"{ENV}, {DECISIONS:,} decisions of a training with seed {SEED}. Figures are those of 50 "
        "greedy games with sticky actions, from seeds that are the same each time, after it."
    )
    write_table(options.output / "mario_ablation", HEADER, rows, [note], 1, TRAINING_PACKAGES)


if __name__ == "__main__":
    main()
