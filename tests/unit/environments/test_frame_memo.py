"""Remembered frames are those that `env.render()` would return."""

import gymnasium
import numpy as np
import pytest

from goalreel.environments.drawing import frame_memo
from goalreel.environments.drawing.block_store import BlockFrame
from goalreel.environments.gymnasium_env import GymnasiumEnvironment

CASES = {
    "ALE/Pong-v5": {},
    "ALE/Breakout-v5": {"obs_type": "grayscale"},
    "FrozenLake-v1": {"desc": None, "map_name": "8x8"},
    "CliffWalking-v1": {},
    "Taxi-v4": {},
    "LunarLander-v3": {"enable_wind": True},
    "minigrid:MiniGrid-DoorKey-8x8-v0": {},
    "minigrid:MiniGrid-Dynamic-Obstacles-8x8-v0": {},
}
RARE_CASES = {
    "minigrid:MiniGrid-ObstructedMaze-2Dlhb-v1": {},
    "minigrid:BabyAI-GoToRedBall-v0": {},
}


def compared(environment, count: int, seeds=range(2)) -> int:
    """Compare frames with an untouched Gymnasium instance; return the number of frames.

    The instances take turns, as sub-environments do.
    """
    pairs, taken = [(environment.make(), environment.make()) for _ in range(count)], 0
    for seed in seeds:
        for pair in pairs:
            pair[1].reset(seed=seed)
            pair[0].action_space.seed(seed)
        going = {pair: pair[0].reset(seed=seed)[0] for pair in pairs}
        while going:
            for (env, peer), obs in tuple(going.items()):
                frame, expected = environment.frame(env, obs), peer.render()
                if taken % 4 == 0:
                    ours = frame.image() if isinstance(frame, BlockFrame) else frame
                    assert np.array_equal(ours, expected)
                taken += 1
                action = env.action_space.sample()
                going[env, peer], _, terminated, truncated, _ = env.step(action)
                peer.step(action)
                if terminated or truncated:
                    del going[env, peer]
    for env in sum(pairs, ()):
        env.close()
    return taken


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [*CASES.items(), *(pytest.param(*case, marks=pytest.mark.slow) for case in RARE_CASES.items())],
)
def test_memo_frames_equal_env_render(name, kwargs, monkeypatch):
    if ":" in name:
        pytest.importorskip("minigrid")
    # A small memory forgets some frames, which are then rendered again.
    monkeypatch.setattr(frame_memo, "_MAX_KEPT", 1 << 10)
    assert compared(GymnasiumEnvironment(name, kwargs, max_episode_steps=60), 2) > 20


@pytest.mark.slow
def test_composed_minigrid_frames_equal_env_render():
    """Includes BabyAI, other tile sizes, no highlight, and the agent's view."""
    pytest.importorskip("minigrid")
    kinds = "MiniGrid-", "BabyAI-"
    names = [name for name in gymnasium.registry if name.startswith(kinds) and "WFC" not in name]
    assert len(names) > 100
    for name in names:
        made = GymnasiumEnvironment(f"minigrid:{name}", max_episode_steps=40)
        assert compared(made, 1) > 2
    for kwargs in ({"tile_size": 16}, {"tile_size": 12}, {"highlight": False}, {"agent_pov": True}):
        name = "minigrid:MiniGrid-DoorKey-8x8-v0"
        made = GymnasiumEnvironment(name, kwargs, max_episode_steps=40)
        assert compared(made, 2) > 40
