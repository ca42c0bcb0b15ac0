"""The configuration: what the user wrote, checked against config.schema.yaml and completed by it.

The schema defines the options, their ranges and defaults; checks that involve several options are
here. The validator is jsonschema, which Snakemake itself depends on.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from goalreel.encoding.choice import cards, choose, obstacles
from goalreel.environments.gymnasium_ids import environment_faults, may_never_end, render_fps
from goalreel.environments.registry import describe
from goalreel.environments.wrappers import named, spaces_of, wrapper_faults
from goalreel.errors import GoalreelError, Unusable, counted
from goalreel.mp4.reader import MOST_FRAMES
from goalreel.pictures.captions import default_captions
from goalreel.policies.minari_files import read_header
from goalreel.policies.parameters import (
    PARAMETERS,
    RECORDED,
    is_trained_here,
    parameters,
    pixel_kwargs,
)
from goalreel.policies.sb3_files import misfit, with_files
from goalreel.policies.watched_files import policy_files, policy_tools
from goalreel.training.games.settings import CAR_GAME, is_game
from goalreel.training.pixels import presets
from goalreel.workflow import selection
from goalreel.workflow.config_errors import check_depth, config_error, schema_faults
from goalreel.workflow.policy_faults import (
    Faults,
    dataset_faults,
    pixel_policy_faults,
    training_faults,
)

_NULLS = ("null", "~", "none", "")  # how a text says null
_NO_CAPTION = ("none", "")
_POLICY_FILES = {".py": "file", ".zip": "sb3"}  # the policy that plays such a file
_HUGE = 1e300  # an integer beyond is out of any range, and may not fit a float
_FPS, _MOST_FPS = 30, 240  # of an environment that tells none, as Gymnasium's; as in the schema
_CONSOLE_FPS = 60
_MOST_SHARDS = 100_000  # beyond, Snakemake's own planning takes minutes and gigabytes


def load_config(given: Mapping, schema_path: Path) -> dict:
    """Return the complete configuration for what the user gave.

    Raises GoalreelError that lists every fault: unknown keys, wrong types, values out of range,
    a policy that does not fit its environment, a size or palette that the style does not draw, a
    film that cannot be assembled as asked, more shards or frames than a run or a film can have.
    """
    schema = read_schema(schema_path)
    check_depth(given)
    config = _typed(_with_policy_section(given), schema)
    faults = schema_faults(config, schema)
    # A section that is not a mapping has its fault already; its options are at their defaults here.
    config = _completed(config, schema)
    if config["policy"]["name"] is None:
        name = _fitting_policy(config["policy"], config["env"])
        config["policy"] = config["policy"] | {"name": name}
    faults |= dict(dataset_faults(config, schema))
    if config["policy"]["name"] == "minari" and not faults:
        config = config | read_header(config["policy"]["dataset"]).options
    game = config["pixels"]["game"] or (config["env"] if is_game(config["env"]) else CAR_GAME)
    config["pixels"]["game"] = game
    for check in (_environment_faults, _policy_faults, _style_faults, training_faults):
        if check is not _policy_faults or "env" not in faults:
            for key, message in check(config, schema):
                faults.setdefault(key, message)
    if not any(key.startswith(("env", "policy")) for key in faults):
        faults |= dict(_policy_file_faults(config))
    for check in (_selection_faults, _encoder_faults, _shard_faults, _film_faults):
        if not faults and check is _encoder_faults:
            config = _fitted(config)
        faults = faults or dict(check(config))
    if faults:
        raise config_error(faults)
    policy = config["policy"]
    taken = ("name", *(parameters(policy["name"], config["env"]) or ()))
    policy = with_files(policy, config["env"]) if policy["name"] == "sb3" else policy
    wrappers = [{name: dict(kwargs)} for name, kwargs in map(named, config["env_wrappers"])]
    return config | {
        "results": config["results"] or results_folder(config["env"], policy),
        "policy": {key: policy[key] for key in taken},
        "env_wrappers": wrappers,
        "pixels": presets.filled(config["pixels"]),
    }


def results_folder(env: str, policy: Mapping) -> str:
    """Return the folder of a run that names none: results/ENV-POLICY, of a file its stem."""
    played = policy["file"] or policy["dataset"]
    name = f"{env}-{Path(played).stem if played else policy['name']}"
    return "results/" + re.sub(r"[^\w.+-]+", "-", name)


def _with_policy_section(given: Mapping) -> dict:
    """Return the configuration with the section of a policy that is given by its name or file."""
    policy = given.get("policy")
    if not isinstance(policy, str):
        return dict(given)
    is_file = Path(policy).suffix in _POLICY_FILES or Path(policy).is_dir()
    return {**given, "policy": {"file" if is_file else "name": policy}}


def _fitting_policy(policy: Mapping, env: object) -> str:
    """Return the name of a policy that has none: what its file is, else what plays anywhere."""
    if isinstance(policy["file"], str):
        return _POLICY_FILES.get(Path(policy["file"]).suffix, "sb3")
    if policy["dataset"] is not None:
        return "minari"
    return "pump" if isinstance(env, str) and describe(env).is_mountain_car else "random"


def read_schema(path: Path) -> dict:
    """Return the schema of all options."""
    # libyaml, where PyYAML has it, reads the schema in a tenth of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), loader)  # noqa: S506 - both are safe


def _typed(value: object, schema: Mapping) -> object:
    """Give a value the schema's type if it can be read so, and one spelling per meaning.

    Values nested on the command line (--config 'encode={qp: 31}') reach a workflow as strings, YAML
    reads 1e3 as a float, and 0 and 0.0 are the same epsilon. What cannot be read so is left for
    the validator to refuse.
    """
    alternatives = schema.get("anyOf", [schema])
    types = {kind for part in alternatives for kind in _types(part)}
    if isinstance(value, str) and (word := value.strip().lower()) in _NULLS:
        if schema.get("format") == "caption" and word in _NO_CAPTION:
            return ""
        value = None if "null" in types else value
    if isinstance(value, list) and "array" in types:
        items = next(part["items"] for part in alternatives if "items" in part)
        return [_typed(inner, items) for inner in value]
    if "object" in types and (
        isinstance(value, Mapping) or (value is None and "null" not in types)
    ):
        known = next((part["properties"] for part in alternatives if "properties" in part), None)
        if known is None:
            return _read(value)
        return {key: _typed(inner, known.get(key, {})) for key, inner in (value or {}).items()}
    if "boolean" in types:
        words = {"true": True, "false": False}
        return words.get(value.strip().lower(), value) if isinstance(value, str) else value
    if "string" in types and not types & {"integer", "number"}:
        return str(value) if type(value) in (int, float) else value
    if isinstance(value, str):
        value = _number(value)
    if "integer" in types and isinstance(value, float) and value.is_integer():
        return int(value)
    if "number" in types and type(value) in (int, float) and abs(value) < _HUGE:
        return float(value) + 0.0  # and -0.0 becomes 0.0
    return value


def _types(schema: Mapping) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else types


def _read(value: object) -> object:
    """Return a value without a schema, its strings read as YAML reads them: numbers, true, null."""
    if isinstance(value, Mapping):
        return {key: _read(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_read(inner) for inner in value]
    if isinstance(value, str):
        words = {"true": True, "false": False, "null": None}
        return words.get(value.lower(), _number(value))
    return value


def _number(text: str) -> int | float | str:
    """Return the number that a text writes in plain digits, else the text."""
    for convert in (int, float):
        try:
            return convert(text) if text.isascii() and "_" not in text else text
        except ValueError:
            continue
    return text


def _completed(value: object, schema: Mapping) -> dict:
    """Fill in the defaults of what is missing, and leave out what the schema does not know."""
    value = value if isinstance(value, Mapping) else {}
    return {
        key: _completed(value.get(key), option)
        if "properties" in option
        else value.get(key, option["default"])
        for key, option in schema["properties"].items()
    }


def _environment_faults(config: Mapping, schema: Mapping) -> Faults:
    env, kwargs, wrappers = config["env"], config["env_kwargs"], config["env_wrappers"]
    if isinstance(env, str) and isinstance(kwargs, Mapping):
        faults = environment_faults(env, kwargs)
        yield from faults
        fit = isinstance(wrappers, list) and all(isinstance(w, str | Mapping) for w in wrappers)
        if fit and not faults:
            yield from wrapper_faults(env, kwargs, wrappers)
        # A recording ends by itself; any other policy may go round and round.
        recorded = config["policy"]["name"] in RECORDED
        if config["max_steps"] is None and not recorded and may_never_end(env):
            yield (
                "max_steps",
                f"null, and {env} has no time limit: an episode goes on until the policy finds the "
                "goal; set max_steps=200, or another limit",
            )


def _policy_faults(config: Mapping, schema: Mapping) -> Faults:
    """Yield the faults of a policy that does not play the environment, or lacks what it needs."""
    policy, env, options = config["policy"], config["env"], schema["properties"]["policy"]
    name = policy["name"]
    if not isinstance(env, str) or not isinstance(name, str) or name not in PARAMETERS:
        return
    taken = parameters(name, env)
    plays = taken is not None
    if not plays:
        able = [other for other in PARAMETERS if parameters(other, env) is not None]
        yield (
            "policy.name",
            f"{name!r} does not play {env}; allowed there: {', '.join(able)}; a first film takes "
            "policy={name: random}",
        )
        taken = {key for other in able for key in parameters(other, env)}
    # config.yaml is merged with what a user gives, so that a parameter may be at its default.
    for key, option in options["properties"].items():
        if key not in ("name", *taken) and policy[key] != option["default"]:
            yield (
                f"policy.{key}",
                f"{name!r} has no such parameter in {env}; allowed: "
                f"{', '.join(sorted(taken)) or 'none'}",
            )
    if plays and "file" in taken and policy["file"] is None and not is_trained_here(policy):
        yield "policy.file", f"null; {name!r} needs the path of its file"
    if plays and name == "pixels":
        yield from pixel_policy_faults(config)


def _policy_file_faults(config: Mapping) -> Faults:
    """Yield the fault of a policy's files and packages, or of how it fits, if options have none."""
    policy = config["policy"]
    taken = parameters(policy["name"], config["env"]) or ()
    try:
        if policy["name"] == "sb3":
            policy = with_files(policy, config["env"])
        if "file" in taken or "dataset" in taken:
            policy_files(policy)
        policy_tools(policy)
        if policy["name"] == "sb3" or config["env_wrappers"]:
            spaces = spaces_of(*(config[key] for key in ("env", "env_kwargs", "env_wrappers")))
        if policy["name"] == "sb3":
            fault = misfit(policy["file"], spaces)
            if fault:
                yield "policy.file", f"{fault}; set env and env_wrappers as in its training"
        if policy["name"] == "pixels" and policy["file"] is not None:
            from goalreel.policies.pixel_policy import PixelPolicy  # it takes NumPy

            PixelPolicy.load(policy["file"], policy["checkpoint"]).check_game(config["env"])
        if policy["name"] == "recorded":
            from goalreel.simulation.recording_file import check_env  # it takes NumPy

            check_env(policy["file"], config["env"])
    except Unusable as error:
        yield "policy.file", f"{error.path} cannot be used: {error.fault}"
    except GoalreelError as error:
        key, _, message = str(error).partition(": ")
        yield key, message


