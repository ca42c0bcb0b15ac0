"""ALE's games as Gymnasium environments, each frame a step.

They are made as what was once called NoFrameskip-v4: an action lasts a frame, since our wrapper
skips, and is never repeated by chance. That is what Stable-Baselines3's AtariWrapper expects; the
ids ending in -v5 would skip four frames and repeat an action with probability 1/4 on their own.
"""

import importlib

import gymnasium

from goalreel.environments.gymnasium_ids import find_spec


def make_ale(game: str) -> gymnasium.Env:
    """Make a game; its observations are the console's memory, its pictures those of `render`.

    The emulator draws each frame in any case, but one that is not rendered is not copied. Raises
    GoalreelError where ale-py is not installed, and for a game that it does not have.
    """
    find_spec(game)
    emulator = importlib.import_module("ale_py")
    emulator.ALEInterface.setLoggerMode(emulator.LoggerMode.Error)  # no banner at the first game
    env = gymnasium.make(
        game,
        frameskip=1,
        repeat_action_probability=0.0,
        obs_type="ram",
        render_mode="rgb_array",
        disable_env_checker=True,
    )
    return env.unwrapped
