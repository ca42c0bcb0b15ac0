"""A small finished run, one file of each kind, made by the stages' own programs in this process."""

import contextlib
import json
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import DISCRETE, STYLES

import clips
import coded_atlas
import concat
import encode
import episodes
import grid
import learning
import phase
import plots
import render
import replay
import report
import simulate
import stills
import swarm
import train
import training_table
from goalreel.pictures.atlas import Atlas, write_atlas
from goalreel.pictures.layers import cut_patches
from goalreel.provenance.spec import parse_spec
from goalreel.simulation.trajectories import read_trajectories
from goalreel.training.dqn.metrics import Metrics, write_metrics

MAINS = {
    module.__name__: module.main
    for module in (
        *(simulate, render, coded_atlas, encode, concat, episodes, plots, report),
        *(clips, grid, swarm, phase, stills, train, learning, training_table),
    )
}
X264 = {"encoder": "x264", "preset": "ultrafast", "qp": 23}
ASSEMBLED = {"encoder": "assemble", "qp": 34, "card_qp": 20}
RENDER = {"style": "gymnasium", "width": 600, "height": 400, "palette": "light"}
PUMP = {"name": "pump", "epsilon": 0}
_TOLD, _DUBLIN_CORE = ("title", "description", "source"), "http://purl.org/dc/elements/1.1/"
_FILM = {"env": DISCRETE, "film.fps": 30, "card_frames": 2}
_SHARDS = {"shards": 2, "reaches": 4}
_TRIGGERS = {"episode_trigger": [0], "step_trigger": {"every": 300}, "video_length": 5}

# Each program's arguments, paths from the folder of the run; what it makes comes last.
ARGUMENTS = {
    "simulate": ["trajectories/00000.npz"],
    "render": ["--atlas", "atlas.npz", "--trajectories", "trajectories/00000.npz",
               "frames/00000.npz"],
    "coded_atlas": ["--atlas", "atlas.npz", "coded_atlas.npz"],
    "encode": ["--coded-atlas", "coded_atlas.npz", "--frames", "frames/00000.npz",
               "--trajectories", "trajectories/00000.npz", "segments/00000.mp4"],
    "concat": ["--segments", "segments/00000.mp4", "--trajectories", "trajectories/00000.npz",
               "film.mp4"],
    "episodes": ["--trajectories", "trajectories/00000.npz", "episodes.csv", "attempts.csv",
                 "tables.json"],
    "plots": ["--episodes", "episodes.csv", "--attempts", "attempts.csv",
              "--trajectories", "trajectories/00000.npz", "steps.svg", "initial_position.svg",
              "phase.svg", "reach_rate.svg", "plots.SHA256SUMS"],
    "report": ["--film", "film.mp4", "--episodes", "episodes.csv", "--attempts", "attempts.csv",
               "--tables", "tables.json", "--trajectories", "trajectories/00000.npz",
               "--frames", "frames/00000.npz", "--segments", "segments/00000.mp4",
               "--grid", "film.mp4", "--atlas", "atlas.npz", "--plots", "steps.svg", "--swarm",
               "film.mp4", "report"],
    "clips": ["--frames", "frames/00000.npz", "--trajectories", "trajectories/00000.npz",
              "--atlas", "atlas.npz", "--policy", "train/policy.npz", "clips"],
    "grid": ["--frames", "frames/00000.npz", "--trajectories", "trajectories/00000.npz",
             "grid.mp4"],
    "swarm": ["--atlas", "atlas.npz", "--trajectories", "trajectories/00000.npz", "swarm.mp4"],
    "phase": ["--trajectories", "trajectories/00000.npz", "phase.mp4"],
    "stills": ["--frames", "frames/00000.npz", "--trajectories", "trajectories/00000.npz",
               "poster.png", "contact_sheet.png", "preview.webp", "stills.SHA256SUMS"],
    "train": ["train/policy.npz", "train/log.csv", "train/SHA256SUMS"],
    "learning": ["--policy", "train/policy.npz", "--atlas", "atlas.npz", "learning.mp4",
                 "learning.csv", "learning.SHA256SUMS"],
    "training_table": ["--metrics", "train/fast/1/metrics.json", "runs.csv", "table.csv",
                       "table.md", "bars.svg", "curves.svg", "training.SHA256SUMS"],
}  # fmt: skip
OUTPUTS = {
    "episodes": 3,
    "plots": 5,
    "stills": 4,
    "train": 3,
    "learning": 3,
    "training_table": 6,
}  # others have one
_CONFIGS = {
    "simulate": ({"env": DISCRETE, "env_kwargs": {}, "max_steps": 12, "success": "truncated",
                  "seed": 7, "film.show": "attempts", "policy": PUMP}, {"first": 0, "count": 2}),
    "render": ({"env": DISCRETE, "render": RENDER}, {}),
    "coded_atlas": ({"env": DISCRETE, "render": RENDER, "overlay.hud": False,
                    "film_encoder": ASSEMBLED}, {}),
    "encode": (_FILM | {"overlay.caption": "Reach {reach}", "overlay.hud": False,
                        "film_encoder": ASSEMBLED}, {}),
    "concat": (_FILM, _SHARDS),
    "episodes": (_FILM | {"film.reaches_per_file": None}, {"shards": 2}),
    "plots": ({"env": DISCRETE, "policy": PUMP}, {"shards": 2}),
    "report": ({"env": DISCRETE, "policy": PUMP, "film.fps": 30}, _SHARDS),
    "clips": ({"env": DISCRETE, "film.fps": 30, "overlay.caption": "", "overlay.hud": True,
               "render": RENDER, "view_encoder": X264, "clips": _TRIGGERS | {"name_prefix": "x"}},
              {"shards": 2}),
    "grid": ({"env": DISCRETE, "film.fps": 30, "view_encoder": X264,
              "grid": {"rows": 1, "columns": 2, "caption": "{steps}"}}, {"shards": 2}),
    "swarm": ({"env": DISCRETE, "film.fps": 30, "render": RENDER, "view_encoder": X264},
              {"shards": 2}),
    "phase": ({"env": DISCRETE, "film.fps": 30, "view_encoder": X264}, {"shards": 2}),
    "stills": ({"env": DISCRETE, "film.fps": 30, "stills": {"episode_trigger": None}},
               {"shards": 2}),
    "train": ({"env": DISCRETE, "train.seed": 7, "train.checkpoints": [1, 2]}, {}),
    "learning": ({"env": DISCRETE, "seed": 2025, "film.fps": 30, "train.attempts": 1,
                  "overlay.title_card": 0.1, "overlay.hud": True, "render": RENDER,
                  "view_encoder": X264}, {}),
    "training_table": ({"dqn.variants": ["fast"], "dqn.seeds": [1]}, {}),
    "verify": (_FILM, _SHARDS | {"size": 2, "per_file": None}),
}  # fmt: skip


