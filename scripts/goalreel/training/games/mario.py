"""Super Mario Bros as a Gymnasium environment, by way of gym-super-mario-bros and Gym's old API.

Its packages need NumPy 1 and an interpreter of their own (requirements-mario.txt). The game is made
without `gym.make`, whose wrappers expect the five values of Gym's new API from a step that gives
four; the game's clock is its time limit. Only pictures that are rendered are copied out of the
emulator.
"""

import contextlib
import importlib
import io
import re
import sys

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from goalreel.errors import GoalreelError
from goalreel.training.games.settings import MARIO_ROMS

_RAM = 2048


class MarioEnv(gymnasium.Env):
    """A whole game or a stage of it; its observations are the NES's memory, (2048,) uint8.

    Actions are those of SIMPLE_MOVEMENT: 0 presses nothing, 1 goes to the right. `info` has x_pos,
    the distance from the stage's left end in pixels, and more.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}
    render_mode = "rgb_array"
    observation_space = Box(0, 255, (_RAM,), np.uint8)

    def __init__(self, game: str):
        """Make one of MARIO_GAMES. Raises GoalreelError where its packages are missing."""
        emulator, joypad, movements = _packages()
        stage = re.search(r"-(\d)-(\d)-", game)
        target = tuple(map(int, stage.groups())) if stage else None
        self._emulator = emulator(rom_mode=MARIO_ROMS[int(game[-1])], target=target)
        self._joypad = joypad(self._emulator, movements)
        self._whole = target is None
        self.action_space = Discrete(len(movements))

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
        return self._emulator.ram.copy(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Press an action's buttons for a frame."""
        _, reward, done, info = self._joypad.step(int(action))
        return self._emulator.ram.copy(), float(reward), bool(done), False, info

    def render(self) -> np.ndarray:
        """Return the screen, (240, 256, 3) uint8, a copy: the emulator draws in its own."""
        return np.ascontiguousarray(self._emulator.screen)

    def close(self) -> None:
        """Free the emulator."""
        self._emulator.close()


def _packages():
    """Return the game's class, the wrapper that presses buttons, and the buttons of each action."""
    how = (
        f"Super Mario Bros needs an interpreter of its own with the packages of "
        f"requirements-mario.txt; {sys.executable}"
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
