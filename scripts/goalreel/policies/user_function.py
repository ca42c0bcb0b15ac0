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
import inspect
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from goalreel.environments.environment import Batch, Environment, PerEnv, take_rows
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.errors import GoalreelError

FACTORY = "make_policy"
_gymnasiums = cache(GymnasiumEnvironment)  # of what goalreel computes itself, by its id
_OFFERED = ("seed", "env_id", "observation_space", "action_space")  # to a factory
_MODULE = "goalreel_policy_file"
_SAMPLE, _STEPS = 16, 2  # episodes and their steps that a policy is checked on


def load_policy(path: str, name: str, batch: bool) -> "UserPolicy":
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
    file, module = Path(path).resolve(), ModuleType(_MODULE)
    module.__file__ = str(file)
    sys.modules[_MODULE] = module  # as an import does: dataclasses look there
    sys.path.append(str(file.parent))  # for the modules beside it
    try:
        # An import might take older bytecode, and leaves some.
        exec(compile(file.read_bytes(), file, "exec"), vars(module))  # noqa: S102
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
    return _factory(path, function) if name == FACTORY else _function(path, name, function, batch)


@dataclass(frozen=True)
class UserPolicy:
    """A policy of the user's, called as the module's docstring says."""

    label: str  # what messages call it
    path: str | None  # of its file, None of what a Python program gives
    start: Callable[[int, Environment], object]  # returns what an episode of a seed acts by
    call: Callable[
        [Batch, list], object
    ]  # returns actions, by observations and by what `start` did
    rule: str  # what an action may depend on
    batch: bool = False  # whether `call` takes all sub-environments at once, or one row at a time

    def check(self, environment: Environment) -> None:
        """Play the beginnings of episodes side by side, and each alone.

        Raises:
            GoalreelError: it raises, its actions do not fit the environment, or those of an
                episode depend on more than they may.

        """
        sample = environment.sample_observations(_SAMPLE)
        obs, seeds = [take_rows(sample, row) for row in range(_SAMPLE)], np.arange(_SAMPLE)
        together, generators = [], self.generators(seeds)
        for step in range(_STEPS):
            actions, generators = self.act(obs[step:] + obs[:step], environment, generators)
            together.append(actions)
        for place, seed in enumerate(seeds.tolist()):
            generators = self.generators(seeds[place : place + 1])
            for step, actions in enumerate(together):
                shown = obs[(place + step) % _SAMPLE]
                alone, generators = self.act([shown], environment, generators)
                if not np.array_equal(actions[place], alone[0]):
                    raise GoalreelError(
                        f"{self.label}: for the observation {_as_lists(shown)} it returns "
                        f"{actions[place].tolist()} beside other episodes and {alone[0].tolist()} "
                        f"alone (episode seed {seed}); {self.rule}"
                    )

    def generators(self, seeds: np.ndarray) -> PerEnv:
        """Return each episode's seed; the first step makes what it acts by."""
        return PerEnv((seed, None) for seed in np.asarray(seeds).tolist())

    def act(
        self, observations: Sequence, environment: Environment, generators: PerEnv
    ) -> tuple[np.ndarray, PerEnv]:
        """Return the actions, (num_envs, *stored_shape), and what the episodes act by."""
        obs, count = environment.batch(observations), len(generators)
        players = PerEnv(
            (seed, self.start(seed, environment) if player is None else player)
            for seed, player in generators
        )
        size = count if self.batch else 1
        parts = (slice(row, row + size) for row in range(0, count, size))
        actions = [self._call(obs, part, environment, players[part]) for part in parts]
        return np.concatenate(actions), players

    def _call(self, obs: Batch, rows: slice, environment: Environment, players: list) -> np.ndarray:
        shown = take_rows(obs, rows)
        try:  # it may write to what it sees
            chosen = self.call(copy.deepcopy(shown), [player for _, player in players])
        except (Exception, SystemExit) as error:
            cause = error
        else:
            return environment.actions.checked(chosen, len(players), self.label)
        for row, one in enumerate(players if len(players) > 1 else ()):
            self._call(shown, slice(row, row + 1), environment, [one])  # the culprit raises
        raise _raised(self.label, self.path, cause, players[0][0], _as_lists(take_rows(shown, 0)))


