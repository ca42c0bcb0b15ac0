"""A check finds the step and the quantity that an independent loop over Gymnasium finds."""

import functools
import hashlib
import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from message_form import check_form
from project import REPOSITORY

import goalreel
from goalreel.errors import GoalreelError
from goalreel.workflow import in_process
from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan


class _Ball(gymnasium.Env):
    """A ball that falls and bounces. From step `since` on, its arguments apply."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None, since=1, gravity=1.0, prize=1.0, shade=90, floor=-9.0):
        self.render_mode, self.since = render_mode, since
        self.changed = {"gravity": gravity, "prize": prize, "shade": shade, "floor": floor}

    def now(self, name: str) -> float:
        plain = {"gravity": 1.0, "prize": 1.0, "shade": 90, "floor": -9.0}
        return (self.changed if self.steps >= self.since else plain)[name]

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.speed = 0, 0.0
        self.height = self.np_random.uniform(1, 3)
        return np.array([self.height, self.speed]), {}

    def step(self, action):
        self.steps += 1
        self.speed += 0.1 * (action - self.now("gravity"))
        self.height += 0.1 * self.speed
        is_over = self.height < self.now("floor") or self.steps == 60
        return np.array([self.height, self.speed]), self.now("prize"), is_over, False, {}

    def render(self):
        frame = np.zeros((64, 64, 3), np.uint8)
        frame[int(40 - 8 * self.height) % 60 :, 20:40] = self.now("shade")
        return frame


gymnasium.register("BehaviorBall-v0", _Ball)


def act(observation, bias=0.0) -> int:
    return int(observation[0] + bias < 1.5)


def lock(folder: Path, env: str = "BehaviorBall-v0", policy: object = act, **options) -> Path:
    """Lock a run, and return the path of the lock file."""
    path = folder / "goalreel.lock"
    given = {"env": env, "episodes": 5, "check": {"file": str(path)}, **options}
    config, player = in_process._load(given, policy)
    plan = Plan(config | {"results": str(folder / "results")}, REPOSITORY / "scripts")
    in_process._make(plan, (*in_process._PLAYED, "lock"), player, None, lambda episodes: None)
    return path


def played(seed: int, policy, **kwargs) -> list[tuple]:
    """Return action, observation, reward and ending of each step of plain Gymnasium."""
    env = gymnasium.make("BehaviorBall-v0", **kwargs)
    observation, _ = env.reset(seed=seed)
    steps = [(None, observation.tobytes(), None, False)]
    while not steps[-1][3]:
        action = policy(observation)
        observation, reward, is_over, _, _ = env.step(action)
        steps.append((action, observation.tobytes(), reward, is_over))
    return steps


def first_change(seed: int, policy, **kwargs) -> tuple[int, str]:
    pairs = zip(played(seed, act), played(seed, policy, **kwargs), strict=False)
    names = ("action", "observation", "reward", "ending")
    found = (
        (step, name)
        for step, values in enumerate(pairs)
        for name, a, b in zip(names, *values, strict=True)
        if a != b
    )
    return next(found)


CHANGES = [
    (act, {"gravity": 1.01}, "observation"),
    (act, {"gravity": 1.01, "since": 33}, "observation"),
    (act, {"prize": 2.0, "since": 17}, "reward"),
    (act, {"floor": 0.5, "since": 9}, "ending"),
    (functools.partial(act, bias=0.05), {}, "action"),
]


@pytest.mark.parametrize(("policy", "kwargs", "quantity"), CHANGES)
@pytest.mark.parametrize("room", [6000, 60])
def test_check_finds_the_first_change_of_gymnasium(
    tmp_path, monkeypatch, policy, kwargs, quantity, room
):
    monkeypatch.setattr("goalreel.verification.behavior._STEPS", room)
    path = lock(tmp_path)
    assert goalreel.check(path, act), "its own episodes are identical"
    result = goalreel.check(path, policy, env_kwargs=kwargs)
    assert not result and quantity in str(result)
    stride = 1 if room == 6000 else 5  # 60 steps, and 12 checksums for each episode
    for difference in result.differences:
        step, name = first_change(difference.seed, policy, **kwargs)
        assert name in difference.quantity.split(" or ")
        # A checksum may show a difference late, once in 64.
        assert difference.first - stride <= step <= difference.last < difference.first + stride
    exact = [d for d in result.differences if d.last == first_change(d.seed, policy, **kwargs)[0]]
    assert stride > 1 or len(exact) >= len(result.differences) - 1
    check_form(str(result).splitlines()[0].replace(str(path), "goalreel.lock"))


def test_check_tells_frames_apart_from_states(tmp_path):
    path = lock(tmp_path)
    result = goalreel.check(path, act, env_kwargs={"shade": 91, "since": 20})
    assert {(d.quantity, d.first <= 20 <= d.last) for d in result.differences} == {("frame", True)}
    assert "States equal, frames differ in 5 of 5 episodes." in str(result)


def test_statistical_check_passes_within_tolerance(tmp_path):
    path, kwargs = lock(tmp_path), {"prize": 1.01}
    passed, failed = (
        goalreel.check(
            path, act, env_kwargs=kwargs, check={"mode": "statistical", "tolerance": tolerance}
        )
        for tolerance in (1, 0.5)
    )
    low, high = passed.change.mean.low, passed.change.mean.high
    assert 0.5 < high <= 1 and low > 0, "0.01 for each of up to 60 steps"
    assert passed and "within ±1" in str(passed)
    assert not failed and "not within ±0.5" in str(failed)
    check_form(str(failed).splitlines()[0].replace(str(path), "goalreel.lock"))


def test_lock_bytes_depend_only_on_behavior(tmp_path):
    first, second = lock(tmp_path / "a"), lock(tmp_path / "b", shard_size=2)
    texts = [
        re.sub(rf"{tmp_path}/.", "", path.read_text(encoding="utf-8")) for path in (first, second)
    ]
    assert texts[0] == texts[1]
    assert not re.search("results|shard_size", texts[0])


@pytest.mark.slow
def test_lock_of_many_episodes_stays_small(tmp_path):
    def size(episodes: int) -> int:
        options = {"episodes": episodes, "max_episode_steps": 9, "env_kwargs": {"prize": -1 / 3}}
        return lock(tmp_path / str(episodes), **options).stat().st_size

    assert size(10) <= 20_000 and size(1000) <= 100_000


def test_wrong_lock_file_gives_one_message(tmp_path):
    def rejection() -> str:
        with pytest.raises(GoalreelError) as error:
            goalreel.check(path, act)
        check_form(str(error.value).replace(str(path), "goalreel.lock"))
        return str(error.value)

    path = lock(tmp_path)
    text = path.read_text(encoding="utf-8")
    for edited in (text.replace("60.0", "61.0", 1), text[:-20], text + "x", "", "<<<<\n" + text):
        path.write_text(edited, encoding="utf-8")
        assert "Edited or damaged (checksum mismatch). Restore it" in rejection()
    path.write_text(text, encoding="utf-8")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert goalreel.check(path, act), "a checkout may change the ends of lines"
    path.write_text(text.replace("goalreel lock 1", "goalreel lock 7"), encoding="utf-8")
    assert "Has the format 'goalreel lock 7' instead of 'goalreel lock 1'" in rejection()
    bare = re.sub(r"(?m)^(\d|sha256 ).*\n", "", text)
    checksum = hashlib.sha256(bare.encode()).hexdigest()
    path.write_text(f"{bare}sha256 {checksum}\n", encoding="utf-8")
    assert "Holds no episodes" in rejection()
    path.unlink()
    assert "cannot be read (No such file or directory). Write it: snakemake lock" in rejection()


def test_recorded_and_reaching_runs_can_be_locked(tmp_path):
    rows = "".join(f"0,3,{step},{step % 2}\n" for step in range(20))
    (tmp_path / "a.csv").write_text(f"episode,seed,step,action\n{rows}")
    recording = {"name": "recording", "file": str(tmp_path / "a.csv")}
    assert goalreel.check(lock(tmp_path, "CartPole-v1", recording, episodes=None))
    path = lock(tmp_path, "MountainCar-v0", "pump", episodes=None, reaches=4)
    assert goalreel.check(path)
    result = goalreel.check(path, {"epsilon": 0.3})
    assert not result and {d.quantity for d in result.differences} <= {"action", "ending"}
    config = load_config({"env": "MountainCar-v0", "policy": "trained"})
    assert "lock" not in Plan(config, REPOSITORY / "scripts").stages