def spec_of(stage: str) -> dict:
    """Return the spec that a stage of the run was made with."""
    config, shard = _CONFIGS[stage]
    return json.loads(json.dumps({"stage": stage, "config": config, "shard": shard}))


@cache
def made(folder: Path) -> Path:
    """Make the run in a new folder, once for all who name it, and return the folder."""
    folder.mkdir()
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        for shard in range(2):
            spec = spec_of("simulate")
            spec["shard"]["first"] = 2 * shard
            simulate.main([f"trajectories/0000{shard}.npz", "--spec", json.dumps(spec)])
        _draw()
        for stage in ("render", "coded_atlas", "encode"):
            for shard in range(1 if stage == "coded_atlas" else 2):
                names = [a.replace("00000.", f"0000{shard}.") for a in ARGUMENTS[stage]]
                MAINS[stage]([*names, "--spec", json.dumps(spec_of(stage))])
        for stage in ("concat", "episodes", "train"):
            MAINS[stage]([*ARGUMENTS[stage], "--spec", json.dumps(spec_of(stage))])
        told = "".join(f"<dc:{name}>{json.dumps(spec_of('plots'))}</dc:{name}>" for name in _TOLD)
        Path("steps.svg").write_text(f'<svg xmlns:dc="{_DUBLIN_CORE}">{told}</svg>')
        Path("recording.csv").write_text("episode,seed,action\n" + "0,1,2\n" * 5 + "1,2,0\n" * 9)
        rows = np.repeat([0, 1], [5, 9])
        np.savez("recording.npz", episode=rows, seed=rows + 1, action=np.zeros((14, 1), int))
        Path("states.csv").write_text("episode,position,velocity\n" + "0,-0.5,0\n" * 3)
        _train()
        Path("policy.py").write_text("def act(seen):\n    return seen[:, 0].astype(int) * 0\n")
        Path("benchmarks").mkdir()
        Path("benchmarks/concat.tsv").write_text("s\th:m:s\n1.5\t0:00:01\n")
    return folder


def _train() -> None:
    """Write the metrics of a training without one."""
    folder = Path("train/fast/1")
    folder.mkdir(parents=True)
    (folder / "log.csv").write_text("kind\n")
    figures = (6000, 3.0, 2000.0, None, None, -150.0, -160.0)
    metrics = Metrics("fast", 1, True, *figures, (5000, 6000), (2.5, 3.0), (-150.0, -160.0))
    spec = parse_spec('{"stage": "dqn", "config": {"variant": "fast", "train.seed": 1}}')
    write_metrics(folder / "metrics.json", metrics, spec, folder / "log.csv")


def _draw() -> None:
    """Draw an atlas of the run's pictures alone: all there are take seconds."""
    style = STYLES[DISCRETE]
    shards = [read_trajectories(f"trajectories/0000{shard}.npz") for shard in range(2)]
    every = style.keys(np.concatenate([shard.states[:, 0] for shard in shards]))
    keys = np.unique(every, axis=0)
    background, pictures = style.draw(keys)
    patches = cut_patches(background, pictures)
    spec = {"stage": "atlas", "config": {"env": DISCRETE, "render": RENDER}}
    write_atlas(
        "atlas.npz", Atlas(keys.astype(np.int16), background, patches, parse_spec(json.dumps(spec)))
    )


def replayed(argv: list[str]) -> None:
    """Run the program that replays an episode."""
    os.environ["SDL_VIDEODRIVER"] = "dummy"
    replay.main(argv)
