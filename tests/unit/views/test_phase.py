"""The phase plane shows each state at its place, from its step on."""

from collections import deque
from dataclasses import replace
from unittest.mock import patch

import gymnasium
import numpy as np
import pytest
from conftest import DISCRETE, simulated
from matplotlib.text import Text
from test_views import ENVS, NOISY, states_at, written

from goalreel.environments.environment import make_environment
from goalreel.errors import GoalreelError
from goalreel.policies.policy import make_policy
from goalreel.simulation.reaches import simulate_reaches
from goalreel.views import phase
from goalreel.views.phase import colors, phase_frames, read_trails


def pixel(state) -> np.ndarray:
    """Return the x, y of a state in a phase frame of 600x400.

    The plot's box is 72 to 582 across and 54 to 342 down, with 4% of each range free at both ends.
    """
    x = 72 + 510 * (state[..., 0] + 1.2 + 0.04 * 1.8) / (1.08 * 1.8)
    y = 342 - 288 * (state[..., 1] + 0.07 + 0.04 * 0.14) / (1.08 * 0.14)
    return np.stack([x, y], axis=-1)


def words(trails) -> set[str]:
    """Return the texts of all frames."""
    found, draw = set(), Text.draw

    def note(text, renderer):
        found.add(text.get_text())
        draw(text, renderer)

    with patch.object(Text, "draw", note):
        deque(phase_frames(trails), maxlen=0)
    return found


def inked(trails) -> np.ndarray:
    """Return the pixels that differ from an empty plot, (frames, 288, 510) bool."""
    nowhere = replace(trails, states=np.full_like(trails.states, 99))
    empty, *_ = phase_frames(nowhere)
    plots = (frame[54:342, 72:582].astype(int) for frame in phase_frames(trails))
    return np.array([np.abs(p - empty[54:342, 72:582]).max(axis=2) > 24 for p in plots])


def around(points: np.ndarray, radius: float) -> np.ndarray:
    """Return the plot's pixels near any of `points`, (n, 2)."""
    y, x = np.mgrid[54:342, 72:582] + 0.5
    return (np.hypot(x - points[:, :1, None], y - points[:, 1:, None]) < radius).any(axis=0)


@pytest.mark.parametrize("env", ENVS)
def test_phase_inks_states_from_their_step_and_marks_goal(env, tmp_path):
    trajectory = simulated(env, range(1))
    trails = read_trails(written(tmp_path, trajectory), env)
    ink = inked(trails)
    places = pixel(trajectory.states)
    assert len(ink) == len(places)
    checked = 0
    for step in range(2, len(places)):
        x, y = np.floor(places[step]).astype(int) - (72, 54)
        assert ink[step:, y, x].all(), step
        path = np.linspace(places[: step - 1], places[1:step], 50).reshape(-1, 2)
        if np.hypot(*(path - places[step]).T).min() > 5:
            assert not ink[:step, y, x].any(), step
            checked += 1
    assert checked > 20
    goal = gymnasium.make(env).unwrapped.goal_position
    x = int(pixel(np.array([goal, 0.0]))[0])
    *_, last = phase_frames(trails)
    near = np.abs(last[54:342, 73:581].astype(int) - (179, 66, 10)).max(axis=2) < 60
    marked = near.mean(axis=0)
    assert abs(int(marked.argmax()) + 73 - x) <= 1 and marked.max() > 0.5, "the goal's line"


def test_phase_lines_grow_and_dots_mark_the_states(tmp_path):
    shard = simulated(reaches=range(20), policy=NOISY)
    trails = read_trails(written(tmp_path, shard), DISCRETE)
    frames = inked(trails)
    for step in range(0, len(frames) - 1, 5):
        heads = pixel(np.array([*states_at(shard, step)]))
        assert not (frames[step] & ~around(heads, 6) & ~frames[step + 1]).any()
        assert frames[step][around(heads, 1.2)].all()
    assert frames[-1].sum() > 20 * frames[0].sum()


