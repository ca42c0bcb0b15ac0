"""Gymnasium renders each frame once, and episodes do not depend on earlier ones."""

# ruff: noqa: D101 - minimal environments

import pydoc

import gymnasium
import numpy as np
import pytest
from frames import film
from gymnasium import spaces
from gymnasium_frames import played

from goalreel import cli
from goalreel.environments import gymnasium_env
from goalreel.environments.environment import make_environment
from goalreel.errors import GoalreelError
from goalreel.rendering import frame_recorder

CALLS = {"step": 0, "render": 0, "made": 0}


class Walk(gymnasium.Env):
    """Walks for eight steps. Half of the episodes terminate, by their seed."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space = spaces.Box(-1, 99, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, render_mode=None, share=0.5):
        self.render_mode, self.share, self.played = render_mode, share, 0
        CALLS["made"] += 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.colour, self.at = int(256 * self.np_random.random()), 0
        self.wins = self.np_random.random() < self.share
        self.played += 1
        return np.array([0.0]), {}

    def step(self, action):
        CALLS["step"] += 1
        self.at += 1
        over = self.at == 8
        return np.array([float(self.at)]), 1.0, over and self.wins, over and not self.wins, {}

    def render(self):
        CALLS["render"] += 1
        frame = np.full((32, 48, 3), self.colour, np.uint8)
        frame[:, : 4 * self.at] = 255 - self.colour
        return frame


class Leaking(Walk):
    """Renders a mark that grows from episode to episode."""

    def render(self):
        frame = super().render()
        frame[: self.played, :2] = 9
        return frame


class Remembering(Walk):
    """Rewards depend on earlier episodes."""

    def step(self, action):
        obs, _, *rest = super().step(action)
        return obs, float(self.played), *rest


class Moody(Walk):
    """Renders unseeded randomness, in the last frame only."""

    def render(self):
        frame = super().render()
        if self.at == 8:
            frame[5, 5] = np.random.default_rng().integers(0, 256, 3)
        return frame


class Stubborn(Walk):
    """Fails at its second reset."""

    def reset(self, *, seed=None, options=None):
        if self.played:
            raise RuntimeError("used up")
        return super().reset(seed=seed, options=options)


class Lives(gymnasium.Wrapper):
    """Ends some episodes early, and then does not reset the game, as games with lives."""

    over = True

    def reset(self, *, seed=None, options=None):
        if self.over:
            self.obs, _ = self.env.reset(seed=seed)
        return self.obs, {}

    def step(self, action):
        self.obs, reward, terminated, truncated, info = self.env.step(action)
        self.over = terminated or truncated
        is_lost = self.unwrapped.at == 4 and not self.unwrapped.wins
        return self.obs, reward, terminated or is_lost, truncated, info


for made in (Walk, *Walk.__subclasses__()):
    gymnasium.register(f"FrameRecorder{made.__name__}-v0", made)


@pytest.fixture(autouse=True)
def slow_to_make(monkeypatch):
    """Treat making an instance as slow, so that goalreel tries used ones."""
    monkeypatch.setattr(frame_recorder, "_SLOW_SHARE", -1)


def filmed(path, name, reaches=range(9), share=1.0, check=True, wrappers=()):
    """Return the environment, the trajectories, the frames and the calls."""
    CALLS.update(dict.fromkeys(CALLS, 0))
    config = {"env": f"FrameRecorder{name}-v0", "env_kwargs": {"share": share}}
    config |= {"check_determinism": check, "env_wrappers": wrappers}
    environment = make_environment(config)
    made, cache = film(path / "f.npz", environment, reaches, "terminated", attempts=99)
    return environment, made, cache, dict(CALLS)


def check(made, cache, name="Walk", share=1.0):
    """Compare every frame with that of a new instance."""
    frames = iter(cache)
    for e in range(len(made)):
        seed, actions = int(made.episodes.seed[e]), made.episode(e)[1]
        for picture in played(f"FrameRecorder{name}-v0", seed, actions, share=share):
            assert np.array_equal(picture, next(frames))
    assert next(frames, None) is None


def test_recorder_replays_only_the_first_episode(tmp_path):
    environment, made, cache, calls = filmed(tmp_path, "Walk")
    check(made, cache)
    assert calls["step"] == (9 + 1) * 8 and calls["render"] == (9 + 1) * 9
    assert environment.reusable
    assert calls["made"] <= environment.max_envs


@pytest.mark.parametrize("name", ["Leaking", "Remembering", "Stubborn"])
def test_environment_with_leaking_state_gets_new_instances(tmp_path, name):
    environment, made, cache, calls = filmed(tmp_path, name)
    assert environment.reusable is False and calls["made"] >= 9
    check(made, cache, name)


def test_used_instance_gets_new_wrappers(tmp_path, monkeypatch):
    wrappers = [f"{__name__}:Lives"]
    for is_known in (False, True):  # a wrapper of the user's may change the environment
        if is_known:
            monkeypatch.setattr(gymnasium_env, "_RENEWABLE", f"{__name__}:")
        path = tmp_path / f"{is_known}"
        path.mkdir()
        environment, made, _, calls = filmed(path, "Walk", range(40), 0.5, wrappers=wrappers)
        assert environment.reusable is is_known
        assert (calls["made"] <= environment.max_envs) is is_known
        assert set(made.episodes.steps.tolist()) == {4, 8}
        assert not any(made.episode(e)[0][0] for e in range(len(made)))  # each starts at the reset


def test_recorder_compares_all_steps_of_the_first_episode(tmp_path, monkeypatch):
    monkeypatch.setattr(frame_recorder, "_SLOW_SHARE", 1e9)
    environment, made, cache, calls = filmed(tmp_path, "Walk")
    check(made, cache)
    assert calls["step"] == 9 * 8 + 8
    # If instances are fast to make, each plays one episode.
    assert environment.reusable is False and calls["made"] == 9 + 1
    for reaches in (range(9), range(1)):
        (tmp_path / "f.npz").unlink(missing_ok=True)
        with pytest.raises(GoalreelError, match=r"seed \d+, step 8: Gymnasium renders a diff"):
            filmed(tmp_path, "Moody", reaches)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("env_id", "module"),
    [
        ("LunarLander-v3", "lunar_lander.LunarLander"),
        ("BipedalWalker-v3", "bipedal_walker.BipedalWalker"),
    ],
)
def test_replay_renders_one_frame_in_16(env_id, module, tmp_path, monkeypatch):
    """Also where rendering changes the next frame. goalreel draws the other frames itself."""
    rendered, path = [], f"gymnasium.envs.box2d.{module}.render"
    render = pydoc.locate(path)
    monkeypatch.setattr(path, lambda env: rendered.append(env) or render(env))
    monkeypatch.setattr(frame_recorder, "_SLOW_SHARE", 1e9)
    made, _ = film(tmp_path / "f.npz", make_environment({"env": env_id}), range(2))
    steps = len(made.episode(0)[1])
    every = min(-(-steps // 16), 16)
    assert steps > 32 and len(rendered) == steps // every + 1 + (steps % every > 0)


def test_recorder_logs_the_number_of_frames(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli.time, "monotonic", lambda: 2 * CALLS["render"])
    filmed(tmp_path, "Walk")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("0 episodes so far, ")
    assert lines[-1] == "8 episodes so far, 80 frames"


def test_unchecked_environment_is_played_and_rendered_once(tmp_path, monkeypatch):
    """This also holds if rendering failed attempts costs more than replaying the others."""
    monkeypatch.setattr(frame_recorder.time, "perf_counter", lambda: 100 * CALLS["render"])
    _, made, cache, calls = filmed(tmp_path, "Moody", share=0.3, check=False)
    attempts = len(made.attempts.reach)
    assert attempts > 20 and len(cache) == 9 * 9
    assert calls["step"] == 8 * attempts and calls["render"] == 9 * attempts


@pytest.mark.parametrize("slow", ["drawing", "stepping"])
def test_failed_attempts_render_only_if_cheaper_than_replay(tmp_path, monkeypatch, slow):
    """Time is measured in calls, which makes the test independent of the machine."""
    cost = {"drawing": (100, 1), "stepping": (1, 100)}[slow]
    clock = lambda: cost[0] * CALLS["render"] + cost[1] * CALLS["step"]  # noqa: E731
    monkeypatch.setattr(frame_recorder.time, "perf_counter", clock)
    _, made, cache, calls = filmed(tmp_path, "Walk", range(20), share=0.2)
    check(made, cache, share=0.2)
    attempts = len(made.attempts.reach)
    assert attempts > 60
    if slow == "drawing":
        assert calls["render"] < 9 * (20 + 10) and calls["step"] >= 8 * (attempts + 10)
    else:
        assert calls["step"] == 8 * (attempts + 1) and calls["render"] == 9 * (attempts + 1)
    bytes_made = (tmp_path / "f.npz").read_bytes()
    monkeypatch.setattr(frame_recorder.time, "perf_counter", lambda: 0.0)
    filmed(tmp_path, "Walk", range(20), share=0.2)
    assert (tmp_path / "f.npz").read_bytes() == bytes_made