def _style_faults(config: Mapping, schema: Mapping) -> Faults:
    env, style = config["env"], config["render"]["style"]
    if not isinstance(env, str):
        return
    has_atlas, scale = describe(env).has_atlas, config["render"]["scale"]
    if has_atlas and scale not in (None, 1):
        yield (
            "render.scale",
            f"{scale} is for what Gymnasium draws; allowed for {env}: 1 or null; `render.style: "
            f"vector` draws it at any size",
        )
    if style == "vector" and not has_atlas:
        yield (
            "render.style",
            f"'vector' draws only the Mountain Cars; allowed for {env}: gymnasium",
        )


def _fps(config: Mapping) -> int:
    """Return the environment's own frames per second, within what `film.fps` takes."""
    if describe(config["env"]).computed:
        return _FPS
    if config["policy"]["name"] == "pixels":
        return _CONSOLE_FPS  # each of its frames is a step
    own = render_fps(config["env"], config["env_kwargs"]) or _FPS
    return min(max(round(own), 1), _MOST_FPS)


def _selection_faults(config: Mapping) -> Faults:
    """Yield the faults of what is to be filmed."""
    given = [key for key in selection.CHOICES if config[key] is not None]
    if len(given) > 1:
        yield (
            given[1],
            f"{given[0]} is set too; allowed: one of {', '.join(selection.CHOICES)}; set the "
            f"others to null",
        )
        return
    if given == ["seeds"] and config["policy"]["name"] in RECORDED:
        yield "seeds", "a recording has seeds of its own; leave seeds out, or set episodes"
    elif given == ["seeds"] and not selection.count(config):
        yield "seeds", f"{config['seeds']!r} ends before it begins; allowed: a range such as 0-99"
    try:
        config = config if given else config | selection.default(config)
    except GoalreelError as error:
        key, _, message = str(error).partition(": ")
        yield key, message
        return
    if selection.unit(config) == "reach":
        return
    for key, value, without in (
        ("success", config["success"], "terminated"),
        ("film.show", config["film"]["show"], "reaches"),
        ("clips.episode_trigger", config["clips"]["episode_trigger"], None),
        ("stills.episode_trigger", config["stills"]["episode_trigger"], None),
        ("card.episode_trigger", config["card"]["episode_trigger"], None),
    ):
        if value == "failed" if without is None else value != without:
            yield (
                key,
                f"{value!r} is for goal reaches, and this run films episodes, whatever their "
                f"outcome; set reaches in place of {given[0] if given else 'episodes'}, or leave "
                f"{key} out",
            )


