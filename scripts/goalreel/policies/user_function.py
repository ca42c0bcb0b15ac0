"""The user's own policy, of their Python file, checked once before it plays.

A function takes a batch of observations, (lanes, *shape) in the environment's dtype, of a Dict
space a dict of such arrays, and returns a batch of actions, (lanes, *action shape). If it has a
parameter named `generators`, it gets a list of one numpy.random.Generator per lane there, which
goes on from step to step and is seeded by the episode: Generator(PCG64(SeedSequence(seed,
spawn_key=(1,)))). An action must depend on its own row and generator alone, so that an episode does
not depend on what is played beside it.

A factory, `make_policy`, is called at the start of each episode and returns what acts in it: a
function of one observation that returns one action, and may remember what it likes. Of the
parameters seed, env_id, observation_space and action_space it gets those that it names.

A Python program gives `goalreel.film` such a function itself, or a model with `predict`.
"""

import copy
import importlib.util
import inspect
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from goalreel.environments.environment import Batch, Environment, take_rows
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.errors import GoalreelError

FACTORY = "make_policy"
_OFFERED = ("seed", "env_id", "observation_space", "action_space")  # to a factory
_MODULE = "goalreel_policy_file"
_SAMPLE = 16  # observations that a policy is checked on


@dataclass(frozen=True)
class LaneGenerators:
    """One NumPy generator per lane, of the episode's seed."""

    seeds: np.ndarray  # (lanes,) int64
    generators: list[np.random.Generator]  # empty where the function takes none

    def take(self, lanes: np.ndarray) -> "LaneGenerators":
        """Return the generators of the lanes chosen by a (lanes,) boolean mask."""
        chosen = [rng for rng, going in zip(self.generators, lanes, strict=False) if going]
        return LaneGenerators(self.seeds[lanes], chosen)


