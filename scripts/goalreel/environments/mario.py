"""Super Mario Bros as a Gymnasium environment, on FCEUmm, the NES emulator of stable-retro.

Importing this module registers the games under their gym-super-mario-bros ids. Stages, rewards,
ends and info are those of that package (`gym_super_mario_bros/smb_env.py`, 7.4.0). It is installed
for its ROMs only, and never imported. The game's own clock limits the length of an episode.
"""

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

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
_MODE, _LEVEL_TIMER, _ENEMIES = 0x770, 0x7A0, slice(0x16, 0x1B)
_SCORE, _COINS, _TIME = slice(0x7DE, 0x7E4), slice(0x7ED, 0x7EF), slice(0x7F8, 0x7FB)
_BUSY = frozenset((0, 1, 2, 3, 4, 5, 7))  # states of a player who climbs, or enters an area
_DEAD, _DYING, _END_OF_WORLD, _BOWSER, _FLAGPOLE = 0x06, 0x0B, 2, 0x2D, 0x31
# The ending of the name of each version's ROM, from full details to rectangles.
_ROM_ENDINGS = ("", "-downsample", "-pixel", "-rectangle")
_STAGES = ("", *(f"-{world}-{stage}" for world in range(1, 9) for stage in range(1, 5)))
_FALLS_IN = {(1, 2), (2, 2), (4, 2), (7, 2)}  # stages that begin above the ground


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
    return int("".join(map(str, digits)))


_ROMS = _roms()
_STARTS: dict[tuple, tuple[bytes, np.ndarray]] = {}  # states and screens, by ROM and stage