def _fitted(config: dict) -> dict:
    """Return a configuration with what fits its environment where the user sets nothing."""
    if config["policy"]["name"] == "pixels":
        config = config | {"env_kwargs": pixel_kwargs(config["env"]) | config["env_kwargs"]}
    if all(config[key] is None for key in selection.CHOICES):
        config = config | selection.default(config)
    film, cell = default_captions(selection.unit(config))
    for section, text in ("overlay", film), ("grid", cell):
        if config[section]["caption"] is None:
            config = config | {section: config[section] | {"caption": text}}
    if config["shard_size"] is None:
        config = config | {"shard_size": describe(config["env"]).shard_size}
    if config["film"]["fps"] is None:
        config = config | {"film": config["film"] | {"fps": _fps(config)}}
    if config["train"]["attempts"] is None:
        attempts = 4 if describe(config["env"]).computed else 1  # of a game, which takes minutes
        config = config | {"train": config["train"] | {"attempts": attempts}}
    if describe(config["env"]).has_atlas:
        config = config | {"render": config["render"] | {"scale": 1}}
    return config


def _encoder_faults(config: Mapping) -> Faults:
    if config["encode"]["encoder"] == "assemble":
        for key, reason in obstacles(config):
            yield (
                key,
                f"{reason}, so encode.encoder cannot be 'assemble'; allowed here: auto, x264",
            )


def _shard_faults(config: Mapping) -> Faults:
    count, size = selection.count(config), config["shard_size"]
    shards = -(-count // size)
    if shards > _MOST_SHARDS:
        yield (
            "shard_size",
            f"{size} divides {counted(count, selection.unit(config))} into {shards:,} shards, and "
            f"Snakemake plans at most {_MOST_SHARDS:,}; allowed: {-(-count // _MOST_SHARDS)} or "
            f"more",
        )


def _film_faults(config: Mapping) -> Faults:
    """Yield the fault of a film of too many frames."""
    # An episode has at least one step, so two frames, and its card.
    least, count = cards(config, choose(config)) + 2, selection.count(config)
    if count * least > MOST_FRAMES:
        yield (
            next(key for key in selection.CHOICES if config[key] is not None),
            f"A film of {counted(count, selection.unit(config))} has at least {count * least:,} "
            f"frames, title cards included, and a file holds {MOST_FRAMES:,}. Make several runs of "
            f"at most {MOST_FRAMES // least:,}.",
        )
