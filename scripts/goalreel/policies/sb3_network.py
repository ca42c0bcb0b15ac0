"""The usual networks of Stable-Baselines3 models, evaluated without Stable-Baselines3.

PyTorch chooses the deterministic action of a single observation by the operations of
`model.predict`, so with the same bits. Discrete actions are first chosen by NumPy
for a whole batch: if the best value leads by more than rounding can change, its action is that of
`predict`. The weights are read without running code of the file.
Source: `predict` and `ActorCriticPolicy` in stable_baselines3/common/policies.py, `NatureCNN` in
common/torch_layers.py, and {dqn,sac,td3}/policies.py (2.9); torch/_utils.py (2.14).
"""

import importlib
import io
import itertools
import math
import pickle
import re
import zipfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from goalreel.environments.action_space import ActionSpace
from goalreel.environments.environment import Signals
from goalreel.files.damage import read_member
from goalreel.policies.numpy_network import NumpyNetwork, signals_of
from goalreel.policies.sb3_files import model_data
from goalreel.policies.vecnormalize import Statistics, read_statistics

_ACTIVATION = "<class 'torch.nn.modules.activation."  # others may have the same name

# By the module of the policy class: the modules of the network in order, their usual activation,
# and how continuous actions are bounded.
_CNN = "features_extractor.cnn", "features_extractor.linear"
_ACTOR = *_CNN, "mlp_extractor.policy_net", "action_net"
_NETWORKS = {
    "stable_baselines3.common.policies": (_ACTOR, "Tanh", "clip"),
    "stable_baselines3.dqn.policies": ((*(f"q_net.{p}" for p in _CNN), "q_net.q_net"), "ReLU", ""),
    "stable_baselines3.sac.policies": (("actor.latent_pi", "actor.mu"), "ReLU", "tanh"),
    "stable_baselines3.td3.policies": (("actor.mu",), "ReLU", "tanh"),
}
# The modules of the networks that value a state, or an action in it. A model has some or none.
_CRITICS = (*_CNN, "mlp_extractor.value_net", "value_net"), ("critic.qf0",), ("critic.qf1",)
# Arguments of a policy class that change no network, or only the shapes of its weights.
_HARMLESS = {"net_arch", "ortho_init", "optimizer_class", "optimizer_kwargs", "activation_fn"}
_HARMLESS |= {"log_std_init", "n_critics", ":type:", ":serialized:"}
_KERNELS, _STRIDES = (8, 4, 3), (4, 2, 1)  # of NatureCNN
# A clear lead, in estimated errors of PyTorch's values, which were at most 2.3 from exact ones. And
# a least one, because PPO compares probabilities, which are rounded to 6e-8.
_CLEAR, _LEAST_LEAD = 20, 2e-6
_FLOAT32 = 2.0**29  # the roundoff of float32 divided by that of float64


