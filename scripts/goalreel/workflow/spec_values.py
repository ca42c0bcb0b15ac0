"""The values of a spec that was written by hand: each held to what its option takes.

The workflow checks a configuration once and plans specs from it; a spec on a command line may hold
anything. Options are checked by config.schema.yaml, as the configuration is; here stands only what
the workflow derives from them. What a stage lacks is told as it looks for it, see spec.
"""

from collections.abc import Mapping
from pathlib import Path

from goalreel.environments.mountain_car import NATIVE
from goalreel.environments.registry import environment_faults
from goalreel.errors import GoalreelError
from goalreel.pictures.captions import template_faults
from goalreel.provenance.spec import Spec
from goalreel.workflow.config import read_schema
from goalreel.workflow.config_errors import schema_faults

_SCHEMA = Path(__file__).parents[3] / "config.schema.yaml"
_MOST_CARDS = 60 * 240  # the most of overlay.title_card and of film.fps


def check_values(spec: Spec) -> None:
    """Raise GoalreelError that lists each value of the spec's that its option does not take."""
    options = read_schema(_SCHEMA)
    config, known = _nested(spec.config), options["properties"]
    chosen = known["encode"]["properties"]
    encode = chosen | {
        "encoder": {"type": "string", "enum": ["x264", "assemble"]},  # auto has been resolved
        **{key: chosen[key] | {"type": chosen[key]["type"][0]} for key in ("preset", "qp", "crf")},
        "card_qp": {"type": "integer", "minimum": 1, "maximum": 51},
    }
    derived = {
        "variant": known["policy"]["properties"]["variant"],
        "card_frames": {"type": "integer", "minimum": 0, "maximum": _MOST_CARDS},
        "encode": known["encode"] | {"properties": encode},
    }
    faults = schema_faults(config, {"properties": known | derived})
    faults += template_faults("", config, options)
    counts = {
        **{"first": known["reaches"] | {"minimum": 0}, "count": known["shard_size"]},
        **{"shards": known["reaches"] | {"maximum": options["x-max-shards"]}},
        **{"reaches": known["reaches"], "size": known["shard_size"]},
        **{"per_file": known["film"]["properties"]["reaches_per_file"]},
    }
    faults += [f"shard.{fault}" for fault in schema_faults(spec.shard, {"properties": counts})]
    env, kwargs = config.get("env"), config.get("env_kwargs")
    if not faults and env in NATIVE and kwargs:
        faults += [f"{key}: {said}" for key, said in environment_faults(env, kwargs)]
    if faults:
        raise GoalreelError("--spec holds what cannot be:\n  " + "\n  ".join(faults))


def _nested(config: Mapping) -> dict:
    """Return a stage's values, by dotted keys, as the sections of a configuration."""
    nested: dict = {}
    for dotted, value in config.items():
        *sections, key = dotted.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise GoalreelError(f"--spec: {section!r} and {dotted!r} exclude each other")
        place[key] = value
    return nested
