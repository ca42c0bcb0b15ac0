"""Load and check the user's own policy, a function or factory in a Python file.

docs/how-to/policies.md describes both. A function takes and returns batches, (num_envs, *shape), or
a dict of such arrays for a Dict space. An action may depend only on its own row and generator, so
that an episode does not depend on the others in the batch. The generator of an episode is
Generator(PCG64(SeedSequence(seed, spawn_key=(1,)))).
"""

import copy
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from goalreel.environments.environment import Acted, Batch, Environment, PerEnv, Signals, take_rows
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.errors import GoalreelError, listed, quoted, suggest, trace_of

FACTORY = "make_policy"
MAX_NUMBERS = 64  # of a signal, for each observation
_gymnasium_envs = cache(GymnasiumEnvironment)  # by id, for environments that goalreel computes
_OFFERED = ("seed", "env_id", "observation_space", "action_space")  # parameters of a factory
_MODULE = "goalreel_policy_file"
_SAMPLE, _STEPS = 16, 2  # episodes and steps of the check
_BATCHES = f"It gets a batch, with an observation per row. {FACTORY} may return a function of one."


def load_policy(path: str, name: str, batch: bool) -> "UserPolicy":
    """Import a file and return the policy of its function or factory.

    If the file has no `act`, the default name, its factory is used. `batch` says whether a function
    gets all sub-environments at once, or one row at a time. Raises GoalreelError if the file cannot
    be imported (with its traceback), or if it has no such function with these parameters.
    """
    file, module = Path(path).resolve(), ModuleType(_MODULE)
    module.__file__ = str(file)
    sys.modules[_MODULE] = module  # as `import` does, for dataclasses
    sys.path.append(str(file.parent))  # for the modules in its folder
    try:
        # `import` might read old bytecode, and it writes bytecode.
        exec(compile(file.read_bytes(), file, "exec"), vars(module))  # noqa: S102
    except (Exception, SystemExit) as error:
        problem = f"policy.file: {quoted(path)} cannot be imported. Correct the error below."
        raise GoalreelError(f"{problem}\n{trace_of(error)}") from None
    if name == "act" and not hasattr(module, name) and hasattr(module, FACTORY):
        name = FACTORY
    function = getattr(module, name, None)
    if not callable(function):
        known = [n for n, v in vars(module).items() if inspect.isfunction(v)]
        others = f", or set policy.function to {listed(known, 3)}" if known else ""
        fix = suggest(name, known) or f"Define it{others}."
        raise GoalreelError(f"policy.function: {path} has no function {name!r}. {fix}")
    if name == FACTORY:
        return _factory(f"policy.function: {path}: {FACTORY}", function)
    return _function(path, name, function, batch)