def load_policy(path: str, name: str, batch: bool) -> "UserFunction | UserFactory":
    """Import a file and return its policy.

    Args:
        path: of the Python file.
        name: of its function or factory; a file that has no `act`, the default, but a factory is
            played by that.
        batch: whether a function gets all lanes at once, or one row at a time.

    Raises:
        GoalreelError: the file cannot be imported (with its traceback), or has no such function,
            or the function has other parameters.

    """
    spec = importlib.util.spec_from_file_location(_MODULE, Path(path).resolve())
    if spec is None or not Path(path).is_file():
        raise GoalreelError(f"policy.file: {path} is not a Python file (*.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module  # as an import does: dataclasses look there
    sys.path.append(str(Path(path).resolve().parent))  # for the modules beside it
    try:
        code = spec.loader.source_to_code(Path(path).read_bytes(), spec.origin)
        exec(code, vars(module))  # noqa: S102 - an import might take older bytecode, and leaves some
    except (Exception, SystemExit) as error:
        raise GoalreelError(
            f"policy.file: {path} cannot be imported:\n{_trace(error, path)}"
        ) from None
    if name == "act" and not hasattr(module, name) and hasattr(module, FACTORY):
        name = FACTORY
    function = getattr(module, name, None)
    if not callable(function):
        known = [n for n, v in vars(module).items() if inspect.isfunction(v)]
        raise GoalreelError(
            f"policy.function: {path} has no function {name!r}; "
            f"its functions: {', '.join(known) or 'none'}"
        )
    if name == FACTORY:
        return UserFactory(path, function, _taken(path, function))
    return UserFunction(path, name, function, _takes_generators(path, name, function), batch)


@dataclass(frozen=True)
class UserFunction:
    """A function of a user's file, called as the module's docstring says."""

    path: str
    name: str
    function: Callable
    random: bool  # whether it takes generators
    batch: bool = True  # whether it gets all lanes at once, or one row at a time

    def check(self, environment: Environment) -> None:
        """Call the function on sample observations, in a batch and one by one.

        Raises:
            GoalreelError: it raises, its actions do not fit the environment, or an action depends
                on other rows of the batch.

        """
        obs, seeds = environment.sample_observations(_SAMPLE), np.arange(_SAMPLE)
        together = self._call(obs, environment, self.generators(seeds))
        for row in range(_SAMPLE):
            part = slice(row, row + 1)
            alone = self._call(take_rows(obs, part), environment, self.generators(seeds[part]))
            if np.array_equal(together[row], alone[0]):
                continue
            what = f"{self._who}: for the observation {_shown(obs, row)} it returns"
            first, second = together[row].tolist(), alone[0].tolist()
            if not self.batch:
                raise GoalreelError(
                    f"{what} {first} and then {second}; each action must depend on its observation "
                    f"(and its own generator) alone; what remembers or draws is written as "
                    f"{FACTORY}(seed)"
                )
            raise GoalreelError(
                f"{what} {first} in a batch and {second} alone; each action must depend on its own "
                f"row (and its own generator) alone, to the last bit. A matrix product may round "
                f"differently in a batch: write policy: {{batch: false}} for one row at a time"
            )

    def generators(self, seeds: np.ndarray) -> LaneGenerators:
        """Return each episode's own generator, if the function takes them."""
        streams = [np.random.SeedSequence(int(seed), spawn_key=(1,)) for seed in seeds]
        rngs = [np.random.Generator(np.random.PCG64(s)) for s in streams] if self.random else []
        return LaneGenerators(np.asarray(seeds), rngs)

    def act(
        self, observations: Sequence, environment: Environment, generators: LaneGenerators
    ) -> tuple[np.ndarray, LaneGenerators]:
        """Return the actions, (lanes, *stored_shape), and the generators, which have moved on."""
        return self._call(environment.batch(observations), environment, generators), generators

    @property
    def _who(self) -> str:
        return f"policy.function: {self.path}: {self.name}"

    def _call(self, obs: Batch, environment: Environment, generators: LaneGenerators) -> np.ndarray:
        lanes, rngs = len(generators.seeds), generators.generators
        rows = 1 if not self.batch else max(lanes, 1)  # that it gets at once
        try:
            parts = [self._raw(obs, slice(row, row + rows), rngs) for row in range(0, lanes, rows)]
        except (Exception, SystemExit) as error:
            row = self._first_failing(obs, generators)
            raise GoalreelError(
                f"{self._who} raised {type(error).__name__} for the observation "
                f"{_shown(obs, row)} (episode seed {generators.seeds[row]}):\n"
                f"{_trace(error, self.path)}"
            ) from None
        return np.concatenate([environment.actions.checked(p, rows, self._who) for p in parts])

    def _raw(self, obs: Batch, rows: slice, rngs: list[np.random.Generator]) -> object:
        own = copy.deepcopy(take_rows(obs, rows))  # the function may write to it
        return self.function(own, generators=rngs[rows]) if self.random else self.function(own)

    def _first_failing(self, obs: Batch, generators: LaneGenerators) -> int:
        """Return the first row that raises alone too, else 0."""
        for row in range(len(generators.seeds)):
            try:
                self._raw(obs, slice(row, row + 1), generators.generators)
            except (Exception, SystemExit):
                return row
        return 0


@dataclass(frozen=True)
class _Players:
    """What acts in each lane."""

    seeds: np.ndarray  # (lanes,) int64
    players: list[Callable]  # empty before the first step

    def take(self, lanes: np.ndarray) -> "_Players":
        going = np.flatnonzero(lanes)
        return _Players(self.seeds[lanes], [self.players[i] for i in going if self.players])


@dataclass(frozen=True)
class UserFactory:
    """The factory of a user's file, called as the module's docstring says."""

    path: str | None  # None of what a Python program gives
    factory: Callable
    taken: tuple[str, ...]  # which parameters it gets

    def check(self, environment: Environment) -> None:
        """Play the same observations twice, side by side and with another seed between.

        Raises:
            GoalreelError: it raises, its actions do not fit the environment, or those of an
                episode depend on more than its seed and observations.

        """
        obs, seeds = environment.sample_observations(_SAMPLE), np.array([0, 1, 0])
        together, alone = self.generators(seeds), self.generators(seeds[:1])
        for row in range(_SAMPLE):
            one = take_rows(obs, row)
            three, together = self.act([one] * 3, environment, together)
            single, alone = self.act([one], environment, alone)
            for other in (three[2], single[0]):
                if not np.array_equal(three[0], other):
                    raise GoalreelError(
                        f"{self._who}: in two episodes of the same seed it returns "
                        f"{three[0].tolist()} and {other.tolist()} for the same observation, "
                        f"{_shown(obs, row)}; {self._rule}"
                    )

    def generators(self, seeds: np.ndarray) -> _Players:
        """Return the beginning of each episode."""
        return _Players(np.asarray(seeds), [])

    def act(
        self, observations: Sequence, environment: Environment, generators: _Players
    ) -> tuple[np.ndarray, _Players]:
        """Return the actions, (lanes, *stored_shape), each of its own episode's player."""
        obs, seeds = environment.batch(observations), generators.seeds.tolist()
        players = generators.players or [self._make(seed, environment) for seed in seeds]
        actions = []
        for lane, player in enumerate(players):
            try:
                actions.append(player(copy.deepcopy(take_rows(obs, lane))))
            except (Exception, SystemExit) as error:
                raise GoalreelError(
                    f"{self._who}: its policy raised {type(error).__name__} for the observation "
                    f"{_shown(obs, lane)} (episode seed {seeds[lane]}):\n"
                    f"{_trace(error, self.path)}"
                ) from None
        checked = environment.actions.checked(actions, len(seeds), f"{self._who}: its policies")
        return checked, _Players(generators.seeds, players)

    @property
    def _who(self) -> str:
        return f"policy.function: {self.path}: {FACTORY}" if self.path else "policy"

    @property
    def _rule(self) -> str:
        if self.path is None:
            return "an action must depend on its observation alone"
        return (
            "an episode must depend on its seed alone: draw from a generator of your own, as "
            f"{FACTORY}(seed) makes it, and remember nothing outside of it"
        )

    def _make(self, seed: int, environment: Environment) -> Callable:
        offered: dict[str, object] = {"seed": seed, "env_id": environment.id}
        if {"observation_space", "action_space"} & set(self.taken):
            offered |= _spaces(environment)
        try:
            player = self.factory(**{name: offered[name] for name in self.taken})
        except (Exception, SystemExit) as error:
            raise GoalreelError(
                f"{self._who} raised {type(error).__name__} (episode seed {seed}):\n"
                f"{_trace(error, self.path)}"
            ) from None
        if not callable(player):
            raise GoalreelError(
                f"{self._who} returned {player!r}; expected: a function of an observation that "
                f"returns an action"
            )
        return player


def policy_of(given: object) -> UserFactory:
    """Return the policy of a function of an observation, or of a model with `predict`.

    A model is asked for its deterministic action. Raises GoalreelError for another object.
    """
    act = given
    if not callable(given):
        if not hasattr(given, "predict"):
            raise GoalreelError(
                f"policy: {given!r}; allowed: the name of a policy, a section `policy`, a function "
                f"of an observation, or a model with `predict`"
            )

        def act(observation):
            return given.predict(observation, deterministic=True)[0]

    return UserFactory(None, lambda: act, ())


_gymnasiums = cache(GymnasiumEnvironment)  # of what goalreel computes itself, by its id


def _spaces(environment: Environment) -> dict[str, object]:
    """Return Gymnasium's spaces of an environment."""
    if not isinstance(environment, GymnasiumEnvironment):
        environment = _gymnasiums(environment.id)
    return {name: getattr(environment, name) for name in ("observation_space", "action_space")}


def _taken(path: str, factory: Callable) -> tuple[str, ...]:
    """Return which parameters a factory gets; raise GoalreelError if it asks for others."""
    parameters = inspect.signature(factory).parameters
    taken = tuple(name for name in _OFFERED if name in parameters)
    try:
        inspect.signature(factory).bind(**dict.fromkeys(taken))
    except TypeError:
        raise GoalreelError(
            f"policy.function: {path}: {FACTORY}{inspect.signature(factory)} has the wrong "
            f"parameters; allowed: any of {', '.join(_OFFERED)}"
        ) from None
    return taken


def _shown(obs: Batch, row: int) -> object:
    """Return an observation as messages show it."""
    if isinstance(obs, dict):
        return {key: _shown(part, row) for key, part in obs.items()}
    return obs[row].tolist()


def _takes_generators(path: str, name: str, function: Callable) -> bool:
    """Tell whether a function takes generators; raise GoalreelError unless it can be called."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C
        return False
    random = "generators" in signature.parameters
    try:
        signature.bind(None, **({"generators": None} if random else {}))
    except TypeError:
        raise GoalreelError(
            f"policy.function: {path}: {name}{signature} has the wrong parameters; allowed: "
            f"{name}(observations) or {name}(observations, generators)"
        ) from None
    return random


def _trace(error: BaseException, path: str | None) -> str:
    """Return an error with its traceback from the user's file on, or the caller's, indented."""
    frame = error.__traceback__.tb_next  # behind this module's own call
    while path and frame and frame.tb_frame.f_code.co_filename != str(Path(path).resolve()):
        frame = frame.tb_next
    trace = "".join(traceback.format_exception(type(error), error, frame)).rstrip()
    return textwrap.indent(trace, "  ")
