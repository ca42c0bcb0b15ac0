"""The user's own policy: a function of their Python file, checked once and called on batches.

The function takes a batch of observations, (lanes, *shape) in the environment's dtype, and returns
a batch of actions, (lanes, *action shape). If it has a parameter named `generators`, it gets a
list of one numpy.random.Generator per lane there, which goes on from step to step and is seeded by
the episode: Generator(PCG64(SeedSequence(seed, spawn_key=(1,)))). An action must depend on its own
row and generator alone, so that an episode does not depend on what is played beside it.
"""

import importlib.util
import inspect
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.environments.environment import Environment
from goalreel.errors import GoalreelError

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


@dataclass(frozen=True)
class UserFunction:
    """A function of a user's file, called as the module's docstring says."""

    path: str
    name: str
    function: Callable
    random: bool  # whether it takes generators

    @classmethod
    def load(cls, path: str, name: str) -> "UserFunction":
        """Import a file and return its function.

        Raises:
            GoalreelError: the file cannot be imported (with its traceback), or has no such
                function, or the function does not take a batch of observations.

        """
        spec = importlib.util.spec_from_file_location(_MODULE, Path(path).resolve())
        if spec is None or not Path(path).is_file():
            raise GoalreelError(f"policy.file: {path} is not a Python file (*.py)")
        module = importlib.util.module_from_spec(spec)
        sys.modules[_MODULE] = module  # as an import does: dataclasses look there
        sys.path.append(str(Path(path).resolve().parent))  # for the modules beside it
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            raise GoalreelError(
                f"policy.file: {path} cannot be imported:\n{_trace(error, path)}"
            ) from None
        function = getattr(module, name, None)
        if not callable(function):
            known = [n for n, v in vars(module).items() if inspect.isfunction(v)]
            raise GoalreelError(
                f"policy.function: {path} has no function {name!r}; "
                f"its functions: {', '.join(known) or 'none'}"
            )
        return cls(path, name, function, _takes_generators(path, name, function))

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
            alone = self._call(obs[part], environment, self.generators(seeds[part]))
            if not np.array_equal(together[row], alone[0]):
                raise GoalreelError(
                    f"{self._who}: for the observation {obs[row].tolist()} it returns "
                    f"{together[row].tolist()} in a batch and {alone[0].tolist()} alone; each "
                    f"action must depend on its own row (and its own generator) alone, to the "
                    f"last bit: a matrix product may round differently in a batch, products and "
                    f"sums over the last axis do not"
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

    def _call(
        self, obs: np.ndarray, environment: Environment, generators: LaneGenerators
    ) -> np.ndarray:
        try:
            actions = self._raw(obs, generators.generators)
        except (Exception, SystemExit) as error:
            row = self._first_failing(obs, generators.generators)
            raise GoalreelError(
                f"{self._who} raised {type(error).__name__} for the observation "
                f"{obs[row].tolist()} (episode seed {generators.seeds[row]}):\n"
                f"{_trace(error, self.path)}"
            ) from None
        return environment.actions.checked(actions, len(obs), self._who)

    def _raw(self, obs: np.ndarray, rngs: list[np.random.Generator]) -> object:
        own = obs.copy()  # the function may write to it
        return self.function(own, generators=rngs) if self.random else self.function(own)

    def _first_failing(self, obs: np.ndarray, rngs: list[np.random.Generator]) -> int:
        """Return the first row that raises alone too, else 0."""
        for row in range(len(obs)):
            try:
                self._raw(obs[row : row + 1], rngs[row : row + 1])
            except (Exception, SystemExit):
                return row
        return 0


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


def _trace(error: BaseException, path: str) -> str:
    """Return an error with its traceback from the user's file on, indented."""
    source, frame = str(Path(path).resolve()), error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != source:
        frame = frame.tb_next
    trace = "".join(traceback.format_exception(type(error), error, frame)).rstrip()
    return textwrap.indent(trace, "  ")
