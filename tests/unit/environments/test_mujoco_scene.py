"""MuJoCo's frames are those of Gymnasium, drawn with a repaired shadow map."""

import ctypes.util
import gc

import av
import gymnasium
import numpy as np
import pytest

import goalreel
from goalreel.environments.drawing import mujoco_scene
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.environments.gymnasium_instance import Instance, close_instance
from goalreel.errors import GoalreelError, InexactFrameError

pytest.importorskip("mujoco")
pytestmark = pytest.mark.usefixtures("opengl")
# Hopper has a camera that follows it, Pusher no such light, and the others different geoms.
MODELS = ["HalfCheetah-v5", "Ant-v5", "Hopper-v5", "Walker2d-v5", "Humanoid-v5", "Pusher-v5"]
MORE = [
    "Reacher-v5",
    "HumanoidStandup-v5",
    "InvertedDoublePendulum-v5",
    "InvertedPendulum-v5",
    "Swimmer-v5",
]


def shoved(env, far: float) -> None:
    """Move a robot, for example beyond the edge of the shadow map."""
    state = env.unwrapped.data.qpos.copy()
    state[0] += far
    env.unwrapped.set_state(state, env.unwrapped.data.qvel.copy())


def compare(env_id: str, steps: int, instances: int, monkeypatch) -> int:
    """Compare frames of several instances in turns; return how many had a repaired map."""
    monkeypatch.setattr(mujoco_scene, "_CHECK_EVERY", 1 << 30)
    environment, repaired = GymnasiumEnvironment(env_id), []
    repair = mujoco_scene.ShadowMap.repair
    monkeypatch.setattr(
        mujoco_scene.ShadowMap,
        "repair",
        lambda *given: repaired.append(repair(*given)) or repaired[-1],
    )
    played = [Instance(environment, seed) for seed in range(instances)]
    peers = [environment.make() for _ in played]
    for seed, (instance, peer) in enumerate(zip(played, peers, strict=True)):
        peer.reset(seed=seed)
        instance.env.action_space.seed(seed)
    for step in range(steps):
        for instance, peer in zip(played, peers, strict=True):
            if step == steps // 2:
                shoved(instance.env, 20.0)
                shoved(peer, 20.0)
            mujoco_scene.use_context(peer.unwrapped)
            assert np.array_equal(instance.frame(), peer.render()), (env_id, step)
            action = instance.env.action_space.sample()
            peer.step(action)
            instance.step(action)
    for env in [*peers, *(instance.env for instance in played)]:
        env.close()
    return sum(repaired)


@pytest.mark.parametrize(
    ("env_id", "steps", "instances"),
    [
        ("HalfCheetah-v5", 4, 2),
        *(pytest.param(name, 60, 2, marks=pytest.mark.slow) for name in (*MODELS, *MORE)),
        *(pytest.param(name, 60, 1, marks=pytest.mark.slow) for name in MODELS[:5]),
    ],
)
def test_mujoco_frames_equal_env_render(env_id, steps, instances, monkeypatch):
    is_shadowed = env_id not in ("Pusher-v5", "Reacher-v5") and "Inverted" not in env_id
    repaired = compare(env_id, steps, instances, monkeypatch)
    assert repaired == is_shadowed * steps * instances


@pytest.mark.slow
@pytest.mark.parametrize("env_id", MODELS)
def test_mujoco_episodes_equal_env_render(env_id, monkeypatch):
    monkeypatch.setattr(mujoco_scene, "_CHECK_EVERY", 1 << 30)
    environment = GymnasiumEnvironment(env_id)
    peer = environment.make()
    for seed in range(50):
        instance = Instance(environment, seed)
        peer.reset(seed=seed)
        peer.unwrapped.mujoco_renderer.close()  # a camera starts where its instance first draws
        peer.unwrapped.mujoco_renderer._viewers.clear()
        strong = peer.action_space.low if seed % 3 == 1 else peer.action_space.high
        for step in range(31):  # at random, or with full strength until it falls
            if step % 10 == 0:
                frame = instance.frame()
                mujoco_scene.use_context(peer.unwrapped)
                assert np.array_equal(frame, peer.render()), (seed, step)
            action = strong if seed % 3 else peer.action_space.sample()
            peer.step(action)
            instance.step(action)
        close_instance(instance.env)


def test_mujoco_that_draws_otherwise_is_rendered_by_gymnasium(monkeypatch):
    monkeypatch.setattr(mujoco_scene, "_OPEN_CYLINDER", 2)
    environment = GymnasiumEnvironment("HalfCheetah-v5")
    instance = Instance(environment, 1)
    first = instance.frame()
    assert np.array_equal(first, instance.env.render())
    calls = []
    monkeypatch.setattr(mujoco_scene.MujocoScene, "_render", lambda *_: calls.append(1))
    assert np.array_equal(instance.frame(), first) and not calls


def test_mujoco_that_cannot_draw_so_is_rendered_by_gymnasium(monkeypatch):
    monkeypatch.delattr(mujoco_scene.ShadowMap, "repair")
    instance = Instance(GymnasiumEnvironment("HalfCheetah-v5"), 1)
    assert all(np.array_equal(instance.frame(), instance.env.render()) for _ in range(2))


