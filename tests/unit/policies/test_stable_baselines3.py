"""A saved model plays as in Stable-Baselines3, or an error names the problem."""

import copy
import importlib
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import av
import gymnasium
import numpy as np
import pytest
import yaml
from conftest import CONTINUOUS, DISCRETE, of_shard
from message_form import rejection
from project import REPOSITORY
from recordings import said_by, same_episodes

import goalreel
from goalreel.environments.environment import make_environment
from goalreel.errors import GoalreelError
from goalreel.policies.policy import make_policy
from goalreel.policies.sb3_files import model_data
from goalreel.policies.user_function import policy_of as object_policy
from goalreel.policies.vecnormalize import read_statistics
from goalreel.simulation.episodes import simulate_episodes
from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan

sb3 = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")

from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402

SEEDS = np.arange(6) + 2**40
PENDULUM = {"env": "Pendulum-v1", "max_episode_steps": 40}


def policy_of(path, env="Pendulum-v1", algorithm=None, **options) -> dict:
    """Return the section `policy` as the workflow completes it."""
    changes = {key: options.pop(key) for key in ("env_kwargs", "env_wrappers") if key in options}
    given = {"name": "sb3", "file": str(path), "algorithm": algorithm, **options}
    return load_config({"env": env, "policy": given, **changes})["policy"]


def refused(path, **options) -> str:
    policy = {"name": "sb3", "file": str(path), **options}
    return rejection({"env": "Pendulum-v1", "policy": policy})


def played(policy, config, seeds=SEEDS):
    """Return episodes as goalreel plays them, several side by side."""
    environment, player = make_environment(config), make_policy(policy)
    player.check(environment)
    return simulate_episodes(seeds, environment, player)


def episode_of(model, env, seed, normalized=None, deterministic=True, memory=False):
    """Return the actions and rewards of an episode as Stable-Baselines3's own loop plays it."""
    obs, _ = env.reset(seed=seed)
    model.set_random_seed(seed % 2**32)
    state, starts, actions, rewards, over = None, np.ones(1, bool), [], [], False
    while not over:
        batch = {k: v[None] for k, v in obs.items()} if isinstance(obs, dict) else obs[None]
        batch = normalized.normalize_obs(batch) if normalized else batch
        action, state = model.predict(
            batch, state=state, episode_start=starts, deterministic=deterministic
        )
        obs, reward, terminated, truncated, _ = env.step(action[0])
        starts, over = np.zeros(1, bool), terminated or truncated
        actions.append(np.ravel(action))
        rewards.append(float(reward))
    return np.array(actions), np.array(rewards)


def assert_theirs(episodes, model, env, **how):
    for episode in episodes:
        actions, rewards = episode_of(model, env, episode.seed, **how)
        assert np.array_equal(episode.actions.reshape(len(actions), -1), actions)
        assert np.array_equal(episode.rewards, rewards)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """Return a folder with a model that was trained with VecNormalize, and the statistics."""
    folder = tmp_path_factory.mktemp("trained")
    env = VecNormalize(DummyVecEnv([lambda: gymnasium.make("Pendulum-v1")]), clip_obs=1.5)
    model = sb3.PPO("MlpPolicy", env, n_steps=256, seed=1, device="cpu").learn(512)
    model.save(folder / "model.zip")
    env.save(folder / "vecnormalize.pkl")
    return folder


def peer(folder: Path):
    """Return the model and its statistics, as Stable-Baselines3 loads them."""
    empty = DummyVecEnv([lambda: gymnasium.make("Pendulum-v1")])
    model = sb3.PPO.load(folder / "model.zip", device="cpu")
    return model, VecNormalize.load(str(folder / "vecnormalize.pkl"), empty)


def pendulum():
    return gymnasium.make("Pendulum-v1", max_episode_steps=40)


@pytest.mark.parametrize("deterministic", [True, False])
def test_model_plays_with_statistics_next_to_it(trained, deterministic):
    policy = policy_of(trained / "model.zip", deterministic=deterministic)
    assert policy["vecnormalize"] == str(trained / "vecnormalize.pkl")
    model, normalized = peer(trained)
    theirs = {"normalized": normalized, "deterministic": deterministic}
    episodes = played(policy, PENDULUM)
    assert_theirs(episodes, model, pendulum(), **theirs)
    alone = played(policy, PENDULUM, SEEDS[4:5])
    assert same_episodes(alone, episodes[4:5])
    without = played(policy | {"vecnormalize": False}, PENDULUM)
    assert not np.array_equal(without[0].actions, episodes[0].actions)


