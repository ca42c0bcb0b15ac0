"""goalreel.film makes the same film as the workflow."""

import base64
import itertools
import os
import re
import subprocess
import sys
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import gymnasium
import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageSequence
from project import REPOSITORY
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
        *(
            pytest.param(options, marks=pytest.mark.slow)
            for options in (
                {"env": "MountainCar-v0", "policy": {"name": "pump"}, "reaches": 3},
                {"env": "FrozenLake-v1", "policy": {"name": "random"}, "seeds": [8, 3, 5]},
            )
        ),
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
    table = goalreel.film(env, to=tmp_path / "film.mp4", **options).table
    assert (tmp_path / "film.mp4").read_bytes() == (results / "film.mp4").read_bytes()
    theirs = pd.read_csv(results / "episodes.csv")
    pd.testing.assert_frame_equal(table[theirs.columns], theirs)
    unit, ended = ("reach", "reached") if "reaches" in options else ("episode", "terminated")
    assert [*table][:5] == [unit, "return", "steps", "outcome", "seed"]
    assert table["outcome"].eq(ended).tolist() == theirs[ended].tolist()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["film.mp4"]


@pytest.mark.parametrize("policy", [balance, Model()], ids=["function", "model"])
def test_film_accepts_a_python_object(tmp_path, policy):
    made = gymnasium.make("CartPole-v1", max_episode_steps=40, render_mode="rgb_array")
    overlay = {"caption": "", "title_card": 0}
    options = {"episodes": 3, "to": tmp_path / "a.mp4", "seed": 5, "overlay": overlay}
    table = goalreel.film(lambda: made, policy, **options).table
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


def test_film_of_make_policy_keeps_a_state_per_episode(tmp_path):
    def make_policy(seed):
        """Push once to each side in turn, at first to that of the seed."""
        steps = itertools.count(seed)
        return lambda observation: next(steps) % 2

    film = goalreel.film("CartPole-v1", make_policy, seeds=[4, 7], to=tmp_path / "a.mp4")
    made = gymnasium.make("CartPole-v1")
    for seed, steps in zip(film.table["seed"], film.table["steps"], strict=True):
        made.reset(seed=seed)
        ended = [made.step((seed + step) % 2)[2] for step in range(steps)]
        assert ended == [False] * (steps - 1) + [True]


@pytest.mark.parametrize("suffix", ["gif", "webp"])
def test_film_as_an_animation_shows_the_frames_of_the_video(tmp_path, suffix):
    options = {"episodes": 2, "overlay": {"title_card": 0}}
    film = goalreel.film("Blackjack-v1", to=tmp_path / "a.mp4", **options)
    animation = goalreel.film("Blackjack-v1", to=tmp_path / f"a.{suffix}", **options)
    pd.testing.assert_frame_equal(animation.table, film.table)
    frames, shown = decoded_rgb(film.path), []
    with Image.open(animation.path) as image:
        for picture in ImageSequence.Iterator(image):
            picture.load()
            times = round(image.info["duration"] * 4 / 1000)  # a WebP joins equal frames
            shown += [np.asarray(picture.convert("RGB"), int)] * times
    assert len(shown) == len(frames) == film.table["frames"].sum()
    for frame, picture in zip(frames, shown, strict=True):
        assert np.abs(picture - frame).mean() < 2


def test_fast_film_as_a_gif_keeps_its_duration_in_browsers(tmp_path):
    """They show frames of less than 20 ms for 100 ms."""
    options = {"episodes": 1, "overlay": {"title_card": 0}, "film": {"fps": 240}}
    film = goalreel.film("CartPole-v1", to=tmp_path / "a.gif", **options)
    with Image.open(film.path) as image:
        durations = [frame.info["duration"] for frame in ImageSequence.Iterator(image)]
    assert min(durations) >= 20
    assert abs(sum(durations) / 1000 - film.table["frames"].sum() / 240) < 0.05


