"""Films of any environment hold the steps and frames of plain Gymnasium."""

# ruff: noqa: D101 - minimal environments

import itertools
import json

import av
import gymnasium
import gymnasium_frames
import numpy as np
import pytest
from conftest import decoded
from frames import film
from gymnasium import spaces
from PIL import Image

import goalreel
from goalreel.environments.environment import make_environment
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.errors import GoalreelError
from goalreel.mp4.reader import read_index
from goalreel.policies.policy import make_policy
from goalreel.provenance.spec import NO_SPEC, canonical, parse_spec
from goalreel.rendering.frame_recorder import replay_frames
from goalreel.simulation import episodes
from goalreel.simulation.episodes import Episode
from goalreel.simulation.reaches import simulate_reaches
from goalreel.simulation.trajectories import read_trajectories, write_trajectories
from goalreel.verification.replay import difference

RANDOM = {"name": "random"}
WRAPPERS = "gymnasium.wrappers"


class Pictured(gymnasium.Env):
    """Walks to the right, and renders the result of `picture`."""

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
    """Renders a frame that is a column wider with each use."""

    drawn = itertools.count()

    def picture(self):
        return super().picture()[:, : 20 + (next(self.drawn) if self.at == 2 else 0)]


# The frames that they render instead, by name.
FORMS = {
    "Grey": lambda frame: frame[:, :, 0],
    "Channel": lambda frame: frame[:, :, 2:],
    "Clear": lambda frame: np.dstack([frame, frame[..., 2]]),
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
    """Has the interface of old Gym."""

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
    return environment, simulate_reaches(reaches, 7, environment, policy, 9, False, spec, success)


def wrapped(wrapper) -> dict:
    return {"env_wrappers": [wrapper]}


def gymnasiums(made) -> list:
    """Return the frames of a shard's episodes as Gymnasium draws them."""
    env, frames = made.spec.config["env"], []
    for e, seed in enumerate(made.episodes.seed.tolist()):
        frames += gymnasium_frames.played(env, seed, made.episode(e)[1])
    return frames


@pytest.mark.parametrize("env", ["CartPole-v1", "TestMany-v0", "TestBits-v0", "TestSquare-v0"])
def test_random_actions_are_drawn_as_documented(env):
    environment, made = shard(env)
    space = gymnasium.make(env).action_space
    if isinstance(space, spaces.Box):
        low, count = space.low.astype(float), space.high.astype(float) - space.low
    else:
        count = getattr(space, "nvec", 2 if env == "TestBits-v0" else getattr(space, "n", None))
        low = getattr(space, "start", 0)
    low, count = (np.broadcast_to(part, space.shape).ravel() for part in (low, count))
    for e in range(3):
        stream = np.random.SeedSequence(int(made.episodes.seed[e]), spawn_key=(1,))
        generator = np.random.Generator(np.random.PCG64(stream))
        for action in made.episode(e)[1]:
            assert space.contains(environment.actions.to_gymnasium(action))
            generator.random()
            drawn = [generator.random() * number for number in count]
            drawn = drawn if isinstance(space, spaces.Box) else np.floor(drawn)
            assert np.array_equal(np.ravel(action), (low + drawn).astype(action.dtype))


def test_frames_and_numbers_do_not_depend_on_the_shard(monkeypatch, tmp_path):
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


@pytest.mark.parametrize(
    ("env", "parts"),
    [
        ("TestRestless-v0", ["step 2: Gymnasium renders a different", "check_determinism=false"]),
        ("TestMoody-v0", ["step 1: Gymnasium gives a different reward", "check_determinism=false"]),
    ],
)
def test_unfilmable_episode_is_named(env, parts, tmp_path):
    with pytest.raises(GoalreelError) as error:
        film(tmp_path / "f.npz", make_environment({"env": env}), range(6))
    assert not (tmp_path / "f.npz").exists()
    for part in [f"{env}: seed ", *parts]:
        assert part in str(error.value)


def in_rgb(picture, size) -> np.ndarray:
    """Return a frame as Pillow converts it, padded to (width, height)."""
    canvas = Image.new("RGB", size)
    canvas.paste(Image.fromarray(picture.squeeze()).convert("RGB"), (0, 0))
    return np.asarray(canvas)


@pytest.mark.parametrize("name", ["Grey", "Channel", "Clear", "Growing"])
def test_frames_of_any_mode_and_size_become_rgb(name, tmp_path):
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
    "encode", [{"qp": 0}, {"encoder": "prebuilt", "quality": "best"}], ids=["x264", "blocks"]
)
def test_film_pads_every_shard_to_the_largest_picture(encode, tmp_path):
    """Shards of one episode differ in width, and text above and below hides no part of a frame."""
    seeds, path = [0, 1, 5, 3], tmp_path / "film.mp4"
    options = {"shard_size": 1, "render": {"scale": 1}, "overlay": {"title_card": 0, "caption": ""}}
    goalreel.film("TestGrowing-v0", seeds=seeds, to=path, encode=encode, **options)
    frames, widths, close = iter(decoded(path)), set(), 0.51 if "qp" in encode else 20
    for seed in seeds:
        for step, picture in enumerate(gymnasium_frames.played("TestGrowing-v0", seed, [3] * 5)):
            widths.add(picture.shape[1])
            even = np.pad(in_rgb(picture, (45, 50)), ((0, 0), (0, 1), (0, 0)), "edge")
            luma = even @ [0.2126, 0.7152, 0.0722] * 219 / 255 + 16
            assert np.abs(next(frames)[:50] - luma).max() <= close, (seed, step)
    assert len(widths) == 2 and next(frames, None) is None
    assert parse_spec(read_index(path).comment).value["sizes"] == [[31, 33], [50, 45]]


