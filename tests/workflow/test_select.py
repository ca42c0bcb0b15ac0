"""A film of chosen episodes: all are played, and the chosen ones are as in a film of all."""

import json
from dataclasses import replace
from functools import partial

import av
import gymnasium
import numpy as np
import pandas as pd
import pytest
from gymnasium_frames import played as rendered
from message_form import rejection
from project import REPOSITORY

from goalreel import cli
from goalreel.environments.environment import make_environment
from goalreel.errors import GoalreelError
from goalreel.policies.policy import make_policy
from goalreel.provenance.spec import NO_SPEC
from goalreel.rendering.frame_cache import open_cache
from goalreel.rendering.frame_recorder import check_first_episode
from goalreel.simulation.played_episodes import PlayedEpisodes, play_episodes
from goalreel.simulation.reaches import simulate_attempts
from goalreel.simulation.trajectories import Attempts, read_trajectories
from goalreel.verification.replay import find_episode, replay
from goalreel.views.selection import choose_episodes, cluster
from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan
from goalreel.workflow.run import Run
from goalreel.workflow.stages import FILM

CART = {"env": "CartPole-v1", "episodes": 90, "shard_size": 2}
RANDOM_CAR = {"policy": {"name": "pump", "epsilon": 0.3}}
CAR = RANDOM_CAR | {"env": "MountainCar-v0", "episodes": 50, "film": {"select": {"rarest": 3}}}
LANDER = {"env": "LunarLander-v3", "episodes": 9, "film": {"select": [2, 8]}, "shard_size": 1}


def film(folder, stages=tuple(FILM), **options):
    """Make a film in this process, and return its table and the frames of its episodes."""
    plan = Plan(load_config(options | {"results": str(folder)}), REPOSITORY / "scripts")
    for stage in stages:
        for spec, paths in plan.jobs(stage):
            if stage == "report":  # it takes the first shard, except of signals
                for name, path in paths.items():
                    is_first = isinstance(path, list) and name != "signals"
                    paths[name] = path[0] if is_first else path
            cli.program(stage)(spec, **paths)
    caches = [open_cache(path) for path in sorted(folder.glob("frames/*.npz"))]
    frames = [
        cache[rows.start : rows.stop]
        for cache in caches
        for rows in map(cache.episode, range(len(cache.offsets) - 1))
    ]
    return pd.read_csv(folder / "episodes.csv"), frames


@pytest.mark.parametrize(
    "options",
    [
        CART | {"film": {"select": {"worst": 5}}},
        *(pytest.param(options, marks=pytest.mark.slow) for options in (LANDER, CAR)),
    ],
    ids=lambda options: options["env"],
)
def test_chosen_episodes_are_those_of_their_seeds(tmp_path, options):
    table, frames = film(tmp_path / "chosen", **options)
    seeds = table["seed"].tolist()
    others = {key: value for key, value in options.items() if key not in ("episodes", "film")}
    alone, expected = film(tmp_path / "alone", **others, seeds=seeds)
    same = ["seed", "steps", "return", "terminated", "truncated", "first_frame", "start_s"]
    pd.testing.assert_frame_equal(table[same], alone[same])
    assert len(frames) == len(expected) == len(table)
    assert all(map(np.array_equal, frames, expected))
    made = (tmp_path / "chosen").glob("trajectories/*.npz")
    actions = [m.episode(i)[1] for m in map(read_trajectories, sorted(made)) for i in range(len(m))]
    for seed, taken, shown in zip(seeds, actions, frames, strict=True):
        assert all(map(np.array_equal, rendered(options["env"], seed, taken), shown))
    number = int(table["episode"][1])
    config, name, episode = find_episode(tmp_path / "chosen", number, None)
    assert (name, episode.seed) == (f"episode {number}", seeds[1])
    assert all(map(np.array_equal, replay(config, name, episode), frames[1]))


def test_table_and_film_count_all_played_episodes(tmp_path):
    options = {**CART, "success": 20, "film": {"select": {"failed": 60}}, "report": {"embed": True}}
    table, _ = film(tmp_path, (*FILM, "plots", "report"), **options)
    everything = pd.read_csv(tmp_path / "played.csv")
    failed = everything[everything["return"] < 20]
    assert 0 < len(failed) < 60  # fewer than asked
    assert table["episode"].tolist() == failed["episode"].tolist()
    assert everything["filmed"].sum() == len(failed) and (table["played"] == 90).all()
    share = len(failed) / 90
    assert (table["share"] == share).all()
    assert ((table["share_low"] < share) & (share < table["share_high"])).all()
    with av.open(str(tmp_path / "film.mp4")) as video:
        assert video.metadata["title"] == f"CartPole-v1: {len(failed)} of 90 episodes"
        titles = [chapter["metadata"]["title"] for chapter in video.chapters()]
    assert titles[-1].startswith(f"Episode {failed['episode'].iloc[-1]} · seed ")
    page = (tmp_path / "report" / "index.html").read_text()
    assert f"{len(failed)} of 90 episodes" in page and f'"share":[{share},' in page
    mean = json.loads((tmp_path / "summary.json").read_text())["return"]["mean"]
    assert mean == pytest.approx(everything["return"].mean())
    with pytest.raises(GoalreelError, match=r"film.select.failed: None of 90 episodes failed\. "):
        film(tmp_path / "none", **options | {"success": 1})
    outside = everything[~everything["filmed"]]["episode"].iloc[0]
    with pytest.raises(GoalreelError, match=rf"Episode {outside} is not in the film\. "):
        find_episode(tmp_path, int(outside), None)


