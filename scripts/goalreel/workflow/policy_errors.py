"""Errors of policies: checkpoints of a training, networks of pixels, Minari datasets."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from goalreel.configuration.options import Options
from goalreel.environments.gymnasium_ids import FAMILIES, load_creator
from goalreel.environments.wrappers import find_wrapper
from goalreel.errors import GoalreelError, pluralize, quoted
from goalreel.policies.minari_files import read_header
from goalreel.policies.parameters import is_trained_here, pixel_kwargs
from goalreel.training.games.settings import is_game
from goalreel.training.pixels import presets

Errors = Iterator[tuple[str, str]]  # pairs of a key and a message
# The packages of Minari's public datasets, but for highway_env and shimmy, which import a module
# that an argument names.
_KNOWN_PACKAGES = ("gymnasium", "minari", "ale_py", "gymnasium_robotics", "minigrid")


def training_errors(config: Mapping) -> Errors:
    """Yield the errors of a training from pixels, and of a checkpoint that it does not keep."""
    policy, step = config["policy"], config["policy"]["checkpoint"]
    if not is_game(config["pixels"]["game"]):
        return
    section = presets.with_defaults(config["pixels"])
    if section["n_envs"] % (count := section["collectors"]):
        nearest = count * -(-section["n_envs"] // count)
        yield (
            "pixels.n_envs",
            f"'{section['n_envs']}' environments cannot be divided among {count} collectors. "
            f"Use a multiple of pixels.collectors, such as {nearest}.",
        )
    if not (policy["name"] == "pixels" and is_trained_here(policy) and isinstance(step, int)):
        return
    last = section["total_timesteps"]
    kept = sorted({*(n for n in section["checkpoints"] if n < last), last})
    if step not in kept:
        fix = "Add the number to pixels.checkpoints, or use best or last."
        yield "policy.checkpoint", f"The training keeps no weights after {step} decisions. {fix}"


def pixel_policy_errors(config: Mapping) -> Errors:
    """Yield the errors of a game that differs from the one that the network was trained on."""
    env, kwargs, game = config["env"], config["env_kwargs"], config["pixels"]["game"]
    if is_trained_here(config["policy"]) and game not in (None, env):
        problem = f"The training is of {game}, but the run films {env}"
        yield "pixels.game", f"{problem}. Remove it, or set policy.file to a trained network."
    for key, value in pixel_kwargs(env).items():
        if key != "repeat_action_probability" and kwargs.get(key, value) != value:
            problem = f"{quoted(kwargs[key])} differs from the training of the policy 'pixels'"
            yield f"env_kwargs.{key}", f"{problem}. Use {value!r}, or remove it."
    if config["env_wrappers"]:
        yield "env_wrappers", "The policy 'pixels' plays without wrappers. Remove them."


def dataset_errors(config: Mapping) -> Errors:
    """Yield the errors of a dataset, and of options that contradict it.

    If there is an error, no code that the dataset names is imported.
    """
    policy = config["policy"]
    if policy["name"] != "minari":
        return
    if policy["dataset"] is None:
        yield "policy.dataset", "The policy 'minari' needs a dataset. Set its id or its folder."
        return
    options, episodes = read_header(policy["dataset"])
    for name, package in _foreign_code(options, policy["allow"]):
        yield "policy.dataset", f"The dataset would run {name!r}. {_fix(policy, package)}"
        return
    for key, recorded in options.items():
        if config[key] not in (recorded, Options.model_fields[key].default):
            problem = f"The dataset was recorded with {quoted(recorded)}"
            yield key, f"{problem}. Remove {key} to use the same."
    if (config["episodes"] or 0) > episodes:
        problem = f"The dataset has only {pluralize(episodes, 'episode')}"
        yield "episodes", f"{problem}. Use at most {episodes}."


def _foreign_code(options: Mapping, allow: list) -> Iterator[tuple[str, str]]:
    """Yield (name, package) of each callable of a dataset that is not known to be harmless.

    The environments and wrappers of known packages are; their other callables are not.
    """
    wrappers = [str(name) for wrapper in options["env_wrappers"] for name in wrapper]
    module, _, bare = options["env"].rpartition(":")
    modules = [(name, name.partition(":")[0]) for name in wrappers]
    modules += [(options["env"], module)] if module else []
    modules += [(bare, family) for start, family in FAMILIES.items() if bare.startswith(start)]
    packages = [(name, module.partition(".")[0]) for name, module in modules]
    for name, package in packages:
        if package not in allow and (package not in _KNOWN_PACKAGES or _is_here(package)):
            yield name, package
    try:
        made = {options["env"]: load_creator(options["env"])}
        made |= {name: find_wrapper(name) for name in wrappers}
    except GoalreelError:
        return  # reported by the checks of `env` and `env_wrappers`
    from gymnasium import Wrapper

    for name, code in made.items():
        package = code.__module__.partition(".")[0]
        is_allowed = not {package, *(p for n, p in packages if n == name)}.isdisjoint(allow)
        is_wrapper = isinstance(code, type) and issubclass(code, Wrapper)
        is_wrapper = is_wrapper and code.__name__ != "RecordVideo"  # it writes files
        is_known = package in _KNOWN_PACKAGES and (is_wrapper or name not in wrappers)
        if not (is_allowed or is_known):
            yield name, package


def _is_here(package: str) -> bool:
    """Return whether Python finds a package in the working folder."""
    spec = PathFinder.find_spec(package, [*sys.path, str(Path.cwd())])
    places = spec and (spec.submodule_search_locations or [spec.origin])
    return any(Path(place).resolve().parent == Path.cwd() for place in places or ())


def _fix(policy: Mapping, package: str) -> str:
    """Return the fix that allows a package."""
    if not package.isidentifier():
        return "That is not a module, so download the dataset again."
    allow = ", ".join([*map(str, policy["allow"]), package])
    option = f"policy={{name: minari, dataset: {policy['dataset']}, allow: [{allow}]}}"
    return f"To allow it, add:\n  --config {shlex.quote(option)}"
