"""The plots say what the tables say, in bounded memory, and the same run gives the same bytes."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import DISCRETE, PUMP, simulated
from project import REPOSITORY

from goalreel.errors import GoalreelError
from goalreel.files.svg_plot import read_caption
from goalreel.provenance.checksums import SUMS, read_sums
from goalreel.report import plot_data, plots
from goalreel.report import reach_rate as rates
from goalreel.report.plot_data import Returns, Sample, Steps, read_returns, read_sample, read_steps
from goalreel.report.reach_rate import reach_rate, wilson
from goalreel.simulation.trajectories import write_trajectories

# Of reaches in MountainCar-v0; returns are minus the steps, and so have no histogram.
NAMES = ["steps", "return_by_episode", "initial_position", "phase", "actions", "reach_rate"]


def draw(results, folder, **environment) -> list:
    """Draw the plots of a run as its rule does and return their paths, in the page's order."""
    config = {"env": DISCRETE, "unit": "reach", "policy": PUMP}
    spec = json.dumps({"stage": "plots", "config": config, "shard": {"shards": 2}})
    subprocess.run(
        [sys.executable, REPOSITORY / "scripts" / "plots.py", "--spec", spec]
        + ["--episodes", results / "episodes.csv", "--attempts", results / "attempts.csv"]
        + ["--trajectories", results / "trajectories" / "00000.npz", "--output", folder / "plots"],
        check=True,
        env=os.environ | environment,
    )
    return list(read_sums(folder / "plots" / SUMS))


def table_of(trajectories) -> pd.DataFrame:
    """Return the columns of a table of attempts that plots read."""
    rows = trajectories.attempts
    columns = {"steps": rows.steps, "initial_position": rows.initial_position}
    columns |= {"return": rows.return_, "terminated": rows.terminated}
    return pd.DataFrame(columns | {"truncated": rows.truncated, "reached": rows.reached})


def test_plots_tell_what_the_tables_hold(filmed, tmp_path):
    results = filmed.folder / "results"
    made = draw(results, tmp_path)
    steps = pd.read_csv(results / "episodes.csv")["steps"]
    assert [path.stem for path in made] == NAMES
    captions = dict(zip(NAMES, map(read_caption, made), strict=True))
    told = f"8 reaches took {steps.min()} to {steps.max()} steps; the median is {steps.median():g}."
    assert captions["steps"].description.startswith(told)
    assert captions["steps"].description.endswith(
        "Each step's reward is -1: returns are spread as the steps."
    )
    assert "8 of 8 attempts reached the goal, 100.0% (95%" in captions["reach_rate"].description
    assert f"fewest steps, {steps.min()}, the dashed one" in captions["phase"].description
    for path, caption in zip(made, captions.values(), strict=True):
        text = path.read_text(encoding="utf-8")
        assert json.loads(caption.spec)["stage"] == "plots"
        assert "dc:date" not in text, "no time of its making"
        assert not re.search(r'(href|src)="(?!#|data:)', text), "nothing outside the file is used"


def test_plots_are_the_same_bytes_whatever_the_users_matplotlibrc(filmed, tmp_path):
    results, rc = filmed.folder / "results", tmp_path / "matplotlibrc"
    rc.write_text("font.size: 30\nsvg.fonttype: none\nimage.cmap: jet\nlines.linewidth: 9\n")
    first = draw(results, tmp_path / "first")
    settings = {"MATPLOTLIBRC": str(rc), "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1"}
    second = draw(results, tmp_path / "second", **settings)
    assert [a.read_bytes() for a in first] == [b.read_bytes() for b in second]


# R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine
# 17 (1998), table I, method 3.
@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_is_the_published_one(successes, trials, low, high):
    assert np.allclose(wilson(successes, trials), (low, high), atol=5e-5, rtol=0)
    mirrored = wilson(trials - successes, trials)
    assert np.allclose(mirrored, (1 - high, 1 - low), atol=5e-5, rtol=0)


def test_steps_and_rate_of_a_long_table_are_pandas_own(tmp_path, monkeypatch):
    trajectories = simulated(reaches=range(60), policy=PUMP | {"epsilon": 0.6})
    table = table_of(trajectories)
    table.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(rates, "_ROWS", 7)  # rows in a piece
    monkeypatch.setattr(plot_data, "POINTS", 16)
    steps = read_steps(tmp_path / "t.csv", "reach")
    reached = table[table["reached"]]
    assert len(reached) == 60 < len(table)
    counted = {int(n): int(steps.counts[n]) for n in np.flatnonzero(steps.counts)}
    assert counted == reached["steps"].value_counts().to_dict()
    assert steps.median() == reached["steps"].median()
    assert (steps.least(), steps.most()) == (reached["steps"].min(), reached["steps"].max())
    even = reached.iloc[::4]  # 60 reaches in at most 16 points: every 4th
    assert steps.positions.tolist() == even["initial_position"].tolist()
    assert steps.steps.tolist() == even["steps"].tolist()
    everyone = read_steps(tmp_path / "t.csv", "episode")
    assert everyone.episodes == len(table) and everyone.median() == table["steps"].median()
    monkeypatch.setattr(plot_data, "RETURNS", 40)
    returns = read_returns(tmp_path / "t.csv")
    ends = table["return"].min(), table["return"].max()
    assert (returns.episodes, returns.least, returns.most) == (len(table), *ends)
    assert returns.mean == pytest.approx(table["return"].mean()) and returns.reward == -1
    chosen = table["return"].iloc[returns.numbers]
    assert 20 <= len(chosen) <= 40 and returns.values.tolist() == chosen.tolist()
    assert len(set(np.diff(returns.numbers))) == 1
    rate = reach_rate(tmp_path / "t.csv", {"name": "pump", "epsilon": 0.6, "force": 1.0})
    assert (rate.reached, rate.attempts) == (60, len(table))
    assert rate.rate == table["reached"].mean() and rate.low < rate.rate < rate.high
    assert rate.policy == "pump, epsilon 0.6, force 1"


