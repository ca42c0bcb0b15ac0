"""Play a network of an ONNX file, which PyTorch, JAX and other frameworks export.

The network takes a batch of observations, or one input for each key of a Dict space. Its first
output chooses the action: whole numbers are actions, and other numbers are logits, values or a
one-hot vector, of which the greatest wins. Continuous actions are clipped to the space. The inputs
NAME_in and outputs NAME_out are the state of a recurrent network, at first zeros.

onnxruntime evaluates one observation at a time on one CPU thread, so that an episode depends only
on its seed. It runs no code of the file.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from goalreel.environments.action_space import ActionSpace
from goalreel.environments.environment import Acted, Batch, Environment, PerEnv, take_rows
from goalreel.errors import GoalreelError, quoted, use

_DTYPES = {"float": "float32", "double": "float64"}  # NumPy's names, where they differ


@dataclass(frozen=True)
class OnnxPolicy:
    """A policy in an ONNX file."""

    path: str
    session: object  # an onnxruntime.InferenceSession

    @classmethod
    def load(cls, path: str) -> "OnnxPolicy":
        """Load a file. Raises GoalreelError if onnxruntime cannot."""
        runtime = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # warnings about the exporter's graph help nobody here
        try:
            session = runtime.InferenceSession(path, options, ["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common class
            raise GoalreelError(
                f"policy.file: {quoted(path)} cannot be loaded by onnxruntime "
                f"{runtime.__version__}. Export the network again.\n  {error}"
            ) from None
        return cls(path, session)

    @cached_property
    def _states(self) -> dict[str, str]:
        """The output that updates each state of a recurrent network, by its input."""
        outputs = [output.name for output in self.session.get_outputs()]
        pairs = ((i.name, f"{i.name.removesuffix('_in')}_out") for i in self.session.get_inputs())
        return {name: pair for name, pair in pairs if name.endswith("_in") and pair in outputs}

    @cached_property
    def _inputs(self) -> dict[str, tuple[tuple, np.dtype]]:
        """The shape, with None for a free length, and dtype of each input by its name."""
        return {
            one.name: (
                tuple(length if isinstance(length, int) else None for length in one.shape),
                np.dtype(_DTYPES.get(word := one.type[len("tensor(") : -1], word)),
            )
            for one in self.session.get_inputs()
        }

    def check(self, environment: Environment) -> None:
        """Raise GoalreelError if the inputs or outputs do not fit the environment."""
        obs = take_rows(environment.sample_observations(1), 0)
        self.act([obs], environment, self.generators(np.arange(1)))

    def generators(self, seeds: np.ndarray) -> PerEnv:
        """Return the state of each episode at its start, by the names of the inputs."""
        zeros = {}
        for name in self._states:
            shape, dtype = self._inputs[name]
            zeros[name] = np.zeros([length or 1 for length in shape], dtype)
        return PerEnv(zeros for _ in seeds)

    def act(self, observations: Sequence, environment: Environment, generators: PerEnv) -> Acted:
        """Return the actions, (num_envs, *stored_shape), and the states of the episodes."""
        arrays, space = self._arrays(environment.batch(observations)), environment.actions
        names = [output.name for output in self.session.get_outputs()]
        actions, after = [], PerEnv()
        for row, state in enumerate(generators):
            given = {name: array[row : row + 1] for name, array in arrays.items()} | state
            try:
                values = dict(zip(names, self.session.run(names, given), strict=True))
            except Exception as error:  # as above
                raise self._error(f"The network fails. Export it again.\n  {error}") from None
            after.append({name: values[output] for name, output in self._states.items()})
            chosen = next((name for name in names if name not in self._states.values()), None)
            if chosen is None:
                raise self._error("All its outputs are states. Export it with the actions.")
            actions.append(self._action(chosen, values[chosen], space))
        label = f"policy.file: {self.path}"
        return space.validate(np.stack(actions), len(actions), label), after, {}

    def _arrays(self, batch: Batch) -> dict[str, np.ndarray]:
        """Return observations by the names of the inputs, in their shapes and dtypes."""
        expected = [name for name in self._inputs if name not in self._states]
        batch = batch if isinstance(batch, Mapping) else {expected[0]: batch}
        arrays = {}
        for name in expected:
            if name not in batch:
                problem = f"The observation has no {name!r}, an input of the network"
                raise self._error(f"{problem}. {use(sorted(batch))}")
            array = found = batch[name]
            shape, dtype = self._inputs[name]
            if not shape or shape[0] not in (None, 1):
                fix = "Export it for a batch of one, or of any size."
                raise self._error(f"The input {name!r} has the shape {shape}. {fix}")
            if not _fits(array, shape) and array.ndim == 4:
                array = np.moveaxis(array, -1, 1)  # channels come first, as PyTorch has them
            if not (_fits(array, shape) and np.can_cast(array.dtype, dtype, "same_kind")):
                raise self._error(
                    f"The input {name!r} takes {dtype} of shape {shape[1:]}, but the observation "
                    f"is {found.dtype} of shape {found.shape[1:]}. Set env and env_wrappers as in "
                    "its training."
                )
            arrays[name] = np.ascontiguousarray(array, dtype)
        return arrays

    def _action(self, name: str, values: np.ndarray, space: ActionSpace) -> np.ndarray:
        """Return the action of the output for one observation, of the shape of the space."""
        numbers, count = values.reshape(-1), len(space.low)
        wanted, choices = f"{count} numbers", np.zeros(1, int)
        if space.is_integer:
            choices = (space.high - space.low + 1).astype(int)
            wanted = f"{choices.sum()} values, or {count} whole numbers"
        if numbers.size == count and not space.is_integer:
            return np.clip(numbers, space.low, space.high).reshape(space.shape)
        if numbers.size == count and numbers.dtype.kind in "iub":
            return numbers.reshape(space.shape)
        if not space.is_integer or numbers.size != choices.sum():
            raise self._error(
                f"The output {name!r} has {numbers.size} numbers ({values.dtype}), but an action "
                f"takes {wanted}. Put the actions first among the outputs."
            )
        parts = np.split(numbers, np.cumsum(choices)[:-1])
        return (space.low + [part.argmax() for part in parts]).reshape(space.shape)

    def _error(self, message: str) -> GoalreelError:
        return GoalreelError(f"policy.file: {self.path}: {message}")


def _fits(array: np.ndarray, shape: tuple) -> bool:
    """Return whether single rows of an array have a shape, in which None is any length."""
    row = (1, *array.shape[1:])
    return len(row) == len(shape) and all(map(lambda a, b: b in (None, a), row, shape))
