"""Stacks of the replay buffer are Gymnasium's, and hold frames of a single episode."""

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="takes PyTorch, which is no requirement")

from goalreel.errors import GoalreelError  # noqa: E402
from goalreel.training.pixels import frame_replay_buffer  # noqa: E402
from goalreel.training.pixels.collector import END, step_fields  # noqa: E402
from goalreel.training.pixels.frame_replay_buffer import FrameReplay  # noqa: E402

SHAPE = (4, 3)


class Counting(gym.Env):
    """Shows a unique number at each step, and ends by termination or truncation."""

    observation_space = gym.spaces.Box(0, 255, SHAPE, np.uint8)
    action_space = gym.spaces.Discrete(3)

    def __init__(self, seed: int):
        self._rng, self._shown = np.random.default_rng(seed), 0

    def _frame(self) -> np.ndarray:
        self._shown += 1
        frame = np.zeros(SHAPE, np.uint8)
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
    """Return the number of a frame, which is unique in its environment."""
    low, middle, high = frame.reshape(-1)[:3].astype(int)
    return low + 256 * middle + 65536 * high


def recorded(env: int, steps: int, stack: int, drops=()):
    """Play an environment through Gymnasium's FrameStackObservation.

    Returns the rows for the replay, those in `drops` missing, and by the number that a step's last
    frame shows: its stack, action, reward, next stack, and whether it terminated.
    """
    play = gym.wrappers.FrameStackObservation(Counting(env), stack, padding_type="reset")
    rng = np.random.default_rng(100 + env)
    rows, truth, episode_step = [], {}, 0
    stacks, _ = play.reset()
    while len(rows) < steps:
        action = int(rng.integers(3))
        after, reward, terminated, truncated, _ = play.step(action)
        rows.append((stacks[-1], env, action, reward, episode_step, terminated))
        truth[number(stacks[-1])] = (stacks.copy(), action, reward, after.copy(), terminated)
        stacks, episode_step = after, episode_step + 1
        if truncated:
            rows.append((stacks[-1], env, END, 0.0, episode_step, False))
        if terminated or truncated:
            stacks, episode_step = play.reset()[0], 0
    kept, gap, base = [], False, 0
    for i, row in enumerate(rows):
        if i in drops:
            gap = True
            continue
        base = row[4] if gap or row[4] == 0 else base
        gap = False
        kept.append((*row[:4], row[4] - base, row[5]))
    columns = zip(*kept, strict=True)
    fields = step_fields(SHAPE)
    return {n: np.array(c, fields[n][0]) for n, c in zip(fields, columns, strict=True)}, truth


def sampled(replay: FrameReplay, count: int, seed: int = 0) -> SimpleNamespace | None:
    """Return a sample as NumPy arrays."""
    batch = replay.sample(count, torch.Generator().manual_seed(seed))
    return batch and SimpleNamespace(**{name: t.numpy() for name, t in vars(batch).items()})


def in_turns(parts):
    """Return the interleaved rows of several environments, as in a ring."""
    order = np.argsort(np.concatenate([np.arange(len(p["env"])) for p in parts]), kind="stable")
    return {name: np.concatenate([p[name] for p in parts])[order] for name in parts[0]}


@pytest.mark.parametrize("stack", [1, 2, 4])
@pytest.mark.parametrize("size", [5000, 300])
def test_samples_equal_gymnasium_stacks(stack, size):
    played = [recorded(env, 2000, stack) for env in range(3)]
    replay = FrameReplay(3, size, SHAPE, stack)
    rows = in_turns([rows for rows, _ in played])
    for start in range(0, len(rows["env"]), 500):
        replay.append({name: column[start : start + 500] for name, column in rows.items()})
    seen = set()
    for turn in range(40):
        batch = sampled(replay, 200, turn)
        for i, stacks in enumerate(batch.stacks):
            matches = [
                truth[number(stacks[-1])] for _, truth in played if number(stacks[-1]) in truth
            ]
            same = [m for m in matches if np.isclose(m[2], batch.returns[i], rtol=1e-6)]
            assert len(same) == 1, "it is a step that was played"
            before, action, _, after, terminated = same[0]
            assert np.array_equal(stacks, before)
            discount = 0.0 if terminated else np.float32(0.99)
            assert (batch.actions[i], batch.discounts[i]) == (action, discount)
            assert terminated or np.array_equal(batch.next_stacks[i], after)
            seen.add(float(batch.returns[i]))
    assert len(seen) > (600 if size == 300 else 3500), "all that may be sampled is"


@pytest.mark.parametrize("n_step", [1, 3, 20])
def test_returns_over_n_steps_end_with_their_episode_or_a_gap(n_step):
    """Returns sum the rewards up to the end, a gap or n steps, and add the value after them."""
    drops = set(np.random.default_rng(3).choice(1000, 60, replace=False).tolist())
    rows, truth = recorded(0, 1000, 2, drops)
    replay = FrameReplay(1, 4000, SHAPE, 2, n_step=n_step, gamma=0.9)
    replay.append(rows)
    at = {number(frame): place for place, frame in enumerate(rows["frame"])}
    batch, lengths = sampled(replay, 4000), set()
    for i, stacks in enumerate(batch.stacks):
        place, total, steps, terminated = at[number(stacks[-1])], 0.0, 0, False
        while steps < n_step and not terminated:
            followed = rows["episode_step"][place + 1] == rows["episode_step"][place] + 1
            terminated = bool(rows["terminated"][place])
            if not (followed or terminated):
                break
            total += 0.9**steps * rows["reward"][place]
            place, steps = place + 1, steps + 1
        assert steps and batch.returns[i] == pytest.approx(total, abs=1e-5)
        if terminated:
            assert batch.discounts[i] == 0
        else:
            assert batch.discounts[i] == pytest.approx(0.9**steps, rel=1e-6)
            assert number(batch.next_stacks[i][-1]) == number(rows["frame"][place])
        lengths.add((steps, terminated))
    assert len(lengths) > min(n_step, 12), "of many lengths"


def test_replay_buffer_rejects_size_beyond_memory(monkeypatch, tmp_path):
    with pytest.raises(GoalreelError, match=r"1,000,000,000 steps need .* Use at most \d"):
        FrameReplay(10, 10**8, (84, 84), 4)
    with pytest.raises(GoalreelError, match="per environment. Use at least"):
        FrameReplay(2, 37, SHAPE, 4)
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(frame_replay_buffer, "_CONTAINER", limit)
    limit.write_text("max\n")
    FrameReplay(2, 1000, SHAPE, 4)
    limit.write_text("20000\n")
    with pytest.raises(GoalreelError, match="GiB is free. Use at most 869"):
        FrameReplay(2, 1000, SHAPE, 4)
