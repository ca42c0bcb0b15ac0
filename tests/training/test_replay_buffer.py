"""Stacks of the replay buffer are Gymnasium's, and returns end with their episode."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")

from goalreel.errors import GoalreelError  # noqa: E402
from goalreel.training import replay_buffer  # noqa: E402
from goalreel.training.replay_buffer import ReplayBuffer  # noqa: E402

SIDE, ENVS = 3, 3


class Counting(gym.Env):
    """Shows a unique number at each step, and ends by termination or truncation."""

    observation_space = gym.spaces.Box(0, 255, (SIDE, SIDE), np.uint8)
    action_space = gym.spaces.Discrete(3)

    def __init__(self, seed: int):
        self._rng, self._shown = np.random.default_rng(seed), seed << 16

    def _frame(self) -> np.ndarray:
        self._shown += 1
        frame = np.zeros((SIDE, SIDE), np.uint8)
        frame.reshape(-1)[:3] = self._shown % 256, self._shown // 256 % 256, self._shown // 65536
        return frame

    def reset(self, *, seed=None, options=None):
        self._left = int(self._rng.integers(1, 13))
        self._terminates = bool(self._rng.integers(2))
        return self._frame(), {}

    def step(self, action):
        self._left -= 1
        ended = self._left == 0
        terminated = ended and self._terminates
        return self._frame(), float(self._rng.normal()), terminated, ended and not terminated, {}


def number(frame: np.ndarray) -> int:
    """Return the unique number of a frame."""
    low, middle, high = frame.reshape(-1)[:3].astype(int)
    return low + 256 * middle + 65536 * high


def recorded(buffer: ReplayBuffer, steps: int, stack: int, seed: int = 0) -> dict[int, tuple]:
    """Play environments through Gymnasium's FrameStackObservation into a buffer.

    Returns, by the number that the last frame of a step shows, its stack, action, reward, the
    number of the next step's frame, and whether it terminated or truncated its episode.
    """
    plays = [
        gym.wrappers.FrameStackObservation(Counting(seed + n), stack, padding_type="reset")
        for n in range(ENVS)
    ]
    obs, ages = [play.reset()[0] for play in plays], np.zeros(ENVS, np.int32)
    rng, truth = np.random.default_rng(0), {}
    for _ in range(steps):
        actions = rng.integers(3, size=ENVS)
        after, rewards, terminated, truncated, _ = zip(
            *(play.step(int(action)) for play, action in zip(plays, actions, strict=True)),
            strict=True,
        )
        columns = {"rewards": np.float32(rewards), "terminated": np.array(terminated)}
        columns |= {"truncated": np.array(truncated), "episode_step": ages}
        buffer.add(np.stack(obs), actions=actions.astype(np.int16), **columns)
        for n, play in enumerate(plays):
            ends = terminated[n], truncated[n]
            row = obs[n], int(actions[n]), rewards[n], number(after[n][-1]), *ends
            truth[number(obs[n][-1])] = row
            obs[n], ages[n] = (play.reset()[0], -1) if any(ends) else (after[n], ages[n])
        ages = ages + 1
    return truth


def sampled(buffer: ReplayBuffer, count: int) -> SimpleNamespace:
    """Return a sample as NumPy arrays."""
    batch = buffer.sample(count, torch.Generator().manual_seed(0))
    return SimpleNamespace(**{name: tensor.numpy() for name, tensor in vars(batch).items()})


@pytest.mark.parametrize("size", [6000, 300])
@pytest.mark.parametrize(("stack", "n_steps"), [(1, 1), (4, 1), (4, 3), (2, 20)])
def test_samples_equal_gymnasium_stacks_and_returns(stack, n_steps, size):
    """A return sums rewards up to termination, n steps, or the last step before a truncation."""
    buffer = ReplayBuffer(ENVS, size, (stack, SIDE, SIDE), n_steps, gamma=0.9)
    truth = recorded(buffer, 1500, stack)
    assert buffer.count == 1500
    batch, seen, lengths = sampled(buffer, 5000), set(), set()
    for i, obs in enumerate(batch.obs):
        before, action, *_ = truth[number(obs[-1])]
        assert np.array_equal(obs, before) and batch.actions[i] == action
        place, total, steps, terminated = number(obs[-1]), 0.0, 0, False
        while steps < n_steps and not terminated:
            _, _, reward, after, terminated, truncated = truth[place]
            if truncated and not terminated:
                break
            total, steps, place = total + 0.9**steps * reward, steps + 1, after
        assert steps and batch.returns[i] == pytest.approx(total, abs=1e-5)
        assert batch.discounts[i] == pytest.approx(0 if terminated else 0.9**steps, rel=1e-6)
        if not terminated:
            assert np.array_equal(batch.next_obs[i], truth[place][0])
        seen.add(number(obs[-1]))
        lengths.add((steps, terminated))
    assert len(seen) > (200 if size == 300 else 2000), "all that may be sampled is"
    assert len(lengths) >= min(n_steps, 8), "of many lengths"


def test_states_are_stored_as_they_are():
    buffer = ReplayBuffer(2, 40, (5,))
    rows = np.random.default_rng(0).normal(size=(30, 2, 5)).astype(np.float32)
    for age, obs in enumerate(rows):
        flags = np.zeros(2, bool)
        columns = {"actions": np.zeros(2, np.int16), "rewards": np.full(2, age, np.float32)}
        columns |= {"episode_step": np.full(2, age, np.int32)}
        buffer.add(obs, terminated=flags, truncated=flags, **columns)
    batch = sampled(buffer, 100)
    for obs, reward, after in zip(batch.obs, batch.returns, batch.next_obs, strict=True):
        env = int(np.flatnonzero((rows[int(reward)] == obs).all(1))[0])
        assert 10 <= reward < 29 and np.array_equal(after, rows[int(reward) + 1, env])


def test_no_sample_spans_the_gap_of_a_resumed_training():
    first, then = (ReplayBuffer(ENVS, 300, (2, SIDE, SIDE), 3) for _ in range(2))
    truth = recorded(first, 50, 2)
    then.load(first.state())
    truth |= recorded(then, 20, 2, seed=ENVS)
    batch, seen = sampled(then, 2000), set()
    for obs, after, discount in zip(batch.obs, batch.next_obs, batch.discounts, strict=True):
        place = number(obs[-1])
        assert np.array_equal(obs, truth[place][0])
        assert not discount or number(after[-1]) >> 16 == place >> 16, "the same environment"
        seen.add(place)
    assert len(seen) > 80 and max(seen) >> 16 >= ENVS > min(seen) >> 16


def test_replay_buffer_rejects_size_beyond_memory(monkeypatch, tmp_path):
    with pytest.raises(GoalreelError, match=r"1,000,000,000 steps need .* Use at most \d"):
        ReplayBuffer(10, 10**9, (4, 84, 84))
    with pytest.raises(GoalreelError, match="per environment. Use at least"):
        ReplayBuffer(2, 12, (4, SIDE, SIDE))
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(replay_buffer, "_CONTAINER", limit)
    limit.write_text("max\n")
    ReplayBuffer(2, 1000, (4, SIDE, SIDE))
    limit.write_text("20000\n")
    with pytest.raises(GoalreelError, match="GiB is free. Use at most 800"):
        ReplayBuffer(2, 1000, (4, SIDE, SIDE))