def _generator(seed: int, environment: Environment) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(1,))))


def _act_alone(obs: Batch, players: list) -> list:
    return [player(take_rows(obs, row)) for row, player in enumerate(players)]


def _factory(path: str, function: Callable) -> UserPolicy:
    """Return the policy of a factory. Raises GoalreelError if it takes what is not offered."""
    label = f"policy.function: {path}: {FACTORY}"
    taken = _taken(label, function, _OFFERED, (), f"any of {', '.join(_OFFERED)}")

    def start(seed: int, environment: Environment) -> Callable:
        offered, played = {"seed": seed, "env_id": environment.id}, environment
        if not isinstance(environment, GymnasiumEnvironment):
            played = _gymnasiums(environment.id)
        try:
            player = function(
                **{n: offered[n] if n in offered else getattr(played, n) for n in taken}
            )
        except (Exception, SystemExit) as error:
            raise _raised(label, path, error, seed) from None
        if not callable(player):
            raise GoalreelError(
                f"{label} returned {player!r}; expected: a function of an observation that returns "
                f"an action"
            )
        return player

    rule = (
        "an episode must depend on its seed alone: draw from a generator of your own, as "
        f"{FACTORY}(seed) makes it, and remember nothing outside of it"
    )
    return UserPolicy(f"{label}: its policy", path, start, _act_alone, rule)


def _function(path: str, name: str, function: Callable, batch: bool) -> UserPolicy:
    """Return the policy of a function. Raises GoalreelError if it has other parameters."""
    label = f"policy.function: {path}: {name}"
    allowed = f"{name}(observations) or {name}(observations, generators)"
    draws = _taken(label, function, ("generators",), (None,), allowed)

    def call(obs: Batch, generators: list) -> object:
        return function(obs, generators=generators) if draws else function(obs)

    rule = "each action must depend on its own row (and its own generator) alone, to the last bit. "
    rule += (
        "A matrix product may round differently in a batch: write policy: {batch: false} for one "
        "row at a time"
        if batch
        else f"What remembers or draws is written as {FACTORY}(seed)"
    )
    return UserPolicy(label, path, _generator, call, rule, batch)


def policy_of(given: object) -> UserPolicy:
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

    rule = "an action must depend on its observation alone"
    return UserPolicy("policy: its function", None, lambda seed, environment: act, _act_alone, rule)


def _taken(
    label: str, function: Callable, offered: Sequence[str], given: tuple, allowed: str
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
            f"{label}{signature} has the wrong parameters; allowed: {allowed}"
        ) from None
    return taken


def _as_lists(observation: object) -> object:
    """Return an observation as messages show it."""
    if isinstance(observation, dict):
        return {key: _as_lists(part) for key, part in observation.items()}
    return np.asarray(observation).tolist()


def _raised(
    label: str, path: str | None, error: BaseException, seed: int, observation: object = None
) -> GoalreelError:
    """Return the error of an episode in which the user's code raised one."""
    obs = "" if observation is None else f" for the observation {observation}"
    return GoalreelError(
        f"{label} raised {type(error).__name__}{obs} (episode seed {seed}):\n{_trace(error, path)}"
    )


def _trace(error: BaseException, path: str | None) -> str:
    """Return an error with its traceback from the user's file on, or the caller's, indented."""
    frame, file = error.__traceback__, path and str(Path(path).resolve())
    while frame and (name := frame.tb_frame.f_code.co_filename) != file:
        if not file and name != __file__:
            break
        frame = frame.tb_next
    trace = "".join(traceback.format_exception(type(error), error, frame)).rstrip()
    return textwrap.indent(trace, "  ")
