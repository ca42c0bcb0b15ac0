"""goalreel.film makes the same film as the workflow."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import gymnasium
import numpy as np
import pandas as pd
import pytest
from recordings import decoded_rgb

import goalreel
from goalreel import GoalreelError


def balance(observation):
    """Push towards where the pole falls."""
    assert observation.shape == (4,) and observation.dtype == np.float32
    return int(observation[2] + 0.5 * observation[3] > 0)


class Model:
    """A policy with the interface of a Stable-Baselines3 model."""

    def predict(self, observation, deterministic=False):
        assert deterministic
        return np.array(balance(observation)), None


@pytest.mark.parametrize(
    "options",
    [
        {"env": "CartPole-v1", "policy": {"name": "random"}, "episodes": 5, "shard_size": 2},
        {"env": "MountainCar-v0", "policy": {"name": "pump"}, "reaches": 3, "shard_size": 2},
        {"env": "FrozenLake-v1", "policy": {"name": "random"}, "seeds": [8, 3, 5]},
    ],
    ids=lambda options: options["env"],
)
def test_film_and_table_are_those_of_the_workflow(project, tmp_path, options):
    text = {
        key: f"{{name: {value['name']}}}" if isinstance(value, dict) else value
        for key, value in options.items()
    }
    project.run("-j", "2", config=text)
    results = project.folder / "results"
    options = dict(options)
    env = options.pop("env")
    table = goalreel.film(env, to=tmp_path / "film.mp4", **options)
    assert (tmp_path / "film.mp4").read_bytes() == (results / "film.mp4").read_bytes()
    pd.testing.assert_frame_equal(table, pd.read_csv(results / "episodes.csv"))
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["film.mp4"]


@pytest.mark.parametrize("policy", [balance, Model()], ids=["function", "model"])
def test_film_accepts_a_python_object(tmp_path, policy):
    made = gymnasium.make("CartPole-v1", max_episode_steps=40, render_mode="rgb_array")
    overlay = {"caption": "", "title_card": 0}
    table = goalreel.film(made, policy, episodes=3, to=tmp_path / "a.mp4", seed=5, overlay=overlay)
    assert table["steps"].tolist() == [40, 40, 40] and table["truncated"].all()
    frames, first = decoded_rgb(tmp_path / "a.mp4"), 0
    for row in table.itertuples():
        obs, _ = made.reset(seed=row.seed)
        returned, shown = 0.0, [made.render()]
        for _ in range(row.steps):
            obs, reward, *_ = made.step(balance(obs))
            returned += reward
            shown.append(made.render())
        assert row[table.columns.get_loc("return") + 1] == returned
        for frame, picture in zip(frames[first : first + 41], shown, strict=True):
            assert frame.shape == picture.shape
            # An error of x264, not a wrong frame.
            assert np.abs(frame.astype(int) - picture).mean() < 1
        first += 41
    assert first == len(frames)


def test_failed_film_raises_and_leaves_nothing(tmp_path):
    to = tmp_path / "film.mp4"
    with pytest.raises(GoalreelError, match="env: .*CartPole-v1"):
        goalreel.film("CartPol-v1", to=to)
    with pytest.raises(GoalreelError, match="policy.name: .*random"):
        goalreel.film("CartPole-v1", "randm", to=to)
    with pytest.raises(GoalreelError, match="policy: '3' is not allowed. Use a name"):
        goalreel.film("CartPole-v1", 3, to=to)
    with pytest.raises(GoalreelError, match="'trained' must be trained first"):
        goalreel.film("MountainCar-v0", "trained", to=to)
    with pytest.raises(GoalreelError, match="film.gif' is not an .mp4 file"):
        goalreel.film("CartPole-v1", to=tmp_path / "film.gif")
    with pytest.raises(GoalreelError, match="episods"):
        goalreel.film("CartPole-v1", to=to, episods=3)
    with pytest.raises(GoalreelError, match="^policy: The function raised ZeroDivisionError"):
        goalreel.film("CartPole-v1", lambda observation: 1 // 0, to=to)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("env", ["CartPole-v1", "LunarLander-v3", "MountainCar-v0"])
def test_films_of_two_threads_are_those_of_two_calls_in_turn(tmp_path, env):
    def always(action, name):
        logs[name] = []
        options = {"episodes": 3, "shard_size": 2, "max_episode_steps": 40, "to": tmp_path / name}
        table = goalreel.film(env, lambda _: action, log=logs[name].append, **options)
        return table, (tmp_path / name).read_bytes()

    logs = {}
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(always, (0, 1), ("0.mp4", "1.mp4")))
    for number, (table, film) in enumerate(together):
        again, alone = always(number, f"alone{number}.mp4")
        pd.testing.assert_frame_equal(table, again)
        assert film == alone
        lines = [[line.split(" ")[0] for line in logs[f"{n}{number}.mp4"]] for n in ("", "alone")]
        assert lines[0] == lines[1], "a log has the lines of its own film"
    assert together[0][1] != together[1][1]


def test_log_and_progress_call_the_given_functions(tmp_path, capsys):
    def bar(total, unit):
        """Take the arguments of tqdm."""
        shown.append((total, unit))
        return SimpleNamespace(update=shown.append, close=lambda: shown.append("closed"))

    lines, shown = [], []
    options = {"episodes": 5, "shard_size": 2, "to": tmp_path / "a.mp4", "max_episode_steps": 20}
    goalreel.film("Acrobot-v1", log=lines.append, progress=bar, **options)
    jobs = ["simulate"] * 3 + ["encode"] * 3 + ["concat", "episodes"]
    assert [line.split(":")[0] for line in lines] == jobs
    assert shown == [(5, "episode"), 2, 2, 1, "closed"]
    goalreel.film("Acrobot-v1", **options)
    assert capsys.readouterr() == ("", "")
