"""The learning film shows and labels the attempts of each checkpoint, as Gymnasium renders them."""

import itertools
import json
from functools import partial

import av
import gymnasium
import numpy as np
import pandas as pd
import pytest
from assembling import packets_of
from conftest import DISCRETE, HARSH, LOSSLESS, decoded
from trained_policies import random_policy

from goalreel.encoding.yuv import Yuv420p
from goalreel.environments.environment import make_environment
from goalreel.environments.mountain_car import ENVIRONMENTS
from goalreel.environments.seeding import episode_seeds
from goalreel.policies.parameters import pixel_kwargs
from goalreel.policies.policy import RulePolicy, pump
from goalreel.provenance.spec import canonical, parse_spec
from goalreel.rendering.atlas import write_atlas
from goalreel.rendering.overlay import TRACK_ROWS
from goalreel.rendering.text import Canvas
from goalreel.views.learning_film import learning_film, read_learner, write_film
from training_progress import training_progress as stage

ATTEMPTS, CARD, SEED = 2, 3, 2025
CONFIG = {"env": DISCRETE, "seed": SEED, "success": "terminated", "unit": "reach"}
CONFIG |= {"learner": {"name": "trained"}, "train.attempts": ATTEMPTS, "film.fps": 30}
CONFIG |= {"overlay.title_card": 0.1, "overlay.hud": False, "view_encoder": LOSSLESS}
CONFIG |= {"render.scale": 1}
LABEL_HEIGHT = 35  # pixel rows without the car


def wait(observations, environment):
    return np.ones(len(observations), np.int8)


RULES = {1: wait, 60: pump}  # the first checkpoint fails, the second reaches the goal
LEARNER = {step: partial(RulePolicy, rule, 0.0) for step, rule in RULES.items()}


def spec_of(edit):
    return parse_spec(canonical({"stage": "training_progress", "config": CONFIG | edit}))


@pytest.fixture(scope="module")
def film(atlases):
    """Return the film of two attempts at each checkpoint."""
    with learning_film(LEARNER, atlases[DISCRETE], spec_of({})) as film:
        yield film


def rows_of(film):
    return film.table.to_dict("records")


def played(step, seed):
    """Yield Gymnasium's frames of an attempt, and then whether it reached the goal."""
    env = gymnasium.make(DISCRETE, render_mode="rgb_array")
    observation, over = env.reset(seed=seed)[0], False
    yield env.render()
    while not over:
        action = RULES[step](observation[None], ENVIRONMENTS[DISCRETE])[0]
        observation, _, terminated, truncated, _ = env.step(int(action))
        over = terminated or truncated
        yield env.render()
    env.close()
    yield terminated


def test_learning_film_shows_gymnasium_frames_below_labels(film, atlases):
    for number, row in enumerate(rows_of(film)):
        *pictures, reached = played(row["checkpoint_step"], row["seed"])
        start = film.cache.offsets[number]
        frames = film.cache[start : start + row["frames"]]
        assert len(frames) == len(pictures) == row["steps"] + 1
        assert reached == row["reached"] and row["return"] == -row["steps"]
        for frame, picture in zip(frames, pictures, strict=True):
            assert np.array_equal(frame[LABEL_HEIGHT:], picture[LABEL_HEIGHT:])
            assert np.array_equal(frame[:, 552:], picture[:, 552:]), "the flag is not covered"
        assert row["card_frames"] == len(film.cache.titles.episode(number)) == CARD
        assert (frames[:, :LABEL_HEIGHT, :552] == frames[0, :LABEL_HEIGHT, :552]).all(), "it stays"
    assert {row["reached"] for row in rows_of(film)} == {True, False}


def test_labels_and_chapters_match_the_table(film):
    (label,) = [layer for layer in film.cache.layers if layer.name == "caption"]
    canvas = Canvas(film.cache.background)
    starts = film.cache.offsets[:-1].tolist()
    for row, chapter, start in zip(rows_of(film), film.chapters, starts, strict=True):
        after = "1 decision" if row["checkpoint_step"] == 1 else "60 decisions"
        outcome = f"{row['steps']} steps · {'reached' if row['reached'] else 'failed'}"
        text = f"After {after} · attempt {row['attempt']} of {ATTEMPTS} · {outcome}"
        assert chapter.title == text
        shown = label.patches.take(label.index[[start]])
        assert np.array_equal(shown.pixels, TRACK_ROWS.caption(canvas, text).pixels)


def test_checkpoints_start_from_the_seeds_of_the_film(film):
    table = film.table
    assert table.checkpoint_step.tolist() == [1, 1, 60, 60]
    assert table.attempt.tolist() == [1, 2, 1, 2]
    seeds = episode_seeds(SEED, np.arange(ATTEMPTS), 0)
    assert table.seed.tolist() == [*seeds, *seeds]
    columns = "checkpoint_step attempt seed steps return reached first_frame frames card_frames"
    assert list(table) == columns.split()
    ends = (table.first_frame + table.frames).tolist()
    assert (table.first_frame - table.card_frames).tolist() == [0, *ends[:-1]]
    assert ends[-1] == len(film.cache) + len(film.cache.titles)


