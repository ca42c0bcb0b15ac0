"""The files of a Stable-Baselines3 model: a folder of RL Zoo, and its VecNormalize statistics.

The Snakefile imports this module, so it unpickles nothing and does not import PyTorch.
"""

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from goalreel.errors import OptionError, use
from goalreel.files.damage import read_member

# The module of a model's policy class, and the algorithms that train such models.
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
_MAX_DATA = 1 << 28  # bytes of JSON
# Keys that only these algorithms store in a model's file. A DDPG model plays as a TD3 model.
_OWN_KEYS = {"PPO": "clip_range", "TRPO": "cg_max_steps"}
_STATISTICS = ("vecnormalize.pkl", "vec_normalize.pkl")  # RL Zoo's name, and the documentation's


def with_files(policy: Mapping, env: str) -> dict:
    """Return the section `policy` of a model, completed with its algorithm and files.

    Raises GoalreelError if there is no such model, its algorithm is different or unknown, or it was
    trained with VecNormalize and the statistics are missing.
    """
    model, vecnormalize = _model(Path(policy["file"]), env), policy["vecnormalize"]
    data, algorithm = model_data(model), policy["algorithm"]
    module = str(data.get("policy_class", {}).get("__module__"))
    # The algorithms that may have trained the model, the likeliest first.
    able = sorted(_TRAINED_BY.get(module, ()), key=lambda name: _OWN_KEYS.get(name) not in data)
    if able and algorithm not in (None, *able):
        message = f"{algorithm!r} did not train this model. {use(able)}"
        raise OptionError("policy.algorithm", message)
    if algorithm is None and not able and model.is_file():
        problem = f"{str(model)!r} does not name its algorithm"
        fix = "If it is a Stable-Baselines3 model, set policy.algorithm, such as PPO."
        raise OptionError("policy.file", f"{problem}. {fix}")
    algorithm = algorithm or next(iter(able), None)
    if vecnormalize is None and (found := _statistics(model)):
        vecnormalize = str(found)
    # With VecNormalize, a model stores its last observation before normalization. Algorithms with a
    # replay buffer always store it.
    normalized = "buffer_size" not in data and data.get("_last_original_obs") is not None
    if vecnormalize is None and normalized:
        file = f"{model.stem}_vecnormalize.pkl"
        fix = f"Put {file} next to it, or set the path, or false to play without."
        raise OptionError("policy.vecnormalize", f"The model was trained with VecNormalize. {fix}")
    return {**policy, "file": str(model), "algorithm": algorithm, "vecnormalize": vecnormalize}


def _model(path: Path, env: str) -> Path:
    """Return the .zip of a path, which is a model or an RL Zoo folder."""
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
    """Return the file of a model's VecNormalize statistics, None if there is none."""
    stem = model.name.removesuffix(".zip")
    names = [f"{stem}_vecnormalize.pkl"]
    if checkpoint := re.fullmatch(r"(.+)_(\d+_steps)", stem):  # as CheckpointCallback writes them
        names.append(f"{checkpoint[1]}_vecnormalize_{checkpoint[2]}.pkl")
    paths = [model.with_name(name) for name in (*names, *_STATISTICS)]
    # RL Zoo describes a training in such folders.
    paths += [args.with_name(_STATISTICS[0]) for args in sorted(model.parent.glob("*/args.yml"))]
    return next(filter(Path.is_file, paths), None)


def model_data(model: Path) -> Mapping:
    """Return the JSON in a model's file, {} if it cannot be read; the job reports why."""
    try:
        with zipfile.ZipFile(model) as archive:
            return json.loads(read_member(archive, "data", _MAX_DATA))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return {}


def spaces_error(model: str, spaces: Mapping[str, object]) -> str:
    """Return a message if a space of a model differs from the environment's, else "".

    spaces: of the environment, under the keys observation_space and action_space
    """
    data = model_data(Path(model))
    for name, space in spaces.items():
        stored = data.get(name, {})
        kind = str(stored.get(":type:")).rpartition(".")[2].removesuffix("'>")
        has_bounds = name == "action_space"
        trained = _form(kind, stored, has_bounds)
        offered = _form(type(space).__name__, vars(space), has_bounds)
        if trained and offered and trained != offered:
            what = name.replace("_space", "s")
            return f"The model was trained with {what} in {trained}, not {offered}"
    return ""


def _form(kind: str, attributes: Mapping, has_bounds: bool) -> str:
    """Return the kind, size and bounds of a space in words, "" if they are not known."""
    if kind in ("Dict", "Tuple"):
        return kind
    if kind in ("Discrete", "MultiDiscrete"):
        return f"{kind} {attributes.get('n', attributes.get('nvec'))}"
    shape = attributes.get("_shape")
    if kind not in ("Box", "MultiBinary") or not isinstance(shape, list | tuple):
        return ""
    # A model transposes images so that the channels come first.
    form = f"{kind} {tuple(sorted(shape) if len(shape) == 3 else shape)}"
    for word, end in (("from", "low"), ("to", "high")) if has_bounds and kind == "Box" else ():
        numbers = re.findall(r"[^][\s]+", str(attributes.get(end)).replace("...", ""))
        form += f" {word} {', '.join(dict.fromkeys(f'{float(number):g}' for number in numbers))}"
    return form
