"""Any Gymnasium environment is played and filmed as Gymnasium itself plays and draws it."""

# ruff: noqa: D101, D102, D107 - the environments below are as short as they can be

import itertools
import json
import re
import subprocess
import sys

import av
import gymnasium
import gymnasium_frames
import numpy as np
import pandas as pd
import pytest
from conftest import CONTINUOUS, DISCRETE, LOSSLESS, decoded
from frames import film
from gymnasium import spaces
from PIL import Image
from project import REPOSITORY

import goalreel
from goalreel.encoding.yuv import Yuv420p
from goalreel.environments.environment import make_environment
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.errors import GoalreelError
from goalreel.films.segment import encode_segment
from goalreel.mp4.reader import read_index
from goalreel.policies.policy import make_policy
from goalreel.provenance.spec import NO_SPEC, canonical, parse_spec
from goalreel.rendering.frame_recorder import replayed
from goalreel.rendering.overlay import framed
from goalreel.simulation import episodes
from goalreel.simulation.episodes import Episode, simulate_episodes
from goalreel.simulation.reaches import simulate_reaches
from goalreel.simulation.trajectories import read_trajectories, write_trajectories
from goalreel.verification.replay import difference

RANDOM = {"name": "random"}
WRAPPERS = "gymnasium.wrappers"
ENVS = ["CartPole-v1", "Acrobot-v1", "Pendulum-v1"]


class Pictured(gymnasium.Env):
    """Walks to the right, and draws whatever `picture` gives."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space = spaces.Box(-1, 9, (1,), np.float64)
    action_space = spaces.Discrete(2, start=3)

    def __init__(self, render_mode=None, length=5):
        self.render_mode, self.length = render_mode, int(length)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.noise, self.at = self.np_random.random(), 0
        return self.obs(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.at += 1
        return self.obs(), self.reward(), self.at >= self.length, False, {}

    def reward(self):
        return self.noise

    def obs(self):
        return np.array([self.at + self.noise])

    def render(self):
        return self.picture()

    def picture(self):
        frame = np.full((31, 45, 3), 90, np.uint8)
        frame[20:, 4 * self.at :] = [250, 10, int(200 * self.noise)]
        frame[5:9, 40:] = 20 * self.at
        return frame


class Growing(Pictured):
    """Some episodes are wider, and a step of each is taller."""

    def picture(self):
        wide = super().picture()[:, : 33 + 12 * (self.noise > 0.3)]
        return np.concatenate([wide, wide[:19]]) if self.at == 3 else wide


class Restless(Pictured):
    """Draws a step a column wider whenever it plays."""

    drawn = itertools.count()

    def picture(self):
        return super().picture()[:, : 20 + (next(self.drawn) if self.at == 2 else 0)]


# What they draw instead, by their names.
FORMS = {
    "Floats": lambda frame: frame / 255,
    "Grey": lambda frame: frame[:, :, 0],
    "Channel": lambda frame: frame[:, :, 2:],
    "Clear": lambda frame: np.dstack([frame, frame[..., 2]]),
    "Nothing": lambda frame: None,
}
SPACES = {
    "Many": spaces.MultiDiscrete([[2, 3], [4, 5]]),
    "Bits": spaces.MultiBinary(3),
    "Square": spaces.Box(np.array([[-1, 0]], np.float32), np.array([[2, 9]], np.float32)),
    "Bytes": spaces.Box(0, 255, (2,), np.uint8),
    "Boundless": spaces.Box(-np.inf, np.inf, (1,)),
    "Worded": spaces.Text(3),
}


class Silent(Pictured):
    metadata = {"render_modes": ["ansi"]}


class Moody(Pictured):
    """Rewards from a generator that no seed sets."""

    def reward(self):
        return np.random.default_rng().random()


class Seedless(Pictured):
    """As Gym's environments were."""

    def reset(self):
        return super().reset()[0]


class Endless(Pictured):
    def __init__(self, render_mode=None):
        super().__init__(render_mode, 10**9)