def test_file_holds_frames_keyframes_and_chapters(film, tmp_path):
    path = tmp_path / f"{HARSH}.mp4"
    write_film(path, film, HARSH, spec_of({}))
    assert [*tmp_path.iterdir()] == [path], "no temporary file is left"
    shown = iter(decoded(path))
    for number, part in itertools.product(
        range(len(film.chapters)), (film.cache.titles, film.cache)
    ):
        for frame in Yuv420p(part).frames(part.episode(number)):
            assert np.array_equal(next(shown), frame)
    starts = (film.cache.offsets + film.cache.titles.offsets)[:-1].tolist()
    with av.open(str(path)) as container:
        assert container.metadata["title"] == HARSH
        assert json.loads(container.metadata["comment"])["source"] == film.cache.source
        chapters = container.chapters()
    packets = packets_of(path)
    assert set(starts) <= {i for i, packet in enumerate(packets) if packet.is_keyframe}
    titles = [chapter["metadata"]["title"] for chapter in chapters]
    assert titles == [chapter.title for chapter in film.chapters]
    assert [chapter["start"] * chapter["time_base"] * 30 for chapter in chapters] == starts


EPISODES = {"env_wrappers": [], "max_episode_steps": 60, "success": None, "unit": "episode"}
EPISODES |= {"render.scale": None}
KWARGS = {"CartPole-v1": {"sutton_barto_reward": True}, "ALE/Freeway-v5": pixel_kwargs("ALE/")}


def lean(observations, environment):
    return (np.array(observations)[:, 2:].sum(axis=1) > 0).astype(np.int64)


def learner_of(env, folder):
    """Return the policies: functions in CartPole, networks with random weights in Freeway."""
    if env == "CartPole-v1":
        rules = {0: lambda obs, env: np.zeros(len(obs), np.int64), 2000: lean}
        made = {step: partial(RulePolicy, rule, 0.0) for step, rule in rules.items()}
        return {"name": "trained"}, made
    pytest.importorskip("ale_py")
    path = random_policy(folder / "policy.npz", env, 3, steps=(0, 2000, 9000))
    policy = {"name": "trained", "file": str(path), "checkpoint": 2000}
    return policy, read_learner(policy, None)


@pytest.mark.parametrize(
    ("env", "scale"),
    [("CartPole-v1", 1), pytest.param("ALE/Freeway-v5", 3, marks=pytest.mark.slow)],
)
def test_learning_film_of_gymnasium_env_has_frames_and_caption(env, scale, tmp_path):
    """The film uses the run's arguments, time limit and title cards."""
    policy, learner = learner_of(env, tmp_path)
    config = EPISODES | {"env": env, "env_kwargs": KWARGS[env], "learner": policy}
    environment = make_environment(config)
    with learning_film(learner, None, spec_of(config)) as film:
        parts = zip(rows_of(film), film.chapters, film.cache.offsets, strict=False)
        for row, chapter, start in parts:
            player = learner[row["checkpoint_step"]]()
            games = player.generators(np.array([row["seed"]]))
            instance = gymnasium.make(env, 60, render_mode="rgb_array", **KWARGS[env])
            obs, over, total = instance.reset(seed=row["seed"])[0], [False], 0.0
            pictures = [instance.render()]
            while not any(over):
                actions, games, _ = player.act([obs], environment, games)
                obs, reward, *over, _ = instance.step(int(actions[0]))
                total += float(reward)
                pictures.append(instance.render())
            instance.close()
            assert (row["steps"], row["return"]) == (len(pictures) - 1, total)
            assert [row["terminated"], row["truncated"]] == over
            frames = film.cache[start : start + row["frames"]]
            band = film.cache.layers[0].top
            enlarged = np.repeat(np.repeat(pictures, scale, axis=1), scale, axis=2)
            assert np.array_equal(frames[:, band:], enlarged)
            assert (frames[:, :band] == frames[0, :band]).all()
            after = f"After {row['checkpoint_step']:,} decisions · attempt {row['attempt']} of 2"
            assert chapter.title == f"{after} · return {total:g}"
    assert film.table.checkpoint_step.tolist() == [0, 0, 2000, 2000]


def test_stage_writes_the_same_bytes_each_time(tmp_path, atlases):
    random_policy(tmp_path / "policy.npz", DISCRETE, 3, inputs=2, steps=(500, 1000))
    write_atlas(tmp_path / "atlas.npz", atlases[DISCRETE])
    config = CONFIG | {"train.attempts": 1, "overlay.title_card": 0.4, "overlay.hud": True}
    config |= {"learner": {"name": "trained", "checkpoint": "last"}}
    spec = canonical({"stage": "training_progress", "config": config})
    made = []
    for number in range(2):
        paths = film, table = tmp_path / f"{number}.mp4", tmp_path / f"{number}.csv"
        files = ["--policy", tmp_path / "policy.npz", "--atlas", tmp_path / "atlas.npz"]
        files += ["--film", film, "--table", table, "--sums", tmp_path / "training_progress.sha256"]
        stage.main([*map(str, files), "--spec", spec])
        made.append([path.read_bytes() for path in paths])
    assert made[0] == made[1]
    table = pd.read_csv(tmp_path / "0.csv")
    assert table.card_frames.tolist() == [12, 12] and table.first_frame[0] == 12
    assert len(decoded(tmp_path / "0.mp4")) == (table.frames + table.card_frames).sum()
    with av.open(str(tmp_path / "0.mp4")) as container:
        assert json.loads(container.metadata["comment"])["config"] == config