def test_phase_draws_and_labels_a_sample_of_trajectories(tmp_path, monkeypatch):
    monkeypatch.setattr(phase, "MAX_TRAILS", 4)
    shards = [simulated(reaches=range(i, i + 3)) for i in (0, 3, 6)]
    trails = read_trails(written(tmp_path, *shards), DISCRETE)
    whole = read_trails(written(tmp_path / "one", simulated(reaches=range(9))), DISCRETE)
    assert np.array_equal(trails.states, whole.states) and trails.total == whole.total == 9
    assert np.array_equal(trails.steps, whole.steps)
    chosen = [shards[i // 3].episode(i % 3)[0][0].tolist() for i in (0, 2, 4, 6)]
    assert trails.states[:, 0].tolist() == chosen
    assert "4 of 9 trajectories · step 0" in words(trails)
    few = read_trails(written(tmp_path, shards[0]), DISCRETE)
    low, high = few.steps.min(), few.steps.max()
    texts = {f"{low}", f"{high} steps to the goal", f"3 trajectories · step {high}", "goal"}
    assert low < high and texts <= words(few)


def test_colors_differ_in_lightness():
    lightness = colors(np.arange(90, 201)) @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(lightness) > 0).all() and np.ptp(lightness) > 100
    assert lightness.max() < 200, "seen on white"


@pytest.mark.parametrize(
    ("env", "columns", "reach"),
    [("CartPole-v1", [2, 3], (0.25, 3.5)), ("Pendulum-v1", [0, 1], (np.pi, 8))],
)
def test_phase_inks_angles_of_gymnasium_states(env, columns, reach, tmp_path):
    environment, policy = make_environment({"env": env}), make_policy({"name": "random"})
    made = simulate_reaches(range(2), 7, environment, policy, 1, success=None)
    trails = read_trails(written(tmp_path, made), env)
    ink, peer, turned = inked(trails), gymnasium.make(env), 0
    for episode in range(2):
        _, actions, _ = made.episode(episode)
        peer.reset(seed=int(made.episodes.seed[episode]))
        states = [peer.unwrapped.state[columns]]
        for action in actions:
            peer.step(environment.actions.to_gymnasium(action))
            states.append(peer.unwrapped.state[columns])
        angles, speeds = np.array(states).T
        inside = np.arctan2(np.sin(angles), np.cos(angles))  # from -pi to pi
        turned += (np.abs(np.diff(inside)) > np.pi).sum()
        assert np.allclose(
            trails.states[episode, : len(states)], np.stack([inside, speeds], axis=1)
        )
        x = np.floor(510 * (inside / reach[0] / 1.08 + 1) / 2).astype(int)
        y = np.floor(288 - 288 * (speeds / reach[1] / 1.08 + 1) / 2).astype(int)
        shown = (np.abs(inside) < 0.98 * reach[0]) & (np.abs(speeds) < 0.98 * reach[1])
        for step in np.flatnonzero(shown).tolist():
            near = ink[step:, max(y[step] - 1, 0) : y[step] + 2, x[step] - 1 : x[step] + 2]
            assert near.any(axis=(1, 2)).all(), step
    if env == "Pendulum-v1":
        assert turned and ink[-1].mean() < 0.1  # no line crosses the plane
    assert words(trails) >= {"angle", "angular velocity"}


def test_phase_rejects_unknown_states(tmp_path):
    paths = written(tmp_path, simulated(reaches=range(1)))
    with pytest.raises(GoalreelError, match=r"no phase plane of Froz.* Use MountainCar-v0, "):
        read_trails(paths, "FrozenLake-v1")
    wrapped = {"env": "Pendulum-v1", "env_wrappers": ["gymnasium.wrappers:FlattenObservation"]}
    environment = make_environment(wrapped | {"max_episode_steps": 3})
    policy = make_policy({"name": "random"})
    made = simulate_reaches(range(1), 7, environment, policy, 1, success=None)
    with pytest.raises(GoalreelError, match="Wrappers change the states"):
        read_trails(written(tmp_path, made), "Pendulum-v1")
