"""Frames that MuJoCo draws of the poses in a trajectory file are those of env.render()."""

import gymnasium
import numpy as np
import pytest

from goalreel.environments.environment import make_environment
from goalreel.films.render import render_poses
from goalreel.policies.policy import make_policy
from goalreel.provenance.spec import NO_SPEC
from goalreel.rendering.frame_cache import open_cache
from goalreel.simulation.reaches import simulate_reaches
from goalreel.simulation.trajectories import read_trajectories, write_trajectories

pytest.importorskip("mujoco")
pytestmark = pytest.mark.usefixtures("opengl")
# With Euler's and with Runge-Kutta steps, with cameras that follow a robot and without.
MORE = ["Ant-v5", "Hopper-v5", "Humanoid-v5", "HumanoidStandup-v5", "InvertedDoublePendulum-v5"]
MORE += ["InvertedPendulum-v5", "Pusher-v5", "Reacher-v5", "Swimmer-v5", "Walker2d-v5"]


@pytest.mark.parametrize(
    ("env", "view"),
    [
        ("HalfCheetah-v5", {"camera": "track", "width": 200, "height": 120}),
        *(pytest.param(env, {"width": 480}, marks=pytest.mark.slow) for env in MORE),
    ],
    ids=str,
)
def test_frames_of_poses_are_those_of_env_render(tmp_path, env, view):
    config = {"env": env, "max_episode_steps": 5}
    scene = make_environment(config), make_policy({"name": "random"})
    write_trajectories(
        tmp_path / "played.npz", simulate_reaches(range(3), 0, *scene, 1, success=None)
    )
    played = read_trajectories(tmp_path / "played.npz")
    drawing = {f"render.{key}": value for key, value in view.items()}
    assert render_poses(tmp_path / "frames.npz", played, config | drawing, NO_SPEC) == 18
    cache = open_cache(tmp_path / "frames.npz")
    names = {"camera": "camera_name"}
    kwargs = {names.get(key, key): value for key, value in view.items()}
    for episode, seed in enumerate(played.episodes.seed.tolist()):
        peer = gymnasium.make(env, render_mode="rgb_array", max_episode_steps=5, **kwargs)
        peer.reset(seed=seed)
        frames, (_, actions, _) = cache.episode(episode), played.episode(episode)
        assert np.array_equal(cache[frames[0]], peer.render())
        for step, action in enumerate(actions, 1):
            peer.step(action)
            assert np.array_equal(cache[frames[step]], peer.render()), (env, seed, step)
        peer.close()
