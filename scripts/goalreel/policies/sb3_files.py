"""The files of a Stable-Baselines3 model: a folder of RL Zoo, and its VecNormalize statistics.

Imported while the Snakefile is parsed, so nothing is unpickled here, and PyTorch is not needed.
"""

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from goalreel.errors import OptionError, use

# The modules of the policies that models are made of, and the algorithms that train them.
_TRAINED_BY = {
    "stable_baselines3.common.policies": ("A2C", "PPO", "TRPO"),
    "stable_baselines3.dqn.policies": ("DQN",),
    "stable_baselines3.sac.policies": ("SAC",),
    "stable_baselines3.td3.policies": ("TD3", "DDPG"),
    "sb3_contrib.ars.policies": ("ARS",),
    "sb3_contrib.common.maskable.policies": ("MaskablePPO",),
    "sb3_contrib.common.recurrent.policies": ("RecurrentPPO",),
    "sb3_contrib.crossq.policies": ("CrossQ",),
    "sb3_contrib.qrdqn.policies": ("QRDQN",),
    "sb3_contrib.tqc.policies": ("TQC",),
}
# What only these of several algorithms keep in a model's file. DDPG is played as TD3 is.
_OWN_KEYS = {"PPO": "clip_range", "TRPO": "cg_max_steps"}
_STATISTICS = ("vecnormalize.pkl", "vec_normalize.pkl")  # RL Zoo's name, and the documentation's


def with_files(policy: Mapping, env: str) -> dict:
    """Return the section `policy` of a model with its algorithm and files, completed.

    Raises:
        GoalreelError: there is no such model, it is of another algorithm or names none, or it was
            trained with VecNormalize and its statistics are missing.
    """
    model, vecnormalize = _model(Path(policy["file"]), env), policy["vecnormalize"]
    data, algorithm = _data(model), policy["algorithm"]
    able = _trained_by(data)
    if able and algorithm not in (None, *able):
        raise OptionError(
            "policy.algorithm",
            f"{algorithm!r} did not train this model. {use(able)}",
        )
    if algorithm is None and not able and model.is_file():
        raise OptionError(
            "policy.file",
            f"{str(model)!r} does not name its algorithm. If it is a Stable-Baselines3 "
            f"model, set policy.algorithm, such as PPO.",
        )
    algorithm = algorithm or next(iter(able), None)
    if vecnormalize is None:
        found = _statistics(model)
        vecnormalize = None if found is None else str(found)
    if vecnormalize is None and _is_normalized(data):
        stem = model.stem
        raise OptionError(
            "policy.vecnormalize",
            f"The model was trained with VecNormalize. Put {stem}_vecnormalize.pkl next to it, or "
            f"set the path, or false to play without.",
        )
    return {**policy, "file": str(model), "algorithm": algorithm, "vecnormalize": vecnormalize}


def _trained_by(data: Mapping) -> tuple[str, ...]:
    """Return the algorithms that a model may be of, the likeliest first, () if it shows none."""
    module = str(_described(data, "policy_class").get("__module__"))
    able = _TRAINED_BY.get(module, ())
    return tuple(sorted(able, key=lambda name: _OWN_KEYS.get(name) not in data))


def _model(path: Path, env: str) -> Path:
    """Return the .zip that a path means: itself, or one of an RL Zoo folder."""
    if not path.is_dir():
        return path
    models = sorted(path.glob("*.zip"))
    name = env.rpartition(":")[2].replace("/", "-")
    for model in (path / f"{name}.zip", path / "best_model.zip"):
        if model in models:
            return model
    if len(models) != 1:
        fix = f"Name one of its models: {', '.join(model.name for model in models[:5])}"
        fix = fix if models else "Name a model's .zip file."
        raise OptionError("policy.file", f"{str(path)!r} has no {name}.zip. {fix}")
    return models[0]


def _statistics(model: Path) -> Path | None:
    """Return the file of VecNormalize's statistics that belongs to a model, None if none does."""
    stem = model.name.removesuffix(".zip")
    names = [f"{stem}_vecnormalize.pkl"]
    if checkpoint := re.fullmatch(r"(.+)_(\d+_steps)", stem):  # as CheckpointCallback writes them
        names.append(f"{checkpoint[1]}_vecnormalize_{checkpoint[2]}.pkl")
    names += _STATISTICS
    beside = [model.with_name(name) for name in names]
    # The folders in which RL Zoo has left how it trained the model.
    zoo = (args.with_name(_STATISTICS[0]) for args in sorted(model.parent.glob("*/args.yml")))
    return next((path for path in (*beside, *zoo) if path.is_file()), None)


def _is_normalized(data: Mapping) -> bool:
    """Tell whether a model shows that it was trained with VecNormalize.

    While it learns from VecNormalize, a model keeps the observation before it was normalized, and
    `model.save` stores that. Algorithms with a replay buffer always keep one, so theirs tells
    nothing.
    """
    return "buffer_size" not in data and data.get("_last_original_obs") is not None


def _data(model: Path) -> Mapping:
    """Return what a model's file says of it as JSON, {} if it cannot be read; the job tells why."""
    try:
        with zipfile.ZipFile(model) as archive:
            data = json.loads(archive.read("data"))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return {}
    return data if isinstance(data, Mapping) else {}


def _described(data: Mapping, name: str) -> Mapping:
    """Return what a model's JSON tells of an object that it holds pickled."""
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def spaces_error(model: str, spaces: Mapping[str, object]) -> str:
    """Tell which space of a model differs from the environment's, "" if none shows.

    spaces: Gymnasium's, by their names in a model, observation_space and action_space
    """
    data = _data(Path(model))
    for name, space in spaces.items():
        stored = _described(data, name)
        kind = str(stored.get(":type:")).rpartition(".")[2].removesuffix("'>")
        has_bounds = name == "action_space"
        trained = _form(kind, stored, has_bounds)
        offered = _form(type(space).__name__, vars(space), has_bounds)
        if trained and offered and trained != offered:
            what = name.replace("_space", "s")
            return f"The model was trained with {what} in {trained}, not {offered}"
    return ""


def _form(kind: str, attributes: Mapping, has_bounds: bool) -> str:
    """Return a space's kind, size and bounds in words, "" if they are not known."""
    if kind in ("Dict", "Tuple"):
        return kind
    if kind in ("Discrete", "MultiDiscrete"):
        return f"{kind} {attributes.get('n', attributes.get('nvec'))}"
    shape = attributes.get("_shape")
    if kind not in ("Box", "MultiBinary") or not isinstance(shape, list | tuple):
        return ""
    # A model sees pictures channels first, and turns them.
    form = f"{kind} {tuple(sorted(shape) if len(shape) == 3 else shape)}"
    for word, end in (("from", "low"), ("to", "high")) if has_bounds and kind == "Box" else ():
        numbers = re.findall(r"[^][\s]+", str(attributes.get(end)))
        form += f" {word} {', '.join(dict.fromkeys(f'{float(number):g}' for number in numbers))}"
    return form
