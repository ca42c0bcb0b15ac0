"""A user's policy plays exactly, or an error names the problem."""

import json
import textwrap
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from conftest import DISCRETE
from recordings import same_episodes

from goalreel.environments.environment import make_environment
from goalreel.errors import GoalreelError
from goalreel.policies.policy import make_policy
from goalreel.policies.policy_dependencies import policy_files
from goalreel.simulation.episodes import simulate_episodes
from goalreel.simulation.reaches import simulate_reaches

CARTPOLE = make_environment({"env": "CartPole-v1"})
PENDULUM = make_environment({"env": "Pendulum-v1", "max_episode_steps": 30})
SEEDS = np.arange(20) + 2**40


@pytest.fixture
def policy(tmp_path):
    """Return a maker of policies from the text of their file."""

    def make(text, function="act", **options):
        path = tmp_path / "mine.py"
        path.write_text("import numpy as np\n" + textwrap.dedent(text))
        given = {"name": "python", "file": str(path), "function": function}
        return make_policy(given | options)

    return make


def refused(policy, environment) -> str:
    with pytest.raises(GoalreelError) as error:
        simulate_reaches(range(2), 7, environment, policy, 5)
    return str(error.value)


def assert_played(policy, environment, env, make):
    """Play episodes and compare them with Gymnasium's. `make` returns the policy of a seed."""
    policy.check(environment)
    episodes = simulate_episodes(SEEDS, environment, policy)
    for episode in episodes:
        act, (obs, _) = make(episode.seed), env.reset(seed=episode.seed)
        for played in episode.actions:
            action = act(obs)
            assert action == played
            obs, _, *ends, _ = env.step(action)
        assert ends == [episode.terminated, episode.truncated]
    return episodes


def test_user_policy_plays_as_in_gymnasium(policy):
    balance = policy("""
        def act(observations):
            assert observations.dtype == np.float32 and observations.shape[1:] == (4,)
            return (observations[:, 2] + observations[:, 3] > 0).astype(int)
    """)
    env = gymnasium.make("CartPole-v1")
    assert_played(balance, CARTPOLE, env, lambda seed: lambda obs: int(obs[2] + obs[3] > 0))


@pytest.mark.parametrize("env", [DISCRETE, "Pendulum-v1", "CartPole-v1"])
def test_user_policy_gets_generators_of_the_episodes(policy, env):
    """A file that reimplements the policy `random` gives the same actions."""
    shape = {DISCRETE: "int(3 * u)", "CartPole-v1": "int(2 * u)"}.get(env, "[4 * u - 2]")
    mine = policy(f"""
        def act(observations, generators):
            draws = [g.random(2)[1] for g in generators]
            return np.array([{shape} for u in draws])
    """)
    environment = make_environment({"env": env, "max_episode_steps": 60})
    mine.check(environment)
    ours = simulate_episodes(SEEDS, environment, make_policy({"name": "random"}))
    assert same_episodes(simulate_episodes(SEEDS, environment, mine), ours)


FACTORY = """
def make_policy(seed, env_id, observation_space, action_space):
    assert observation_space.shape == (4,) and action_space.n == 2 and env_id == "CartPole-v1"
    rng, seen = np.random.default_rng(seed), []

    def act(observation):
        assert observation.shape == (4,) and observation.dtype == np.float32
        seen.append(observation)
        return int(rng.random() < 0.5 + np.mean(seen, axis=0)[2])

    return act
"""