def test_notebook_embeds_a_small_film_and_links_a_large_one(tmp_path):
    film = goalreel.film("CartPole-v1", episodes=2, to=tmp_path / 'a "b" #1.mp4')
    assert film.episodes == 2
    html = film._repr_html_()
    content = re.search('<video controls [^>]*src="data:video/mp4;base64,([^"]*)"', html)[1]
    assert base64.b64decode(content) == film.path.read_bytes()
    assert all(f"<td>{seed}</td>" in html for seed in film.table["seed"])
    os.truncate(film.path, 20_000_000)
    (link,) = re.findall('src="([^"#]*)"', film._repr_html_())
    assert urllib.parse.unquote(link) == str(film.path)


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
    with pytest.raises(GoalreelError, match="to: '.avi' is not allowed. Use .mp4, .gif"):
        goalreel.film("CartPole-v1", to=tmp_path / "film.avi")
    with pytest.raises(GoalreelError, match="episods"):
        goalreel.film("CartPole-v1", to=to, episods=3)
    with pytest.raises(GoalreelError, match="^policy: The function raised ZeroDivisionError"):
        goalreel.film("CartPole-v1", lambda observation: 1 // 0, to=to)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "env",
    [
        "LunarLander-v3",
        pytest.param("CartPole-v1", marks=pytest.mark.slow),
        pytest.param("MountainCar-v0", marks=pytest.mark.slow),
    ],
)
def test_films_of_two_threads_are_those_of_two_calls_in_turn(tmp_path, env):
    def always(action, name):
        logs[name] = []
        options = {"episodes": 3, "shard_size": 2, "max_episode_steps": 40, "to": tmp_path / name}
        film = goalreel.film(env, lambda _: action, log=logs[name].append, **options)
        return film.table, (tmp_path / name).read_bytes()

    logs = {}
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(always, (0, 1), ("0.mp4", "1.mp4")))
    for number, (table, film) in enumerate(together):
        again, alone = always(number, f"alone{number}.mp4")
        pd.testing.assert_frame_equal(table, again)
        assert film == alone
        lines = [[line.split(" ")[0] for line in logs[f"{n}{number}.mp4"]] for n in ("", "alone")]
        stages = [[word for word in words if word.endswith(":")] for words in lines]
        assert stages[0] == stages[1], "a log has the lines of its own film"
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
    shown.clear()
    chosen = {"film": {"select": {"worst": 2}}, "episodes": 4}
    goalreel.film("Acrobot-v1", progress=bar, **options | chosen)
    assert shown[0] == (2, "episode") and sum(shown[1:-1]) == 2, "only episodes of the film count"
    assert capsys.readouterr() == ("", "")


def test_film_of_an_environment_and_wrapper_in_the_program(tmp_path):
    program = """
import gymnasium, goalreel
from gymnasium.envs.classic_control import CartPoleEnv
class Own(CartPoleEnv):
    pass
class Flip(gymnasium.Wrapper):
    pass
class Scaled(gymnasium.Wrapper):
    def __init__(self, env, factor):
        super().__init__(env)
gymnasium.register("Own-v0", Own, max_episode_steps=5)
made = goalreel.film(Flip(gymnasium.make("Own-v0")), episodes=2, to="a.mp4")
print(made.table["steps"].tolist())
try:
    goalreel.film(Scaled(gymnasium.make("Own-v0"), 3), episodes=2, to="b.mp4")
except goalreel.GoalreelError as error:
    print(error)
"""
    (tmp_path / "program.py").write_text(program)
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "scripts")}
    command = [sys.executable, "program.py"]
    kwargs = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    said = subprocess.run(command, check=True, **kwargs).stdout
    assert said.startswith("[5, 5]\nenv: The arguments of the wrapper Scaled are unknown.")


def test_function_films_the_episodes_that_select_chooses(tmp_path):
    given = {"episodes": 4, "film": {"select": {"worst": 2}}, "to": tmp_path / "a.mp4"}
    table = goalreel.film("CartPole-v1", balance, max_episode_steps=40, **given).table
    assert table["steps"].tolist() == [40, 40] and table["played"].tolist() == [4, 4]
