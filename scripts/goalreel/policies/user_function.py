"""The user's own policy, of their Python file, checked once before it plays.

A function takes a batch of observations, (num_envs, *shape) in the environment's dtype, of a Dict
space a dict of such arrays, and returns a batch of actions, (num_envs, *action shape). If it has a
parameter named `generators`, it gets a list of one numpy.random.Generator per episode there, which
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
from goalreel.policies.per_env import PerEnv

FACTORY = "make_policy"
_OFFERED = ("seed", "env_id", "observation_space", "action_space")  # to a factory
_MODULE = "goalreel_policy_file"
_SAMPLE = 16  # observations that a policy is checked on


def load_policy(path: str, name: str, batch: bool) -> "UserFunction | UserFactory":
    """Import a file and return its policy.

    Args:
        path: of the Python file.
        name: of its function or factory; a file that has no `act`, the default, but a factory is
            played by that.
        batch: whether a function gets all sub-environments at once, or one row at a time.

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
        taken = _taken(path, name, function, _OFFERED, (), f"any of {', '.join(_OFFERED)}")
        return UserFactory(path, function, taken)
    allowed = f"{name}(observations) or {name}(observations, generators)"
    taken = _taken(path, name, function, ("generators",), (None,), allowed)
    return UserFunction(path, name, function, bool(taken), batch)


@dataclass(frozen=True)
class UserFunction:
    """A function of a user's file, called as the module's docstring says."""

    path: str
    name: str
    function: Callable
    random: bool  # whether it takes generators
    batch: bool = True  # whether it gets all sub-environments at once, or one row at a time

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

    def generators(self, seeds: np.ndarray) -> PerEnv:
        """Return each episode's seed, and its own generator if the function takes them."""
        return PerEnv((seed, self._generator(seed)) for seed in np.asarray(seeds).tolist())

    def _generator(self, seed: int) -> np.random.Generator | None:
        if not self.random:
            return None
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(1,))))

    def act(
        self, observations: Sequence, environment: Environment, generators: PerEnv
    ) -> tuple[np.ndarray, PerEnv]:
        """Return the actions, (num_envs, *stored_shape), and the advanced generators."""
        return self._call(environment.batch(observations), environment, generators), generators

    @property
    def _who(self) -> str:
        return f"policy.function: {self.path}: {self.name}"

    def _call(self, obs: Batch, environment: Environment, generators: PerEnv) -> np.ndarray:
        num_envs = len(generators)
        rows = max(num_envs, 1) if self.batch else 1  # that it gets at once
        parts = (slice(row, row + rows) for row in range(0, num_envs, rows))
        try:
            chosen = [self._raw(obs, part, generators) for part in parts]
        except (Exception, SystemExit) as error:
            row = self._first_failing(obs, generators)
            seed, _ = generators[row]
            raise _raised(self._who, error, self.path, seed, _shown(obs, row)) from None
        return np.concatenate([environment.actions.checked(c, rows, self._who) for c in chosen])

    def _raw(self, obs: Batch, rows: slice, generators: PerEnv) -> object:
        own = copy.deepcopy(take_rows(obs, rows))  # the function may write to it
        drawn = {"generators": [rng for _, rng in generators[rows]]} if self.random else {}
        return self.function(own, **drawn)

    def _first_failing(self, obs: Batch, generators: PerEnv) -> int:
        """Return the first row that raises alone too, else 0."""
        for row in range(len(generators)):
            try:
                self._raw(obs, slice(row, row + 1), generators)
            except (Exception, SystemExit):
                return row
        return 0


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

    def generators(self, seeds: np.ndarray) -> PerEnv:
        """Return each episode's seed; the first step makes its player."""
        return PerEnv((seed, None) for seed in np.asarray(seeds).tolist())

    def act(
        self, observations: Sequence, environment: Environment, generators: PerEnv
    ) -> tuple[np.ndarray, PerEnv]:
        """Return the actions, (num_envs, *stored_shape), each of its own episode's player."""
        obs, actions = environment.batch(observations), []
        players = PerEnv(
            (seed, self._make(seed, environment) if player is None else player)
            for seed, player in generators
        )
        for index, (seed, player) in enumerate(players):
            try:
                actions.append(player(copy.deepcopy(take_rows(obs, index))))
            except (Exception, SystemExit) as error:
                who = f"{self._who}: its policy"
                raise _raised(who, error, self.path, seed, _shown(obs, index)) from None
        checked = environment.actions.checked(actions, len(players), f"{self._who}: its policies")
        return checked, players

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
            raise _raised(self._who, error, self.path, seed) from None
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


def _taken(
    path: str, name: str, function: Callable, offered: Sequence[str], given: tuple, allowed: str
) -> tuple[str, ...]:
    """Return which of the offered parameters a function gets.

    Raises GoalreelError, with what is allowed, if it cannot be called by these and `given`.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C
        return ()
    taken = tuple(parameter for parameter in offered if parameter in signature.parameters)
    try:
        signature.bind(*given, **dict.fromkeys(taken))
    except TypeError:
        raise GoalreelError(
            f"policy.function: {path}: {name}{signature} has the wrong parameters; allowed: "
            f"{allowed}"
        ) from None
    return taken


def _shown(obs: Batch, row: int) -> object:
    """Return an observation as messages show it."""
    if isinstance(obs, dict):
        return {key: _shown(part, row) for key, part in obs.items()}
    return obs[row].tolist()


def _raised(
    who: str, error: BaseException, path: str | None, seed: int, observation: object = None
) -> GoalreelError:
    """Return the error of an episode in which the user's code raised one."""
    seen = "" if observation is None else f" for the observation {observation}"
    return GoalreelError(
        f"{who} raised {type(error).__name__}{seen} (episode seed {seed}):\n{_trace(error, path)}"
    )


def _trace(error: BaseException, path: str | None) -> str:
    """Return an error with its traceback from the user's file on, or the caller's, indented."""
    frame = error.__traceback__.tb_next  # behind this module's own call
    while path and frame and frame.tb_frame.f_code.co_filename != str(Path(path).resolve()):
        frame = frame.tb_next
    trace = "".join(traceback.format_exception(type(error), error, frame)).rstrip()
    return textwrap.indent(trace, "  ")