class Told(Pictured):
    """Observations that are no array."""

    observation_space = spaces.Dict({"at": spaces.Discrete(9)})

    def obs(self):
        return {"at": self.at}


for made in (Pictured, *Pictured.__subclasses__()):
    gymnasium.register(f"Test{made.__name__}-v0", made)
for name, form in FORMS.items():
    drawing = {"picture": lambda self, form=form: form(Pictured.picture(self))}
    gymnasium.register(f"Test{name}-v0", type(name, (Pictured,), drawing))
for name, space in SPACES.items():
    gymnasium.register(f"Test{name}-v0", type(name, (Pictured,), {"action_space": space}))


def shard(env, reaches=range(3), success=-1e9, **changes):
    """Return a shard of a random policy and its environment."""
    config = {"env": env, **changes}
    environment = make_environment(config)
    spec = parse_spec(json.dumps({"config": config}))
    policy = make_policy(RANDOM)
    return environment, simulate_reaches(
        reaches, 7, environment, policy, 9, "reaches", spec, success
    )


def wrapped(wrapper) -> dict:
    return {"env_wrappers": [wrapper]}


def gymnasiums(made) -> list:
    """Return the frames of a shard's episodes as Gymnasium draws them."""
    seeds = made.episodes.seed.tolist()
    played = (
        gymnasium_frames.played(made.spec.config["env"], seed, made.episode(e)[1])
        for e, seed in enumerate(seeds)
    )
    return list(itertools.chain(*played))


@pytest.mark.parametrize("env", [*ENVS, "TestMany-v0", "TestBits-v0", "TestSquare-v0"])
def test_random_actions_are_drawn_as_documented(env):
    environment, made = shard(env)
    space = gymnasium.make(env).action_space
    first = 0
    for e in range(3):
        stream = np.random.SeedSequence(int(made.episodes.seed[e]), spawn_key=(1,))
        generator = np.random.Generator(np.random.PCG64(stream))
        for action in made.episode(e)[1]:
            assert space.contains(environment.actions.taken(action))
            generator.random()
            if isinstance(space, spaces.Discrete):
                expected = int(space.start) + int(space.n * generator.random())
            elif isinstance(space, spaces.Box):
                expected = [
                    np.float32(float(low) + generator.random() * (float(high) - float(low)))
                    for low, high in zip(space.low.flat, space.high.flat, strict=True)
                ]
            else:
                counts = getattr(space, "nvec", np.full(space.shape, 2))
                expected = [int(count * generator.random()) for count in counts.flat]
            assert np.array_equal(action, expected)
            first += 1
    assert first > 10


@pytest.mark.parametrize("env", [DISCRETE, CONTINUOUS])
def test_mountain_car_played_by_gymnasium_is_mountain_car_computed_here(env):
    """Both ways to play meet: the same actions, rewards, endings and observations."""
    seeds = np.arange(20) + 2**40
    config = {"env_kwargs": {"goal_velocity": 0.01}, "max_steps": 150}
    ours, theirs = (
        simulate_episodes(seeds, make_environment(config | {"env": name}), make_policy(RANDOM))
        for name in (env, f"gymnasium:{env}")
    )
    assert np.array_equal(ours.states.astype(np.float32), theirs.states)
    assert np.array_equal(ours.actions.reshape(-1), theirs.actions.reshape(-1))
    for name in ("rewards", "steps", "returns", "terminated", "truncated"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name))


def test_no_frame_and_no_number_depends_on_the_shard(monkeypatch, tmp_path):
    def made(name, reaches):
        return film(tmp_path / name, make_environment({"env": "CartPole-v1"}), reaches)

    whole, frames = made("whole.npz", range(7))
    monkeypatch.setattr(GymnasiumEnvironment, "max_envs", 3)
    monkeypatch.setattr(episodes, "_ROWS", 8)
    parts = [made(f"{i}.npz", range(i, min(i + 4, 7))) for i in (0, 4)]
    for name in ("states", "actions", "rewards"):
        joined = np.concatenate([getattr(part, name) for part, _ in parts])
        assert np.array_equal(joined, getattr(whole, name))
    pictures = itertools.chain(*(cache for _, cache in parts))
    assert all(np.array_equal(a, b) for a, b in zip(frames, pictures, strict=True))
    monkeypatch.undo()
    made("alike.npz", range(7))
    files = [(tmp_path / f"{name}.npz").read_bytes() for name in ("whole", "alike")]
    assert files[0] == files[1]


