"""Read the statistics of Stable-Baselines3's VecNormalize without running code of their file.

Pickles are read as names, arguments and states. No class or function of a pickle is called, so that
a crafted one can at most be rejected.
Source: `VecNormalize` in stable_baselines3/common/vec_env/vec_normalize.py (2.9), and the pickles
of arrays, `ndarray.__reduce_ex__` of NumPy (2.4).
"""

import base64
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import ClassVar

import numpy as np

_SAVED = "stable_baselines3.common.vec_env.vec_normalize.VecNormalize"
_MOMENTS = "stable_baselines3.common.running_mean_std.RunningMeanStd"


@dataclass(frozen=True)
class Statistics:
    """The statistics that normalize observations."""

    mean: np.ndarray  # (*shape) float64, of the observations
    var: np.ndarray
    epsilon: float
    clip: float

    def normalize(self, batch: np.ndarray) -> np.ndarray:
        """Return (n, *shape) float32 observations, with the bits of `normalize_obs`."""
        scaled = (batch - self.mean) / np.sqrt(self.var + self.epsilon)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)


def read_statistics(path: str | Path, space: Mapping) -> Statistics | None:
    """Return the statistics of a file, None if they do not normalize observations.

    Raises an exception of any type unless the file is of a VecNormalize of Box observations in the
    `observation_space` of a model's data.
    """
    saved = _state(_Reader(BytesIO(Path(path).read_bytes())).load(), _SAVED)
    if not saved["norm_obs"]:
        return None
    trained = _Reader(BytesIO(base64.b64decode(space[":serialized:"]))).load()
    if _bounds(trained) != _bounds(saved["observation_space"]):
        raise ValueError("the statistics are of other observations")
    moments = _state(saved["obs_rms"], _MOMENTS)
    mean, var = _array(moments["mean"]), _array(moments["var"])
    if not mean.shape == var.shape == tuple(space["_shape"]):
        raise ValueError("the statistics have another shape")
    epsilon, clip = saved["epsilon"], saved["clip_obs"]
    if not {type(epsilon), type(clip)} <= {float, int}:
        raise ValueError("the statistics have unusual limits")
    return Statistics(mean, var, epsilon, clip)


class _Object:
    """An object of a pickle: the name of its class or function, the arguments and the state."""

    name: ClassVar[str]
    state: object = None

    def __init__(self, *arguments: object):
        self.arguments = arguments

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Reader(pickle.Unpickler):
    """Reads a pickle as objects of built-in types and `_Object`s."""

    def find_class(self, module: str, name: str) -> type[_Object]:
        """Return a class that stands for a name."""
        return type("Named", (_Object,), {"name": f"{module}.{name}"})


def _state(found: object, name: str) -> Mapping:
    """Return the attributes of an object of a class. Raises ValueError for another."""
    if not (isinstance(found, _Object) and found.name == name and isinstance(found.state, dict)):
        raise ValueError(f"it is no {name}")
    return found.state


def _bounds(space: object) -> list[tuple]:
    """Return what identifies a Box: shape, dtype and bytes of its bounds."""
    state = _state(space, "gymnasium.spaces.box.Box")
    bounds = _array(state["low"]), _array(state["high"])
    return [(bound.shape, bound.dtype, bound.tobytes()) for bound in bounds]


def _array(found: object) -> np.ndarray:
    """Return an array of little-endian float32 or float64. Raises ValueError for anything else."""
    if found.name.endswith("._frombuffer"):  # pickle protocol 5
        data, kind, shape, order = found.arguments
    else:  # numpy._core.multiarray._reconstruct
        _, shape, kind, is_fortran, data = found.state
        order = "F" if is_fortran else "C"
    code, (_, endian, *_) = kind.arguments[0], kind.state
    if kind.name != "numpy.dtype" or code not in ("f4", "f8") or endian != "<":
        raise ValueError("an array has an unusual dtype")
    return np.frombuffer(bytes(data), f"<{code}").reshape(shape, order=order)
