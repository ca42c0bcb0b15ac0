"""The configuration: the user's options, checked against each other and completed."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from goalreel.configuration.options import Check, Options, PolicyOptions
from goalreel.configuration.schema import config_error, read_options
from goalreel.encoding.encoder_selection import cards, encoder_errors
from goalreel.environments import gymnasium_ids
from goalreel.environments.registry import describe
from goalreel.environments.wrappers import named, spaces_of, sticky_options, wrapper_errors
from goalreel.errors import OptionError, UnusableFileError, pluralize, quoted, suggest, use
from goalreel.mp4.reader import MOST_FRAMES
from goalreel.policies.minari_files import read_header
from goalreel.policies.parameters import (
    PARAMETERS,
    POLICY_FILES,
    RECORDED,
    is_trained_here,
    parameters,
    pixel_kwargs,
)
from goalreel.policies.policy_dependencies import policy_files, policy_tools
from goalreel.policies.sb3_files import spaces_error, with_files
from goalreel.provenance.spec import folder_name
from goalreel.rendering.captions import default_captions
from goalreel.verification.lock_file import read_lock
from goalreel.workflow import policy_errors
from goalreel.workflow.policy_errors import Errors
from goalreel.workflow.run import CHOICES, SHARDED, Run

_MAX_FPS = 240  # as in the schema
_CONSOLE_FPS = 60  # each frame of a console is a step
_ANY_POLICY = "Use random, trained, or a policy's file, such as agent.py or model.zip."
_MAX_SHARDS = 100_000  # beyond, Snakemake's own planning takes minutes and gigabytes
_SHARD_SECONDS = 60  # the time that an interrupted job may lose
# Options that a check takes only from the lock file, or that do not affect the episodes.
_KEPT = {*Options.model_fields} - {"check", "check_determinism", "env", "env_kwargs"}
_KEPT -= {"env_wrappers", "max_episode_steps", "policy", "render", "shard_size", "sticky_actions"}


def load_config(user_options: Mapping) -> dict:
    """Return the complete configuration. Raises GoalreelError that lists all errors."""
    config = read_config(user_options)
    check_environment(config)
    return config | {"film": _with_own_fps(user_options, config)}


def check_environment(config: Mapping) -> None:
    """Raise GoalreelError if the environment's own code does not accept a configuration."""
    if errors := _found(_creator_errors, config):
        raise config_error(errors)


def _with_own_fps(user_options: Mapping, config: Mapping, fps: float | None = None) -> dict:
    """Return the section `film`, with the environment's own `fps` if the user sets none."""
    film, env = config["film"], config["env"]
    is_given = (user_options.get("film") or {}).get("fps") not in (None, "null")
    if is_given or describe(env).computed or _console_kwargs(config):
        return film
    fps = fps or gymnasium_ids.environment_fps(env, config["env_kwargs"])
    return film | {"fps": min(max(round(fps), 1), _MAX_FPS)}


def options_by(steps: Mapping, config: Mapping, user_options: Mapping) -> dict:
    """Return the options that the first steps of a run set. Steps may be {}."""
    film, policy = _with_own_fps(user_options, config, steps.get("render_fps")), config["policy"]
    found: dict[str, object] = {"film": film}
    if name := steps.get("opengl"):
        found["render"] = {**config["render"], "opengl": config["render"]["opengl"] or name}
    if opened := steps.get("files"):
        files = list(dict.fromkeys([*policy.get("extra_files", ()), *opened]))
        found["policy"] = dict(policy) | {"extra_files": files}
    if steps and user_options.get("shard_size") is None:
        most = int(_SHARD_SECONDS / max(steps.get("episode_s", 0), 1e-9))
        rounded = 1 << most.bit_length() >> 1  # to a power of two: times vary a little
        found["shard_size"] = max(min(config["shard_size"], rounded), 1)
    return found