def test_frames_of_an_odd_size_are_exact_and_encoded_with_their_border_twice(tmp_path):
    spec = parse_spec(canonical({"config": {"env": "TestPictured-v0"}}))
    environment = make_environment(spec.config)
    made, cache = film(tmp_path / "f.npz", environment, spec=spec)
    expected = gymnasiums(made)
    assert len({frame.tobytes() for frame in expected}) == len(expected) > 10
    assert np.array_equal(cache[:], np.stack(expected)) and cache[0].shape == (31, 45, 3)
    shown, _ = framed(cache, 1, caption=False, hud=False)
    view = Yuv420p(shown)
    assert view.size == (46, 32)
    encode_segment(shown, tmp_path / "s.mp4", 30, LOSSLESS, "{}")
    for shown, obs, frame in zip(view.frames(), decoded(tmp_path / "s.mp4"), expected, strict=True):
        assert np.array_equal(obs, shown)
        even = np.pad(frame, ((0, 1), (0, 1), (0, 0)), "edge").astype(float)
        luma = even @ [0.2126, 0.7152, 0.0722] * 219 / 255 + 16
        assert np.abs(obs[:32] - luma).max() <= 0.51
        blocks = even.reshape(16, 2, 23, 2, 3).mean(axis=(1, 3))
        blue = blocks @ [-0.2126, -0.7152, 0.9278] / 1.8556 * 224 / 255 + 128
        assert np.abs(obs[32:40].reshape(16, 23) - blue).max() <= 0.51


@pytest.mark.parametrize(
    ("env", "parts"),
    [
        ("TestRestless-v0", ["step 2: Gymnasium draws another picture", "check=false"]),
        ("TestFloats-v0", ["returned float64 of shape (31, 45, 3)", "uint8"]),
        ("TestNothing-v0", ["returned NoneType"]),
        ("TestMoody-v0", ["step 1: Gymnasium gives the reward", "check=false"]),
    ],
)
def test_what_cannot_be_filmed_is_told_with_its_episode(env, parts, tmp_path):
    with pytest.raises(GoalreelError) as error:
        film(tmp_path / "f.npz", make_environment({"env": env}), range(6))
    assert not (tmp_path / "f.npz").exists()
    for part in [f"{env}: the episode of seed ", *parts]:
        assert part in str(error.value)


def in_rgb(picture, size) -> np.ndarray:
    """Return a picture as Pillow converts it, padded; size: width and height."""
    canvas = Image.new("RGB", size)
    canvas.paste(Image.fromarray(picture.squeeze()).convert("RGB"), (0, 0))
    return np.asarray(canvas)


@pytest.mark.parametrize("name", ["Grey", "Channel", "Clear", "Growing"])
def test_pictures_of_every_form_and_size_are_kept_in_rgb(name, tmp_path):
    config = {"env": f"Test{name}-v0"}
    spec = parse_spec(canonical({"config": config}))
    made, cache = film(tmp_path / "f.npz", make_environment(config), range(6), spec=spec)
    shown = gymnasiums(made)
    assert len({picture.shape for picture in shown}) == (4 if name == "Growing" else 1)
    size = (45, 50) if name == "Growing" else (45, 31)
    for frame, picture in zip(cache, shown, strict=True):
        assert np.array_equal(frame, in_rgb(picture, size))
    write_trajectories(tmp_path / "t.npz", made)
    assert difference(tmp_path / "t.npz", tmp_path / "f.npz") is None


