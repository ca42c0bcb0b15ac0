"""The plots agree with the tables, and the same run gives the same bytes."""

import json
import os
import re
import subprocess
import sys

import gymnasium
import numpy as np
import pandas as pd
import pytest
from conftest import DISCRETE, PUMP, simulated
from project import REPOSITORY

from goalreel.environments.dimension_names import action_names, state_names
from goalreel.files.svg_plot import read_caption
from goalreel.provenance.checksums import SUMS, read_sums
from goalreel.report import plots
from goalreel.report.episode_table import read_table
from goalreel.report.plots import Sample, read_sample
from goalreel.simulation.trajectories import write_trajectories

# The plots of MountainCar-v0 reaches. Returns are minus the steps, so they have no histogram.
NAMES = ["steps", "return_by_episode", "initial_position", "states", "actions"]


def draw(results, folder, **environment) -> list:
    """Draw the plots of a run like its rule, and return their paths in the report's order."""
    config = {"env": DISCRETE, "env_wrappers": [], "unit": "reach"}
    spec = json.dumps({"stage": "plots", "config": config, "shard": {"shards": 2}})
    command = [sys.executable, REPOSITORY / "scripts" / "plots.py", "--spec", spec]
    command += ["--episodes", results / "episodes.csv", "--output", folder / "plots"]
    command += ["--trajectories", results / "trajectories" / "00000.npz"]
    subprocess.run(command, check=True, env=os.environ | environment)
    return list(read_sums(folder / "plots" / SUMS))


def test_plots_show_the_tables_in_reproducible_bytes(filmed, tmp_path):
    results, rc = filmed.folder / "results", tmp_path / "matplotlibrc"
    made = draw(results, tmp_path / "first")
    steps = pd.read_csv(results / "episodes.csv")["steps"]
    assert [path.stem for path in made] == NAMES
    captions = dict(zip(NAMES, map(read_caption, made), strict=True))
    told = f"8 reaches took {steps.min()} to {steps.max()} steps. The median is {steps.median():g}."
    assert captions["steps"].description.startswith(told)
    assert "Every step's reward is −1" in captions["steps"].description
    assert "2 dimensions of the state over the steps of 8 reaches" in captions["states"].description
    rc.write_text("font.size: 30\nsvg.fonttype: none\nimage.cmap: jet\nlines.linewidth: 9\n")
    settings = {"MATPLOTLIBRC": str(rc), "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1"}
    again = draw(results, tmp_path / "second", **settings)
    for path, caption, other in zip(made, captions.values(), again, strict=True):
        text = path.read_text(encoding="utf-8")
        assert text == other.read_text(encoding="utf-8"), "a matplotlibrc changes the bytes"
        assert json.loads(caption.spec)["stage"] == "plots"
        assert "@media(prefers-color-scheme:dark)" in text and "fill: #ffffff" not in text
        assert not re.search(r'(href|src)="(?!#|data:)', text), "the file uses nothing outside"


@pytest.mark.parametrize("seeds", [[7, 2**64 - 1], [-1, -1]])
def test_table_keeps_exact_and_missing_seeds(tmp_path, seeds):
    pd.DataFrame({"seed": seeds}).to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv", ["seed"])["seed"].tolist() == seeds


@pytest.mark.slow
def test_plots_of_long_run_show_and_label_a_sample(tmp_path, monkeypatch):
    trajectories = simulated(reaches=range(60), policy=PUMP | {"epsilon": 0.6})
    rows = map(trajectories.attempts.row, range(len(trajectories.attempts.steps)))
    table = pd.DataFrame(rows)
    # The column `reached` counts, not `terminated`.
    table["terminated"], table["truncated"] = table["truncated"], table["terminated"]
    table.to_csv(tmp_path / "t.csv", index=False)
    write_trajectories(tmp_path / "00000.npz", trajectories)
    monkeypatch.setattr(plots, "_MAX_POINTS", 16)
    monkeypatch.setattr(plots, "_MAX_RETURNS", 40)
    sample = read_sample([tmp_path / "00000.npz"], "reach")
    run = plots.PlottedRun("reach", plots.read_episodes(tmp_path / "t.csv", "reach"), sample)
    captions = {p.stem: read_caption(p).description for p in plots.draw_plots(tmp_path, run, "{}")}
    steps = table["steps"][table["reached"]]
    told = f"60 reaches took {steps.min()} to {steps.max()} steps. The median is {steps.median()}"
    assert captions["steps"].startswith(told.removesuffix(".0"))
    assert "of 16 of 60 reaches, evenly sampled, by initial" in captions["initial_position"]
    shown = f"40 of {len(table)} reaches, evenly sampled, in film order"
    assert shown in captions["return_by_episode"]