def test_make_policy_gives_each_episode_its_own_state(policy):
    made, env, space = policy(FACTORY), gymnasium.make("CartPole-v1"), {"np": np}
    exec(FACTORY, space)  # noqa: S102 - as a file would
    spaces = env.observation_space, env.action_space
    player = lambda seed: space["make_policy"](seed, "CartPole-v1", *spaces)  # noqa: E731
    episodes = assert_played(made, CARTPOLE, env, player)
    some = simulate_episodes(SEEDS[[11, 3]], CARTPOLE, made)
    assert same_episodes(some, [episodes[11], episodes[3]])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("def make_policy(): return 3", ["make_policy returned '3'", "takes an observation"]),
        ("def make_policy(speed): return abs", ["(speed) has wrong", "any of seed, env_id"]),
        ("def make_policy(): return {}[1]", ["make_policy raised KeyError.", "Episode seed: 0"]),
        ("def make_policy(): return lambda o: {}[1]", ["The policy raised KeyError", "seed: 0"]),
        ("def make_policy(): return lambda o: 2", ["The policy returned 2 in row 0", "0 to 1"]),
        (
            "r = np.random.default_rng()\ndef make_policy(): return lambda o: int(2 * r.random())",
            ["in a batch and", "make_policy(seed)"],
        ),
    ],
)
def test_make_policy_without_policy_is_named(policy, text, parts):
    with pytest.raises(GoalreelError) as error:
        simulate_reaches(range(2), 7, CARTPOLE, policy(text), 5)
    for part in ["mine.py: make_policy", *parts]:
        assert part in str(error.value)


NETWORK = """
weights = np.random.default_rng(3).normal(size=(3, 64)).astype(np.float32)
out = np.random.default_rng(4).normal(size=(64, 1)).astype(np.float32)


def act(observations):
    assert len(observations) == 1 or ROWS != 1
    return np.tanh(np.tanh(observations.astype(np.float32) @ weights) @ out) * 2
"""


def test_unbatched_network_plays_one_row_at_a_time(policy):
    """In NumPy 2.4 on x86-64 these products differ in the last bit. Elsewhere they may not."""
    made = policy("ROWS = 1\n" + NETWORK, batch=False)
    made.check(PENDULUM)
    episodes = simulate_episodes(SEEDS[:5], PENDULUM, made)
    for e in range(5):
        alone = simulate_episodes(SEEDS[e : e + 1], PENDULUM, made)
        assert same_episodes(alone, episodes[e : e + 1])
    drawn = "def act(o): return np.random.default_rng().random((len(o), 1))"
    said = refused(policy(drawn, batch=False), PENDULUM)
    assert "in a batch and" in said and "make_policy(seed)" in said


@pytest.mark.parametrize("batch", [True, False])
def test_dict_observations_become_dict_of_arrays(policy, batch):
    minigrid = "MiniGrid-GoToDoor-5x5-v0"
    pytest.importorskip("minigrid")
    made = policy(
        """
        def act(observations):
            image, text = observations["image"], observations["mission"]
            assert image.dtype == np.uint8 and image.shape == (len(text), 7, 7, 3)
            assert text.dtype.kind == "U"
            return (observations["direction"] + (text == "go to the red door")) % 3
        """,
        batch=batch,
    )
    rooms = make_environment({"env": minigrid, "max_episode_steps": 30})
    env = gymnasium.make(minigrid, max_episode_steps=30)

    def act(obs):
        return (obs["direction"] + (obs["mission"] == "go to the red door")) % 3

    assert_played(made, rooms, env, lambda seed: act)
    others = make_environment({"env": "Blackjack-v1"})  # whose observations are tuples
    assert "Only the policies random and recording play" in refused(made, others)


RAISES = """
def steer(angle):
    return {True: 1}[angle > 0]


def act(observations):
    return np.array([steer(angle) for angle in observations[:, 2]])
"""


def test_raising_policy_shows_traceback_and_observation(policy, tmp_path):
    said = refused(policy(RAISES), CARTPOLE)
    lines = said.splitlines()
    assert "mine.py: act raised KeyError." in lines[0]
    angle = json.loads(lines[2].removeprefix("  Observation: "))[2]
    assert angle <= 0, "the sub-environment that raises, not the first"
    assert lines[4].endswith('mine.py", line 8, in act')
    assert "return {True: 1}[angle > 0]" in said and "KeyError" in lines[-2]
    assert lines[-1].startswith("  It gets a batch")
    assert "goalreel/" not in said.split("\n", 1)[1]