@dataclass(frozen=True)
class UserPolicy:
    """A user's policy, called as the docstring of the module describes."""

    label: str  # its name in messages
    start: Callable[[int, Environment], object]  # returns the state of an episode, from its seed
    call: Callable[[Batch, list], object]  # returns actions, from observations and states
    fix: str  # the end of the message about actions that depend on more than they may
    batch: bool = False  # whether `call` takes all sub-environments at once, or one row at a time

    def check(self, environment: Environment) -> None:
        """Compare the first actions of episodes that run together and one at a time.

        Raises GoalreelError if the policy raises, its actions do not fit the environment, or the
        actions of an episode depend on more than its own observations and seed.
        """
        sample = environment.sample_observations(_SAMPLE)
        obs, seeds = [take_rows(sample, row) for row in range(_SAMPLE)], np.arange(_SAMPLE)
        together, generators = [], self.generators(seeds)
        for step in range(_STEPS):
            actions, generators, _ = self.act(obs[step:] + obs[:step], environment, generators)
            together.append(actions)
        for place, seed in enumerate(seeds.tolist()):
            generators = self.generators(seeds[place : place + 1])
            for step, actions in enumerate(together):
                shown = obs[(place + step) % _SAMPLE]
                alone, generators, _ = self.act([shown], environment, generators)
                if not np.array_equal(actions[place], alone[0]):
                    raise GoalreelError(
                        f"{self.label} returns {actions[place].tolist()} in a batch and "
                        f"{alone[0].tolist()} alone. {self.fix}\n  Episode seed: {seed}\n"
                        f"  Observation: {_as_lists(shown)}"
                    )

    def generators(self, seeds: np.ndarray) -> PerEnv:
        """Return each episode's seed, and None for its state, which the first step makes."""
        return PerEnv((seed, None) for seed in np.asarray(seeds).tolist())

    def act(self, observations: Sequence, environment: Environment, generators: PerEnv) -> Acted:
        """Return the actions, (num_envs, *stored_shape), the episodes' states, and signals."""
        obs, count = environment.batch(observations), len(generators)
        players = PerEnv(
            (seed, self.start(seed, environment) if player is None else player)
            for seed, player in generators
        )
        size = count if self.batch else 1
        parts = (slice(row, row + size) for row in range(0, count, size))
        called = [self._call(obs, part, environment, players[part]) for part in parts]
        actions, signals = zip(*called, strict=True)
        return np.concatenate(actions), players, _joined(signals, self.label)

    def _call(
        self, obs: Batch, rows: slice, environment: Environment, players: list
    ) -> tuple[np.ndarray, Signals]:
        shown = take_rows(obs, rows)
        try:  # with a copy, because the function may write to it
            chosen = self.call(copy.deepcopy(shown), [player for _, player in players])
        except (Exception, SystemExit) as error:
            cause = error
        else:
            actions, signals = _parted(chosen)
            actions = environment.actions.validate(actions, len(players), self.label)
            return actions, {
                name: _signal(name, values, len(players), self.label)
                for name, values in signals.items()
            }
        for row, player in enumerate(players if len(players) > 1 else ()):
            self._call(shown, slice(row, row + 1), environment, [player])  # raises for its row
        error = _raised(self.label, cause, players[0][0], _as_lists(take_rows(shown, 0)))
        raise GoalreelError(f"{error}\n  {_BATCHES}") if self.call is not _act_alone else error


def _act_alone(obs: Batch, players: list) -> tuple[list, Mapping]:
    """Return the actions of functions of one observation, and their signals."""
    chosen = [player(take_rows(obs, row)) for row, player in enumerate(players)]
    actions, signals = zip(*map(_parted, chosen), strict=True)
    return list(actions), {name: [given[name] for given in signals] for name in signals[0]}


def _parted(chosen: object) -> tuple[object, Mapping]:
    """Return the actions that a function returned, and its signals, {} without any."""
    if isinstance(chosen, tuple) and len(chosen) == 2 and isinstance(chosen[1], Mapping):
        return chosen
    return chosen, {}


def _signal(name: str, values: object, count: int, label: str) -> np.ndarray:
    """Return a signal of a batch, (count,) or (count, numbers) float32. Raises GoalreelError."""
    if not str(name).isidentifier():
        raise GoalreelError(f"{label} named a signal {quoted(name)}. Use letters, digits and _.")
    try:
        array = np.asarray(values, np.float32)
    except (TypeError, ValueError, RuntimeError):  # or a tensor of PyTorch
        array = np.zeros(())
    if array.ndim not in (1, 2) or len(array) != count or array.size > MAX_NUMBERS * count:
        raise GoalreelError(
            f"{label} returned the signal {quoted(name)} as {quoted(values)}. Return a number, or "
            f"at most {MAX_NUMBERS} numbers, for each observation."
        )
    return array