def change_later(monkeypatch) -> None:
    """Make MuJoCo draw other frames from the fourth one of a scene on."""
    scene, render = mujoco_scene.MujocoScene, mujoco_scene.MujocoScene._render
    monkeypatch.setattr(scene, "_is_exact", True)
    monkeypatch.setattr(
        scene, "_render", lambda o, env: render(o, env)[:: 1 if o._count < 4 else -1]
    )


def test_mujoco_that_changes_later_is_rendered_by_gymnasium(monkeypatch):
    change_later(monkeypatch)
    instance = Instance(GymnasiumEnvironment("Reacher-v5"), 1)
    assert all(np.array_equal(instance.frame(), instance.env.render()) for _ in range(3))
    with pytest.raises(InexactFrameError, match=r"Frame 16 of Reacher-v5 differs from that of e"):
        for _ in range(14):
            instance.frame()
    assert np.array_equal(instance.frame(), instance.env.render())


@pytest.mark.slow
def test_instances_with_equal_models_share_a_context():
    environment, drawn = GymnasiumEnvironment("HalfCheetah-v5"), []
    for changed in (False, True, False):
        instance, peer = Instance(environment, 1), environment.make()
        peer.reset(seed=1)
        for env in (instance.env, peer) if changed else ():
            env.unwrapped.model.tex_data[:] = 200
        frame = instance.frame()
        mujoco_scene.use_context(peer.unwrapped)
        assert np.array_equal(frame, peer.render())
        drawn.append((frame, instance.env.unwrapped.mujoco_renderer.viewer))
        close_instance(instance.env)
        close_instance(peer)
    assert not np.array_equal(drawn[0][0], drawn[1][0])
    assert drawn[0][1] is drawn[2][1] is not drawn[1][1]


def test_own_renderers_are_left_alone():
    env = gymnasium.make("Reacher-v5", render_mode="rgb_array").unwrapped
    other = type("Other", (type(env),), {"render": lambda self: None})
    assert mujoco_scene.is_mujoco(env)
    env.__class__ = other
    assert not mujoco_scene.is_mujoco(env)


def test_another_opengl_renderer_is_refused():
    environment = GymnasiumEnvironment("Reacher-v5", opengl="NVIDIA H100/PCIe/SSE2")
    with pytest.raises(GoalreelError, match=r"^render.opengl: This machine draws with '.+', not w"):
        Instance(environment, 0).frame()


def test_drafts_have_no_shadows_and_say_so(tmp_path):
    path = tmp_path / "film.mp4"
    options = {"max_episode_steps": 3, "render": {"quality": "draft"}}
    made = goalreel.film("HalfCheetah-v5", "random", episodes=2, to=path, **options)
    table = made.table
    assert table["draft"].all()
    with av.open(str(path)) as film:
        assert film.metadata["title"] == "HalfCheetah-v5: 2 episodes, draft"
    drafts, exact = (
        Instance(GymnasiumEnvironment("HalfCheetah-v5", is_draft=is_draft), 1)
        for is_draft in (True, False)
    )
    peer = gymnasium.make("HalfCheetah-v5", render_mode="rgb_array")
    peer.reset(seed=1)
    peer.unwrapped.mujoco_renderer._get_viewer("rgb_array").scn.flags[0] = 0  # mjRND_SHADOW
    light = [np.asarray(frame, int) for frame in (drafts.frame(), exact.frame(), peer.render())]
    unlike, like = (np.abs(light[0] - other).max(axis=2) > 40 for other in light[1:])
    assert like.mean() < 0.01 < unlike.mean()  # only the edges, which multisampling smooths


@pytest.mark.slow
@pytest.mark.skipif(not ctypes.util.find_library("OSMesa"), reason="libosmesa6 is not installed")
def test_osmesa_draws_episodes_after_the_first_ones_are_closed(project):
    config = {"env": "HalfCheetah-v5", "episodes": 9, "max_episode_steps": 8}
    project.run(config=config, MUJOCO_GL="osmesa")


def test_wrapper_that_renders_at_reset_sees_the_picture():
    """The check of a policy closes an instance, and with it the current OpenGL context."""
    wrappers = ["gymnasium.wrappers:AddRenderObservation"]
    environment = GymnasiumEnvironment("Hopper-v5", {"width": 64, "height": 64}, wrappers=wrappers)
    environment.sample_observations(2)
    assert all(np.asarray(obs).any() for obs in environment.sub_envs(np.arange(2)).observations())


def test_shadows_follow_frames_that_mujoco_draws_itself():
    gc.collect()  # contexts of earlier tests, which would be freed in that of this one
    environment = GymnasiumEnvironment("HalfCheetah-v5", {"camera_id": -1})
    peer = gymnasium.make("HalfCheetah-v5", render_mode="rgb_array", camera_id=-1)
    instance = Instance(environment, 0)
    instance.frame()
    inner = instance.env.unwrapped
    for place in (1.0, -1.0):  # poses that only MuJoCo draws
        inner.set_state(inner.init_qpos + place * np.eye(9)[0], inner.init_qvel)
        instance.render()
    frame = Instance(environment, 1, instance.env).frame()
    for seed in (0, 1):  # the free camera looks at the first frame's robot
        peer.reset(seed=seed)
        mujoco_scene.use_context(peer.unwrapped)
        expected = peer.render()
    assert np.array_equal(frame, expected)
    for env in (instance.env, peer):
        close_instance(env)