@dataclass(frozen=True)
class Sb3Network:
    """The network that chooses a model's deterministic actions."""

    layers: Sequence[tuple[np.ndarray, np.ndarray]]  # weight and bias in PyTorch's shapes
    tanh: bool  # instead of ReLU after hidden dense layers
    bound: str  # of continuous actions: "clip" or "tanh"; "" for the values of discrete ones
    is_ppo: bool
    one_hot: int  # the number of observations of a Discrete space, 0 for arrays
    critics: Sequence[NumpyNetwork]  # value a state, or an action in it
    in_batches: bool = False  # whether NumPy computes continuous actions, without PyTorch
    statistics: Statistics | None = None

    def act(self, batch: np.ndarray, space: ActionSpace) -> tuple[np.ndarray, Signals]:
        """Return the actions of `model.predict` for each of n observations, (n, *shape).

        The signals are the least value of the critics, and action probabilities or Q values.
        """
        if self.statistics:
            batch = self.statistics.normalize(batch)
        if self.one_hot:
            batch = np.eye(self.one_hot, dtype=np.float32)[batch]
        if self.num_convolutions and batch.shape[1] > batch.shape[-1]:
            batch = np.moveaxis(batch, -1, 1)  # channels come first, as VecTransposeImage puts them
        if self.bound and self.in_batches:
            actions, signals = self._act_on_all(batch, space), {}
        elif self.bound:
            actions, signals = np.stack([self._act_on(row, space) for row in batch]), {}
        else:
            outputs, errors = self._numpy.evaluate(batch)
            actions, (second, best) = outputs.argmax(1), np.partition(outputs, -2)[:, -2:].T
            scale = 2 if self.num_convolutions else _FLOAT32
            rounding = np.abs(outputs).max(axis=1) * np.finfo(np.float32).eps  # of a large bias
            needed = np.maximum(_CLEAR * np.maximum(scale * errors, rounding), _LEAST_LEAD)
            for row in np.flatnonzero(best - second <= needed).tolist():
                actions[row] = self._act_on(batch[row], space)
            signals = signals_of(outputs, self.is_ppo)
        if self.critics:
            signals["value"] = self._value(batch, actions, space).astype(np.float32)
        return actions, signals

    @cached_property
    def num_convolutions(self) -> int:
        """The number of convolutions, which only images have."""
        return sum(weight.ndim == 4 for weight, _ in self.layers)

    @cached_property
    def _numpy(self) -> NumpyNetwork:
        return _numpy_network(self.layers, self.tanh)

    def _value(self, batch: np.ndarray, actions: np.ndarray, space: ActionSpace) -> np.ndarray:
        """Return the least value of the critics, (n,)."""
        rows = batch if self.num_convolutions else batch.reshape(len(batch), -1)
        if self.bound == "tanh":  # they value an action, scaled to -1 to 1, in a state
            shares = (actions.reshape(len(batch), -1) - space.low) / (space.high - space.low)
            rows = np.concatenate([rows, 2 * shares - 1], axis=1)
        return np.min([critic.evaluate(rows)[0][:, 0] for critic in self.critics], axis=0)

    @cached_property
    def _tensors(self) -> list[tuple]:
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        return [tuple(torch.tensor(array) for array in pair) for pair in self.layers]

    def _act_on(self, observation: np.ndarray, space: ActionSpace) -> np.ndarray:
        """Return the action for one observation, with the bits of `predict`."""
        layers, torch = self._tensors, importlib.import_module("torch")
        functional = torch.nn.functional
        with torch.no_grad():
            units = torch.from_numpy(np.ascontiguousarray(observation[None])).float()
            units = units / 255.0 if self.num_convolutions else units
            for place, (weight, bias) in enumerate(layers):
                if place:
                    units = units.tanh() if self.tanh else units.relu()
                if weight.ndim == 4:
                    units = functional.conv2d(units, weight, bias, _STRIDES[place])
                else:
                    units = functional.linear(units.flatten(1), weight, bias)
            if not self.bound:
                # As torch.distributions.Categorical.
                shares = (units - units.logsumexp(-1, True)).softmax(-1) if self.is_ppo else units
                return shares.argmax().numpy()
            units = (torch.tanh(units) if self.bound == "tanh" else units).numpy()
        return self._bounded(units, space)[0]

    def _act_on_all(self, batch: np.ndarray, space: ActionSpace) -> np.ndarray:
        """Return continuous actions, each of which depends on its own observation only.

        They are float64 values rounded to float32. A value that the rounding errors of a batch
        could change is computed from a single observation.
        """
        units, errors = self._numpy.evaluate(batch)
        errors = _CLEAR * errors[:, None]
        unclear = (units - errors).astype(np.float32) != (units + errors).astype(np.float32)
        for row in np.flatnonzero(unclear.any(axis=1)).tolist():
            units[row] = self._numpy.evaluate(batch[row : row + 1])[0]
        units = units.astype(np.float32).astype(np.float64)
        units = np.tanh(units) if self.bound == "tanh" else units
        return self._bounded(units.astype(np.float32), space)

    def _bounded(self, units: np.ndarray, space: ActionSpace) -> np.ndarray:
        """Return (n, *shape) actions within the bounds of their space."""
        low, high = (b.astype(space.dtype).reshape(space.shape) for b in (space.low, space.high))
        actions = units.reshape(-1, *space.shape)
        if self.bound == "clip":
            return np.clip(actions, low, high)
        return low + (0.5 * (actions + 1.0) * (high - low))


def _numpy_network(layers: Sequence[tuple[np.ndarray, np.ndarray]], tanh: bool) -> NumpyNetwork:
    """Return a network in float64, or in float32 for images, whose pixels it divides by 255."""
    weights, has_images = {}, layers[0][0].ndim == 4
    for place, (weight, bias) in enumerate(layers):
        name = f"convolution{place}" if weight.ndim == 4 else f"dense{place}"
        scaled = weight / np.float32(255) if has_images and not place else weight
        weights |= {f"{name}.weight": scaled, f"{name}.bias": bias}
    return NumpyNetwork(weights, np.float32 if has_images else np.float64, _STRIDES, tanh)