def test_an_environments_own_judgement_of_reaching_wins(tmp_path):
    table = pd.DataFrame({"steps": [5, 6, 9], "initial_position": [None] * 3})
    table["terminated"], table["reached"] = [True, True, False], [False, False, True]
    table.to_csv(tmp_path / "t.csv", index=False)
    steps = read_steps(tmp_path / "t.csv", "reach")
    assert steps.episodes == 1 and steps.median() == 9
    assert reach_rate(tmp_path / "t.csv", {"name": "x"}).reached == 1


def test_the_phase_portrait_shows_reaches_of_all_shards_and_no_more_than_can_be_told_apart(
    tmp_path, monkeypatch
):
    paths = [tmp_path / f"{number:05d}.npz" for number in range(3)]
    for number, path in enumerate(paths):
        write_trajectories(path, simulated(reaches=range(5 * number, 5 * number + 5)))
    sample, goal = read_sample(paths, "reach", 15), 0.5
    everything = simulated(reaches=range(15))
    assert len(sample.states) == 15
    assert sample.actions.tolist() == everything.actions[:, None].tolist()
    for index, curve in enumerate(sample.states):
        assert np.array_equal(curve, everything.episode(index)[0])
        assert sample.returns[index] == everything.episode(index)[2].sum()
        assert curve[0, 1] == 0 and (curve[:-1, 0] < goal).all() and curve[-1, 0] >= goal
    monkeypatch.setattr(plot_data, "CURVES", 6)
    assert len(read_sample(paths, "reach", 15).states) == 6
    monkeypatch.setattr(plot_data, "_SHARDS", 2)
    (tmp_path / "00002.npz").unlink()  # of shards 0 and 1, each gives half
    assert len(read_sample(paths, "reach", 15).states) == 6


def run_of(returns, steps, states=(), actions=(0, 1), terminated=0) -> plots.Run:
    """Return a run of episodes, as plots take it; terminated: how many of them were."""
    values, count = np.array(returns, float), len(returns)
    ended = (np.arange(count) >= terminated).astype(int)
    ends = values.min(), values.max(), values.mean()
    rewards = {r / n for r, n in zip(returns, steps, strict=True)}
    reward = (rewards.pop() or None) if len(rewards) == 1 else None
    told = Returns(count, np.arange(count), values, ended, *ends, reward)
    sample = Sample(
        count, list(states), values[: len(states)], np.array(actions).reshape(len(actions), -1)
    )
    counted = Steps(np.bincount(steps), np.zeros(0), np.zeros(0, int))
    return plots.Run("episode", counted, told, sample, None, None)


WALKS = [np.cumsum(np.ones((5, 4)) * k, axis=0) for k in (1, 2)]
APPLY = [
    # Every step's reward is 1: the returns are the steps.
    (run_of([5, 9], [5, 9], WALKS), ["steps", "return_by_episode", "states", "actions"]),
    # Every episode lasts as long.
    (run_of([-3.5, -9], [200, 200]), ["returns", "return_by_episode", "actions"]),
    (run_of([1, 1], [7, 9]), ["steps", "actions"]),
    (run_of([0, 0], [100, 100]), ["actions"]),
    (run_of([2.5], [4], WALKS[:1]), ["states", "actions"]),
    (
        run_of([1, 2], [3, 4], [np.zeros((4, 17))]),
        ["returns", "steps", "return_by_episode", "actions"],
    ),
    (
        run_of([1, 2], [3, 4], [np.zeros((4, 0))]),
        ["returns", "steps", "return_by_episode", "actions"],
    ),
]


@pytest.mark.parametrize(("run", "names"), APPLY)
def test_only_plots_that_have_something_to_show_are_drawn(run, names, tmp_path):
    made = plots.draw_plots(tmp_path, run, "{}")
    assert [path.stem for path in made] == names
    assert sorted(tmp_path.iterdir()) == sorted(made)
    for path in made:
        caption = read_caption(path)
        assert (
            caption.description and "reach" not in f"{caption.title} {caption.description}".lower()
        )


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        ([1] * 6 + [3] * 2, "in 8 steps: action 1 in 75.0%, 3 in 25.0%."),
        ([-0.5, 0.25, 2.0], "in 3 steps: actions from -0.5 to 2."),
        ([[0, 1]] * 3, "in 3 steps: the 2 numbers of an action."),
        ([[0.5] * 17] * 3, "in 3 steps: the first 6 of an action's 17 numbers."),
        (list(range(400)), "in 400 steps: action 0 in 0.2%"),
    ],
)
def test_actions_of_any_kind_are_drawn(actions, told, tmp_path):
    plots.plot_actions(tmp_path / "a.svg", run_of([1], [1], actions=actions).sample.actions, "{}")
    assert told in read_caption(tmp_path / "a.svg").description


def test_what_is_no_table_or_plot_is_refused_by_name(tmp_path):
    bad = tmp_path / "bad"
    with pytest.raises(GoalreelError, match=r"bad: no such file"):
        reach_rate(bad, {"name": "x"})
    for text in ("", "a,b\n1,2\n", "steps\n1\n"):
        bad.write_text(text)
        with pytest.raises(GoalreelError, match=r"bad: not a table of episodes"):
            reach_rate(bad, {"name": "x"})
    for text in ("", "<svg>", "<svg/>", '<?xml version="1.0" encoding="u-f-8"?><svg/>'):
        bad.write_text(text)
        with pytest.raises(GoalreelError, match=r"bad: not a plot"):
            read_caption(bad)
