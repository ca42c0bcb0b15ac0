"""Super Mario Bros as a Gymnasium environment, on FCEUmm, the NES emulator of stable-retro.

Importing this module registers the games under their gym-super-mario-bros ids. Stages, rewards,
ends and info are those of that package (`gym_super_mario_bros/smb_env.py`, 7.4.0). It is installed
for its ROMs only, and never imported. The game's own clock limits the length of an episode.
"""

import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from goalreel.environments.gymnasium_ids import MARIO_GAMES, MARIO_ROMS
from goalreel.errors import GoalreelError, needs_package

_BUTTONS = ("B", None, "select", "start", "up", "down", "left", "right", "A")  # of the emulator
_MOVEMENTS = ("NOOP", "right", "right A", "right B", "right A B", "A", "left")  # SIMPLE_MOVEMENT
_MASKS = {
    name: np.array([button in name.split() for button in _BUTTONS], np.uint8)
    for name in (*_MOVEMENTS, "start")
}
_MEMORY = slice(93, 93 + 2048)  # of the NES, in the emulator's state
# Addresses in the memory: https://datacrystal.tcrf.net/wiki/Super_Mario_Bros./RAM_map
_PLAYER, _FLOAT, _PAGE, _X, _VIEWPORT, _Y = 0x0E, 0x1D, 0x6D, 0x86, 0xB5, 0x3B8
_AREA_TIMER, _STATUS, _LIVES, _STAGE, _WORLD, _AREA = 0x6DE, 0x756, 0x75A, 0x75C, 0x75F, 0x760
_MODE, _LEVEL_TIMER = 0x770, 0x7A0
_ENEMIES, _SCORE = slice(0x16, 0x1B), slice(0x7DE, 0x7E4)
_COINS, _TIME = slice(0x7ED, 0x7EF), slice(0x7F8, 0x7FB)
_FALLS_IN = {(1, 2), (2, 2), (4, 2), (7, 2)}  # stages that begin above the ground
_BUSY = frozenset((0, 1, 2, 3, 4, 5, 7))  # states of a player who climbs, or enters an area
_DEAD, _DYING, _END_OF_WORLD, _BOWSER, _FLAGPOLE = 0x06, 0x0B, 2, 0x2D, 0x31


def _roms() -> Path:
    """Return the folder of ROMs. Raises GoalreelError if a package is missing."""
    game, package = "Super Mario Bros", "gym-super-mario-bros"
    if importlib.util.find_spec("stable_retro") is None:
        raise GoalreelError(needs_package(game, "stable-retro", "goalreel[mario]"))
    if (found := importlib.util.find_spec("gym_super_mario_bros")) is None:
        fix = f"Install it: pip install --no-deps {package}==7.4.0"
        raise GoalreelError(f"{game} needs the ROM in the package {package}. {fix}")
    return Path(found.origin).parent / "_roms"


def _number(digits: bytes) -> int:
    """Return the number with these decimal digits."""
    number = 0
    for digit in digits:
        number = 10 * number + digit
    return number


class Snapshot(NamedTuple):
    """A moment of a game, without its screen and the generator of sticky actions."""

    state: bytes  # of the emulator, 13 kB
    action: int  # of the last frame, which the next one may repeat


class _Console:
    """The only emulator that stable-retro allows in a process. Its environments take turns."""

    _emulator = _env = _rom = None

    def turn(self, env: "MarioEnv", load: bool = False):
        """Return the emulator with an environment's state, or turned on if it has none.

        load: whether to load the state even if the environment had the last turn
        """
        if self._env is not env:
            if self._env is not None and self._env.screen is None:
                self._env.screen = self._emulator.get_screen()
            if env.state is None or env.rom != self._rom:
                import stable_retro

                self._emulator = None  # deletes it
                self._emulator = stable_retro.RetroEmulator(str(env.rom))
            self._env, self._rom, load = env, env.rom, env.state is not None
        if load:
            self._emulator.set_state(env.state)
        return self._emulator


