"""Trainings learn, stop, resume and give the same network for the same seed."""

import json
import multiprocessing
import os
import signal
import threading
import time

import gymnasium
import numpy as np
import pytest
from recordings import said_by

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")

from goalreel.errors import GoalreelError, Stopped  # noqa: E402
from goalreel.policies.numpy_network import NumpyNetwork  # noqa: E402
from goalreel.training import session  # noqa: E402
from goalreel.training.processes import Group  # noqa: E402
from goalreel.training.session import evaluate  # noqa: E402
from goalreel.training.settings import Settings, read_presets, with_defaults  # noqa: E402
from goalreel.training.tasks import make_task  # noqa: E402
from goalreel.training.training import metrics_of, train  # noqa: E402
from goalreel.workflow.config import load_config  # noqa: E402

CART = "CartPole-v1"
SHORT = {"total_timesteps": 4096, "eval_freq": 2048, "n_eval_episodes": 3, "checkpoints": [0]}


def configured(env: str, **options) -> dict:
    """Return the configuration of a training."""
    section = load_config({})["train"] | {"seed": 1} | options
    return {"env": env, "env_kwargs": {}, "train": with_defaults(section, env)}


def same(one, other) -> bool:
    """Return whether two trainings kept the same weights."""
    pairs = [(one.record.kept[step], other.record.kept[step]) for step in (0, 4096)]
    return all(np.array_equal(a[name], b[name]) for a, b in pairs for name in a)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_same_seed_gives_the_same_weights_in_two_processes(tmp_path, algorithm):
    options = {**SHORT, "algorithm": algorithm, "processes": 2}
    one, again = (train(configured(CART, **options), tmp_path / "a.pt") for _ in range(2))
    assert same(one, again) and {0, 4096} <= one.record.kept.keys()
    other = train(configured(CART, **options | {"seed": 2}), tmp_path / "a.pt")
    assert not same(one, other)
    evaluations = metrics_of(one)["evaluations"]
    assert [row["decisions"] for row in evaluations] == [0, 2048, 4096]
    assert all(len(row["returns"]) == 3 for row in evaluations)
    table = (tmp_path / "progress.csv").read_text().splitlines()
    assert table[0].startswith("time/total_timesteps,time/time_elapsed") and len(table) >= 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "algorithm", "options", "wanted"),
    [(CART, "ppo", {}, 475), ("MountainCar-v0", "dqn", {}, -115)],
)
def test_network_plays_gymnasiums_environment(tmp_path, env, algorithm, options, wanted):
    """The NumPy network of the best checkpoint solves other episodes in a plain loop."""
    config = configured(env, **options)
    record = train(config, tmp_path / "a.pt").record
    assert config["train"]["algorithm"] == algorithm
    network = NumpyNetwork(record.kept[record.best.checkpoint_step], np.float64)
    envs, returns = gymnasium.make(env), []
    for seed in range(100):
        obs, total, over, steps = envs.reset(seed=seed)[0], 0.0, False, 0
        while not over:
            if steps % config["train"]["frame_skip"] == 0:
                action = int(network.decide(obs[None].astype(np.float64))[0][0])
            obs, reward, terminated, truncated, _ = envs.step(action)
            total, steps, over = total + reward, steps + 1, terminated or truncated
        returns.append(total)
    assert np.mean(returns) >= wanted


def stopped_soon(config, saved, seconds: float, code: dict | None = None) -> str:
    """Train until a SIGTERM after some seconds, and return the message."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    with pytest.raises(Stopped) as stop:
        train(config, saved, code or {})
    timer.join()
    return str(stop.value)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_stopped_training_resumes(tmp_path, algorithm):
    saved, options = tmp_path / "checkpoint.pt", {**SHORT, "algorithm": algorithm}
    options |= {"processes": 2, "total_timesteps": 10**7, "eval_freq": 10**7, "checkpoints": []}
    message = stopped_soon(configured(CART, **options), saved, 12)
    assert f"decisions in {saved}. Run the same command to resume." in message
    done = int(message.split("Saved after ")[1].split()[0].replace(",", ""))
    saved_rows = (tmp_path / "progress.csv").read_text()
    end = options | {"total_timesteps": 10**7, "reward_threshold": 0.0, "eval_freq": done + 1}
    with pytest.raises(GoalreelError, match="train.gamma is 0.9., not 0.5") as error:
        train(configured(CART, **options | {"gamma": 0.5}), saved)
    assert "Restore these settings, or delete it" in str(error.value)
    record = train(configured(CART, **end), saved).record
    assert record.sessions == 2 and record.decisions > done
    assert (tmp_path / "progress.csv").read_text().startswith(saved_rows)
    content = saved.read_bytes()
    saved.write_bytes(content[:5000] + bytes(100) + content[5100:])
    with pytest.raises(GoalreelError, match="Cannot resume from it. Delete it to start"):
        train(configured(CART, **options), saved)


@pytest.mark.parametrize("delay", [0, 10], ids=["at once", "later"])
def test_lost_process_ends_the_training_with_a_message(tmp_path, delay):
    options = SHORT | {"processes": 2, "total_timesteps": 10**7, "eval_freq": 10**7}

    def kill() -> None:
        while not multiprocessing.active_children():
            time.sleep(0.1)
        time.sleep(delay)
        for child in multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(GoalreelError, match="killed by SIGKILL.*Run the same command again"):
        train(configured(CART, **options), tmp_path / "checkpoint.pt")
    thread.join()
    assert not multiprocessing.active_children()


def test_edited_file_of_the_user_does_not_resume(tmp_path):
    config, saved = configured(CART, total_timesteps=10**7, eval_freq=10**7), tmp_path / "a.pt"
    stopped_soon(config, saved, 5, {"file net.py": "one"})
    with pytest.raises(GoalreelError, match="Cannot resume .*\n  file net.py is 'one', not 'two'"):
        train(config, saved, {"file net.py": "two"})


def test_full_disk_does_not_end_a_training(tmp_path):
    """PyTorch's writer raises no OSError."""
    program = """
import resource, signal, sys, torch
from pathlib import Path
from goalreel.training.checkpoint import write_checkpoint
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
try:
    write_checkpoint(Path(sys.argv[1]), {}, {"weights": torch.zeros(10**6)}, [])
except OSError:
    print("caught")
"""
    assert said_by(program, str(tmp_path / "a.pt")) == "caught\n"
    assert not list(tmp_path.iterdir())


