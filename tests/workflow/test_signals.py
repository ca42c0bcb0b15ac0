"""Films and reports show what a policy said of its choices, at the step of each choice."""

import base64

import gymnasium
import numpy as np
import pytest
from browser import all_of, one, screen, seeking, wait
from selenium.webdriver.common.keys import Keys
from test_select import film

from goalreel.errors import GoalreelError
from goalreel.films.scene import open_scene
from goalreel.rendering.frame_cache import open_cache
from goalreel.rendering.overlay import add_overlay
from goalreel.report.signal_curves import signal_curves
from goalreel.simulation.played_episodes import play_episodes
from goalreel.simulation.trajectories import read_trajectories
from goalreel.workflow.stages import FILM

LEAN = """
import numpy as np

def act(observations):
    lean = observations[:, 2] + 0.5 * observations[:, 3]
    right = 1 / (1 + np.exp(-8 * lean))
    return (lean > 0).astype(int), {"value": 1 - abs(lean), "probabilities": np.stack([1 - right, right], 1)}
"""
CART = {"env": "CartPole-v1", "shard_size": 2, "max_episode_steps": 60}


@pytest.fixture(scope="module")
def leaning(tmp_path_factory):
    """Return a folder with a film of four episodes, and the file of its policy."""
    folder = tmp_path_factory.mktemp("leaning")
    (folder / "lean.py").write_text(LEAN)
    policy = {"name": "python", "file": str(folder / "lean.py")}
    film(folder / "all", **CART, episodes=4, policy=policy, overlay={"signals": True})
    return folder, policy


def leans(seed: int, actions: np.ndarray) -> np.ndarray:
    """Return how far the pole leans before each action, by Gymnasium."""
    env = gymnasium.make("CartPole-v1")
    observation, found = env.reset(seed=seed)[0], []
    for action in actions.tolist():
        found.append(observation[2] + np.float32(0.5) * observation[3])
        observation = env.step(action)[0]
    return np.array(found)


def test_signals_are_those_of_gymnasiums_observations(leaning):
    for path in sorted(leaning[0].glob("all/trajectories/*.npz")):
        played = read_trajectories(path)
        for episode, seed in enumerate(played.episodes.seed.tolist()):
            lean, steps = leans(seed, played.episode(episode)[1]), played.steps(episode)
            np.testing.assert_allclose(played.signals["value"][steps], 1 - abs(lean), rtol=1e-6)
            right = played.signals["probabilities"][steps, 1]
            np.testing.assert_allclose(right, 1 / (1 + np.exp(-8 * lean)), rtol=1e-5)


def test_chosen_episodes_have_their_signals(leaning):
    folder, policy = leaning
    select = {"film": {"select": [1, 3]}, "episodes": 4, "policy": policy}
    film(folder / "some", **CART, **select)
    (path,) = (folder / "some").glob("trajectories/*.npz")
    everything = [read_trajectories(p) for p in sorted(folder.glob("all/trajectories/*.npz"))]
    for place, shard in enumerate(everything):  # episodes 0 and 1, then 2 and 3
        ours = read_trajectories(path)
        for name, array in shard.signals.items():
            chosen = ours.signals[name][ours.steps(place)]
            assert np.array_equal(chosen, array[shard.steps(1)])


