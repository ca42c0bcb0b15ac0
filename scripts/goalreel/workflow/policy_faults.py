"""Faults of what plays: training from pixels, a film of what it trained, a Minari data set."""

from collections.abc import Iterator, Mapping

from goalreel.errors import GoalreelError
from goalreel.policies.minari_files import read_header
from goalreel.policies.parameters import is_trained_here, pixel_kwargs
from goalreel.training.games.settings import is_game
from goalreel.training.pixels import presets

Faults = Iterator[tuple[str, str]]  # of (key, what is wrong)


def training_faults(config: Mapping, schema: Mapping) -> Faults:
    """Yield the faults of the section `pixels`: a preset, or the age that is filmed."""
    section = config["pixels"]
    if is_game(section["game"]) and section["preset"] in (None, *presets.PRESETS):
        fits = presets.fitting(section["game"])
        if section["preset"] not in (None, fits):
            told = f"{section['preset']!r} does not fit {section['game']}; allowed: {fits}, null"
            yield "pixels.preset", told
            return
        yield from _age_faults(config["policy"], presets.filled(section))


def _age_faults(policy: Mapping, section: Mapping) -> Faults:
    """Yield the fault of weights that the training from pixels will not have kept."""
    age, ages = policy["checkpoint"], section["checkpoints"]
    if policy["name"] != "pixels" or not is_trained_here(policy) or not isinstance(age, int):
        return
    kept = sorted({*(n for n in ages if n < section["decisions"]), section["decisions"]})
    if age not in kept:
        yield (
            "policy.checkpoint",
            f"{age}, and the training keeps no weights after so many decisions; allowed: best, "
            f"last, {', '.join(map(str, kept))}; pixels.checkpoints says which",
        )


def pixel_policy_faults(config: Mapping) -> Faults:
    """Yield the faults of a game that is filmed otherwise than a network was trained on it."""
    env, kwargs, game = config["env"], config["env_kwargs"], config["pixels"]["game"]
    if is_trained_here(config["policy"]) and game not in (None, env):
        yield (
            "pixels.game",
            f"{game!r}, and policy.name: 'pixels' films a network of {env}; leave it out, or name "
            f"a kept one by policy.file",
        )
    for key, value in pixel_kwargs(env).items():
        if key != "repeat_action_probability" and kwargs.get(key, value) != value:
            yield (
                f"env_kwargs.{key}",
                f"{kwargs[key]!r}, and the network of policy.name: 'pixels' takes every frame as "
                f"in its training; allowed with it: {value!r}",
            )
    if config["env_wrappers"]:
        yield (
            "env_wrappers",
            "the network of policy.name: 'pixels' sees the game as in its training; allowed with "
            "it: none",
        )


def dataset_faults(config: Mapping, schema: Mapping) -> Faults:
    """Yield the faults of a data set, and of options that contradict what it says."""
    policy, options = config["policy"], schema["properties"]
    if policy["name"] != "minari":
        return
    if not isinstance(policy["dataset"], str):
        yield "policy.dataset", "null; 'minari' needs the id of a data set, or its folder"
        return
    try:
        header = read_header(policy["dataset"])
    except GoalreelError as error:
        yield "policy.dataset", str(error).partition(": ")[2]
        return
    for key, recorded in header.options.items():
        if config[key] not in (recorded, options[key]["default"]):
            yield (
                key,
                f"{config[key]!r}, and {policy['dataset']} was recorded with {recorded!r}; leave "
                f"{key} out",
            )
    if (config["episodes"] or 0) > header.episodes:
        yield (
            "episodes",
            f"{config['episodes']}, and {policy['dataset']} has {header.episodes:,}; allowed: "
            f"at most {header.episodes}",
        )
