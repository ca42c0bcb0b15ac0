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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goalreel.errors import GoalreelError

_MODULE = "goalreel_policy_file"
_SAMPLE = 16  # observations that a policy is checked on


@dataclass(frozen=True)
class LaneGenerators:
    """One NumPy generator per lane, of the episode's seed; `draws` empty where none are wanted."""

    seeds: np.ndarray
    draws: list[np.random.Generator]

    def take(self, lanes: np.ndarray) -> "LaneGenerators":
        """Return the chosen lanes (a boolean mask)."""
        kept = [draw for draw, going in zip(self.draws, lanes, strict=False) if going]
        return LaneGenerators(self.seeds[lanes], kept)


@dataclass(frozen=True)
class FilePolicy:
    """A function of a user's file. How it is called is told in the module's docstring."""

    path: str
    name: str
    function: Callable
    random: bool  # whether it takes generators

    @classmethod
    def load(cls, path: str, name: str) -> "FilePolicy":
        """Import a file and return its function.

        Raises GoalreelError, with the file's traceback, if it cannot be imported, and if it has no
        such function.
        """
        spec = importlib.util.spec_from_file_location(_MODULE, Path(path).resolve())
        if spec is None or not Path(path).is_file():
            raise GoalreelError(f"policy.file: {path}: no Python file (its name ends in .py)")
        module = importlib.util.module_from_spec(spec)
        sys.modules[_MODULE] = module  # as an import does: dataclasses look there
        sys.path.append(str(Path(path).resolve().parent))  # what stands beside it
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            raise GoalreelError(
                f"policy.file: {path} cannot be imported:\n{_told(error, path)}"
            ) from None
        function = getattr(module, name, None)
        if not callable(function):
            known = [n for n, v in vars(module).items() if inspect.isfunction(v)]
            raise GoalreelError(
                f"policy.function: {path} has no function {name!r}; it has "
                f"{', '.join(known) or 'none'}"
            )
        return cls(path, name, function, _takes_generators(path, name, function))

    def check(self, environment) -> None:
        """Call the function on sample observations, in a batch and one by one.

        Raises GoalreelError if it raises, if its actions do not fit the environment, and if an
        action depends on other rows of the batch.
        """
        seen, seeds = environment.sample_observations(_SAMPLE), np.arange(_SAMPLE)
        together = self._call(seen, environment, self.generators(seeds))
        for row in range(_SAMPLE):
            part = slice(row, row + 1)
            alone = self._call(seen[part], environment, self.generators(seeds[part]))
            if not np.array_equal(together[row], alone[0]):
                raise GoalreelError(
                    f"{self._who}: the observation {seen[row].tolist()} gives the action "
                    f"{together[row].tolist()} in a batch and {alone[0].tolist()} alone; expected "
                    f"is an action that depends on its own row (and its own generator) alone, to "
                    f"the last bit: a matrix product may round otherwise in a batch, products and "
                    f"sums over the last axis do not"
                )

    def generators(self, seeds: np.ndarray) -> LaneGenerators:
        """Return each episode's own generator, if the function takes them."""
        streams = [np.random.SeedSequence(int(seed), spawn_key=(1,)) for seed in seeds]
        draws = [np.random.Generator(np.random.PCG64(s)) for s in streams] if self.random else []
        return LaneGenerators(np.asarray(seeds), draws)

    def act(self, observations, environment, generators: LaneGenerators):
        """Return the actions (lanes, ...) and the generators, which have moved on."""
        batch = observations
        if isinstance(observations, list):
            batch = environment.batch(observations)
        actions = self._call(batch, environment, generators)
        # Mountain Car's own steps take (lanes,), also of a force.
        stored = getattr(environment, "action_dtype", None)
        return (actions.reshape(len(batch)).astype(stored) if stored else actions), generators

    @property
    def _who(self) -> str:
        return f"policy.function: {self.path}: {self.name}"

    def _call(self, batch: np.ndarray, environment, generators: LaneGenerators) -> np.ndarray:
        try:
            actions = self._raw(batch, generators)
        except (Exception, SystemExit) as error:
            row = self._culprit(batch, generators)
            raise GoalreelError(
                f"{self._who} raised; the observation, of the episode of seed "
                f"{generators.seeds[row]}, was {batch[row].tolist()}\n{_told(error, self.path)}"
            ) from None
        return environment.actions.checked(actions, len(batch), self._who)

    def _raw(self, batch: np.ndarray, generators: LaneGenerators) -> object:
        given = batch.copy()  # the function may write to it
        return (
            self.function(given, generators=generators.draws)
            if self.random
            else self.function(given)
        )

    def _culprit(self, batch: np.ndarray, generators: LaneGenerators) -> int:
        """Return the first row that raises alone too, else 0."""
        for row in range(len(batch)):
            draws = generators.draws[row : row + 1]
            try:
                self._raw(batch[row : row + 1], LaneGenerators(generators.seeds, draws))
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
            f"policy.function: {path}: {name}{signature} does not fit; expected is "
            f"{name}(observations) or {name}(observations, generators)"
        ) from None
    return random


def _told(error: BaseException, path: str) -> str:
    """Return an error with its traceback from the user's file on, indented below our own words."""
    where, steps = str(Path(path).resolve()), error.__traceback__
    while steps is not None and steps.tb_frame.f_code.co_filename != where:
        steps = steps.tb_next
    told = "".join(traceback.format_exception(type(error), error, steps)).rstrip()
    return textwrap.indent(told, "  ")
