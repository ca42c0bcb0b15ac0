"""PettingZoo environments play as PettingZoo steps them: seeds, actions, frames and returns."""

from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box

import goalreel
from goalreel.environments.gymnasium_env import GymnasiumEnvironment

pytest.importorskip("pettingzoo", reason="pettingzoo is not installed")
from goalreel.environments.pettingzoo_env import _joint_space  # noqa: E402

PARALLEL = {
    "pettingzoo.butterfly.cooperative_pong_v6": {"max_cycles": 30},
    "pettingzoo.butterfly.knights_archers_zombies_v11": {"max_cycles": 150},
    "pettingzoo.butterfly.pistonball_v6": {"max_cycles": 10, "n_pistons": 12},
    "pettingzoo.classic.rps_v2": {},
    "pettingzoo.sisl.multiwalker_v9": {"max_cycles": 40},
    "pettingzoo.sisl.pursuit_v5": {"max_cycles": 10},
    "mpe2.simple_tag_v3": {},
    "mpe2.simple_world_comm_v3": {},
}
TURNS = ["connect_four_v3", "leduc_holdem_v4", "tictactoe_v3"]
SEEDS = 3, 4406183205906608  # a large one, as goalreel derives them
LEGAL = """
import numpy as np


def act(observations, generators):
    masks = np.stack([part["action_mask"] for part in observations.values()], axis=1)
    draws = np.stack([generator.random(masks.shape[1:]) for generator in generators])
    return (masks * draws).argmax(-1)
"""


def started(module, function, kwargs, seed):
    """Return goalreel's environment, an episode of it, and PettingZoo's module."""
    made = pytest.importorskip(module, reason=f"{module} is not installed")
    environment = GymnasiumEnvironment(f"{module}:{function}", kwargs)
    return environment, environment.sub_envs(np.array([seed])), made


def draw(environment, rng):
    """Return random actions of all agents for one step: (1, agents, ...)."""
    return environment.actions.from_uniform(rng.random((len(environment.actions.low), 1)))


@pytest.mark.parametrize(("function", "seed"), [*zip(("parallel_env", "env"), SEEDS, strict=True)])
@pytest.mark.parametrize("module", PARALLEL)
def test_parallel_game_equals_pettingzoos_steps(module, function, seed):
    kwargs, rng = PARALLEL[module], np.random.default_rng(seed)
    environment, ours, made = started(module, function, kwargs, seed)
    theirs = made.parallel_env(render_mode="rgb_array", **kwargs)
    theirs.reset(seed=seed)
    agents, total, steps = theirs.possible_agents, dict.fromkeys(theirs.possible_agents, 0.0), 0
    while theirs.agents:
        actions = draw(environment, rng)
        rows = dict(zip(agents, environment.actions.to_gymnasium(actions[0]), strict=True))
        reward, terminated, truncated = ours.step(actions)
        observed, rewards, *ended, _ = theirs.step({agent: rows[agent] for agent in theirs.agents})
        assert reward == sum(rewards.values())
        shown = environment.batch(ours.observations())
        assert all(np.array_equal(shown[agent][0], part) for agent, part in observed.items())
        assert np.array_equal(ours.frames()[0], theirs.render())
        total = {agent: total[agent] + rewards.get(agent, 0) for agent in agents}
        steps += 1
    assert [terminated[0], truncated[0]] == [any(flags.values()) for flags in ended] and steps > 5
    assert ours.info(0) == {f"return_{agent}": value for agent, value in total.items()}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("game", TURNS)
def test_game_of_turns_equals_pettingzoos_steps(game, seed):
    rng = np.random.default_rng(seed)
    environment, ours, made = started(f"pettingzoo.classic.{game}", "env", {}, seed)
    theirs = made.env(render_mode="rgb_array")
    theirs.reset(seed=seed)
    agents, total = theirs.possible_agents, dict.fromkeys(theirs.possible_agents, 0.0)
    actions = draw(environment, rng)
    for agent in theirs.agent_iter():
        observed, reward, terminated, truncated, _ = theirs.last()
        total[agent] += reward
        if terminated or truncated:
            theirs.step(None)
            continue
        shown = environment.batch(ours.observations())[agent]
        assert all(np.array_equal(shown[key][0], part) for key, part in observed.items())
        theirs.step(actions[0][agents.index(agent)])
        _, *over = ours.step(actions)
        assert np.array_equal(ours.frames()[0], theirs.render())
        actions = draw(environment, rng)
    assert any(over)
    assert ours.info(0) == {f"return_{agent}": value for agent, value in total.items()}


def test_film_of_legal_moves_has_each_agents_return(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("legal.py").write_text(LEGAL)
    game, caption = "pettingzoo.classic.tictactoe_v3", {"caption": "{info}", "title_card": 0}
    film = goalreel.film(f"{game}:env", "legal.py", overlay=caption)
    table, returns = film.table, film.table[["return_player_1", "return_player_2"]]
    assert (table["outcome"] == "terminated").all() and table["steps"].between(5, 9).all()
    assert set(map(tuple, returns.to_numpy())) <= {(1, -1), (-1, 1), (0, 0)}
    assert len(returns.drop_duplicates()) > 1 and (table["return"] == 0).all()


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_boxes_of_actions_keep_their_dtype(dtype):
    box = Box(0, 2**40 + 1, (2,), dtype)
    assert _joint_space([box, box]).high.tolist() == [[2**40 + 1] * 2] * 2
