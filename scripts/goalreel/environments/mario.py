"""Super Mario Bros as a Gymnasium environment, by way of gym-super-mario-bros and Gym's old API.

Importing this module registers the games, whose ids are those of gym-super-mario-bros. Its packages
need NumPy 1 and an interpreter of their own (pip install 'goalreel[mario]'). A game is made without
`gym.make`, whose wrappers expect the five values of Gym's new API from a step that gives four; the
game's clock is its time limit.
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
    """Return the game's class, the wrapper that presses buttons, and the buttons of each action."""
    how = (
        f"Super Mario Bros needs Python 3.11 or 3.12 of its own with pip install 'goalreel[mario]' "
        f"(in a checkout: make .venv-mario/installed, then .venv-mario/bin/snakemake); "
        f"{sys.executable}"
    )
    if int(np.__version__.split(".")[0]) > 1:
        raise GoalreelError(f"{how} has NumPy {np.__version__}, which nes-py cannot work with")
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # Gym's notice that it is unmaintained
            game = importlib.import_module("gym_super_mario_bros")
        actions = importlib.import_module("gym_super_mario_bros.actions")
        wrappers = importlib.import_module("nes_py.wrappers")
    except (ImportError, OSError) as error:
        raise GoalreelError(f"{how} cannot import them ({error})") from None
    return game.SuperMarioBrosEnv, wrappers.JoypadSpace, actions.SIMPLE_MOVEMENT


_Emulator, _Joypad, _MOVEMENTS = _packages()


class MarioEnv(gymnasium.Env):
    """A whole game or a stage of it.

    Observations are the screen, (240, 256, 3) uint8, or, with `obs_type="ram"`, the NES's memory,
    (2048,) uint8; then only pictures that are rendered are copied out of the emulator. Actions are
    those of SIMPLE_MOVEMENT: 0 presses nothing, 1 goes to the right. `info` has x_pos, the distance
    from the stage's left end in pixels, and more.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}

    def __init__(self, game: str, obs_type: str = "rgb", render_mode: str = "rgb_array"):
        """Make one of MARIO_GAMES."""
        if obs_type not in ("rgb", "ram"):
            raise ValueError(f"obs_type: unknown value {obs_type!r}; allowed: rgb, ram")
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
        """Return the buttons that each action presses, "right A" or "NOOP"."""
        return self._joypad.get_action_meanings()

    def lives(self) -> int:
        """Return the lives that are left, this one too; 0 in a stage, which ends with the life."""
        return (int(self._emulator.ram[0x075A]) + 1) % 256 if self._whole else 0

    def reset(self, *, seed: int | None = None, options=None) -> tuple[np.ndarray, dict]:
        """Begin anew; the game itself has no chance in it."""
        super().reset(seed=seed)
        self._emulator.reset()
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Press an action's buttons for a frame."""
        _, reward, done, info = self._joypad.step(int(action))
        return self._obs(), float(reward), bool(done), False, info

    def _obs(self) -> np.ndarray:
        return self.render() if self._shows_screen else self._emulator.ram.copy()

    def render(self) -> np.ndarray:
        """Return the screen, (240, 256, 3) uint8, a copy: the emulator draws in its own."""
        return np.ascontiguousarray(self._emulator.screen)

    def close(self) -> None:
        """Free the emulator."""
        self._emulator.close()


for _game in MARIO_GAMES:
    gymnasium.register(_game, f"{__name__}:{MarioEnv.__name__}", kwargs={"game": _game})
