"""Errors of policies: a training and its checkpoints, trained networks, Minari datasets."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from goalreel.configuration.options import Options
from goalreel.environments.gymnasium_ids import load_creator, modules_of, not_imported
from goalreel.environments.wrappers import find_wrapper
from goalreel.errors import GoalreelError, listed, pluralize, quoted
from goalreel.policies.minari_files import read_header
from goalreel.policies.parameters import is_trained_here, pixel_kwargs
from goalreel.policies.policy_dependencies import own_network
from goalreel.training.settings import read_presets, with_defaults

Errors = Iterator[tuple[str, str]]  # pairs of a key and a message
# The packages of Minari's public datasets, but for highway_env and shimmy, which import a module
# that an argument names.
_KNOWN_PACKAGES = ("gymnasium", "minari", "ale_py", "gymnasium_robotics", "minigrid")


def training_of(config: Mapping) -> dict:
    """Return the section `train`, with the environment's preset if the run trains its policy."""
    section = config["train"]
    return with_defaults(section, config["env"]) if is_trained_here(config["policy"]) else section


def training_errors(config: Mapping) -> Errors:
    """Yield the errors of a training, and of a checkpoint that it does not keep."""
    env, step = config["env"], config["policy"]["checkpoint"]
    if not is_trained_here(config["policy"]):
        return
    section = training_of(config)
    algorithm, processes = section["algorithm"], section["processes"]
    defaults = read_presets()["defaults"]
    (other,) = defaults.keys() - {algorithm}
    foreign = defaults[other].keys() - defaults[algorithm].keys()
    if given := [key for key in section if key in foreign and section[key] is not None]:
        problem = f"{algorithm.upper()} has no {listed(given, 3)}"
        yield f"train.{given[0]}", f"{problem}. Remove it, or set train={{algorithm: {other}}}."
    if section["pixels"] and env != "MountainCar-v0":
        fix = "Remove it, and set env_wrappers=['gymnasium.wrappers:AddRenderObservation']."
        yield "train.pixels", f"'true' is only for MountainCar-v0. {fix}"
    if section["starts"] == "failures" and "SuperMarioBros-" not in env:
        problem = "'failures' needs the snapshots of Super Mario Bros"
        yield "train.starts", f"{problem}. Use reset for {env}."
    if section["pixels"] or "ALE/" in env:  # such trainings do not use gymnasium.make
        taken = {"repeat_action_probability", "full_action_space", *pixel_kwargs(env)}
        for key in config["env_kwargs"].keys() - (taken if "ALE/" in env else set()):
            yield f"env_kwargs.{key}", "A training from these frames ignores it. Remove it."
    for key in ("n_envs", "batch_size"):
        if section[key] % processes:
            nearest = processes * -(-section[key] // processes)
            problem = f"'{section[key]}' cannot be divided among {processes} processes"
            fix = f"Use a multiple of train.processes, such as {nearest}."
            yield f"train.{key}", f"{problem}. {fix}"
    if algorithm == "ppo" and section["batch_size"] > section["n_steps"] * section["n_envs"]:
        collected = section["n_steps"] * section["n_envs"]
        problem = f"'{section['batch_size']}' is more than the decisions between updates"
        yield "train.batch_size", f"{problem}. Use at most n_steps * n_envs ({collected})."
    module, _, own = own_network(config["policy"], section).partition(":")
    package, places = module.partition(".")[0], [*sys.path, str(Path.cwd())]
    if own and (module.endswith(".py") or PathFinder.find_spec(package, places) is None):
        yield "train.network", not_imported(section["network"], ModuleNotFoundError(name=module))
    total, limit = section["total_timesteps"], config["max_episode_steps"]
    if algorithm == "dqn" and section["learning_starts"] >= total:
        problem = f"'{section['learning_starts']}' decisions are the whole training"
        yield "train.learning_starts", f"{problem}. Use less than total_timesteps ({total:,})."
    if algorithm == "dqn" and limit and limit <= section["frame_skip"]:
        problem = f"'{limit}' cuts each episode after one decision, and DQN learns nothing of it"
        yield "max_episode_steps", f"{problem}. Use more than frame_skip ({section['frame_skip']})."
    kept = {total, *(number for number in section["checkpoints"] if number < total)}
    if isinstance(step, int) and step not in kept:
        fix = f"Add {step} to train.checkpoints" if step < total else "Raise train.total_timesteps"
        problem = f"The training keeps no weights after {step} decisions"
        yield "policy.checkpoint", f"{problem}. {fix}, or use best or last."


def console_errors(config: Mapping) -> Errors:
    """Yield the errors of arguments with which a trained network sees a console differently."""
    env, kwargs = config["env"], config["env_kwargs"]
    shown = pixel_kwargs(env)
    for key, value in shown.items():
        if kwargs.get(key, value) != value:
            problem = f"{quoted(kwargs[key])} does not fit the policy 'trained'"
            yield f"env_kwargs.{key}", f"{problem}. Use {value!r}, or remove it."
    if shown and config["env_wrappers"]:
        yield "env_wrappers", f"The policy 'trained' plays {env} without wrappers. Remove them."


def dataset_errors(config: Mapping) -> Errors:
    """Yield the errors of a dataset, and of options that contradict it."""
    # If there is an error, no code that the dataset names is imported.
    policy = config["policy"]
    if policy["name"] != "minari":
        return
    if policy["dataset"] is None:
        yield "policy.dataset", "The policy 'minari' needs a dataset. Set its id or its folder."
        return
    options, episodes = read_header(policy["dataset"])
    for name, package in _foreign_code(options, policy["allow"]):
        allow = ", ".join([*map(str, policy["allow"]), package])
        option = f"policy={{name: minari, dataset: {policy['dataset']}, allow: [{allow}]}}"
        fix = f"To allow it, add:\n  --config {shlex.quote(option)}"
        yield "policy.dataset", f"The dataset would run {name!r}. {fix}"
        return
    for key, recorded in options.items():
        if config[key] not in (recorded, Options.model_fields[key].default):
            problem = f"The dataset was recorded with {quoted(recorded)}"
            yield key, f"{problem}. Remove {key} to use the same."
    if (config["episodes"] or 0) > episodes:
        problem = f"The dataset has only {pluralize(episodes, 'episode')}"
        yield "episodes", f"{problem}. Use at most {episodes}."


def _foreign_code(options: Mapping, allow: list) -> Iterator[tuple[str, str]]:
    """Yield (name, package) of each callable of a dataset that is not known to be harmless."""
    # The environments and wrappers of known packages are; their other callables are not.
    wrappers = [str(name) for wrapper in options["env_wrappers"] for name in wrapper]
    module, _, bare = options["env"].rpartition(":")
    modules = [(name, name.partition(":")[0]) for name in wrappers]
    modules += [(options["env"], module)] if module else []
    modules += [(bare, module) for module in modules_of(bare)]
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
