"""Super Mario Bros as a Gymnasium environment, based on gym-super-mario-bros and the old Gym API.

Importing this module registers the games under their gym-super-mario-bros ids. The packages need
NumPy 1 and therefore a separate Python environment (pip install 'goalreel[mario]'). The module does
not use `gym.make`, whose wrappers expect five values from a step that returns four. The game's own
clock limits the length of an episode.
"""

import contextlib
import importlib
import io
import re
import sys

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from goalreel.environments.gymnasium_ids import MARIO_GAMES, MARIO_ROMS
from goalreel.errors import GoalreelError


def _packages():
    """Return the game's class, the class that presses buttons, and the buttons of each action."""
    problem = f"{sys.executable} cannot run Super Mario Bros"
    fix = (
        "Use a Python 3.11 or 3.12 of its own with pip install 'goalreel[mario]'.\n"
        "  In a checkout: make .venv-mario/installed, then .venv-mario/bin/snakemake"
    )
    if int(np.__version__.split(".")[0]) > 1:
        raise GoalreelError(f"{problem} with NumPy {np.__version__}. {fix}")
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # hides the notice that Gym is unmaintained
            game = importlib.import_module("gym_super_mario_bros")
        actions = importlib.import_module("gym_super_mario_bros.actions")
        wrappers = importlib.import_module("nes_py.wrappers")
    except (ImportError, OSError) as error:
        raise GoalreelError(f"{problem} ({error}). {fix}") from None
    return game.SuperMarioBrosEnv, wrappers.JoypadSpace, actions.SIMPLE_MOVEMENT


_Emulator, _Joypad, _MOVEMENTS = _packages()


class MarioEnv(gymnasium.Env):
    """The whole game, or one stage of it.

    Observations are the screen, (240, 256, 3) uint8, or with `obs_type="ram"` the memory of the
    NES, (2048,) uint8, which avoids copying the screen at every step. Actions are the indices of
    SIMPLE_MOVEMENT: 0 presses nothing, 1 moves right. `info` has x_pos, the distance from the left
    end of the stage in pixels, and more.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}

    def __init__(self, game: str, obs_type: str = "rgb", render_mode: str = "rgb_array"):
        """Create one of MARIO_GAMES."""
        if obs_type not in ("rgb", "ram"):
            raise ValueError(f"obs_type: Unknown value {obs_type!r}. Use rgb or ram.")
        stage = re.search(r"-(\d)-(\d)-", game)
        target = tuple(map(int, stage.groups())) if stage else None
        self._emulator = _Emulator(rom_mode=MARIO_ROMS[int(game[-1])], target=target)
        self._joypad = _Joypad(self._emulator, _MOVEMENTS)
        self._whole, self._shows_screen = target is None, obs_type == "rgb"
        self.render_mode = render_mode
        shape = (240, 256, 3) if self._shows_screen else (2048,)
        self.action_space = Discrete(len(_MOVEMENTS))
        self.observation_space = Box(0, 255, shape, np.uint8)

    def get_action_meanings(self) -> list[str]:
        """Return the buttons that each action presses, such as "right A" or "NOOP"."""
        return self._joypad.get_action_meanings()

    def lives(self) -> int:
        """Return the lives left, including the current one, or 0 in a single stage."""
        return (int(self._emulator.ram[0x075A]) + 1) % 256 if self._whole else 0

    def reset(self, *, seed: int | None = None, options=None) -> tuple[np.ndarray, dict]:
        """Restart the game, which is deterministic."""
        super().reset(seed=seed)
        self._emulator.reset()
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Press the buttons of an action for one frame."""
        _, reward, done, info = self._joypad.step(int(action))
        return self._obs(), float(reward), bool(done), False, info

    def _obs(self) -> np.ndarray:
        return self.render() if self._shows_screen else self._emulator.ram.copy()

    def render(self) -> np.ndarray:
        """Return a copy of the screen, (240, 256, 3) uint8."""
        return np.ascontiguousarray(self._emulator.screen)

    def close(self) -> None:
        """Free the emulator."""
        self._emulator.close()


for _game in MARIO_GAMES:
    gymnasium.register(_game, f"{__name__}:{MarioEnv.__name__}", kwargs={"game": _game})
