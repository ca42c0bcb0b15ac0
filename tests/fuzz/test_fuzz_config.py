"""goalreel accepts any configuration, or rejects it with a message that names the error."""

import copy
from pathlib import Path

from fuzzing import deep, examples, junk, keys, leaves, works_or_names
from hypothesis import given
from hypothesis import strategies as st
from message_form import check_form

from goalreel.configuration.schema import schema
from goalreel.encoding.encoder_selection import cards, choose
from goalreel.errors import GoalreelError
from goalreel.provenance.spec import canonical
from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan

_SCRIPTS = Path(__file__).parents[2] / "scripts"
_SCHEMA = copy.deepcopy(schema())
_ENVS = ["MountainCar-v0", "MountainCarContinuous-v0", "CartPole-v1", "Nope-v0", "ALE/Pong-v5"]
_ENVS += ["no_module_of_this_name:X-v0", ":", "a:", "/", "gymnasium:CartPole-v1"]


def _fitting(schema) -> st.SearchStrategy:
    """Return valid values of an option, and some that are nearly valid."""
    if "default" in schema and "properties" in schema:
        options = {key: _value(inner) for key, inner in schema["properties"].items()}
        return st.fixed_dictionaries({}, optional=options)
    kinds = [_fitting(inner) for inner in schema.get("anyOf", ())]
    types = schema.get("type", [])
    for kind in [types] if isinstance(types, str) else types:
        if kind == "integer":
            low, high = schema.get("minimum", 0), schema.get("maximum", 10)
            kinds.append(st.sampled_from([low, high, low - 1, high + 1, str(low), float(high)]))
        elif kind == "number":
            kinds.append(st.floats(-1, 60) | st.sampled_from(["0.5", "1e400", "nan", "-0.0"]))
        elif kind == "string":
            words = schema.get("enum")
            kinds.append(st.sampled_from(words) if words else st.text(max_size=30))
        elif kind == "boolean":
            kinds.append(st.sampled_from([True, False, "true", "No"]))
        elif kind == "array":
            kinds.append(st.lists(st.integers(-1, 9) | leaves, max_size=4))
        elif kind == "object":
            inner = schema.get("properties", {})
            some = st.sampled_from(list(inner)) if inner else keys
            kinds.append(st.dictionaries(some | keys, st.integers(0, 9) | junk, max_size=3))
        else:
            kinds.append(st.sampled_from([None, "null", "~"]))
    return st.one_of(kinds)


def _value(schema) -> st.SearchStrategy:
    fits = _fitting(schema)
    return st.one_of(fits, fits, fits, fits, junk, deep)


def loaded(given: dict, *names: str) -> dict | None:
    """Return a configuration, None if it is rejected by a message that holds one of `names`."""

    def load() -> dict:
        try:
            return load_config(given)
        except GoalreelError as error:
            check_form(str(error))
            raise

    return works_or_names(load, *names)


_SCHEMA["properties"].pop("suite")  # the workflow expands it before it reads the options
_OPTIONS = {key: _value(inner) for key, inner in _SCHEMA["properties"].items()}
_OPTIONS["env"] = st.sampled_from(_ENVS) | junk.filter(lambda v: ":" not in str(v)[1:])
_KEYS = keys | st.integers() | st.none() | st.booleans() | st.floats() | st.tuples(st.integers())


@examples(sample=80, full=20_000)
@given(st.fixed_dictionaries({}, optional=_OPTIONS), st.dictionaries(_KEYS, junk, max_size=1))
def test_config_is_accepted_or_rejected_by_name(given_, others):
    config = loaded(given_ | others, ": ")
    if config is not None:  # a valid one can be planned
        canonical(config)
        cards(config, choose(config))
        specs = Plan(config, _SCRIPTS)
        for stage in ("simulate", "render", "encode"):
            specs.spec(stage, {"shard": "00000"})


@examples(sample=80, full=20_000)
@given(st.data())
def test_wrong_value_is_rejected_by_key(data):
    names = [(key, None) for key in _SCHEMA["properties"] if key not in ("env", "env_kwargs")]
    for key, section in _SCHEMA["properties"].items():
        names += [(key, inner) for inner in section.get("properties", ())]
    key, inner = data.draw(st.sampled_from(names))
    value = data.draw(junk | deep)
    name = f"{key}.{inner}" if inner else key
    asked = {key: {inner: value} if inner else value}
    # If two keys contradict each other, the message names both.
    others = (f"{key}:", "encode.encoder:", "policy.", "render.", "shard_size:")
    config = loaded(asked, name, *others)
    if config is not None:
        canonical(config)
        cards(config, choose(config))