def catch(folder, name, columns):
    """Write examples/own_environment.py with this `info["columns"]`, and return its id."""
    module = (REPOSITORY / "examples" / "own_environment.py").read_text(encoding="utf-8")
    module = module.replace(
        "bool(landed), False, {}", f'bool(landed), False, {{"columns": {columns}}}'
    )
    (folder / f"{name}.py").write_text(module.replace("Catch-v0", f"{name}-v0"))
    return f"{name}:{name}-v0"


def test_numbers_of_info_are_in_all_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = catch(tmp_path, "counts", '{"caught": reward, "drift": self.drift}')
    options = {"env": env, "episodes": 6, "shard_size": 2}
    table, _ = film(tmp_path / "all", **options)
    chosen, _ = film(tmp_path / "some", **options, film={"select": [1, 4]})
    played = pd.read_csv(tmp_path / "some" / "played.csv")
    film(tmp_path / "reaches", env=env, reaches=2, success=1, shard_size=1)
    attempts = pd.read_csv(tmp_path / "reaches" / "attempts.csv")
    own = gymnasium.make(env).unwrapped
    for rows in (table, chosen, played, attempts):
        drifts = [own.reset(seed=int(seed)) and own.drift for seed in rows["seed"]]
        assert rows["caught"].tolist() == rows["return"].tolist()
        assert rows["drift"].tolist() == drifts
    assert len(set(table["drift"])) > 1 and {0, 1} == set(attempts["caught"])


def test_numbers_of_info_with_other_names_are_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = catch(tmp_path, "varies", '{"left": 1} if self.drift < 0 else {"right": 1}')
    with pytest.raises(GoalreelError, match=r"env: The last info\['columns'\] .* the same names"):
        film(tmp_path / "all", env=env, episodes=6, shard_size=6)
    with pytest.raises(GoalreelError, match=r"env: The last info.* in shard 0, .* the same names"):
        film(tmp_path / "shards", env=env, episodes=6, shard_size=1)
    for i, name in enumerate(("return", "outcome", "")):
        env = catch(tmp_path, f"takes{i}", f'{{"{name}": 9.0}}')
        with pytest.raises(GoalreelError, match=rf"'{name}' in info\['columns'\].* another name"):
            film(tmp_path / "taken", env=env, episodes=1)


def outcomes(returns, states=None, terminated=True) -> PlayedEpisodes:
    returns = np.asarray(returns, float)
    count, numbers = len(returns), np.arange(len(returns))
    ended = np.broadcast_to(terminated, count)
    columns = numbers, 0 * numbers, numbers, 0.0 * numbers, (10 - returns).astype(int), returns
    rows = Attempts(*columns, ended, ~ended, np.ones(count, bool), np.zeros(count, []))
    return PlayedEpisodes(rows, np.zeros((count, 0)) if states is None else np.array(states))


def test_returns_that_are_no_numbers_are_not_ranked():
    played = outcomes([5, 3])
    played = replace(played, rows=replace(played.rows, return_=np.array([5, np.nan])))
    with pytest.raises(
        GoalreelError, match=r"^env: .* seed 1 has the return NaN, and cannot be ranked\. Corr"
    ):
        choose_episodes({"worst": 1}, "terminated", played)


@pytest.mark.parametrize(
    ("select", "chosen", "alike"),
    [
        ({"worst": 2}, [1, 4], [1, 2]),
        ({"best": 2}, [2, 3], [1, 2]),
        ({"best": 1, "by": "steps"}, [2], [1]),
        ({"worst": 1, "by": "steps"}, [1], [1]),
        ({"median": 1}, [0], [3]),
        ({"every": 3}, [0, 3], [3, 4]),
        ([4, 0], [0, 4], [3, 2]),
        ({"failed": 9}, [0, 1, 4], [3, 3, 3]),
        ({"rarest": 2}, [1, 2], [1, 1]),
    ],
    ids=str,
)
def test_selection_counts_episodes_that_are_as_rare(select, chosen, alike):
    numbers, counts = choose_episodes(select, 5.0, outcomes([4, 0, 9, 8, 3]))
    assert (numbers.tolist(), counts.tolist()) == (chosen, alike)


def test_rarest_considers_the_ending():
    played = outcomes([1.0] * 9, terminated=[True] * 8 + [False])
    numbers, counts = choose_episodes({"rarest": 1}, 0, played)
    assert (numbers.tolist(), counts.tolist()) == ([8], [1])