def test_iteration_may_pass_several_checkpoints(tmp_path):
    options = {"total_timesteps": 1024, "eval_freq": 100, "n_eval_episodes": 2}
    record = train(configured(CART, **options, checkpoints=[0, 100, 300]), tmp_path / "a.pt").record
    assert {0, 100, 300, 1024} <= record.kept.keys()
    steps = [evaluation.checkpoint_step for evaluation in record.evaluations]
    assert steps == sorted(steps) and len(steps) == len(set(steps))


def test_threshold_ends_a_training(tmp_path):
    options = SHORT | {"reward_threshold": 5.0}
    record = train(configured(CART, **options), tmp_path / "a.pt").record
    assert record.decisions == 0 and len(record.evaluations) == 1


def test_events_are_written_for_tensorboard(tmp_path):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="takes tensorboard"
    )
    train(configured(CART, **SHORT), tmp_path / "a.pt")
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    assert [event.step for event in events.Scalars("eval/ep_rew_mean")] == [0, 2048, 4096]


def test_presets_have_all_options_of_their_algorithm():
    for env in ("ALE/Pong-v5", "SuperMarioBros-1-1-v0", CART, "MountainCar-v0", "Any-v0"):
        for algorithm in ("dqn", "ppo", None):
            section = configured(env, algorithm=algorithm)["train"]
            missing = {name for name, value in section.items() if value is None}
            other = "ppo" if section["algorithm"] == "dqn" else "dqn"
            defaults = read_presets()["defaults"]
            foreign = defaults[other].keys() - defaults[section["algorithm"]].keys()
            assert missing <= foreign | {*("network", "reward_threshold", "attempts")}
            assert json.dumps(section)


class Padded(gymnasium.Env):
    """An environment whose second number is constant, and whose episodes may never end."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space = gymnasium.spaces.Box(np.zeros(2, np.float32), np.float32([9, 0]))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length=10, render_mode=None):
        self.length, self.render_mode = length, render_mode

    def reset(self, seed=None, options=None):
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(2, np.float32), 1.0, self.steps == self.length, False, {}

    def render(self):
        return np.zeros((64, 64, 3), np.uint8)


gymnasium.register("Padded-v0", Padded)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_constant_numbers_give_finite_weights_from_the_first_row(tmp_path, algorithm):
    start = {"learning_starts": 0} if algorithm == "dqn" else {}
    options = SHORT | {"total_timesteps": 1024, "algorithm": algorithm} | start
    record = train(configured("Padded-v0", **options), tmp_path / "a.pt").record
    assert all(np.isfinite(array).all() for w in record.kept.values() for array in w.values())


def test_endless_evaluation_names_the_option(tmp_path, monkeypatch):
    monkeypatch.setattr("goalreel.training.session._MAX_STEPS", 200)
    config = configured("Padded-v0", **SHORT) | {"env_kwargs": {"length": 0}}
    with pytest.raises(GoalreelError, match="max_episode_steps: An episode of an evaluation"):
        train(config, tmp_path / "a.pt")


def test_ended_games_of_an_evaluation_take_no_more_steps(monkeypatch):
    def reset(env, seed, options=None):
        env.steps, env.length = 0, 3 + seed % 40
        return np.zeros(2, np.float32), {}

    steps, step = [], Padded.step
    monkeypatch.setattr(Padded, "reset", reset)
    monkeypatch.setattr(Padded, "step", lambda env, one: steps.append(one) or step(env, one))
    config = configured("Padded-v0", n_eval_episodes=5)
    task = make_task(config, settings := Settings(**config["train"]))
    games = evaluate(session._network(task, settings), task, settings, Group())
    lengths = [game.steps for game in games]
    assert len(steps) == sum(lengths) and len(set(lengths)) > 1


def test_wrapper_that_renders_its_observation_can_train(tmp_path):
    wrappers = [{"gymnasium.wrappers:AddRenderObservation": {}}]
    options = {
        "total_timesteps": 256,
        "n_steps": 32,
        "n_envs": 2,
        "batch_size": 64,
        "network": "tiny",
    }
    options |= {"eval_freq": 256, "n_eval_episodes": 1, "checkpoints": [], "screen_size": 42}
    config = configured("Padded-v0", **options) | {"env_wrappers": wrappers}
    assert train(config, tmp_path / "a.pt").record.decisions == 256


def test_own_network_trains_as_films_play_it(tmp_path, monkeypatch):
    source = (
        "from torch import nn\ndef make(shape):\n    layers = nn.Linear(*shape, 8), nn.Dropout(0.5)"
    )
    (tmp_path / "dropping.py").write_text(f"{source}\n    return nn.Sequential(*layers)\n")
    monkeypatch.syspath_prepend(tmp_path)
    config = configured(CART, **SHORT | {"network": "dropping:make"})
    one, again = (train(config, tmp_path / f"{n}.pt") for n in range(2))
    assert same(one, again), "no dropout, which would draw numbers of its own"