@pytest.mark.parametrize("protocol", [4, 5])
def test_statistics_normalize_without_code_of_their_file(trained, tmp_path, protocol):
    model, normalized = peer(trained)
    (tmp_path / "vecnormalize.pkl").write_bytes(pickle.dumps(normalized, protocol))
    shutil.copy(trained / "model.zip", tmp_path)
    network = make_policy(policy_of(tmp_path / "model.zip", safe=True, batch=True)).network
    observations = np.random.default_rng(1).normal(scale=3, size=(500, 3)).astype(np.float32)
    theirs = normalized.normalize_obs(observations)
    assert np.array_equal(network.statistics.normalize(observations), theirs)
    actions, _ = network.act(observations, make_environment(PENDULUM).actions)
    np.testing.assert_allclose(actions, model.predict(theirs, deterministic=True)[0], atol=3e-6)


class Subclass(VecNormalize):
    """A VecNormalize with code of its own."""


def test_other_statistics_are_left_to_stable_baselines3(trained, tmp_path):
    _, saved = peer(trained)
    assert read_statistics_of(saved, trained, tmp_path) is not None
    wide = DummyVecEnv([lambda: gymnasium.make("Pendulum-v1")])
    wide.observation_space = gymnasium.spaces.Box(-5, 5, (3,), np.float32)
    moments = copy.copy(saved)
    moments.obs_rms = SimpleNamespace(mean=np.zeros(3), var=np.ones(3))
    integers = copy.deepcopy(saved)
    integers.obs_rms.mean = np.zeros(3, int)
    for other in (VecNormalize(wide), Subclass(wide), np.zeros(3), moments, integers):
        with pytest.raises(Exception):  # noqa: B017, PT011 - of any type
            read_statistics_of(other, trained, tmp_path)


def read_statistics_of(saved, trained, folder):
    """Return the statistics of a pickled object for a model."""
    (folder / "statistics.pkl").write_bytes(pickle.dumps(saved))
    space = model_data(trained / "model.zip")["observation_space"]
    return read_statistics(folder / "statistics.pkl", space)


def test_film_of_batched_actions_says_so(tmp_path):
    sb3.SAC("MlpPolicy", "Pendulum-v1", buffer_size=9, device="cpu").save(tmp_path / "model.zip")
    policy = {"name": "sb3", "file": str(tmp_path / "model.zip"), "batch": True}
    path = tmp_path / "film.mp4"
    made = goalreel.film("Pendulum-v1", policy, episodes=3, to=path, max_episode_steps=20)
    assert made.table["batched"].all()
    with av.open(str(path)) as film:
        assert film.metadata["title"] == "Pendulum-v1: 3 episodes, batched actions"


def test_batches_of_other_models_are_rejected(trained):
    with pytest.raises(GoalreelError, match="cannot play in batches, only .+ can. Remove batch."):
        make_policy(policy_of(trained / "model.zip", batch=True, deterministic=False))


def test_missing_statistics_are_named_and_edits_rerun(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "copy")

    def spec(**options):
        given = {"name": "sb3", "file": str(folder / "model.zip"), **options}
        config = load_config({"env": "Pendulum-v1", "policy": given})
        return Plan(config, REPOSITORY / "scripts").spec("simulate", of_shard(0))

    before = spec()
    (folder / "vecnormalize.pkl").rename(folder / "other.pkl")
    said = refused(folder / "model.zip")
    assert "policy.vecnormalize" in said and "model_vecnormalize.pkl" in said
    assert "other.pkl" in spec(vecnormalize=str(folder / "other.pkl")) != before
    assert policy_of(folder / "model.zip", vecnormalize=False)["vecnormalize"] is False
    (folder / "other.pkl").rename(folder / "model_vecnormalize.pkl")
    found = spec()
    with (folder / "model_vecnormalize.pkl").open("ab") as stream:
        stream.write(b"more")
    assert spec() != found
    (folder / "model_vecnormalize.pkl").write_bytes(b"no pickle")
    with pytest.raises(GoalreelError, match="policy.vecnormalize: .* cannot be loaded"):
        make_policy(policy_of(folder / "model.zip"))


def test_statistics_of_other_observations_are_rejected(trained, tmp_path):
    other = VecNormalize(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]))
    other.save(tmp_path / "other.pkl")
    policy = policy_of(trained / "model.zip", vecnormalize=str(tmp_path / "other.pkl"))
    with pytest.raises(
        GoalreelError, match="statistics are of observations in Box.* trained on Box"
    ):
        played(policy, PENDULUM)


