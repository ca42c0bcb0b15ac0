"""Recorded episodes replay exactly, or an error names the problem."""

import zipfile

import gymnasium
import numpy as np
import pytest
from conftest import CONTINUOUS, DISCRETE, PUMP, rendered

from goalreel.environments.environment import make_environment
from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.policies.policy import make_policy
from goalreel.provenance.spec import NO_SPEC
from goalreel.simulation.episodes import Episode, simulate_episodes
from goalreel.simulation.recorded_episodes import play_recording
from goalreel.simulation.recording_file import read_blocks, read_recording, write_blocks
from goalreel.verification.replay import replay

CARTPOLE = make_environment({"env": "CartPole-v1"})
SEEDS = np.arange(20) + 2**40


def save(path, **columns):
    """Write columns as documented, into an .npz or a CSV file."""
    if path.suffix == ".npz":
        np.savez(path, **{name: np.array(column) for name, column in columns.items()})
    else:
        rows = [columns, *zip(*columns.values(), strict=True)]
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


def record(path, env, count, steps=None, **make):
    """Play episodes in plain Gymnasium, write the documented recording, and return the results."""
    env, rows, given = gymnasium.make(env, **make), [], []
    for episode in range(count):
        seed = 2**40 + 3 * episode
        obs, _ = env.reset(seed=seed)
        env.action_space.seed(episode)
        whole = env.spec.name in ("CartPole", "Pendulum")  # what is recorded here
        states, rewards, over = [env.unwrapped.state if whole else obs], [], False
        while not over and len(rewards) != steps:
            action = env.action_space.sample()
            rows.append((episode + 10, seed, *np.ravel(action).tolist()))
            obs, reward, *ends, _ = env.step(action)
            over = any(ends)
            states.append(env.unwrapped.state if whole else obs)
            rewards.append(reward)
        given.append((seed, np.array(states), np.array(rewards), ends))
    episodes, seeds, actions = zip(*rows, strict=True)
    save(path, episode=episodes, seed=seeds, action=actions)
    return given


def played(path, environment, count):
    """Play episodes of a file from the blocks that a run makes of it, as a shard does."""
    blocks = path.with_suffix(".blocks")
    write_blocks(blocks, read_recording(str(path)), NO_SPEC)
    recorded = read_blocks(blocks, range(count), f"policy.file: '{path}'")
    return play_recording(recorded, environment, NO_SPEC, "terminated")


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", DISCRETE, CONTINUOUS])
@pytest.mark.parametrize("steps", [None, 9])
def test_recorded_actions_replay_exactly(tmp_path, monkeypatch, env, suffix, steps):
    """The recording may also stop before the environment ends the episode."""
    path = tmp_path / f"r{suffix}"
    given = record(path, env, 3, steps, max_episode_steps=120)
    environment = make_environment({"env": env, "max_episode_steps": 120})
    monkeypatch.setattr(type(environment), "max_envs", 2)
    made = played(path, environment, 3)
    assert len(made) == 3 == len(made.attempts.reach)
    for e, (seed, states, rewards, ends) in enumerate(given):
        ours = made.episode(e)
        assert np.array_equal(ours[0].astype(states.dtype), states)
        assert np.array_equal(ours[2], rewards)
        row = made.episodes.row(e)
        assert (row["seed"], [row["terminated"], row["truncated"]]) == (seed, ends)
        assert (row["steps"], row["return"]) == (len(rewards), sum(rewards.tolist()))
        assert row["reached"] == ends[0]