def read_config(user_options: Mapping) -> dict:
    """Return the configuration as load_config does, without importing the environment's own code.

    `film.fps` is 30 if the environment has its own. Errors of the environment's arguments and
    spaces are reported only together with others.
    """
    config, errors = read_options(with_policy_section(user_options))
    if config["policy"]["name"] is None:
        name = _fitting_policy(config["policy"], config["env"])
        config["policy"] = config["policy"] | {"name": name}
    if _are_sound(("policy",), errors):
        errors |= _found(policy_errors.dataset_errors, config)
    if config["policy"]["name"] == "minari" and not errors:
        config = config | read_header(config["policy"]["dataset"])[0]
    errors |= _found(lambda config: config.update(sticky_options(config)), config)
    # An option with an error has its default here, so skip checks that involve it.
    for check, needed in (
        (_environment_errors, ("env", "env_kwargs", "env_wrappers")),
        (_policy_errors, ("env", "policy.name")),
        (_render_errors, ("env", "render")),
        (_check_errors, ("check",)),
        (policy_errors.training_errors, ("env", "train", "policy")),
        (_check_policy_files, ("env", "env_kwargs", "env_wrappers", "policy")),
    ):
        if _are_sound(needed, errors):
            errors = errors | _found(check, config) | errors
    errors = errors or _found(_selection_errors, config)
    if not errors:
        _fill(config)
        errors = _found(_film_errors, config)
    if errors:
        if _are_sound(("env", "env_kwargs", "env_wrappers", "policy"), errors):
            errors |= _found(_creator_errors, config)
        raise config_error(errors)
    policy = config["policy"]
    taken = ("name", *(parameters(policy["name"], config["env"]) or ()))
    policy = with_files(policy, config["env"]) if policy["name"] == "sb3" else policy
    wrappers = [{name: dict(kwargs)} for name, kwargs in map(named, config["env_wrappers"])]
    folder = "results" if config["compare"] else results_folder(config["env"], policy)
    folder = config["results"] or folder
    return config | {
        "results": folder if "://" in folder else str(Path(folder)),
        "policy": {key: policy[key] for key in taken},
        "env_wrappers": wrappers,
        "train": policy_errors.training_of(config),
    }


def _are_sound(options: tuple[str, ...], errors: Mapping[str, str]) -> bool:
    """Return whether no error is of one of the options, or of a value in it."""
    return not any(f"{key}.".startswith(f"{option}.") for key in errors for option in options)


def _found(check: Callable[[Mapping], Errors | None], config: Mapping) -> dict[str, str]:
    """Return the errors that a check yields or raises."""
    errors = {}
    try:
        errors.update(check(config) or ())
    except OptionError as error:
        errors[error.key] = error.message
    except UnusableFileError as error:
        problem = f"'{error.path}' cannot be used: {error.problem}"
        errors["policy.file"] = f"{problem}. Use an intact file."
    except OSError as error:  # a name that is too long, or a folder without permission
        errors["policy.file"] = f"The file cannot be read ({error.strerror}). Check its path."
    return errors


def results_folder(env: str, policy: Mapping) -> str:
    """Return the default results folder, results/ENV-POLICY, with the stem of a policy's file."""
    played = policy.get("file") or policy.get("dataset")
    name = f"{env}-{Path(played).stem if played else policy['name']}"
    return f"results/{folder_name(name)}"


def locked_options(user_options: Mapping) -> dict:
    """Return the options that play the episodes of a lock file, with the user's changes."""
    check = user_options.get("check")
    path = check.get("file") if isinstance(check, Mapping) else None
    facts, episodes = read_lock(path or Check().file)
    options = facts["options"]
    root = user_options.get("results") or results_folder(options["env"], options["policy"])
    for key in user_options.keys() - _KEPT:
        old, new = options.get(key), user_options[key]
        is_part = isinstance(old, Mapping) and isinstance(new, Mapping)
        is_part = is_part and (key != "policy" or new.get("name", old["name"]) == old["name"])
        options[key] = {**old, **new} if is_part else new
    policy, seeds = options["policy"], [episode.seed for episode in episodes]
    is_recorded = isinstance(policy, Mapping) and policy.get("name") in RECORDED
    chosen = {"episodes": len(seeds)} if is_recorded else {"seeds": seeds}
    return options | chosen | {"results": f"{root}/check"}


def with_policy_section(user_options: Mapping) -> dict:
    """Return the options with a section for a policy that the user gives as a name or file."""
    policy = user_options.get("policy")
    if not isinstance(policy, str):
        return dict(user_options)
    # Path.is_dir raises OSError if the name is too long for a file.
    is_file = Path(policy).suffix in POLICY_FILES or os.path.isdir(policy)  # noqa: PTH112
    if not is_file and policy not in (*PARAMETERS, "null"):
        files = [f"{policy}{kind}" for kind in POLICY_FILES if Path(f"{policy}{kind}").is_file()]
        hint = suggest(policy, [*files, *PARAMETERS]) or _ANY_POLICY
        raise OptionError("policy.name", f"Unknown value {quoted(policy)}. {hint}")
    return {**user_options, "policy": {"file" if is_file else "name": policy}}


