"""Frames of CartPole, Acrobot and Pendulum equal Gymnasium's, pixel for pixel."""

import gymnasium
import numpy as np
import pytest
from frames import film, groups_of

from goalreel.environments.environment import make_environment
from goalreel.errors import GoalreelError
from goalreel.rendering import classic_control_scene
from goalreel.rendering.classic_control_scene import ClassicControlScene
from goalreel.simulation.episodes import Episode

IDS = ["CartPole-v0", "CartPole-v1", "Acrobot-v1", "Pendulum-v1"]


def check(
    scene: ClassicControlScene, pictures: list[np.ndarray], states: list, actions: list
) -> None:
    """Check that an episode's groups hold Gymnasium's frames."""
    episode = Episode(0, np.array(states), np.array(actions), np.zeros(len(actions)), True, False)
    for group, other in zip(groups_of(scene.frames(episode)), groups_of(pictures), strict=True):
        assert group.count == other.count and np.array_equal(group.changes, other.changes)
        assert np.array_equal(group.blocks, other.blocks)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", IDS)
def test_frames_equal_gymnasium_from_reset_to_end(name, monkeypatch):
    # Plans leave the cache and are drawn again.
    monkeypatch.setattr(classic_control_scene, "_MAX_PLANS", 40)
    env = gymnasium.make(name, render_mode="rgb_array")
    scene = ClassicControlScene(make_environment({"env": name}))
    for seed in range(3):
        env.action_space.seed(seed)
        env.reset(seed=seed)
        # One direction, then random actions: carts leave by either side, and pendulums turn over.
        pushed = [env.action_space.sample(), 0, env.action_space.sample()][seed % 3]
        states, actions, pictures = [np.array(env.unwrapped.state, float)], [], [env.render()]
        over = False
        while not over and len(actions) < 150:
            other = seed % 2 or name == "Pendulum-v1"
            actions.append(env.action_space.sample() if other else pushed)
            *_, terminated, truncated, _ = env.step(actions[-1])
            states.append(np.array(env.unwrapped.state, float))
            pictures.append(env.render())
            over = terminated or truncated
        check(scene, pictures, states, actions)
    env.close()


@pytest.mark.parametrize("name", IDS[1:])
def test_any_state_renders_as_in_gymnasium(name):
    """The states are beyond normal play: at the borders, turned over, at full speed."""
    env, rng = gymnasium.make(name, render_mode="rgb_array"), np.random.default_rng(5)
    env.reset(seed=1)
    torques = np.array([0.0, -2.0, 2.0, *rng.uniform(-2, 2, 146)], np.float32)
    states = rng.uniform(-4, 4, (150, 4)) * [0.7, 1, 1, 1]
    states = np.float32(states).astype(float) if name == "Acrobot-v1" else states
    states = states[:, :2] if name == "Pendulum-v1" else states
    pictures = []
    for state, torque in zip(states, [None, *torques], strict=True):
        env.unwrapped.state = (
            state.astype(np.float32) if name == "Acrobot-v1" and torque is None else state
        )
        env.unwrapped.last_u = torque
        pictures.append(env.render())
    actions = list(torques.reshape(-1, 1)) if name == "Pendulum-v1" else [0] * 149
    check(ClassicControlScene(make_environment({"env": name})), pictures, list(states), actions)
    env.close()


def test_frame_that_differs_from_gymnasium_raises(tmp_path, monkeypatch):
    plan, paint, size = classic_control_scene._SCENES["CartPole-v1"]

    def paler(kept, drawn):
        points = paint(kept, drawn)
        kept.surface.fill((250, 250, 250), (10, 10, 2, 2))
        return [*points, (10, 10), (12, 12)]

    monkeypatch.setitem(classic_control_scene._SCENES, "CartPole-v1", (plan, paler, size))
    with pytest.raises(GoalreelError, match="step 0: Gymnasium renders a different frame"):
        film(tmp_path / "c.npz", make_environment({"env": "CartPole-v1"}), range(2))