class MarioEnv(gymnasium.Env):
    """The whole game, or one stage of it, by its registered name.

    Observations are the screen, (224, 240, 3) uint8, or with `obs_type="ram"` the memory of the
    NES, (2048,) uint8. Actions are the indices of SIMPLE_MOVEMENT: 0 presses nothing, 1 moves
    right. Each frame repeats the action of the previous one with `repeat_action_probability`
    (sticky actions, Machado et al., 2018). `info` has x_pos, the distance from the left end of the
    stage in pixels, and more.

    stable-retro allows one emulator per process, so the instances take turns.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}
    _emulator = _player = None  # of all instances: the emulator, and the instance in it

    def __init__(
        self,
        game: str,
        obs_type: str = "rgb",
        repeat_action_probability: float = 0.25,
        render_mode: str = "rgb_array",
    ):
        if obs_type not in ("rgb", "ram"):
            raise ValueError(f"obs_type: Unknown value {obs_type!r}. Use rgb or ram.")
        stage = re.search(r"-(\d)-(\d)-", game)
        self._target = tuple(map(int, stage.groups())) if stage else None
        self._rom = str(_ROMS / f"super-mario-bros{_ROM_ENDINGS[int(game[-1])]}.nes")
        self._stickiness, self._shows_screen = repeat_action_probability, obs_type == "rgb"
        self._state = self._screen = None
        self.render_mode = render_mode
        shape = (224, 240, 3) if self._shows_screen else (2048,)
        self.action_space = Discrete(len(_MOVEMENTS))
        self.observation_space = Box(0, 255, shape, np.uint8)

    def get_action_meanings(self) -> list[str]:
        """Return the buttons that each action presses, such as "right A" or "NOOP"."""
        return list(_MOVEMENTS)

    def reset(self, *, seed: int | None = None, options=None) -> tuple[np.ndarray, dict]:
        """Restart the game. The seed decides which actions are repeated."""
        super().reset(seed=seed)
        if (self._rom, self._target) not in _STARTS:
            self._start()
            _STARTS[self._rom, self._target] = self._state, self.render()
        state, screen = _STARTS[self._rom, self._target]
        self.restore((state, 0))
        self._screen = screen
        return self._obs(), {}

    def snapshot(self) -> tuple[bytes, int]:
        """Return this moment of the game: the emulator's state, 13 kB, and the last action."""
        return self._state, self._action

    def restore(self, snapshot: tuple[bytes, int]) -> None:
        """Continue from a snapshot of the same ROM. Its screen appears with the next frame."""
        state, self._action = snapshot
        self._load(state)
        self._last = self._memory

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Play an action for one frame."""
        reward, over = self.advance(int(action))
        return self._obs(), reward, over, False, self.info()

    def advance(self, action: int, frames: int = 1) -> tuple[float, bool]:
        """Play an action for some frames. Return the sum of rewards, and whether the game ended."""
        total, self.has_died, self.has_flag = 0.0, False, False  # in any of these frames
        for _ in range(frames):
            if not self._stickiness or self.np_random.random() >= self._stickiness:
                self._action = action
            before = self._memory
            self._frame(_MOVEMENTS[self._action])
            last = self._last = self._memory
            moved = self.x_pos - before[_PAGE] * 256 - before[_X]
            moved = moved if -5 <= moved <= 5 else 0  # pipes and new lives move Mario farther
            ticked = min(0, _number(last[_TIME]) - _number(before[_TIME]))
            total += max(-15, moved + ticked - 25 * self.is_dead)
            self.has_died |= self.is_dead
            self.has_flag |= self.flag_get
            if self.has_died or self.has_flag if self._target else last[_LIVES] == 255:
                return total, True
            self._skip_scenes()
        return total, False

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
            "life": last[_LIVES],  # 255 after the last one
            "score": _number(last[_SCORE]),
            "stage": last[_STAGE] + 1,
            "status": ("small", "tall", "fireball")[min(last[_STATUS], 2)],
            "time": _number(last[_TIME]),
            "world": last[_WORLD] + 1,
            "x_pos": self.x_pos,
            "y_pos": self.y_pos,
        }

    def render(self) -> np.ndarray:
        """Return a copy of the screen, (224, 240, 3) uint8."""
        return self._turn().get_screen() if self._screen is None else self._screen.copy()

    def _obs(self) -> np.ndarray:
        memory = np.frombuffer(bytearray(self._memory), np.uint8)
        return self.render() if self._shows_screen else memory

    def _turn(self):
        """Return the emulator with this instance's state, or turned on if it has none."""
        other = MarioEnv._player
        if other is not self:
            if other is not None and other._screen is None:
                other._screen = self._emulator.get_screen()
            if self._state is None or other._rom != self._rom:
                import stable_retro

                MarioEnv._emulator = None  # deletes it, because a second one is an error
                MarioEnv._emulator = stable_retro.RetroEmulator(self._rom)
            if self._state is not None:
                self._emulator.set_state(self._state)
            MarioEnv._player = self
        return self._emulator

    def _frame(self, buttons: str = "NOOP") -> None:
        emulator = self._turn()
        emulator.set_button_mask(_MASKS[buttons], 0)
        emulator.step()
        self._state, self._screen = emulator.get_state(), None
        self._memory = self._state[_MEMORY]

    def _load(self, state: bytes) -> None:
        self._state, self._screen, self._memory = state, None, state[_MEMORY]
        self._turn().set_state(state)

    def _write(self, values: Mapping[int, int]) -> None:
        state = bytearray(self._state)
        for address, value in values.items():
            state[_MEMORY.start + address] = value
        self._load(bytes(state))

    def _start(self) -> None:
        """Press start until the clock ticks, on the frame on which gym-super-mario-bros starts."""
        world, stage = self._target or (1, 1)
        area = stage - 1 + (stage > 1 and world in (1, 2, 4, 7))  # a scene is also an area
        target = {_WORLD: world - 1, _STAGE: stage - 1, _AREA: area} if self._target else {}
        self._frame()
        last = clock = 0
        while not 0 < clock < last <= 999:
            self._frame("start")
            self._write(target)
            self._frame()
            if not 0 < clock <= 999:
                self._write({_LEVEL_TIMER: 0})
            last, clock = clock, _number(self._memory[_TIME])
        for _ in range(0 if self._target in _FALLS_IN else 2):
            self._frame()

    def _skip_scenes(self) -> None:
        """Skip the scenes after a death, in pipes and between stages."""
        if not self._target:
            if self.is_dead:
                self._write({_PLAYER: _DEAD})
                self._frame()
            clock = self._memory[_TIME]
            while self._memory[_MODE] == _END_OF_WORLD and self._memory[_TIME] == clock:
                self._frame()
        if 1 < self._memory[_AREA_TIMER] < 255:
            self._write({_AREA_TIMER: 1})
        is_scene = False
        while self._memory[_PLAYER] in _BUSY or self._memory[_MODE] == _END_OF_WORLD:
            is_scene = True
            self._write({_LEVEL_TIMER: 0})
            self._frame()
        if is_scene:  # gym-super-mario-bros plays on a frame later
            self._frame()


for _game in (f"SuperMarioBros{s}-v{v}" for v in range(len(_ROM_ENDINGS)) for s in _STAGES):
    gymnasium.register(_game, f"{__name__}:{MarioEnv.__name__}", kwargs={"game": _game})