def _fitting_policy(policy: Mapping, env: str) -> str:
    """Return the default policy name, which depends on the policy's file and the environment."""
    if policy["file"] is not None:
        return POLICY_FILES.get(Path(policy["file"]).suffix, "sb3")
    if policy["dataset"] is not None:
        return "minari"
    return "pump" if describe(env).is_mountain_car else "random"


def _environment_errors(config: Mapping) -> Errors:
    env = config["env"]
    errors = gymnasium_ids.environment_errors(env, config["env_kwargs"])
    yield from errors or wrapper_errors(env, config["env_wrappers"])
    # Only a recording is known to end.
    recorded = config["policy"]["name"] in RECORDED
    is_endless = gymnasium_ids.ENDLESS.fullmatch(env.rpartition(":")[2])
    if config["max_episode_steps"] is None and not recorded and is_endless:
        problem = f"An episode of {env} may never end without a time limit"
        yield "max_episode_steps", f"{problem}. Use max_episode_steps=200, or another limit."


def _policy_errors(config: Mapping) -> Errors:
    """Yield the errors of a policy that does not play the environment, or lacks an option."""
    policy, env, name = config["policy"], config["env"], config["policy"]["name"]
    taken = parameters(name, env)
    plays = taken is not None
    if not plays:
        able = [other for other in PARAMETERS if parameters(other, env) is not None]
        yield "policy.name", f"{name!r} does not play {env!r}. {_ANY_POLICY}"
        taken = {key for other in able for key in parameters(other, env)}
    # Snakemake merges the user's options with config.yaml, so options may have their defaults.
    for key, option in PolicyOptions.model_fields.items():
        if key not in ("name", *taken) and policy[key] != option.default:
            problem = f"The policy {name!r} has no such option in {env!r}"
            yield f"policy.{key}", f"{problem}. {use(sorted(taken))}"
    if plays and "file" in taken and policy["file"] is None and not is_trained_here(policy):
        yield "policy.file", f"The policy {name!r} needs a file. Set the path of its file."
    if plays and name == "trained":
        yield from policy_errors.console_errors(config)


def _check_policy_files(config: Mapping) -> None:
    """Raise OptionError if a file or a package of the policy is missing or does not fit."""
    policy, env = config["policy"], config["env"]
    if policy["name"] == "sb3":
        policy = with_files(policy, env)
    policy_files(policy)
    policy_tools(policy)
    if policy["name"] == "trained" and policy["file"] is not None:
        from goalreel.policies.trained_policy import TrainedPolicy  # it takes NumPy

        TrainedPolicy.load(policy["file"], policy["checkpoint"]).check_env(env)
    if policy["name"] == "recording":
        from goalreel.simulation.recording_file import check_env  # it takes NumPy

        check_env(policy["file"], env)


def _creator_errors(config: Mapping) -> Errors:
    """Yield the errors of the environment's class, and of an instance in its wrappers."""
    errors = gymnasium_ids.creator_errors(config["env"], config["env_kwargs"])
    yield from errors
    policy = config["policy"]
    is_training = is_trained_here(policy)
    if errors or not (policy["name"] == "sb3" or is_training or config["env_wrappers"]):
        return
    spaces = spaces_of(config)
    if is_training and spaces:
        from goalreel.training.tasks import check_spaces  # it takes NumPy

        check_spaces(config | {"train": policy_errors.training_of(config)}, **spaces)
    if policy["name"] == "sb3":
        policy = with_files(policy, config["env"])
        if error := spaces_error(policy["file"], spaces):
            yield "policy.file", f"{error}. Set env and env_wrappers as in its training."


def _render_errors(config: Mapping) -> Errors:
    env, render, scale = config["env"], config["render"], config["render"]["scale"]
    if describe(env).has_atlas and scale not in (None, 1):
        yield "render.scale", f"'{scale}' is not allowed for {env}. Use 1 or null."
    own = [k for k in ("camera", "width", "height", "quality") if render[k] not in (None, "exact")]
    if own and (config["env_wrappers"] or not gymnasium_ids.is_mujoco(env)):
        for key in own:
            problem = f"'{render[key]}' is only for Gymnasium's MuJoCo environments, unwrapped"
            yield f"render.{key}", f"{problem}. Remove it."


def _check_errors(config: Mapping) -> Errors:
    check = config["check"]
    if check["mode"] == "statistical" and check["tolerance"] is None:
        problem = "The mode 'statistical' needs a greatest change of the mean return"
        yield "check.tolerance", f"{problem}. Set one, such as check={{tolerance: 5}}."


