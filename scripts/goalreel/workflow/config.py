"""The configuration: what the user wrote, checked against config.schema.yaml and completed by it.

The schema is the one place that knows the options, their ranges and defaults; this module knows
how to apply it. How a fault is told stands in faults, which stage uses which option in stages.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from goalreel.encoding.choice import cards, choose, obstacles
from goalreel.environments.gymnasium_ids import environment_faults
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError
from goalreel.mp4.reader import MOST_FRAMES
from goalreel.pictures.captions import template_faults
from goalreel.policies.watched_files import policy_files, policy_tools
from goalreel.training.games.names import family_of
from goalreel.workflow.config_errors import check_depth, schema_faults

_NULLS = ("null", "~", "none", "")  # how a text says null
_HUGE = 1e300  # a whole number beyond is out of any range, and may not fit a float


def load_config(given: Mapping, schema_path: Path) -> dict:
    """Return the complete configuration for what the user gave.

    Raises GoalreelError that lists every fault: unknown keys, wrong types, values out of range,
    a policy that does not fit its environment, a size or palette that the style does not draw, a
    film that cannot be assembled as asked, more shards or frames than a run or a film can have.
    """
    schema = read_schema(schema_path)
    check_depth(given)
    config = _typed(dict(given), schema)
    faults = schema_faults(config, schema)
    faults += [fault for fault in template_faults("", config, schema) if not _told(fault, faults)]
    completed = _completed(config, schema)
    faults += [f for f in _environment_faults(completed) if not _told(f, faults)]
    # A section that is no mapping has its fault already, and nothing to look into.
    known = not any(fault.startswith("env:") for fault in faults)
    told = _policy_faults(completed, schema) if known else ()
    faults += [fault for fault in told if not _told(fault, faults)]
    faults += [f for f in _style_faults(completed, schema) if not _told(f, faults)]
    faults += [f for f in _game_faults(completed) if not _told(f, faults)]
    faults += [] if faults else _encoder_faults(completed)
    faults += [] if faults else _shard_faults(completed, schema)
    faults += [] if faults else _film_faults(completed)
    if faults:
        head = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        lines = "".join(f"\n  {fault}" for fault in faults)
        raise GoalreelError(f"the configuration has {head}:{lines}")
    return completed


def read_schema(path: Path) -> dict:
    """Return the schema of all options."""
    import yaml

    # libyaml, where PyYAML has it, reads the schema in a tenth of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), loader)  # noqa: S506 - both are safe


def _typed(value: object, schema: Mapping) -> object:
    """Give a value the schema's type where it can be read so, and one spelling per meaning.

    Values nested on the command line (--config 'encode={qp: 31}') reach a workflow as text, YAML
    reads 1e3 as a float, and 0 and 0.0 are the same epsilon. What cannot be read so is left for
    the validator to refuse.
    """
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if isinstance(value, str) and "null" in types and value.strip().lower() in _NULLS:
        return None
    if "array" in types and isinstance(value, list):
        return [_typed(inner, schema.get("items", {})) for inner in value]
    if schema.get("x-free"):
        return _plain(value)
    if "object" in types and isinstance(value, Mapping if "null" in types else Mapping | None):
        known = schema.get("properties", {})
        return {key: _typed(inner, known.get(key, {})) for key, inner in (value or {}).items()}
    if "x-template" in schema and isinstance(value, str) and value.strip().lower() in _NULLS:
        return ""
    if "string" in types and not {"number", "integer"} & set(types):
        return str(value) if type(value) in (int, float) else value
    if "boolean" in types:
        words = {"true": True, "false": False}
        return words.get(value.strip().lower(), value) if isinstance(value, str) else value
    if isinstance(value, str):
        value = _number(value)
    if "integer" in types and isinstance(value, float) and value.is_integer():
        return int(value)
    if "number" in types and type(value) in (int, float) and abs(value) < _HUGE:
        return float(value) + 0.0  # and -0.0 becomes 0.0
    return value


def _plain(value: object) -> object:
    """Return a value without a schema, its texts read as YAML reads them: a number, true, null."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
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
    """Fill in the defaults and put the keys in the schema's order."""
    value = value if isinstance(value, Mapping) else {}
    complete = {}
    for key, inner in schema["properties"].items():
        if inner.get("type") == "object" and "properties" in inner:
            complete[key] = _completed(value.get(key), inner)
        elif key in value:
            complete[key] = value[key]
        elif "x-fits" not in schema or key == "name":
            complete[key] = inner["default"]
    if "x-fits" in schema:
        return complete
    return _with_policy_defaults(complete, schema) if "policy" in complete else complete


def _with_policy_defaults(config: dict, schema: Mapping) -> dict:
    """Fill in the defaults of the parameters that the policy takes in this environment.

    One that it does not take may stand at its default, and is left out: config.yaml is merged with
    what a user gives, and has epsilon: 0.0 for the policy that it names.
    """
    section, policy = schema["properties"]["policy"], config["policy"]
    taken, known = _parameters(config, section) or [], section["properties"]
    idle = [key for key in known if key not in ("name", *taken)]
    given = {k: v for k, v in policy.items() if k not in idle or v != known[k]["default"]}
    defaults = {key: known[key]["default"] for key in taken}
    return config | {"policy": {"name": policy["name"], **defaults, **given}}