@pytest.mark.parametrize("env", ["CartPole-v1", DISCRETE])
def test_actions_after_end_of_episode_are_rejected(tmp_path, env):
    path = tmp_path / "r.csv"
    record(path, env, 3, max_episode_steps=8)
    environment = make_environment({"env": env, "max_episode_steps": 7})
    with pytest.raises(GoalreelError) as error:
        played(path, environment, 3)
    assert "episode 0: It has 8 actions, but its episode ends after 7 steps" in str(error.value)


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
@pytest.mark.parametrize(
    ("seeds", "row"), [([7, 2.5, 7], 2), ([0, 2.0**53, 0.5], 2), ([-1, 7, 8], 1)]
)
def test_missing_seed_is_rejected_with_its_row(tmp_path, suffix, seeds, row):
    path = tmp_path / f"r{suffix}"
    save(path, episode=range(3), seed=seeds, action=[0, 0, 0])
    with pytest.raises(GoalreelError, match=rf"Row {row} has seed .* instead of one whole number"):
        read_recording(str(path))


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_seeds_of_64_bits_stay_exact(tmp_path, suffix):
    """Large integers stay exact in any column. A double would round those from 2**53 on."""
    path, seeds = tmp_path / f"r{suffix}", [7, 2**64 - 1, 2**63 + 5, 2**53 + 1]
    save(path, episode=range(4), seed=np.array(seeds, np.uint64), action=[1, 0, 1, 0])
    made = played(path, CARTPOLE, 4)
    assert made.episodes.seed.tolist() == seeds
    for episode, seed in enumerate(seeds):
        env = gymnasium.make("CartPole-v1")
        assert np.array_equal(env.reset(seed=seed)[0], np.float32(made.episode(episode)[0][0]))


