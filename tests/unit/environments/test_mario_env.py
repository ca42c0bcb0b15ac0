"""Super Mario Bros plays as in gym-super-mario-bros 7.4.0 on nes-py 8.2.1.

super_mario_bros.json was recorded there. A row is a step, the sum of rewards, a digest of the
screen without its border, and the values of info. The games reach a flag, an axe or two stages, or
lose all lives, and begin each stage. nes-py shows each frame one step later, so a row is that of
the next step. It also takes one action more after each scene, which the recorded actions omit.
"""

import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from message_form import check_form

from goalreel.environments.gymnasium_ids import environment_errors

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("stable_retro", "gym_super_mario_bros"))),
    reason="needs stable-retro and gym-super-mario-bros: envs/locks/test.txt and rom.txt have them",
)
GAMES = json.loads(Path(__file__).with_name("super_mario_bros.json").read_text(encoding="utf-8"))
STAGE = "SuperMarioBros-1-1-v0"


def make(game: str = STAGE, **kwargs):
    from goalreel.environments.mario import MarioEnv

    return MarioEnv(game, **kwargs)


def digest(screen: np.ndarray) -> str:
    """Return a digest of an image that is the same in other colors."""
    colors = (screen.astype(np.int32) @ [65536, 256, 1]).ravel()
    _, first, numbers = np.unique(colors, return_index=True, return_inverse=True)
    in_order = np.argsort(np.argsort(first))[numbers].astype(np.uint8)
    return hashlib.sha256(in_order.tobytes()).hexdigest()[:8]


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game["game"])
def test_game_plays_as_in_gym_super_mario_bros(game):
    env, rows, step, total, over = make(game["game"], repeat_action_probability=0), [], 0, 0, False
    env.reset(seed=0)
    wanted = {row[0]: row for row in game["rows"]}
    for action, count in (map(int, run.split("x")) for run in game["actions"].split()):
        for _ in range(count):
            assert not over
            screen, reward, over, truncated, info = env.step(action)
            step, total = step + 1, total + reward
            if step in wanted:
                seen = digest(screen) if wanted[step][2] else None
                rows.append([step, total, seen, *(info[key] for key in sorted(info))])
    assert rows == game["rows"] and over == game["over"] and not truncated


def test_instances_that_take_turns_play_as_alone():
    """The instances have different ROMs, and the random generator decides which actions repeat."""

    def steps(game):
        env, rng = make(game), np.random.default_rng(3)
        yield env.reset(seed=5)[0].copy()
        for _ in range(150):
            screen, reward, over, _, info = env.step(4 if rng.random() < 0.9 else rng.integers(7))
            yield screen, reward, over, info
            assert np.array_equal(env.render(), screen)
            if over:
                env.reset()

    games = [STAGE, "SuperMarioBros-1-1-v2", STAGE, "SuperMarioBros-v0"]
    alone = [list(steps(game)) for game in games]
    for number, turns in enumerate(zip(*map(steps, games), strict=True)):
        for game, turn in zip(alone, turns, strict=True):
            for one, other in zip(game[number], turn, strict=True):
                assert np.array_equal(one, other)


def test_restored_snapshot_plays_on_as_before():
    env = make()
    env.reset(seed=1)
    env.advance(4, 50)
    snapshot, state, facts = env.snapshot(), env.np_random.bit_generator.state, env.info()
    first = env.advance(2, 100), env.info(), env.render()
    env.reset()
    env.restore(snapshot)
    env.np_random.bit_generator.state = state
    assert env.info() == facts and (env.x_pos, env.y_pos) == (facts["x_pos"], facts["y_pos"])
    again = env.advance(2, 100), env.info(), env.render()
    assert first[:2] == again[:2] and np.array_equal(first[2], again[2]) and not env.is_dead


def test_sticky_actions_repeat_with_their_probability():
    """Before each frame, the previous action is 0."""
    env, repeated = make(), 0
    env.reset(seed=2)
    start = env.snapshot()
    for _ in range(3000):
        env.restore(start)
        env.advance(5)
        repeated += env.snapshot()[1] == 0
    assert abs(repeated / 3000 - 0.25) < 0.03


def test_observations_are_screen_or_memory():
    screen, memory = make(), make(obs_type="ram")
    for env in (screen, memory):
        for obs in (env.reset(seed=0)[0], env.step(1)[0]):
            assert env.observation_space.contains(obs)
    assert np.array_equal(memory.render(), screen.render())


COMMANDS = {
    "stable_retro": "pip install 'goalreel[mario]'",
    "gym_super_mario_bros": "pip install --no-deps gym-super-mario-bros==7.4.0",
}


@pytest.mark.parametrize(("package", "command"), COMMANDS.items())
def test_missing_package_is_named_with_its_command(package, command, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: find(name) if name != package else None
    )
    monkeypatch.delitem(sys.modules, "goalreel.environments.mario", raising=False)
    ((key, message),) = environment_errors(STAGE, {})
    check_form(f"{key}: {message}")
    assert key == "env" and command in message
