"""Networks trained from pixels are filmed frame by frame, or an error names the reason."""

import importlib.util

import gymnasium
import numpy as np
import pytest
from conftest import DISCRETE
from message_form import rejection
from reruns import rerun
from trained_policies import random_policy

from goalreel.environments.environment import make_environment
from goalreel.policies.policy import make_policy
from goalreel.rendering.frame_cache import open_cache
from goalreel.rendering.warped import with_network_view
from goalreel.simulation.reaches import simulate_reaches
from goalreel.simulation.trajectories import read_trajectories

PONG = "ALE/Pong-v5"
NEEDS_ALE = pytest.mark.skipif(importlib.util.find_spec("ale_py") is None, reason="needs ale-py")
EPISODES = {"seed": 7, "episodes": 2, "reaches": "null", "max_episode_steps": 50}


@pytest.mark.parametrize(
    ("env", "actions"),
    [pytest.param(DISCRETE, 3, marks=pytest.mark.slow), pytest.param(PONG, 6, marks=NEEDS_ALE)],
)
def test_pixel_film_equals_gymnasium_for_any_shard_size(env, actions, project, tmp_path):
    path = random_policy(tmp_path / "policy.npz", env, actions)
    policy = {"name": "trained", "file": str(path), "checkpoint": 100}
    named = f"{{name: trained, file: {path}, checkpoint: 100}}"
    files = [f"results/trajectories/0000{n}.npz" for n in range(2)]
    targets = [*files, *(f.replace("trajectories", "frames") for f in files * (env == PONG))]
    config = EPISODES | {"env": env, "policy": named, "shard_size": 1}
    project.run("-j", "2", *targets, config=config)
    shards = [read_trajectories(project.folder / file) for file in files]
    player, config = make_policy(policy), shards[0].spec.config
    environment = with_network_view(make_environment(config), player.warp)
    together = simulate_reaches(range(2), 7, environment, player, 1, success=None)
    for name in ("states", "actions", "rewards"):
        parts = np.concatenate([getattr(shard, name) for shard in shards])
        assert np.array_equal(parts, getattr(together, name)), name
    assert len(np.unique(together.actions)) > 1
    for n, shard in enumerate(shards):
        given = {"max_episode_steps": 50, **config["env_kwargs"]}
        peer = gymnasium.make(env, render_mode="rgb_array", **given)
        peer.reset(seed=int(shard.episodes.seed[0]))
        frames = [peer.render()]
        for action, reward in zip(shard.actions.tolist(), shard.rewards.tolist(), strict=True):
            assert peer.step(action)[1] == reward
            frames.append(peer.render())
        peer.close()
        assert len(frames) == 51
        if env == PONG:
            cache = open_cache(project.folder / f"results/frames/0000{n}.npz")
            assert np.array_equal(cache[:], np.stack(frames))


def test_wrong_pixel_policies_are_named_before_the_run(tmp_path):
    path = random_policy(tmp_path / "policy.npz", DISCRETE, 3, steps=(0, 400))
    (tmp_path / "cut.npz").write_bytes(path.read_bytes()[:3000])

    def said(file="policy.npz", **config):
        policy = {"name": "trained", "file": file and str(tmp_path / file)}
        policy |= {"checkpoint": config.pop("checkpoint", "best")}
        return rejection({"policy": policy} | config)

    assert "policy.checkpoint: '300' is not a checkpoint of" in said(checkpoint=300)
    assert said(checkpoint=300).endswith("\n  0, 400")
    assert "cut.npz' cannot be used: it is truncated" in said("cut.npz")
    assert "none.npz' cannot be read" in said("none.npz")
    cart_pole = said(env="CartPole-v1")
    assert f"policy.file: The network was trained on {DISCRETE}, not CartPole-v1." in cart_pole
    if importlib.util.find_spec("ale_py"):
        pong = f"policy.file: The network was trained on {DISCRETE}, not {PONG}. Set env={DISCRETE}"
        assert pong in said(env=PONG)
        frames = said(env=PONG, env_kwargs={"frameskip": 4})
        assert "env_kwargs.frameskip: '4' does not fit" in frames and "Use 1" in frames
        wrappers = ["gymnasium.wrappers:TimeAwareObservation"]
        assert "env_wrappers: " in said(env=PONG, env_wrappers=wrappers)


def test_edit_reruns_the_affected_jobs_of_a_pixel_film(sources, tmp_path):
    path = random_policy(tmp_path / "policy.npz", DISCRETE, 3)
    base = {"reaches": 2, "policy": {"name": "trained", "file": str(path)}}
    before, pump = sources.specs(base), sources.specs({"reaches": 2})
    played = {"simulate": 1, "render": 1, "encode": 1, "concat": 1, "episodes": 1}
    for module in (
        "policies/trained_policy",
        "policies/numpy_network",
        "policies/preprocessing",
        "rendering/warped",
    ):
        with sources.edited(f"goalreel/{module}.py"):
            assert rerun(before, sources.specs(base)) == played, module
            assert rerun(pump, sources.specs({"reaches": 2})) == {}, module
    random_policy(path, DISCRETE, 3, steps=(0, 7))
    assert rerun(before, sources.specs(base)) == played