def test_unseeded_environment_is_filmed_once_and_marked(tmp_path):
    with pytest.raises(GoalreelError, match="takes no seed, .* check_determinism=false"):
        make_environment({"env": "TestSeedless-v0"}).make()
    path = tmp_path / "film.mp4"
    made = goalreel.film("TestSeedless-v0", episodes=3, to=path, check_determinism=False)
    table = made.table
    assert table["reproducible"].tolist() == [False] * 3
    with av.open(str(path)) as container:
        assert container.metadata["title"] == "TestSeedless-v0: 3 episodes, not reproducible"


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("TestSilent-v0", {}, "has the render modes ansi. A film needs 'rgb_array'"),
        ("TestBoundless-v0", {}, "'random' needs actions with bounds"),
        ("TestWorded-v0", {}, "has the action space Text"),
        ("TestNowhere-v0", {}, "Unknown id 'TestNowhere-v0'"),
        ("TestEndless-v0", {}, "not ended after 50 steps. Set max_episode_steps"),
        ("TestPictured-v0", {"env_kwargs": {"length": "far"}}, "env_kwargs {'length': 'far'}"),
        ("CartPole-v1", wrapped({f"{WRAPPERS}:TimeLimit": {"max_episode_steps": 0}}), "cannot be"),
        ("CartPole-v1", wrapped(f"{WRAPPERS}:Autoreset.__name__"), "No callable"),
        ("CartPole-v1", wrapped("builtins:repr"), "does not return an environment"),
    ],
)
def test_unplayable_environment_is_named(env, options, message, monkeypatch):
    monkeypatch.setattr(episodes, "_MAX_STEPS", 50)
    with pytest.raises(GoalreelError, match=message):
        shard(env, **options)


def test_time_limit_and_arguments_go_to_the_environment():
    assert shard("TestEndless-v0", max_episode_steps=7)[1].episodes.steps.tolist() == [7] * 3
    assert shard("TestPictured-v0", env_kwargs={"length": 9})[1].episodes.steps.tolist() == [9] * 3


def test_wrapped_environment_runs_as_in_gymnasium(tmp_path):
    """The last wrapper changes the frames of `render`."""
    wrappers = [
        {"gymnasium.wrappers:RescaleObservation": {"min_obs": -1, "max_obs": 1}},
        "gymnasium.wrappers:TimeAwareObservation",
        {"gymnasium.wrappers:AddWhiteNoise": {"probability_of_noise_per_pixel": 0.001}},
    ]
    config = {"env": "Pendulum-v1", "max_episode_steps": 30, "env_wrappers": wrappers}
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
    with pytest.raises(GoalreelError, match="Gymnasium gives a different observation"):
        first = Episode(made.episodes.seed[0].item(), *made.episode(0), False, True)
        list(replay_frames(plain, first))


@pytest.mark.parametrize("env", ["TestTold-v0", "TestBytes-v0", "TestSquare-v0"])
def test_observations_and_actions_of_any_space_round_trip(tmp_path, env):
    made = shard(env)[1]
    write_trajectories(tmp_path / "t.npz", made)
    back = read_trajectories(tmp_path / "t.npz")
    for name in ("states", "actions", "rewards"):
        assert getattr(back, name).dtype == getattr(made, name).dtype
        assert np.array_equal(getattr(back, name), getattr(made, name))
    assert back.states.shape == (18, 0 if env == "TestTold-v0" else 1)
    assert back.actions.shape == ((15,) if env == "TestTold-v0" else (15, 2))


def test_trajectories_without_observations_differ_by_their_seeds():
    """Frames carry a digest of the episodes, and two shards may have the same actions."""
    digests = {shard("TestTold-v0", range(i, i + 1))[1].digest() for i in range(20)}
    assert len(digests) == 20


@pytest.mark.parametrize("success", ["terminated", "truncated", 25])
def test_success_defines_a_reach(success):
    config = {"env": "CartPole-v1", "max_episode_steps": 20 if success == "truncated" else 500}
    environment, policy = make_environment(config), make_policy(RANDOM)
    made = simulate_reaches(range(8), 7, environment, policy, 99, False, NO_SPEC, success)
    tried = made.attempts
    expected = tried.return_ >= 25 if success == 25 else getattr(tried, success)
    assert np.array_equal(tried.reached, expected)
    assert made.episodes.reached.all() and made.episodes.reach.tolist() == list(range(8))
    assert (len(tried.reach) > 8) == (success != "terminated")
    with pytest.raises(GoalreelError, match="failed in all 1 attempts.* success=9000"):
        simulate_reaches(range(2), 7, environment, policy, 1, False, NO_SPEC, 9000)