def _joined(parts: Sequence[Signals], label: str) -> Signals:
    """Return the signals of all sub-environments. Raises GoalreelError if their shapes differ."""
    shapes = [{name: array.shape[1:] for name, array in part.items()} for part in parts]
    if any(shape != shapes[0] for shape in shapes):
        fix = "Return the same signals for each observation."
        raise GoalreelError(f"{label} returned different signals: {shapes[0]}, {shapes[-1]}. {fix}")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _factory(label: str, function: Callable) -> UserPolicy:
    """Return the policy of a factory. Raises GoalreelError if it has other parameters."""
    taken = _taken(label, function, _OFFERED, (), f"any of {', '.join(_OFFERED)}")

    def start(seed: int, environment: Environment) -> Callable:
        given, played = {"seed": seed, "env_id": environment.id}, environment
        if not isinstance(environment, GymnasiumEnvironment):
            played = _gymnasium_envs(environment.id)
        try:
            player = function(**{n: given[n] if n in given else getattr(played, n) for n in taken})
        except (Exception, SystemExit) as error:
            raise _raised(label, error, seed) from None
        if not callable(player):
            fix = "Return a function that takes an observation and returns an action."
            raise GoalreelError(f"{label} returned {quoted(player)}. {fix}")
        return player

    fix = f"Draw random numbers from the seed of {FACTORY}(seed), and share no state."
    return UserPolicy(f"{label}: The policy", start, _act_alone, fix)


def _function(path: str, name: str, function: Callable, batch: bool) -> UserPolicy:
    """Return the policy of a function. Raises GoalreelError if it has wrong parameters."""
    label = f"policy.function: {path}: {name}"
    allowed = f"{name}(observations) or {name}(observations, generators)"
    draws = _taken(label, function, ("generators",), (None,), allowed)

    def start(seed: int, environment: Environment) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(1,))))

    def call(obs: Batch, generators: list) -> object:
        return function(obs, generators=generators) if draws else function(obs)

    fix = f"If it has a memory or draws, write {FACTORY}(seed)."
    if batch:  # in which a matrix product may round differently
        fix = "Use only its own row and generator, or set policy.batch=false."
    return UserPolicy(label, start, call, fix, batch)


def policy_of(given: object) -> UserPolicy:
    """Return the policy of a function of an observation, of `make_policy`, or of a model.

    A model has `predict`, and plays its deterministic actions. Raises GoalreelError for other
    objects.
    """
    if getattr(given, "__name__", "") == FACTORY:
        return _factory(f"policy: {FACTORY}", given)
    if not callable(given) and not hasattr(given, "predict"):
        raise GoalreelError(
            f"policy: {quoted(given)} is not allowed. Use a name, a section `policy`, a function "
            "of an observation, or a model with `predict`."
        )

    def start(seed: int, environment: Environment) -> Callable:
        return given if callable(given) else _player(given)

    fix = "Compute an action only from its observation."
    return UserPolicy("policy: The function", start, _act_alone, fix)


def _player(model: object) -> Callable:
    """Return a function of the observations of an episode that plays a model, with its memory."""
    dtype, memory = getattr(getattr(model, "action_space", None), "dtype", None), {}

    def act(observation: object) -> np.ndarray:
        action, state = model.predict(observation, deterministic=True, **memory)
        if state is not None:
            memory.update(state=state, episode_start=np.zeros(1, bool))
        return np.asarray(action, dtype)  # for MultiBinary, `predict` returns floats

    return act


def _taken(
    label: str, function: Callable, offered: Sequence[str], given: tuple, allowed: str
) -> tuple[str, ...]:
    """Return those of the offered parameters that a function has.

    Raises GoalreelError, with the allowed ones, if these and `given` do not match its signature.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C
        return ()
    taken = tuple(parameter for parameter in offered if parameter in signature.parameters)
    try:
        signature.bind(*given, **dict.fromkeys(taken))
    except TypeError:
        raise GoalreelError(f"{label}{signature} has wrong parameters. Use {allowed}.") from None
    return taken


def _as_lists(observation: object) -> object:
    """Return an observation as lists, for messages."""
    if isinstance(observation, dict):
        return {key: _as_lists(part) for key, part in observation.items()}
    return np.asarray(observation).tolist()


def _raised(
    label: str, error: BaseException, seed: int, observation: object = None
) -> GoalreelError:
    """Return the message about an error in the user's code."""
    obs = "" if observation is None else f"\n  Observation: {observation}"
    return GoalreelError(
        f"{label} raised {type(error).__name__}. Correct the error below.\n"
        f"  Episode seed: {seed}{obs}\n{trace_of(error)}"
    )