_ROMS, _CONSOLE = _roms(), _Console()
_STARTS: dict[tuple, tuple[bytes, np.ndarray]] = {}  # states and screens, by ROM and stage


class MarioEnv(gymnasium.Env):
    """The whole game, or one stage of it.

    Observations are the screen, (224, 240, 3) uint8, or with `obs_type="ram"` the memory of the
    NES, (2048,) uint8. Actions are the indices of SIMPLE_MOVEMENT: 0 presses nothing, 1 moves
    right. Each frame repeats the action of the previous one with `repeat_action_probability`
    (sticky actions, Machado et al., 2018). `info` has x_pos, the distance from the left end of the
    stage in pixels, and more.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}

    def __init__(
        self,
        game: str,
        obs_type: str = "rgb",
        repeat_action_probability: float = 0.25,
        render_mode: str = "rgb_array",
    ):
        """Create one of MARIO_GAMES."""
        if obs_type not in ("rgb", "ram"):
            raise ValueError(f"obs_type: Unknown value {obs_type!r}. Use rgb or ram.")
        stage = re.search(r"-(\d)-(\d)-", game)
        self._target = tuple(map(int, stage.groups())) if stage else None
        self._stickiness, self._shows_screen = repeat_action_probability, obs_type == "rgb"
        self.rom, self.state, self.screen = (
            _ROMS / f"super-mario-bros{MARIO_ROMS[int(game[-1])]}.nes",
            None,
            None,
        )
        self.render_mode = render_mode
        shape = (224, 240, 3) if self._shows_screen else (2048,)
        self.action_space = Discrete(len(_MOVEMENTS))
        self.observation_space = Box(0, 255, shape, np.uint8)

    def get_action_meanings(self) -> list[str]:
        """Return the buttons that each action presses, such as "right A" or "NOOP"."""
        return list(_MOVEMENTS)

    def lives(self) -> int:
        """Return the lives left, including the current one, or 0 in a single stage."""
        return 0 if self._target else (self._ram[_LIVES] + 1) % 256

    def reset(self, *, seed: int | None = None, options=None) -> tuple[np.ndarray, dict]:
        """Restart the game. The seed decides which actions are repeated."""
        super().reset(seed=seed)
        if (self.rom, self._target) not in _STARTS:
            self._start()
            _STARTS[self.rom, self._target] = self.state, self.render()
        state, screen = _STARTS[self.rom, self._target]
        self.restore(Snapshot(state, 0))
        self.screen = screen
        return self._obs(), {}

    def snapshot(self) -> Snapshot:
        """Return this moment of the game."""
        return Snapshot(self.state, self._action)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of the same ROM. The next frame renders its screen."""
        state, self._action = snapshot
        self._set(state)
        self._last = self._ram

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Play an action for one frame."""
        reward, over = self.advance(int(action))
        return self._obs(), reward, over, False, self.info()

    def advance(self, action: int, frames: int = 1) -> tuple[float, bool]:
        """Play an action for some frames, or until the game is over, without observations.

        Returns: the sum of rewards, and whether the game is over
        """
        total = 0.0
        for _ in range(frames):
            if not self._stickiness or self.np_random.random() >= self._stickiness:
                self._action = action
            before = self._ram
            self._frame(_MOVEMENTS[self._action])
            self._last = self._ram
            total += self._reward(before)
            if self._is_over():
                return total, True
            self._skip_scenes()
        return total, False

    def _reward(self, before: bytes) -> float:
        moved = self.x_pos - before[_PAGE] * 256 - before[_X]
        ticked = _number(self._last[_TIME]) - _number(before[_TIME])
        moved = moved if -5 <= moved <= 5 else 0  # pipes and new lives move Mario farther
        return float(max(-15, moved + min(ticked, 0) - 25 * self.is_dead))

    def _is_over(self) -> bool:
        return self.is_dead or self.flag_get if self._target else self._last[_LIVES] == 255

    @property
    def x_pos(self) -> int:
        """The distance from the left end of the stage in pixels."""
        return self._last[_PAGE] * 256 + self._last[_X]

    @property
    def y_pos(self) -> int:
        """The height above the lower end of the screen in pixels."""
        return (510 if self._last[_VIEWPORT] < 1 else 255) - self._last[_Y]

    @property
    def is_dead(self) -> bool:
        """Whether Mario dies or has fallen below the screen."""
        return self._last[_PLAYER] in (_DEAD, _DYING) or self._last[_VIEWPORT] > 1

    @property
    def flag_get(self) -> bool:
        """Whether Mario slides down the flagpole, or has reached the end of a castle."""
        enemies = self._last[_ENEMIES]
        slides = self._last[_FLOAT] == 3 and (_BOWSER in enemies or _FLAGPOLE in enemies)
        return slides or self._last[_MODE] == _END_OF_WORLD

    def info(self) -> dict[str, object]:
        """Return the info of the last frame."""
        last = self._last
        return {
            "coins": _number(last[_COINS]),
            "flag_get": self.flag_get,
            "life": last[_LIVES],
            "score": _number(last[_SCORE]),
            "stage": last[_STAGE] + 1,
            "status": ("small", "tall", "fireball")[min(last[_STATUS], 2)],
            "time": _number(last[_TIME]),
            "world": last[_WORLD] + 1,
            "x_pos": self.x_pos,
            "y_pos": self.y_pos,
        }

    def _obs(self) -> np.ndarray:
        return (
            self.render() if self._shows_screen else np.frombuffer(bytearray(self._ram), np.uint8)
        )

    def render(self) -> np.ndarray:
        """Return a copy of the screen, (224, 240, 3) uint8."""
        return _CONSOLE.turn(self).get_screen() if self.screen is None else self.screen.copy()

    def _frame(self, buttons: str = "NOOP") -> None:
        emulator = _CONSOLE.turn(self)
        emulator.set_button_mask(_MASKS[buttons], 0)
        emulator.step()
        self.state, self.screen = emulator.get_state(), None
        self._ram = self.state[_MEMORY]

    def _set(self, state: bytes) -> None:
        self.state, self.screen, self._ram = state, None, state[_MEMORY]
        _CONSOLE.turn(self, load=True)

    def _write(self, values: dict[int, int]) -> None:
        state = bytearray(self.state)
        for address, value in values.items():
            state[_MEMORY.start + address] = value
        self._set(bytes(state))

    def _start(self) -> None:
        """Turn the console on, and skip the title screen and the first moments of the stage."""
        self._frame()
        clock = self._press_start()
        while not 0 < clock <= 999:  # not set yet
            clock = self._press_start()
            self._write({_LEVEL_TIMER: 0})
        last = 0
        while clock >= last:
            last, clock = clock, self._press_start()
        for _ in range(0 if self._target in _FALLS_IN else 2):
            self._frame()

    def _press_start(self) -> int:
        """Press and release start; return the clock."""
        self._frame("start")
        if self._target:
            world, stage = self._target
            area = stage - 1 + (stage > 1 and world in (1, 2, 4, 7))  # areas that enter a stage
            self._write({_WORLD: world - 1, _STAGE: stage - 1, _AREA: area})
        self._frame()
        return _number(self._ram[_TIME])

    def _skip_scenes(self) -> None:
        """Skip the scenes after a death, in pipes and between stages."""
        if not self._target:
            if self.is_dead:
                self._write({_PLAYER: _DEAD})
                self._frame()
            clock = self._ram[_TIME]
            while self._ram[_MODE] == _END_OF_WORLD and self._ram[_TIME] == clock:
                self._frame()
        if 1 < self._ram[_AREA_TIMER] < 255:
            self._write({_AREA_TIMER: 1})
        skipped = False
        while self._ram[_PLAYER] in _BUSY or self._ram[_MODE] == _END_OF_WORLD:
            skipped = True
            self._write({_LEVEL_TIMER: 0})
            self._frame()
        if skipped:
            self._frame()


for _game in MARIO_GAMES:
    gymnasium.register(_game, f"{__name__}:{MarioEnv.__name__}", kwargs={"game": _game})