@pytest.mark.parametrize(
    "encode",
    [{"qp": 0}, {"encoder": "assemble", "quality": "best"}],
    ids=["x264", "blocks"],
)
def test_film_pads_every_shard_to_the_largest_picture(encode, tmp_path):
    """Shards of one episode differ in width; text above and below would hide no picture."""
    seeds, path = [0, 1, 5, 3], tmp_path / "film.mp4"
    options = {"shard_size": 1, "render": {"scale": 1}, "overlay": {"title_card": 0, "caption": ""}}
    goalreel.film("TestGrowing-v0", seeds=seeds, to=path, encode=encode, **options)
    frames, widths, close = iter(decoded(path)), set(), 0.51 if "qp" in encode else 20
    peer = gymnasium.make("TestGrowing-v0", render_mode="rgb_array")
    for seed in seeds:
        peer.reset(seed=seed)
        for step in range(6):
            picture = peer.render()
            widths.add(picture.shape[1])
            even = np.pad(in_rgb(picture, (45, 50)), ((0, 0), (0, 1), (0, 0)), "edge")
            luma = even @ [0.2126, 0.7152, 0.0722] * 219 / 255 + 16
            assert np.abs(next(frames)[:50] - luma).max() <= close, (seed, step)
            peer.step(3)
    assert len(widths) == 2 and next(frames, None) is None
    assert parse_spec(read_index(path).comment).value["sizes"] == [[31, 33], [50, 45]]


def test_unseeded_environment_is_filmed_once_and_marked(tmp_path):
    with pytest.raises(GoalreelError, match="takes no seed, .* Film each once, .* check=false"):
        make_environment({"env": "TestSeedless-v0"}).make()
    path = tmp_path / "film.mp4"
    table = goalreel.film("TestSeedless-v0", episodes=3, to=path, check=False)
    assert table["reproducible"].tolist() == [False] * 3
    with av.open(str(path)) as container:
        assert container.metadata["title"] == "TestSeedless-v0: 3 episodes, not reproducible"


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("TestSilent-v0", {}, "its render modes are ansi, and a film needs 'rgb_array'"),
        ("TestBoundless-v0", {}, "'random' draws uniformly, but the actions have no bounds"),
        ("TestWorded-v0", {}, "its action space is Text"),
        ("TestNowhere-v0", {}, "unknown value 'TestNowhere-v0'"),
        ("TestEndless-v0", {}, "not ended after 50 steps; set max_steps"),
        ("TestPictured-v0", {"env_kwargs": {"length": "far"}}, "env_kwargs {'length': 'far'}"),
        ("CartPole-v1", wrapped({f"{WRAPPERS}:TimeLimit": {"max_episode_steps": -1}}), "be made: "),
        ("CartPole-v1", wrapped(f"{WRAPPERS}:Autoreset.__name__"), "has no callable"),
        ("CartPole-v1", wrapped("builtins:repr"), "returned '<.*which is no environment"),
    ],
)
def test_what_cannot_be_played_is_told(env, options, message, monkeypatch):
    monkeypatch.setattr(episodes, "_MOST_STEPS", 50)
    with pytest.raises(GoalreelError, match=message):
        shard(env, **options)


def test_time_limit_and_arguments_go_to_the_environment():
    assert shard("TestEndless-v0", max_steps=7)[1].episodes.steps.tolist() == [7] * 3
    assert shard("TestPictured-v0", env_kwargs={"length": 9})[1].episodes.steps.tolist() == [9] * 3