def test_rl_zoo_folder_plays_its_model(trained, tmp_path):
    folder = tmp_path / "ppo" / "Pendulum-v1_1"
    (folder / "Pendulum-v1").mkdir(parents=True)
    shutil.copy(trained / "model.zip", folder / "Pendulum-v1.zip")
    shutil.copy(trained / "model.zip", folder / "best_model.zip")
    (folder / "Pendulum-v1" / "args.yml").write_text("")
    assert "trained with VecNormalize" in refused(folder)
    statistics = folder / "Pendulum-v1" / "vecnormalize.pkl"
    shutil.copy(trained / "vecnormalize.pkl", statistics)
    policy = policy_of(folder)
    assert policy["file"] == str(folder / "Pendulum-v1.zip")
    assert policy["vecnormalize"] == str(statistics)
    (folder / "Pendulum-v1.zip").unlink()
    assert policy_of(folder)["file"] == str(folder / "best_model.zip")
    (folder / "best_model.zip").unlink()
    assert f"'{folder}' has no Pendulum-v1.zip" in refused(folder)


ALGORITHMS = [("PPO", "CartPole-v1"), ("DQN", DISCRETE), ("SAC", CONTINUOUS), ("TD3", CONTINUOUS)]
ALGORITHMS += [("RecurrentPPO", "CartPole-v1"), ("QRDQN", DISCRETE), ("TQC", CONTINUOUS)]
ALGORITHMS += [("TRPO", "Pendulum-v1"), ("ARS", "Pendulum-v1"), ("MaskablePPO", "CartPole-v1")]
KINDS = {"RecurrentPPO": "MlpLstmPolicy"}


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(("algorithm", "env"), ALGORITHMS)
def test_algorithms_play_as_in_their_library(tmp_path, algorithm, env, deterministic):
    library = sb3
    if not hasattr(sb3, algorithm):
        library = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    path = tmp_path / "model.zip"
    kind = KINDS.get(algorithm, "LinearPolicy" if algorithm == "ARS" else "MlpPolicy")
    made = getattr(library, algorithm)(kind, env, seed=1, device="cpu")
    made.save(path)
    policy = policy_of(path, env, deterministic=deterministic)
    assert policy["algorithm"] == algorithm
    episodes = played(policy, {"env": env, "max_episode_steps": 30})
    model = type(made).load(path, device="cpu")
    environment = gymnasium.make(env, max_episode_steps=30)
    assert_theirs(episodes, model, environment, deterministic=deterministic)


def test_state_dependent_exploration_is_sampled_per_episode(tmp_path):
    model = sb3.PPO("MlpPolicy", "Pendulum-v1", use_sde=True, seed=1, device="cpu")
    model.save(tmp_path / "model.zip")
    episodes = played(policy_of(tmp_path / "model.zip", deterministic=False), PENDULUM)
    env = pendulum()
    for episode in episodes:
        model.set_random_seed(episode.seed % 2**32)
        model.policy.reset_noise()
        obs, _ = env.reset(seed=episode.seed)
        for played_action in episode.actions:
            action, _ = model.predict(obs)
            assert np.array_equal(action, played_action)
            obs, *_ = env.step(action)


def rooms(binary=False, **options):
    """Return an environment of Dict observations, and of actions of several parts."""
    spaces, env = gymnasium.spaces, gymnasium.make("CartPole-v1", **options)
    actions = spaces.MultiBinary(2) if binary else spaces.MultiDiscrete([3, 2])
    seen = spaces.Dict({"at": spaces.Box(-9, 9, (2,)), "leans": spaces.Discrete(2)})
    env = gymnasium.wrappers.TransformAction(env, lambda a: int(a[0] == a[1]), actions)
    return gymnasium.wrappers.TransformObservation(
        env, lambda obs: {"at": obs[:2], "leans": np.int64(obs[2] > 0)}, seen
    )


gymnasium.register("TestRooms-v0", rooms)


@pytest.mark.parametrize("binary", [False, True])
def test_masked_actions_of_several_parts_are_the_librarys(tmp_path, binary):
    library = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    env = rooms(binary, max_episode_steps=20)
    model = library.MaskablePPO("MultiInputPolicy", env, seed=1, device="cpu")
    model.save(tmp_path / "model.zip")
    config = {"env": "TestRooms-v0", "env_kwargs": {"binary": binary}, "max_episode_steps": 20}
    policy = policy_of(tmp_path / "model.zip", "TestRooms-v0", env_kwargs=config["env_kwargs"])
    assert_theirs(played(policy, config), model, env)


def test_film_of_a_recurrent_model_keeps_its_memory(tmp_path):
    library = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    model = library.RecurrentPPO("MlpLstmPolicy", "Pendulum-v1", seed=1, device="cpu")
    environment, player = make_environment(PENDULUM), object_policy(model)
    player.check(environment)
    episodes = simulate_episodes(SEEDS, environment, player)
    assert_theirs(episodes, model, pendulum())