def _default_selection(config: Mapping) -> dict[str, int]:
    policy = config["policy"]
    if policy["name"] == "minari":
        return {"episodes": read_header(policy["dataset"])[1]}
    if policy["name"] == "recording":
        from goalreel.simulation.recording_file import read_recording  # it takes NumPy

        return {"episodes": len(read_recording(policy["file"]))}
    return {"reaches": 1000} if describe(config["env"]).is_mountain_car else {"episodes": 50}


def _selection_errors(config: Mapping) -> Errors:
    selected = [key for key in CHOICES if config[key] is not None]
    if len(selected) > 1:
        problem = f"Cannot be combined with {selected[0]}"
        yield selected[1], f"{problem}. Set only one of {', '.join(CHOICES)}."
        return
    if selected == ["seeds"] and config["policy"]["name"] in RECORDED:
        yield "seeds", "A recording has its own seeds. Remove seeds, or set episodes instead."
    elif selected == ["seeds"] and not Run(config).count:
        yield "seeds", f"{config['seeds']!r} ends before it begins. Use a range such as 0-99."
    default = {} if selected else _default_selection(config)
    (chosen,) = selected or default
    views = ("clips", "stills", "figures", "model_card")
    triggers = {f"{view}.episode_trigger": config[view]["episode_trigger"] for view in views}
    asked = {key: value for key, value in triggers.items() if value == "failed"}
    select = config["film"]["select"]
    if select is not None and (problem := _select_error({**config, **default}, select)):
        yield "film.select", problem
    if config["film"]["show_failures"]:
        asked["film.show_failures"] = "true"
    for key, value in asked.items() if chosen != "reaches" else ():
        problem = f"{quoted(value)} is only for goal reaches, but this run films episodes"
        yield key, f"{problem}. Set reaches instead of {chosen}, or remove {key}."


def _select_error(config: Mapping, select: list | Mapping) -> str:
    """Return the error of a selection of episodes, or ""."""
    if config["reaches"] is not None:
        return "Chooses episodes, but this run films goal reaches. Set episodes, such as 1000."
    if config["policy"]["name"] in RECORDED:
        return "Does not choose recorded episodes. Remove it, or set episodes to a smaller number."
    if not (config["check_determinism"] or describe(config["env"]).computed):
        return "The film plays chosen episodes again. Set check_determinism=true."
    last = Run(config).played - 1
    if isinstance(select, list) and max(select) > last:
        return f"There is no episode {max(select)}. The last one is {last}."
    return ""


def _fill(config: dict) -> None:
    """Set the options that the user left out to defaults that fit the environment."""
    env = describe(config["env"])
    config["env_kwargs"] = _console_kwargs(config) | config["env_kwargs"]
    if all(config[key] is None for key in CHOICES):
        config |= _default_selection(config)
    if env.has_atlas:
        config["render"]["scale"] = 1
    film, cell = default_captions(Run(config).unit)
    fps = _CONSOLE_FPS if _console_kwargs(config) else gymnasium_ids.DEFAULT_FPS
    for section, option, default in (
        (config, "shard_size", env.shard_size),
        (config["film"], "fps", fps),
        (config["overlay"], "caption", film),
        (config["grid"], "caption", cell),
        (config["train"], "attempts", 4 if env.computed else 1),  # a game takes minutes
    ):
        if section[option] is None:
            section[option] = default


def _console_kwargs(config: Mapping) -> Mapping:
    """Return the arguments with which a console shows a trained network each frame, {} if none."""
    return pixel_kwargs(config["env"]) if config["policy"]["name"] == "trained" else {}


def _film_errors(config: Mapping) -> Errors:
    """Yield the errors of an unfit encoder, and of too many shards or frames."""
    is_prebuilt = config["encode"]["encoder"] == "prebuilt"
    for key, reason in encoder_errors(config) if is_prebuilt else ():
        problem = f"Does not fit the encoder 'prebuilt' ({reason})"
        yield key, f"{problem}. Use encoder=auto or x264, or remove it."
    run, size = Run(config), config["shard_size"]
    # An episode has a title card and, with at least one step, two frames.
    least = cards(config, run.encoder) + 2
    if (shards := max(map(run.shards, SHARDED))) > _MAX_SHARDS:
        problem = f"'{size}' gives {shards:,} shards, and Snakemake plans {_MAX_SHARDS:,}"
        yield "shard_size", f"{problem}. Use {-(-size * shards // _MAX_SHARDS)} or more."
    elif run.count * least > MOST_FRAMES:
        chosen = next(key for key in CHOICES if config[key] is not None)
        problem = f"A film of {pluralize(run.count, run.unit)} has more than {MOST_FRAMES:,} frames"
        yield chosen, f"{problem}. Make several runs of at most {MOST_FRAMES // least:,}."