def test_a_wrapped_environment_is_played_drawn_and_replayed_as_gymnasium_wraps_it(tmp_path):
    """The last wrapper changes what `render` gives."""
    wrappers = [
        {"gymnasium.wrappers:RescaleObservation": {"min_obs": -1, "max_obs": 1}},
        "gymnasium.wrappers:TimeAwareObservation",
        {"gymnasium.wrappers:AddWhiteNoise": {"probability_of_noise_per_pixel": 0.001}},
    ]
    config = {"env": "Pendulum-v1", "max_steps": 30, "env_wrappers": wrappers}
    environment = make_environment(config)
    spec = parse_spec(canonical({"config": config}))
    made, cache = film(tmp_path / "f.npz", environment, range(2), spec=spec)
    env = gymnasium.make("Pendulum-v1", max_episode_steps=30, render_mode="rgb_array")
    env = gymnasium.wrappers.RescaleObservation(env, -1, 1)
    env = gymnasium.wrappers.TimeAwareObservation(env)
    env = gymnasium.wrappers.AddWhiteNoise(env, 0.001)
    for e, seed in enumerate(made.episodes.seed.tolist()):
        (states, actions, _), first = made.episode(e), int(made.offsets[e])
        seen, _ = env.reset(seed=seed)
        for t in range(len(states)):
            assert np.array_equal(seen, states[t]) and len(seen) == 4
            assert np.array_equal(cache[first + t], env.render())
            if t < len(actions):
                seen, *_ = env.step(actions[t])
    write_trajectories(tmp_path / "t.npz", made)
    assert difference(tmp_path / "t.npz", tmp_path / "f.npz") is None
    plain = make_environment(config | {"env_wrappers": []})
    with pytest.raises(GoalreelError, match="Gymnasium gives the observation"):
        list(replayed(plain, Episode(made.episodes.seed[0].item(), *made.episode(0), False, True)))


@pytest.mark.parametrize("env", ["TestTold-v0", "TestBytes-v0", "TestSquare-v0"])
def test_observations_and_actions_of_every_form_come_back_from_the_file(tmp_path, env):
    made = shard(env)[1]
    write_trajectories(tmp_path / "t.npz", made)
    back = read_trajectories(tmp_path / "t.npz")
    for name in ("states", "actions", "rewards"):
        assert getattr(back, name).dtype == getattr(made, name).dtype
        assert np.array_equal(getattr(back, name), getattr(made, name))
    assert back.states.shape == (18, 0 if env == "TestTold-v0" else 1)
    assert back.actions.shape == ((15,) if env == "TestTold-v0" else (15, 2))


def test_trajectories_without_observations_differ_by_their_seeds():
    """Frames are held against the digest, and two shards may have the same actions."""
    digests = {shard("TestTold-v0", range(i, i + 1))[1].digest() for i in range(20)}
    assert len(digests) == 20


@pytest.mark.parametrize("success", ["terminated", "truncated", 25])
def test_a_reach_is_what_success_says(success):
    config = {"env": "CartPole-v1", "max_steps": 20 if success == "truncated" else 500}
    environment, policy = make_environment(config), make_policy(RANDOM)
    made = simulate_reaches(range(8), 7, environment, policy, 99, "reaches", NO_SPEC, success)
    tried = made.attempts
    expected = tried.return_ >= 25 if success == 25 else getattr(tried, success)
    assert np.array_equal(tried.reached, expected)
    assert made.episodes.reached.all() and made.episodes.reach.tolist() == list(range(8))
    assert (len(tried.reach) > 8) == (success != "terminated")
    with pytest.raises(GoalreelError, match="0 of 2 reached .* success: 9000"):
        simulate_reaches(range(2), 7, environment, policy, 1, "reaches", NO_SPEC, 9000)


BALANCE = """
def act(observations):
    return (observations * [0.1, 0.5, 3.0, 1.0]).sum(axis=1) > 0
"""


def test_cartpole_is_filmed_by_the_workflow(project):
    """A policy of one's own balances the pole; a return is what counts, and a row is replayed."""
    (project.folder / "balance.py").write_text(BALANCE)
    config = {"env": "CartPole-v1", "success": 60, "max_steps": 60, "reaches": 3, "shard_size": 2}
    config["policy"] = "{name: file, file: balance.py}"
    said = project.run("-j", "2", config=config)
    assert "3 goal reaches in 3 episodes" in said
    results = project.folder / "results"
    table = pd.read_csv(results / "episodes.csv")
    assert table["reached"].all() and table["return"].tolist() == [60.0] * 3
    shown = decoded(results / "film.mp4")
    assert len(shown) == 3 * (25 + 61) and shown[0].shape == (648, 600)
    replay = [sys.executable, REPOSITORY / "scripts" / "replay.py", "2", "--gif", "a.gif"]
    told = subprocess.run(replay, cwd=project.folder, capture_output=True, text=True)
    assert "60 steps of CartPole-v1 equal Gymnasium's" in told.stderr
    (project.folder / "balance.py").write_text(BALANCE.replace("0.5", "0.6"))
    assert project.jobs(config=config)["simulate"] == 2
    said = project.fail(config=config | {"policy": "{name: file, file: lost.py}"})
    assert "policy.file: 'lost.py': cannot be read (No such file" in said