def read_network(path: str, vecnormalize: str | None = None) -> Sb3Network | None:
    """Return the network of a model's file, None if it is not one of the usual ones.

    `vecnormalize` is the file of its observations' statistics, which must also be usual ones.
    """
    data = model_data(Path(path))
    observed, acted = (data.get(f"{name}_space", {}) for name in ("observation", "action"))
    kwargs, module = data.get("policy_kwargs", {}), data.get("policy_class", {}).get("__module__")
    harmless = _HARMLESS | ({"use_sde"} if not kwargs.get("use_sde") else set())
    if module not in _NETWORKS or not kwargs.keys() <= harmless:
        return None
    parts, activation, bound = _NETWORKS[module]
    activation = str(kwargs.get("activation_fn", f"{_ACTIVATION}{activation}'>"))
    activation = activation.removeprefix(_ACTIVATION)[:-2]
    is_discrete = ".Discrete'" in str(acted.get(":type:"))
    kind = str(observed.get(":type:"))
    count = int(observed["n"]) if ".Discrete'" in kind else 0  # of one-hot observations
    try:
        weights = read_weights(path)
        layers = _layers(weights, parts)
        critics = [_layers(weights, names) for names in _CRITICS]
        statistics = read_statistics(vecnormalize, observed) if vecnormalize else None
    except Exception:  # a damaged pickle can raise anything, and `load` names it
        return None
    kernels = tuple(weight.shape[-1] for weight, _ in layers if weight.ndim == 4)
    is_image = len(observed.get("_shape") or ()) == 3
    # NatureCNN, which always has ReLU, and the last layer
    is_bare = len(layers) == len(kernels) + 2
    is_usual = (
        (".Box'" in kind or count)
        and (is_discrete or (".Box'" in str(acted.get(":type:")) and bound))
        and kernels == (_KERNELS if is_image else ())
        and (not is_image or (observed.get("dtype") == "uint8" and statistics is None))
        and (activation == "ReLU" or (activation == "Tanh" and (not is_image or is_bare)))
        and {str(space.get("start", "0")) for space in (observed, acted)} == {"0"}
        and str(acted.get("n")) != "1"
    )
    # Layers that older versions shared have other names.
    dense = [weight.shape for weight, _ in layers if weight.ndim == 2]
    fits = bool(dense) and all(a[0] == b[1] for a, b in itertools.pairwise(dense))
    size = count or math.prod(observed.get("_shape") or (0,))
    if not (is_usual and fits and (is_image or dense[0][1] == size)):
        return None
    tanh = activation == "Tanh" and not is_image
    valuing = [_numpy_network(critic, tanh) for critic in critics if critic]
    is_ppo = module == "stable_baselines3.common.policies"
    bound = "" if is_discrete else bound
    return Sb3Network(layers, tanh, bound, is_ppo, count, valuing, statistics=statistics)


def _layers(weights: Mapping[str, np.ndarray], parts: tuple[str, ...]) -> list[tuple]:
    """Return the weight and bias of each layer of the modules `parts`, in order."""
    layers = []
    for part in parts:
        found = (re.fullmatch(rf"({part}(?:\.(\d+))?)\.weight", name) for name in weights)
        names = sorted((int(match[2] or 0), match[1]) for match in found if match)
        layers += [(weights[f"{name}.weight"], weights[f"{name}.bias"]) for _, name in names]
    return layers


def read_weights(path: str) -> dict[str, np.ndarray]:
    """Return the float32 arrays of a model's file by PyTorch's names.

    Raises UnpicklingError if it has anything else, or any other error if it is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        content = read_member(archive, "policy.pth")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return dict(_Weights(archive).load())


class _Weights(pickle.Unpickler):
    """Reads a dict of PyTorch tensors as arrays, and rejects everything else."""

    def __init__(self, archive: zipfile.ZipFile):
        (name,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        super().__init__(io.BytesIO(read_member(archive, name)))
        self._archive, self._folder = archive, name.removesuffix(".pkl")

    def find_class(self, module: str, name: str):
        """Return one of the three names that a state dict of float32 tensors has."""
        known = {
            "collections.OrderedDict": OrderedDict,
            "torch._utils._rebuild_tensor_v2": _tensor,
            "torch.FloatStorage": np.dtype("<f4"),
        }
        if f"{module}.{name}" not in known:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return known[f"{module}.{name}"]

    def persistent_load(self, pid: tuple) -> np.ndarray:
        """Return the numbers of a storage."""
        _, dtype, key, *_ = pid
        return np.frombuffer(read_member(self._archive, f"{self._folder}/{key}"), dtype)


def _tensor(storage: np.ndarray, offset: int, size: tuple, stride: tuple, *_) -> np.ndarray:
    """Return a view of a storage, whose bounds NumPy checks."""
    width = storage.itemsize
    strides = tuple(width * step for step in stride)
    return np.ndarray(size, storage.dtype, storage, width * offset, strides)
