"""Environments of Super Mario Bros for training, which can begin their games where it fails.

With the option `starts` at `failures`, a game begins at the level's start, or before a part of the
level in which many games end. The level is cut into segments. Each has some snapshots to begin
from, and the share of games that came through it. First snapshots are of paths to the flag that a
search has found (the first phase of Go-Explore: A. Ecoffet et al., "First return, then explore",
2021), then of games that were still alive three segments later. So a start has the policy's own
ways, and is never doomed.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from goalreel.environments.mario import MarioEnv
from goalreel.policies.preprocessing import WARPS, finish
from goalreel.training.envs import EndedGame, Envs, Step, Task
from goalreel.training.processes import Group
from goalreel.training.settings import Settings

_SEGMENT = 64  # pixels
_SEGMENTS = 256  # more than the longest level has
_BEHIND = 3  # segments after which a game's earlier snapshot is good, and that a start lies before
_KEPT, _REPLACED = 64, 0.3  # snapshots of a segment, and the probability that one is replaced
_FORGET = 0.93  # factor of older counts with each update, or each game from the start
_START_SHARE = 0.15  # of games from the level's start; more, the more of them succeed
_PATIENCE = 100  # decisions without progress that end a game
_FLAG, _DEATH, _DECISION, _PIXELS = 2.0, -5.0, -0.01, 40.0  # rewards; pixels of a reward of 1
# Shares of repeated and of random decisions in the games of a training, besides sticky actions, so
# that a policy withstands more than it is tested with. Random ones come twice, as they end most.
_NOISES = (0.0, 0.0), (0.25, 0.0), (0.0, 0.04), (0.0, 0.04)
_PATHS = 4  # that each process searches
_PATH_DECISIONS = 24  # that the search plays from a cell
_SEARCH = 100_000  # decisions after which a search ends with the path that came furthest
_ANOTHER_AREA = 500  # pixels that a position jumps by if Mario enters another area
_CELL = 24, 32  # pixels, across and down
_CLOCK = 16, 4  # decisions of a time, and the number of times, since lifts come and go
_LIKELY = (1, 4, 6, 6, 10, 2, 1)  # weights of the actions in the search


@dataclass
class _Game:
    env: MarioEnv
    stack: np.ndarray  # (stack, side, side) uint8
    from_reset: bool
    noise: tuple[float, float]  # of its decisions: the shares of repeated and of random actions
    base: int = 0  # the pixels of the areas before this one
    best: int = 0  # the furthest position, with them
    return_: float = 0.0
    steps: int = 0
    idle: int = 0  # decisions since then
    action: int = 0  # the previous one
    marks: list = field(default_factory=list)  # segments entered, with where they start

    @property
    def start(self) -> "Start":
        """This moment of the game."""
        return self.env.snapshot(), self.stack, self.base


class MarioEnvs(Envs):
    """A level of Super Mario Bros, whose games share the emulator of the process."""

    def __init__(self, task: Task, settings: Settings, seed: int, indices: range):
        """Create and reset all games, and search for paths if games begin on them."""
        own = np.random.SeedSequence(seed, spawn_key=(indices.start,)).generate_state(1)
        self._rng, self._task = random.Random(int(own[0])), task  # noqa: S311 - no secrets
        self._frame_skip = settings.frame_skip
        kwargs = dict(task.config.get("env_kwargs") or {}) | {"obs_type": "ram"}
        envs = [MarioEnv(task.config["env"], **kwargs) for _ in indices]
        self._starts = _Starts(self._rng) if settings.starts == "failures" else None
        if self._starts:
            for name in ("exchange", "figures", "state", "load"):
                setattr(self, name, getattr(self._starts, name))
            exact = MarioEnv(task.config["env"], **kwargs | {"repeat_action_probability": 0.0})
            for _ in range(_PATHS):
                self._remember(exact, search(exact, self._rng, self._frame_skip))
        self._games = [self._begin(env) for env in envs]

    @property
    def obs(self) -> np.ndarray:
        """The stacks, (num_envs, stack, side, side) uint8."""
        return np.stack([game.stack for game in self._games])

    def step(self, actions: np.ndarray) -> Step:
        """Take (num_envs,) actions, one game after another."""
        rewards, terminated, next_obs, ended = [], [], [], []
        for index, (game, action) in enumerate(zip(self._games, actions.tolist(), strict=True)):
            before = game.base + game.env.x_pos, game.best
            # A game of the training also is one life if the environment is the whole game.
            over = self._play(game, action) or game.env.has_died or game.idle >= _PATIENCE
            position, is_flag = game.base + game.env.x_pos, game.env.has_flag
            reward = max(-10, min(10, position - before[0])) / _PIXELS + _DECISION
            reward += _FLAG if is_flag else _DEATH if over else 0.0
            rewards.append(reward)
            terminated.append(over)
            next_obs.append(game.stack)
            if self._starts:
                self._starts.note(game, before[1], over, is_flag)
            if over:
                figures = game.return_, game.steps, float(game.best), float(is_flag)
                if game.from_reset:
                    ended.append(EndedGame(index, *figures))
                self._games[index] = self._begin(game.env)
        flags = np.array(terminated, bool), np.zeros(len(actions), bool)
        return Step(np.array(rewards, np.float32), *flags, np.stack(next_obs), tuple(ended))

    def _play(self, game: _Game, action: int) -> bool:
        """Play a decision; return whether the game is over."""
        chosen, draw, (repeated, random_) = action, self._rng.random(), game.noise
        if draw < repeated:
            action = game.action
        elif draw < repeated + random_:
            action = self._rng.randrange(self._task.num_actions)
        game.action = action
        x = game.env.x_pos
        reward, over = game.env.advance(action, self._frame_skip)
        game.base += area_change(x, game.env.x_pos)
        position = game.base + game.env.x_pos
        game.idle = 0 if position > game.best else game.idle + 1
        game.best = max(position, game.best)
        game.return_, game.steps = game.return_ + reward, game.steps + 1
        game.stack = np.concatenate([game.stack[1:], self._picture(game.env, chosen)[None]])
        return over

    def _picture(self, env: MarioEnv, action: int) -> np.ndarray:
        settings = self._task.preprocessing
        picture = WARPS[settings["warp"]](env.render())
        return finish(picture, settings, action, self._task.num_actions)

    def _begin(self, env: MarioEnv) -> _Game:
        """Return another game, from the level's start or a snapshot."""
        noise = self._rng.choice(_NOISES) if self._starts else _NOISES[0]
        start = self._starts and self._starts.draw()
        if start:
            snapshot, stack, base = start
            env.restore(snapshot)
            best = base + env.x_pos
            return _Game(env, stack, from_reset=False, noise=noise, base=base, best=best)
        env.reset(seed=self._rng.getrandbits(31))
        env.advance(0, 1 + self._rng.randint(0, self._task.preprocessing["noop"]))
        picture = self._picture(env, 0)
        stack = np.repeat(picture[None], self._task.preprocessing["stack"], 0)
        return _Game(env, stack, from_reset=True, noise=noise, best=env.x_pos)

    def _remember(self, env: MarioEnv, path: list[int]) -> None:
        """Keep the snapshots of a path of an environment without sticky actions."""
        env.reset(seed=0)
        env.advance(0)
        stack = np.repeat(self._picture(env, 0)[None], self._task.preprocessing["stack"], 0)
        game = _Game(env, stack, from_reset=True, noise=_NOISES[0])
        for action in path:
            self._starts.kept[(game.base + env.x_pos) // _SEGMENT].append(game.start)
            self._play(game, action)


Start = tuple[tuple[bytes, int], np.ndarray, int]  # a snapshot, and the stack and base there


class _Starts:
    """Where games begin."""

    def __init__(self, rng: random.Random):
        self._rng = rng
        self.kept: list[list[Start]] = [[] for _ in range(_SEGMENTS)]
        self._tries, self._passes = torch.ones(_SEGMENTS), torch.zeros(_SEGMENTS)
        self._new = torch.zeros(2, _SEGMENTS)  # tries and passes since the latest exchange
        self._from_reset = [0.0, 0.0]  # games from the level's start, and those of them with a flag

    def _rates(self) -> list[float]:
        last = max(n for n, kept in enumerate(self.kept) if kept)
        return (self._passes / self._tries)[: last + 1].tolist()

    def draw(self) -> Start | None:
        """Return where the next game begins, None for the level's start."""
        games, flags = self._from_reset
        if self._rng.random() < _START_SHARE + 0.5 * flags / max(games, 1.0):
            return None
        rates = self._rates()
        segment = self._rng.choices(range(len(rates)), [1.03 - rate for rate in rates])[0]
        segment = max(0, segment - self._rng.randint(0, _BEHIND))
        while not self.kept[segment]:
            segment -= 1
        return self._rng.choice(self.kept[segment])

    def note(self, game: _Game, before: int, over: bool, is_flag: bool) -> None:
        """Count the segments that a decision passed or failed in, and keep snapshots."""
        # `before` is the furthest position before the decision.
        old, now = before // _SEGMENT, game.best // _SEGMENT
        if now > old:
            self._new[:, old:now] += 1
            game.marks.append((now, game.start))
        while game.marks and (now >= game.marks[0][0] + _BEHIND or is_flag):
            segment, start = game.marks.pop(0)
            kept = self.kept[segment]
            if len(kept) < _KEPT:
                kept.append(start)
            elif self._rng.random() < _REPLACED:
                kept[self._rng.randrange(_KEPT)] = start
        if over:
            self._new[0, now] += 1
            self._new[1, now] += is_flag
            if game.from_reset:
                games, flags = self._from_reset
                self._from_reset = [0.98 * games + 1, 0.98 * flags + is_flag]

    def exchange(self, group: Group) -> None:
        """Add the counts of all processes."""
        tries, passes = group.sum(self._new)
        self._tries, self._passes = self._tries * _FORGET, self._passes * _FORGET
        self._tries += tries + 0.01
        self._passes += passes
        self._new = torch.zeros(2, _SEGMENTS)

    def figures(self) -> dict[str, float]:
        """Return the product and the minimum of the segments' shares."""
        rates = self._rates()
        product = math.exp(sum(math.log(max(rate, 1e-3)) for rate in rates))
        return {"starts/all_segments": product, "starts/worst_segment": min(rates)}

    def state(self) -> dict:
        """Return what `load` restores. Snapshots are searched again."""
        return {"tries": self._tries, "passes": self._passes, "from_reset": self._from_reset}

    def load(self, state: Mapping) -> None:
        self._tries, self._passes = state["tries"].clone(), state["passes"].clone()
        self._from_reset = state["from_reset"]


def area_change(before: int, after: int) -> int:
    """Return the pixels by which Mario's position jumped back, 0 if he is in the same area."""
    return before - after if abs(before - after) > _ANOTHER_AREA else 0


def search(env: MarioEnv, rng: random.Random, frame_skip: int) -> list[int]:
    """Return actions from the level's start to the flag, or as far as the search came.

    It remembers a snapshot for each cell of the level and time, returns to a far one that it has
    seldom chosen, and acts at random from there. The environment must have no sticky actions.
    """
    env.reset(seed=0)
    env.advance(0)
    # Snapshot, pixels of the areas before, path, and how often it was chosen, by cell.
    cells: dict[tuple, list] = {(0, 0, 0): [env.snapshot(), 0, [], 0]}
    for _ in range(_SEARCH // _PATH_DECISIONS):
        keys = sorted(cells, reverse=True)[: 40 if rng.random() < 0.8 else None]
        key = rng.choices(keys, [1 / (1 + cells[key][3]) ** 2 for key in keys])[0]
        cells[key][3] += 1
        snapshot, base, path, _ = cells[key]
        path, left = list(path), 0
        env.restore(snapshot)
        for _ in range(_PATH_DECISIONS):
            if not left:
                action, left = rng.choices(range(7), _LIKELY)[0], rng.randint(1, 8)
            left -= 1
            path.append(action)
            x = env.x_pos
            _, over = env.advance(action, frame_skip)
            if over:
                if env.flag_get:
                    return path
                break
            base += area_change(x, env.x_pos)
            time = len(path) // _CLOCK[0] % _CLOCK[1]
            cell = (base + env.x_pos) // _CELL[0], env.y_pos // _CELL[1], time
            chosen = cells[cell][3] if cell in cells else 0
            if cell not in cells or len(path) < len(cells[cell][2]):
                cells[cell] = [env.snapshot(), base, list(path), chosen]
    return cells[max(cells)][2]