def test_bars_and_marks_show_each_step(leaning):
    folder = leaning[0]
    played = read_trajectories(folder / "all/trajectories/00000.npz")
    images = open_cache(folder / "all/frames/00000.npz")
    cache = add_overlay(images, played, "CartPole-v1", None, False, signals=True)
    shown, last = cache[: len(cache.episode(0))], len(played.episode(0)[1]) - 1
    assert np.array_equal(shown[:, :400], images[: len(shown)])  # pictures stay as they are
    band, gray = shown[:, 400:].astype(int), shown[:, 400:, :, 0].astype(int)
    probabilities = played.signals["probabilities"][played.steps(0)]
    paper = band[0, -1, 0, 0]
    tall = 44  # rows of a bar of probability 1, at the bottom of the 60 rows below the picture
    heights = np.stack([(gray[:, 60 - tall : 60, x] != paper).sum(1) for x in (60, 150)], axis=1)
    for step in range(last + 1):
        expected = 2 + np.round(probabilities[step] * (tall - 2))
        assert abs(heights[step] - expected).max() <= 1
        bright = gray[step, 57, (60, 150)].argmax()
        assert bright == played.actions[step]
    marks = [np.flatnonzero((rows[30:-6] > 230).all(axis=0)) for rows in gray[:, :, 200:]]
    assert all(len(columns) == 2 for columns in marks)
    columns = np.array(marks)[:, 0]
    span = columns[last] - columns[0]
    assert span > 350 and abs(columns[last // 2] - columns[0] - span / 2) < span / last + 3
    assert columns[last + 1] == columns[last]  # the last state has no choice of its own


def test_curves_have_the_values_and_the_largest_drop(leaning):
    paths = sorted(leaning[0].glob("all/trajectories/*.npz"))
    curves = signal_curves(paths, 4)
    found = curves["of"]["value"]
    drawn = np.frombuffer(base64.b64decode(found["curves"]), np.uint8).reshape(4, -1)
    assert curves["of"].keys() == {"value"} and drawn.shape == (4, curves["points"])
    shards = [read_trajectories(path) for path in paths]
    values = [s.signals["value"][s.steps(i)] for s in shards for i in range(len(s))]
    for row, own in enumerate(values):
        low, high = found["low"][row], found["high"][row]
        at = np.round(np.linspace(0, len(own) - 1, drawn.shape[1])).astype(int)
        near = low + drawn[row] / 255 * (high - low)
        np.testing.assert_allclose(near, own[at], atol=(high - low) / 200)
        drop = curves["drop"][row]
        assert own[drop] - own[drop - 1] == np.diff(own).min()


@pytest.mark.slow
def test_page_seeks_the_step_of_the_curve(driver, leaning, tmp_path):
    config = {"policy": leaning[1], "overlay": {"signals": True, "title_card": 0}}
    config["report"] = {"embed": True}
    stages = (*FILM, "plots", "report")
    film(tmp_path, stages, **CART | config | {"shard_size": 4, "episodes": 4})
    (played,) = map(read_trajectories, tmp_path.glob("trajectories/*.npz"))
    values, first = played.signals["value"][played.steps(2)], played.offsets[2]
    screen(driver, 1280, 900)
    driver.get((tmp_path / "report/index.html").as_uri())
    wait(driver, "document.getElementById('film').readyState >= 1")
    seeking(driver, all_of(driver, "[role=option]")[2].click)
    assert one(driver, "#ranges").text.startswith(f"value {values.min():.4g} to {values.max():.4g}")
    assert one(driver, "#step").get_attribute("max") == str(len(values))
    seeking(driver, one(driver, "#drop").click)
    drop = int(np.diff(values).argmin()) + 1
    assert one(driver, "#step").get_attribute("value") == str(drop)
    shown = driver.execute_script("return document.getElementById('film').currentTime")
    assert int(shown * 50) == first + drop
    seeking(driver, lambda: one(driver, "#step").send_keys(Keys.ARROW_RIGHT))
    shown = driver.execute_script("return document.getElementById('film').currentTime")
    assert int(shown * 50) == first + drop + 1
    points = one(driver, "#curves polyline").get_attribute("points").split()
    heights = [float(point.split(",")[1]) for point in points]
    at = np.round(np.linspace(0, len(values) - 1, len(heights))).astype(int)
    assert np.corrcoef(heights, values[at])[0, 1] < -0.999
    assert driver.get_log("browser") == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("{'value': [1, 2, 3]}", "returned the signal 'value' as '[1, 2, 3]'. Return a number"),
        ("{'value': 'high'}", "returned the signal 'value' as 'high'. Return a number"),
        ("{'my value': observations[:, 0]}", "named a signal 'my value'. Use letters"),
        ("{'q': np.zeros((len(observations), 65))}", "at most 64 numbers, for each observation"),
    ],
)
def test_bad_signals_are_named(given, problem, tmp_path):
    text = f"import numpy as np\ndef act(observations):\n    return np.zeros(len(observations), int), {given}\n"
    (tmp_path / "agent.py").write_text(text)
    config = {
        "env": "CartPole-v1",
        "policy": {"name": "python", "file": str(tmp_path / "agent.py"), "function": "act"},
    }
    scene = open_scene(config)
    with pytest.raises(GoalreelError) as raised:
        play_episodes(range(2), 1, scene.env, scene.policy)
    assert problem in str(raised.value)


def test_film_without_signals_says_what_to_return(tmp_path):
    with pytest.raises(GoalreelError, match=r"^overlay.signals: The policy says nothing of its"):
        film(tmp_path, **CART, episodes=1, overlay={"signals": True})


def test_edit_of_the_overlay_simulates_nothing(sources, leaning):
    base = CART | {"episodes": 4, "policy": leaning[1]}
    assert sources.reruns(base, {"overlay": {"signals": True}}) == {"encode": 2, "concat": 1}