def test_clusters_have_one_typical_episode_each():
    rng = np.random.default_rng(3)
    centers, sizes = np.array([[0.0, 0], [9, 0], [0, 9]]), (60, 30, 10)
    states = np.concatenate(
        [c + rng.normal(0, 0.3, (n, 2)) for c, n in zip(centers, sizes, strict=True)]
    )
    numbers, counts = choose_episodes({"clusters": 3}, 0, outcomes([1.0] * 100, states))
    assert sorted(counts.tolist()) == [10, 30, 60]
    for number, count in zip(numbers, counts, strict=True):
        own = np.abs(states - centers[sizes.index(count)]).max(axis=1) < 3
        assert own[number] and np.abs(states[number] - states[own].mean(axis=0)).max() < 0.3
    labels, typical = cluster(np.array([[1.0], [2], [1]]), 3)  # fewer different points
    assert len(typical) == 2 and labels[0] == labels[2] != labels[1]


@pytest.mark.parametrize(
    ("select", "count", "shards"),
    [
        ({"worst": 20}, 20, 2),
        ({"rarest": 200}, 100, 7),
        ({"every": 30}, 4, 1),
        ([5, 99], 2, 1),
        ({"failed": 20}, 20, 1),  # of which one may exist
        ({"clusters": 20}, 20, 1),
    ],
    ids=str,
)
def test_planned_shards_follow_from_the_selection(select, count, shards):
    config = {"env": "BipedalWalker-v3", "episodes": 100, "max_episode_steps": 9}
    config |= {"film": {"select": select}}
    run = Run(load_config(config))
    assert (run.count, run.shards(), run.shards("played_shard")) == (count, shards, 1)
    assert run.value("title_card")["count"] == 100
    seeds = Run(load_config(config | {"episodes": None, "seeds": "0-99"}))
    assert (seeds.count, seeds.played) == (count, 100)


CHOSEN = {"concat": 1, "episodes": 1, "encode": 2, "simulate": 2, "choose": 1}


@pytest.mark.parametrize(
    ("edit", "jobs"),
    [
        ({"film": {"select": {"best": 4}}}, CHOSEN),
        ({"film": {"select": {"worst": 3}}}, CHOSEN),
        ({"film": {"select": {"worst": 4}, "fps": 9}}, {"concat": 1, "episodes": 1, "encode": 2}),
        ({"success": 100}, CHOSEN),
        ({"seed": 3}, CHOSEN | {"play": 2}),
        ({"episodes": 160}, CHOSEN | {"play": 1}),  # another shard of 80
        ({"env": "CartPole-v0"}, CHOSEN | {"play": 2}),
    ],
    ids=str,
)
def test_edit_of_a_selection_plays_nothing_again(sources, edit, jobs):
    base = CART | {"episodes": 140, "film": {"select": {"worst": 4}}}
    assert sources.reruns(base, edit) == jobs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reaches": 9}, "film.select: Chooses episodes, but this run films goal reaches."),
        ({**CART, "check_determinism": False}, "film.select: The film plays chosen episodes again"),
        ({**CART, "film": {"select": [90]}}, "film.select: There is no episode 90. The last one"),
        ({**CART, "film": {"select": []}}, "film.select: '[]' is not allowed"),
        ({**CART, "film": {"select": {"worst": 0}}}, "film.select.worst: '0' is not allowed"),
        ({**CART, "film": {"select": {"wrst": 1}}}, "film.select.wrst: Unknown option. Did you"),
        ({**CART, "film": {"select": {"best": 1, "worst": 1}}}, "Use exactly one key besides"),
        ({**CART, "film": {"select": "failed"}}, "film.select: 'failed' is not allowed"),
    ],
    ids=str,
)
def test_bad_selections_are_rejected(options, message):
    assert message in rejection({"film": {"select": {"worst": 2}}} | options)


def test_a_chosen_episode_that_plays_differently_is_named():
    environment, policy = (
        make_environment({"env": "FrozenLake-v1"}),
        make_policy({"name": "random"}),
    )
    rows = play_episodes(range(3), 1, environment, policy).rows
    again = simulate_attempts(rows, environment, policy, NO_SPEC).attempts
    assert np.array_equal(again.return_, rows.return_) and np.array_equal(again.seed, rows.seed)
    changed = replace(rows, steps=rows.steps + [0, 1, 0])
    with pytest.raises(GoalreelError, match=f"replays seed {rows.seed[1]} differently. If the env"):
        simulate_attempts(changed, environment, policy, NO_SPEC)


class Particles(gymnasium.Env):
    """Steps differently if it renders."""

    observation_space = gymnasium.spaces.Box(0, 1)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), float(self.render_mode is None), True, False, {}

    def render(self):
        return np.zeros((16, 16, 3), np.uint8)


def test_play_rejects_steps_that_depend_on_rendering():
    gymnasium.register("Particles-v0", Particles)
    environment = make_environment({"env": "Particles-v0"})
    environment.render_mode = None
    players = environment, make_policy({"name": "random"})
    with pytest.raises(GoalreelError, match="gives a different reward in a replay"):
        play_episodes(range(3), 1, *players, check=partial(check_first_episode, environment))