def _parameters(config: Mapping, section: Mapping) -> list[str] | None:
    """Return the parameters of the policy in the environment; None if it does not play there."""
    name, env = config["policy"]["name"], config["env"]
    fits = section["x-fits"].get(name) if isinstance(name, str) else None
    return fits.get(env, fits.get("*")) if fits and isinstance(env, str) else None


def _environment_faults(config: Mapping) -> Iterator[str]:
    env, kwargs = config["env"], config["env_kwargs"]
    if isinstance(env, str) and isinstance(kwargs, Mapping):
        for key, said in environment_faults(env, kwargs):
            yield f"{key}: {said}"


def _policy_faults(config: Mapping, schema: Mapping) -> Iterator[str]:
    section = schema["properties"]["policy"]
    policy, env, fits = config["policy"], config["env"], section["x-fits"]
    name = policy["name"]
    if not isinstance(env, str) or not isinstance(name, str) or name not in fits:
        return
    taken = _parameters(config, section)
    fits_env = taken is not None
    if not fits_env:
        able = ", ".join(name for name in fits if env in fits[name] or "*" in fits[name])
        yield f"policy.name: {policy['name']!r} does not play {env}; allowed there: {able}"
        taken = sorted(
            {
                key
                for parameters in fits.values()
                for key in parameters.get(env, parameters.get("*", []))
            }
        )
    for key in policy:
        if key != "name" and key not in taken:
            yield (
                f"policy.{key}: {policy['name']!r} has no such parameter in {env}; "
                f"it takes {', '.join(taken) or 'none'}"
            )
    if fits_env and "file" in taken:
        yield from _file_faults(policy)


def _file_faults(policy: Mapping) -> Iterator[str]:
    """Tell of a policy's file that is missing, and of a package that it needs."""
    if policy["file"] is None:
        yield f"policy.file: null; {policy['name']!r} needs the path of its file"
        return
    try:
        policy_files(policy if isinstance(policy["file"], str) else {})
        policy_tools(policy)
    except GoalreelError as error:
        yield str(error)


def _style_faults(config: Mapping, schema: Mapping) -> Iterator[str]:
    section, render = schema["properties"]["render"], config["render"]
    style, fixed = render["style"], section["x-fixed"]
    if style != "gymnasium" and isinstance(style, str) and not describe(config["env"]).has_atlas:
        yield (
            f"render.style: {style!r} draws the Mountain Cars alone; "
            f"allowed for {config['env']}: gymnasium"
        )
        return
    free = ", ".join(name for name in section["properties"]["style"]["enum"] if name not in fixed)
    for key, value in fixed.get(style, {}).items() if isinstance(style, str) else ():
        if render[key] != value:
            yield (
                f"render.{key}: {render[key]!r} is not drawn in the style {style}; "
                f"allowed there: {value} (others with render.style: {free})"
            )


def _game_faults(config: Mapping) -> Iterator[str]:
    try:
        family_of(config["pixels"]["game"])
    except GoalreelError as error:
        yield f"pixels.{error}"


def _encoder_faults(config: Mapping) -> list[str]:
    encode = config["encode"]
    reasons = list(obstacles(config))
    if encode["encoder"] == "assemble":
        return [
            f"{key}: {said}, so that encode.encoder cannot be 'assemble'; allowed here: auto, x264"
            for key, said in reasons
        ]
    return []


def _shard_faults(config: Mapping, schema: Mapping) -> list[str]:
    most, shards = schema["x-max-shards"], -(-config["reaches"] // config["shard_size"])
    if shards <= most:
        return []
    return [
        f"shard_size: {config['shard_size']} makes {shards:,} shards of {config['reaches']:,} "
        f"reaches, and Snakemake plans up to {most:,}; allowed: {-(-config['reaches'] // most)} "
        f"or more"
    ]


def _film_faults(config: Mapping) -> Iterator[str]:
    """Tell of films that cannot be: parts that cut a shard, a file of too many frames."""
    per_file, size = config["film"]["reaches_per_file"], config["shard_size"]
    if per_file is not None and per_file % size:
        near = max(per_file // size, 1) * size
        yield (
            f"film.reaches_per_file: {per_file} cuts a shard in two; allowed with shard_size "
            f"{size}: its multiples, such as {near}, or null"
        )
        return
    # An episode has a step at least, so two frames, and its card.
    least = cards(config, choose(config)) + 2
    held = config["reaches"] if per_file is None else min(per_file, config["reaches"])
    if held * least > MOST_FRAMES:
        yield (
            f"film.reaches_per_file: {'null' if per_file is None else per_file} asks for a file of "
            f"{held:,} reaches, at least {held * least:,} frames with their title cards, and a "
            f"file holds up to {MOST_FRAMES:,}; allowed: up to {MOST_FRAMES // least}"
        )


def _told(fault: str, faults: list[str]) -> bool:
    """Tell whether the key of a fault has one already."""
    return any(other.split(":")[0] == fault.split(":")[0] for other in faults)