def test_plot_sample_is_small_and_covers_all_shards(tmp_path, monkeypatch):
    paths = [tmp_path / f"{number:05d}.npz" for number in range(3)]
    for number, path in enumerate(paths):
        write_trajectories(path, simulated(reaches=range(5 * number, 5 * number + 5)))
    sample, everything = read_sample(paths, "reach"), simulated(reaches=range(15))
    assert len(sample.states) == 15
    assert sample.actions.tolist() == everything.actions[:, None].tolist()
    for index, curve in enumerate(sample.states):
        assert np.array_equal(curve, everything.episode(index)[0])
        assert sample.returns[index] == everything.episode(index)[2].sum()
    monkeypatch.setattr(plots, "_MAX_EPISODES", 6)
    assert len(read_sample(paths, "reach").states) == 6
    monkeypatch.setattr(plots, "_MAX_SHARDS", 2)
    (tmp_path / "00001.npz").unlink()  # the first and the last shard give half each
    assert len(read_sample(paths, "reach").states) == 6


def run_of(returns, steps, states=()) -> plots.PlottedRun:
    """Return a PlottedRun of episodes."""
    rows = pd.DataFrame({"return": np.array(returns, float), "steps": steps})
    rows = rows.assign(terminated=False, truncated=True)
    sample = Sample(list(states), np.array(returns[: len(states)]), np.array([[0], [1]]))
    return plots.PlottedRun("episode", rows, sample)


WALKS = [np.cumsum(np.ones((5, 4)) * k, axis=0) for k in (1, 2)]
BY_RETURN = ["returns", "steps", "return_by_episode", "actions"]
APPLY = [
    # Every step's reward is 1, so the returns equal the steps.
    (run_of([5, 9], [5, 9], WALKS), ["steps", "return_by_episode", "states", "actions"]),
    # All episodes have the same length.
    (run_of([-3.5, -9], [200, 200]), ["returns", "return_by_episode", "actions"]),
    (run_of([1, 1], [7, 9]), ["steps", "actions"]),
    (run_of([0, 0], [100, 100]), ["actions"]),
    (run_of([2.5], [4], WALKS[:1]), ["states", "actions"]),
    (run_of([1, 2], [3, 4], [np.zeros((4, 17))]), BY_RETURN),
    (run_of([1, 2], [3, 4], [np.zeros((4, 0))]), BY_RETURN),
]


@pytest.mark.parametrize(("run", "names"), APPLY)
def test_empty_plots_are_not_drawn(run, names, tmp_path):
    made = plots.draw_plots(tmp_path, run, "{}")
    assert [path.stem for path in made] == names
    assert sorted(tmp_path.iterdir()) == sorted(made)
    for path in made:
        caption = read_caption(path)
        assert caption.description and "reach" not in f"{caption.title} {caption}".lower()


@pytest.mark.parametrize(
    ("actions", "env", "told"),
    [
        ([1] * 6 + [3] * 2, "", "in 8 steps: action 1 in 75.0%, action 3 in 25.0%."),
        ([2] * 3 + [0], "LunarLander-v3", "4 steps: main engine in 75.0%, nothing in 25.0%."),
        ([7], "LunarLander-v3", "in 1 steps: action 7 in 100.0%."),  # the environment is modified
        ([-0.5, 0.25, 2.0], "Pendulum-v1", "in 3 steps: values from -0.5 to 2."),
        ([[0, 1]] * 3, "", "in 3 steps: all 2 dimensions."),
        ([[0.5] * 17] * 3, "", "in 3 steps: the first 6 of 17 dimensions."),
        (list(range(400)), "", "in 400 steps: action 0 in 0.2%"),
    ],
)
def test_plots_show_actions_of_any_space(actions, env, told, tmp_path):
    sample = Sample([], np.array([]), np.array(actions).reshape(len(actions), -1))
    figure, _, text = plots.plot_actions(plots.PlottedRun("episode", pd.DataFrame(), sample, env))
    figure.savefig(tmp_path / "a.svg")
    assert told in text


def test_names_match_gymnasiums_spaces():
    plotted = {"Acrobot-v1", "CartPole-v1", "LunarLander-v3", "MountainCar-v0", "Pendulum-v1"}
    discrete = {"Blackjack-v1", "CliffWalking-v1", "FrozenLake-v1", "Taxi-v4"}
    for env in plotted | discrete | {"MountainCarContinuous-v0"}:
        spaces = gymnasium.make(env)
        if env not in discrete:
            (width,) = spaces.observation_space.shape
            assert "dimension 0" not in state_names(env, width)
            assert state_names(f"module:{env}", width + 1)[0] == "dimension 0"
        actions = spaces.action_space
        assert len(action_names(env)) == (getattr(actions, "n", 0) or actions.shape[0]), env