@pytest.mark.parametrize("kind", ["actions", "states"])
def test_shard_reads_only_its_own_rows(tmp_path, kind):
    """Episodes stay whole across blocks, and only the affected shards report damage."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(2, 3000, 150)
    number = np.repeat(np.arange(150), lengths)
    rows = rng.random((len(number), 3))
    names = ["position", "velocity", "reward"]
    if kind == "actions":
        names = ["action_0", "action_1", "action_2"]
    own = dict(zip(names, rows.T, strict=True))
    np.savez(tmp_path / "r.npz", episode=number, seed=number + 2**53, **own)
    path = tmp_path / "blocks.npz"
    write_blocks(path, read_recording(str(tmp_path / "r.npz")), NO_SPEC)
    ends = np.cumsum(lengths)
    assert ends[-1] > 3 * 2**16
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        middle = archive.getinfo(f"{kind}_1.npy")
    damaged = bytearray(whole)
    damaged[middle.header_offset + middle.compress_size // 2] ^= 1
    for content in (whole, damaged):
        path.write_bytes(content)
        for episodes in (range(1), range(10, 11), range(140, 150), range(30, 90), range(150)):
            first, end = ends[episodes.start] - lengths[episodes.start], ends[episodes.stop - 1]
            if content is damaged and first < 2**17 and end > 2**16:
                with pytest.raises(UnusableFileError, match="truncated or corrupt"):
                    read_blocks(path, episodes, "")
                continue
            for one, number in zip(read_blocks(path, episodes, ""), episodes, strict=True):
                own = slice(ends[number] - lengths[number], ends[number])
                assert (one.number, one.seed) == (number, number + 2**53)
                assert np.array_equal(getattr(one, kind), rows[own])


@pytest.mark.slow
def test_run_reads_recording_once(project):
    """A longer film adds shards without reading the recording again, and finds its damage."""
    record(project.folder / "r.csv", "CartPole-v1", 4)
    config = {"env": "CartPole-v1", "shard_size": 2}
    config["policy"] = "{name: recording, file: r.csv}"
    project.run(config=config | {"episodes": 2})
    # Title cards tell the number of episodes.
    new = {"simulate": 1, "encode": 2, "concat": 1, "episodes": 1}
    assert project.jobs(config=config) == new
    file = project.folder / "results/recording.npz"
    whole = file.read_bytes()
    file.write_bytes(whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:])
    output = project.fail("verify", config=config | {"episodes": 2})
    assert "snakemake results/recording.npz" in output
    project.run("results/recording.npz", config=config)
    assert file.read_bytes() == whole


def test_too_few_episodes_name_the_number_to_set(tmp_path):
    record(tmp_path / "r.csv", "CartPole-v1", 3)
    with pytest.raises(GoalreelError, match="has only 3 episodes.*Set episodes=3 or fewer"):
        played(tmp_path / "r.csv", CARTPOLE, 4)


@pytest.mark.parametrize("env", [DISCRETE, CONTINUOUS])
@pytest.mark.parametrize("has_rewards", [False, True])
def test_recorded_states_are_filmed_unchanged(tmp_path, env, has_rewards, atlases):
    environment = make_environment({"env": env})
    ours = simulate_episodes(SEEDS[:3], environment, make_policy(PUMP))
    names = ["episode", "position", "velocity", *["reward"] * has_rewards]
    rows = [
        [number, *state.tolist(), *[reward] * has_rewards]
        for number, one in enumerate(ours)
        for state, reward in zip(one.states, ["", *one.rewards.tolist()], strict=True)
    ]
    save(tmp_path / "r.csv", **dict(zip(names, zip(*rows, strict=True), strict=True)))
    made = played(tmp_path / "r.csv", environment, 3)
    assert made.episodes.reached.all() and made.actions.dtype == ours[0].actions.dtype
    for number, one in enumerate(ours):
        states, actions, rewards = made.episode(number)
        assert np.array_equal(states, one.states)
        known = has_rewards or env == DISCRETE
        assert np.array_equal(rewards, one.rewards) if known else np.isnan(rewards).all()
    assert len(rendered(made, atlases, env)) == len(rows)
    with pytest.raises(GoalreelError, match="recording has no actions"):
        episode = Episode(-1, states, actions, rewards, True, False)
        replay({"env": env}, "episode 2", episode)


@pytest.mark.parametrize(
    ("text", "env", "parts"),
    [
        ("", DISCRETE, ["not a CSV file with a header"]),
        ("episode,seed\n0,1\n", DISCRETE, ["columns are episode, seed.\n  needed"]),
        ("episode,seed,action\n", DISCRETE, ["It has no rows"]),
        ("episode,action\n0,1\n", DISCRETE, ["no column seed"]),
        ("episode,seed,action\n0,1,left\n", DISCRETE, ["Row 1, column action: 'left'"]),
        ("episode,seed,action\n0,1,1\n0,2,1\n", DISCRETE, ["Row 2 has seed 2 ", "one whole"]),
        ("episode,seed,action\n0,1\n", DISCRETE, ["Row 1 has 2 fields", "header has 3"]),
        ("episode,seed,action\n0,1,1\n1,1,1\n0,1,1\n", DISCRETE, ["episode 0 are not consecutive"]),
        (
            "episode,seed,action\n0,1,3\n",
            DISCRETE,
            ["episode 0: The recording returned 3", "0 to 2"],
        ),
        ("episode,seed,action\n0,1,0.5\n", DISCRETE, ["episode 0: The recording returned float64"]),
        ("episode,seed,action_1\n0,1,1\n", DISCRETE, ["columns are action_1\n  needed: action_0"]),
        ("episode,seed,action_0,action_1\n0,1,1,1\n", DISCRETE, ["actions have 2 numbers"]),
        ("episode,position,velocity\n0,0,0\n", DISCRETE, ["It has one state. Record two"]),
        ("episode,position,velocity\n0,0,0\n0,3,0\n", DISCRETE, ["State 1 is [3.0, 0.0]"]),
        ("episode,position,velocity\n0,0,0\n0,nan,0\n", DISCRETE, ["State 1 is [nan"]),
        ("episode,position,velocity\n0,0,0\n0,0,0\n", "CartPole-v1", ["Only the Mountain Cars"]),
        ("episode,position\n0,0\n", DISCRETE, ["columns are episode, position.\n  needed"]),
        ("episode,seed,acton\n0,0,1\n", DISCRETE, ["episode, seed, acton. Did you mean 'action'?"]),
    ],
)
def test_file_without_recording_is_named(tmp_path, text, env, parts):
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(GoalreelError) as error:
        played(path, make_environment({"env": env}), 1)
    for part in ["policy.file: ", str(path), *parts]:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"episode": np.zeros(3), "seed": np.zeros(2, int), "action": np.zeros(3)}, "differ in"),
        ({"episode": np.array(["a"]), "seed": np.zeros(1, int)}, "array episode is <U1"),
        ({"episode": np.array([None])}, "Object arrays cannot be loaded"),
        (None, "Cannot replay"),
    ],
)
def test_arrays_without_recording_are_named(tmp_path, arrays, message):
    path = tmp_path / "r.npz"
    np.savez(path, **arrays) if arrays else path.write_bytes(b"PK rubbish")
    with pytest.raises(GoalreelError, match=message):
        read_recording(str(path))
