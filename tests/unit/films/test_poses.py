"""Frames that MuJoCo draws of the poses in a trajectory file are those of env.render()."""

from functools import partial
from pathlib import Path

import gymnasium
import gymnasium_frames
import numpy as np
import pytest

from goalreel.environments.drawing.mujoco_scene import MujocoScene
from goalreel.environments.environment import make_environment
from goalreel.films.render import render_poses
from goalreel.films.scene import Scene
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
        actions = played.episode(episode)[1]
        expected = gymnasium_frames.played(env, seed, actions, max_episode_steps=5, **kwargs)
        for frame, picture in zip(cache.episode(episode), expected, strict=True):
            assert np.array_equal(cache[frame], picture), (env, seed, frame)


def test_rays_of_a_rangefinder_are_drawn(tmp_path):
    assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    model = (assets / "reacher.xml").read_text(encoding="utf-8")
    ray = '<site name="eye" pos="0 0 0.2" euler="2 0 0"/>\n</worldbody>'
    ray += '<sensor><rangefinder site="eye"/></sensor>'
    path = tmp_path / "seeing.xml"
    path.write_text(model.replace("</worldbody>", ray), encoding="utf-8")
    config = {"env": "Reacher-v5", "env_kwargs": {"xml_file": str(path)}, "max_episode_steps": 2}
    scene = make_environment(config), make_policy({"name": "random"})
    played = simulate_reaches(range(1), 0, *scene, 1, success=None)
    render_poses(tmp_path / "frames.npz", played, config, NO_SPEC)
    seed, actions = int(played.episodes.seed[0]), played.actions
    expected = [*gymnasium_frames.played("Reacher-v5", seed, actions, xml_file=str(path))]
    frames = list(open_cache(tmp_path / "frames.npz"))
    assert all(map(np.array_equal, frames, expected)) and len(frames) == len(expected)
    assert not np.array_equal(*frames[:2])


@pytest.mark.parametrize("stage", [pytest.param("simulate", marks=pytest.mark.slow), "render"])
def test_shard_whose_later_frames_differ_is_rendered_again(tmp_path, monkeypatch, capfd, stage):
    config, files = {"env": "Reacher-v5", "max_episode_steps": 20}, []
    drawn = MujocoScene._render
    for name in ("exact", "again"):
        scene = Scene(make_environment(config), make_policy({"name": "random"}))
        play = partial(
            *(simulate_reaches, range(2), 0, scene.env, scene.policy, 1),
            **{"success": None, "show_failures": True},
        )
        files.append(tmp_path / f"{name}.npz")
        if stage == "simulate":
            scene.film(files[-1], lambda recorder, play=play: play(recorder=recorder), NO_SPEC)
        else:
            render_poses(files[-1], play(), config, NO_SPEC)
        assert ("Gymnasium renders this shard again" in capfd.readouterr().err) == (name == "again")
        monkeypatch.setattr(MujocoScene, "_is_exact", True)
        monkeypatch.setattr(  # upside down from the fourth frame on
            MujocoScene, "_render", lambda o, env: drawn(o, env)[:: 1 if o._count < 4 else -1]
        )
    caches = [open_cache(file) for file in files]
    assert all(np.array_equal(*frames) for frames in zip(*caches, strict=True))
