"""Errors of what plays: training from pixels, a film of what it trained, a Minari data set."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from goalreel.configuration.options import Options
from goalreel.environments.gymnasium_ids import FAMILIES, load_creator
from goalreel.environments.wrappers import find_wrapper
from goalreel.errors import GoalreelError
from goalreel.policies.minari_files import read_header
from goalreel.policies.parameters import is_trained_here, pixel_kwargs
from goalreel.training.games.settings import is_game
from goalreel.training.pixels import presets

Errors = Iterator[tuple[str, str]]  # of (key, what is wrong)
# What Minari's public data sets were recorded in. Not highway_env and shimmy: they import what an
# argument names.
_KNOWN_PACKAGES = ("gymnasium", "minari", "ale_py", "gymnasium_robotics", "minigrid")


def training_errors(config: Mapping) -> Errors:
    """Yield the error of weights that the training from pixels will not have kept."""
    policy, step = config["policy"], config["policy"]["checkpoint"]
    is_trained = policy["name"] == "pixels" and is_trained_here(policy)
    if not (is_trained and isinstance(step, int) and is_game(config["pixels"]["game"])):
        return
    section = presets.with_defaults(config["pixels"])
    last = section["decisions"]
    kept = sorted({*(n for n in section["checkpoints"] if n < last), last})
    if step not in kept:
        yield (
            "policy.checkpoint",
            f"{step}, and the training keeps no weights after so many decisions; allowed: best, "
            f"last, {', '.join(map(str, kept))}; pixels.checkpoints says which",
        )


def pixel_policy_errors(config: Mapping) -> Errors:
    """Yield the errors of a game that is filmed otherwise than a network was trained on it."""
    env, kwargs, game = config["env"], config["env_kwargs"], config["pixels"]["game"]
    if is_trained_here(config["policy"]) and game not in (None, env):
        what = f"policy.name: 'pixels' films a network of {env}"
        yield "pixels.game", f"{game!r}, and {what}; leave it out, or name one by policy.file"
    for key, value in pixel_kwargs(env).items():
        if key != "repeat_action_probability" and kwargs.get(key, value) != value:
            yield (
                f"env_kwargs.{key}",
                f"{kwargs[key]!r}, and the network of policy.name: 'pixels' takes every frame as "
                f"in its training; allowed with it: {value!r}",
            )
    if config["env_wrappers"]:
        yield "env_wrappers", "the network of policy.name: 'pixels' plays with none; leave them out"


def dataset_errors(config: Mapping) -> Errors:
    """Yield the errors of a data set, and of options that contradict what it says.

    Nothing that a data set names is imported or made where this yields an error.
    """
    policy = config["policy"]
    if policy["name"] != "minari":
        return
    if policy["dataset"] is None:
        yield "policy.dataset", "null; 'minari' needs the id of a data set, or its folder"
        return
    header = read_header(policy["dataset"])
    for name, package in _foreign_code(header.options, policy["allow"]):
        yield "policy.dataset", f"wants to run {name!r}{_way_out(policy, package)}"
        return
    for key, recorded in header.options.items():
        if config[key] not in (recorded, Options.model_fields[key].default):
            what = f"{policy['dataset']} was recorded with {recorded!r}; leave {key} out"
            yield key, f"{config[key]!r}, and {what}"
    if (config["episodes"] or 0) > header.episodes:
        what = f"{policy['dataset']} has {header.episodes:,}; allowed: at most {header.episodes}"
        yield "episodes", f"{config['episodes']}, and {what}"


def _foreign_code(options: Mapping, allow: list) -> Iterator[tuple[str, str]]:
    """Yield (name, package) for what a data set would run of packages that are not known.

    A known package's own environments and wrappers run, and none of its other callables.
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
        return  # the checks of `env` and `env_wrappers` tell why
    from gymnasium import Wrapper

    for name, code in made.items():
        package = code.__module__.partition(".")[0]
        is_allowed = not {package, *(p for n, p in packages if n == name)}.isdisjoint(allow)
        is_wrapper = isinstance(code, type) and issubclass(code, Wrapper)
        is_wrapper = is_wrapper and code.__name__ != "RecordVideo"  # which writes where it is told
        is_known = package in _KNOWN_PACKAGES and (is_wrapper or name not in wrappers)
        if not (is_allowed or is_known):
            yield name, package


def _is_here(package: str) -> bool:
    """Return whether Python finds a package in the working folder."""
    spec = PathFinder.find_spec(package, [*sys.path, str(Path.cwd())])
    places = spec and (spec.submodule_search_locations or [spec.origin])
    return any(Path(place).resolve().parent == Path.cwd() for place in places or ())


def _way_out(policy: Mapping, package: str) -> str:
    """Return the end of a message: how to allow a package."""
    if not package.isidentifier():
        return ", which is not a module. Download the dataset again."
    allow = ", ".join([*map(str, policy["allow"]), package])
    option = f"policy={{name: minari, dataset: {policy['dataset']}, allow: [{allow}]}}"
    return f". To allow it: --config {shlex.quote(option)}"