def test_model_finds_modules_of_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = "from stable_baselines3.common.torch_layers import FlattenExtractor as Own"
    (tmp_path / "own_features.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    kind = importlib.import_module("own_features").Own
    options = {"policy_kwargs": {"features_extractor_class": kind}}
    sb3.PPO("MlpPolicy", "Pendulum-v1", device="cpu", **options).save("model.zip")
    program = "import sys; from goalreel.policies.policy import make_policy as make;"
    program += " make({'name': 'sb3', 'file': 'model.zip', 'algorithm': 'PPO'}).model"
    command = [sys.executable, "-P", "-c", program]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "scripts")}
    subprocess.run(command, check=True, env=environment)


@pytest.mark.parametrize("binary", [False, True])
def test_model_takes_dict_observations_and_multi_actions(tmp_path, binary):
    env = VecNormalize(DummyVecEnv([lambda: rooms(binary=binary)]), norm_obs_keys=["at"])
    model = sb3.PPO("MultiInputPolicy", env, n_steps=64, seed=1, device="cpu").learn(64)
    model.save(tmp_path / "model.zip")
    env.save(tmp_path / "vec_normalize.pkl")
    config = {"env": "TestRooms-v0", "env_kwargs": {"binary": binary}}
    policy = policy_of(tmp_path / "model.zip", deterministic=False, **config)
    theirs = {"normalized": env, "deterministic": False}
    env.training = False
    assert_theirs(played(policy, config), model, rooms(binary=binary), **theirs)
    others = {**config, "env_kwargs": {"binary": not binary}}
    assert "was trained with actions in Multi" in rejection(others | {"policy": policy})


@pytest.mark.parametrize(
    ("env", "wrappers", "message"),
    [
        ("CartPole-v1", [], "observations in Box (3,), not Box (4,). Set env"),
        (DISCRETE, [], "observations in Box (3,), not Box (2,). Set env and "),
        ("Pendulum-v1", ["gymnasium.wrappers:TimeAwareObservation"], "not Box (4,). Set env"),
        (
            "Pendulum-v1",
            [{"gymnasium.wrappers:RescaleAction": {"min_action": -1, "max_action": 1}}],
            "actions in Box (1,) from -2 to 2, not Box (1,) from -1 to 1. Set",
        ),
    ],
)
def test_model_of_other_spaces_is_rejected_before_run(trained, env, wrappers, message):
    policy = {"name": "sb3", "file": str(trained / "model.zip")}
    assert message in rejection({"env": env, "env_wrappers": wrappers, "policy": policy})


def test_model_of_other_algorithm_is_rejected(trained):
    said = refused(trained / "model.zip", algorithm="DQN")
    assert "policy.algorithm: 'DQN' did not" in said and "Use PPO, A2C" in said
    assert policy_of(trained / "model.zip")["algorithm"] == "PPO"
    policy = policy_of(trained / "model.zip") | {"algorithm": "DQN", "deterministic": False}
    with pytest.raises(GoalreelError, match="cannot be loaded as a model of DQN"):
        make_policy(policy)


def test_atari_wrappers_do_not_start_pytorch():
    """PyTorch takes seconds in each job. A later import of the package gives the same classes."""
    program = """
import sys
from goalreel.environments.wrappers import find_wrapper
found = find_wrapper("stable_baselines3.common.atari_wrappers:AtariWrapper")
assert not {"torch", "stable_baselines3", "stable_baselines3.common"} & sys.modules.keys()
from stable_baselines3.common import atari_wrappers, env_util
assert found is atari_wrappers.AtariWrapper is env_util.AtariWrapper
assert find_wrapper("stable_baselines3.common.atari_wrappers:WarpFrame") is atari_wrappers.WarpFrame
"""
    said_by(program)


@pytest.mark.slow
def test_wrappers_give_observations_of_make_atari_env():
    """The wrappers of the page on policies, held against Stable-Baselines3's own helper."""
    pytest.importorskip("ale_py")
    pytest.importorskip("cv2")
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack, VecTransposeImage

    page = (REPOSITORY / "docs" / "how-to" / "policies.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    config = yaml.safe_load(next(block for block in blocks if "AtariWrapper" in block))
    env = make_environment(config).make()
    options = {"clip_reward": False, "terminal_on_life_loss": False}
    given = {"env_kwargs": config["env_kwargs"], "wrapper_kwargs": options}
    theirs = make_atari_env(config["env"], **given, seed=123)
    theirs = VecTransposeImage(VecFrameStack(theirs, 4))
    expected, (seen, _) = theirs.reset(), env.reset(seed=123)
    for action in np.random.default_rng(0).integers(4, size=60).tolist():
        assert np.array_equal(expected[0], seen)
        expected, reward, *_ = theirs.step([action])
        seen, own, *_ = env.step(action)
        assert reward[0] == own