MODULE = (REPOSITORY / "examples" / "own_environment.py").read_text(encoding="utf-8")


def test_an_environment_of_ones_own_is_watched(project):
    (project.folder / "my_env.py").write_text(MODULE)
    config = {"env": "my_env:Catch-v0", "episodes": 2, "shard_size": 2}
    project.run("-j", "2", config=config)
    assert project.jobs(config=config) == {}
    (project.folder / "my_env.py").write_text(MODULE.replace("[24, 32, 48]", "[24, 32, 49]"))
    assert project.jobs(config=config)["simulate"] == 1


@pytest.mark.slow
def test_unchecked_film_of_many_sizes_is_marked_and_shown(project):
    """No seed decides its rewards; seeds decide when episodes end, and how wide a step is."""
    played = "np.random.default_rng().random(), self.np_random.random() < 0.3,"
    module = MODULE.replace("reward, bool(landed),", played)
    wide = "repeat(CELL, 1)[:, : 100 + 8 * self.np_random.integers(9)]"
    module = module.replace("repeat(CELL, 1)", wide)
    (project.folder / "my_env.py").write_text(module)
    config = {"env": "my_env:Catch-v0", "max_steps": 4, "reaches": 12, "shard_size": 2}
    assert "check=false" in project.fail(config=config)
    config["check"] = "false"
    said = project.run("-j", "2", "report", "stills", config=config)
    assert re.search(r"pictures of \d+x180 to (\d+x180) pixels, padded with black to \1", said), (
        said
    )
    results = project.folder / "results"
    for table in ("episodes.csv", "attempts.csv"):
        assert not pd.read_csv(results / table)["reproducible"].any()
    assert "<strong>Not reproducible</strong>" in (results / "report/index.html").read_text()
    assert "ok, not reproducible" in project.run("verify", config=config)
    said = project.fail("clips", config=config | {"clips": "{episode_trigger: failed}"})
    assert "an attempt was not filmed, and check=false plays none again" in said
    project.run("clips", config=config | {"clips": "{episode_trigger: {best: 1, by: steps}}"})
    replay = [sys.executable, REPOSITORY / "scripts" / "replay.py", "0", "--results", results]
    told = subprocess.run(replay, cwd=project.folder, capture_output=True, text=True)
    assert "not reproducible, since check=false plays nothing again" in told.stderr
    for cache in (results / "frames").iterdir():
        cache.unlink()
    (results / "film.mp4").unlink()
    assert "Type: rm -r results/segments" in project.fail(config=config)


@pytest.mark.parametrize("changed", ["mine.py", "my_env"])
def test_a_users_file_that_changes_during_a_run_is_noticed(tmp_path, changed):
    (tmp_path / "my_env.py").write_text(MODULE)
    (tmp_path / "mine.py").write_text("def act(obs):\n    return [1] * len(obs)\n")
    spec = {
        "stage": "simulate",
        "config": {"env": "my_env:Catch-v0", "seed": 1, "film.show": "attempts"},
        "shard": {"first": 0, "count": 1},
    }
    spec["config"] |= {"success": 0, "policy": {"name": "file", "file": "mine.py"}}
    spec["config"]["policy"]["function"] = "act"
    command = [sys.executable, REPOSITORY / "scripts" / "simulate.py"]
    command += ["--trajectories", "t.npz", "--spec"]
    for files, message in (({changed: "0" * 64}, f"{changed} has changed"), ({}, "")):
        text = json.dumps(spec | {"files": files})
        said = subprocess.run([*command, text], cwd=tmp_path, capture_output=True, text=True)
        assert (said.returncode, message in said.stderr) == (1 if message else 0, True)