@pytest.mark.parametrize(
    ("text", "environment", "parts"),
    [
        ("import sys\ndef act(o): sys.exit(3)", CARTPOLE, ["raised SystemExit.", "SystemExit: 3"]),
        ("def act(o): return 1", CARTPOLE, ["an array of shape ()", "whole numbers from 0 to 1"]),
        ("def act(o): return o", CARTPOLE, ["shape (16, 4)", "array of shape (16,)"]),
        ("def act(o): return o[:, 0] > 9 and 1", CARTPOLE, ["ValueError", "ambiguous"]),
        ("def act(o): return o[:, 0]", CARTPOLE, ["returned float32"]),
        ("def act(o): return [2] * len(o)", CARTPOLE, ["returned 2 in row 0", "from 0 to 1"]),
        ("def act(o): return [[1], [1, 2]]", CARTPOLE, ["returned no array"]),
        ("def act(o): return np.zeros(len(o))", PENDULUM, ["array of shape (16, 1)"]),
        ("def act(o): return np.full((len(o), 1), 2.5)", PENDULUM, ["returned [2.5]", "-2 to 2"]),
        ("def act(o): return np.full((len(o), 1), np.nan)", PENDULUM, ["returned [nan]"]),
        (
            "def act(o): return np.arange(len(o)) % 2",
            CARTPOLE,
            ["1 in a batch and 0 alone", "own row"],
        ),
        (
            "def act(o): return o[:, :1] - o[:, :1].mean()",
            PENDULUM,
            ["in a batch and [0.0] alone", "policy.batch=false"],
        ),
    ],
)
def test_actions_are_checked_before_the_run(policy, text, environment, parts):
    said = refused(policy(text), environment)
    for part in ["mine.py: act", *parts]:
        assert part in said


def test_imports_and_files_of_policy_are_watched(tmp_path):
    (tmp_path / "mine.py").write_text("import helper\nimport numpy\n")
    (tmp_path / "helper.py").write_text("from deeper import x\n")
    for name in ("deeper.py", "unused.py", "weights.pt"):
        (tmp_path / name).write_text("x = 1\n")
    policy = {"name": "python", "file": str(tmp_path / "mine.py")}
    policy |= {"extra_files": [str(tmp_path / "weights.pt")]}
    before = policy_files(policy)
    watched = {"mine.py", "helper.py", "deeper.py", "weights.pt"}
    assert {Path(name).name for name in before} == watched
    for name in ("deeper.py", "weights.pt"):
        (tmp_path / name).write_text("x = 2\n")
        assert policy_files(policy) != before
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "weights.pt").unlink()
    with pytest.raises(GoalreelError, match=r"policy\.extra_files\.0: .*weights.pt.* cannot be"):
        policy_files(policy)


def test_actions_are_checked_while_playing(policy):
    late = "def act(o): return np.where(abs(o[:, 2]) > 0.15, 7, 0)"
    assert "returned 7 in row" in refused(policy(late), CARTPOLE)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("x = 1 +", ["cannot be imported", "SyntaxError", "mine.py"]),
        ("import no_such_module", ["cannot be imported", "line 2", "ModuleNotFoundError"]),
        ("def axt(o): return o", ["has no function 'act'. Did you mean 'axt'?"]),
        ("act = 3", ["has no function 'act'. Define it."]),
        ("def act(): return 1", ["act() has wrong parameters", "act(observations, generators)"]),
        ("def act(o, speed): return 1", ["act(o, speed) has wrong parameters"]),
    ],
)
def test_file_without_policy_is_named(policy, text, parts):
    with pytest.raises(GoalreelError) as error:
        policy(text)
    for part in parts:
        assert part in str(error.value)
