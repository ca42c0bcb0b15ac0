"""The wrappers are those of Stable-Baselines3 and Gymnasium, step for step on a game of ALE's."""

import gymnasium
import numpy as np
import pytest

from goalreel.training.games.emulated import make_ale, wrap
from goalreel.training.games.settings import GameSettings

WHY = "the game that wrappers are compared on comes with ale-py (requirements-train.in)"
pytest.importorskip("ale_py", reason=WHY)
BREAKOUT = "ALE/Breakout-v5"
SB3 = "stable_baselines3.common.atari_wrappers"


def raw(game=BREAKOUT, obs_type="rgb"):
    """Return a game as Gymnasium makes it, a frame a step."""
    make_ale(game).close()  # which registers it
    return gymnasium.make(game, frameskip=1, repeat_action_probability=0.0, obs_type=obs_type)


def play_alike(ours, theirs, steps, shown=lambda theirs: theirs, seed=5):
    """Play both by the same random actions; return how many episodes and games ended.

    The frame that a game ends with is left out: there each shows what it has.
    """
    rng, episodes, games = np.random.default_rng(seed), 0, 0
    one, other = ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0]
    assert np.array_equal(one, shown(other))
    for _ in range(steps):
        action = int(rng.integers(ours.action_space.n))
        one, *ends, info = ours.step(action)
        other, *wanted, _ = theirs.step(action)
        assert ends == wanted
        over = info.get("lives") == 0
        assert over or np.array_equal(one, shown(other))
        if ends[1] or ends[2]:
            episodes, games = episodes + 1, games + over
            assert np.array_equal(ours.reset()[0], shown(theirs.reset()[0]))
    return episodes, games


@pytest.mark.parametrize("changes", [{}, {"noop": 0, "episodic_life": False, "clip_reward": False}])
def test_the_whole_stack_is_stable_baselines3s(changes):
    pytest.importorskip("cv2", reason="Stable-Baselines3 warps by OpenCV")
    sb3 = pytest.importorskip(
        "stable_baselines3.common.atari_wrappers", reason="takes requirements-train-test.in"
    )
    ours = wrap(make_ale(BREAKOUT), GameSettings(BREAKOUT, warp="area", **changes))
    settings = {
        "noop_max": changes.get("noop", 30),
        "terminal_on_life_loss": changes.get("episodic_life", True),
        "clip_reward": changes.get("clip_reward", True),
    }
    theirs = sb3.AtariWrapper(raw(), **settings)
    episodes, games = play_alike(ours, theirs, 400, lambda frame: frame[..., 0])
    assert games >= 1 and (changes or episodes > 2 * games), "lives and games were lost"
