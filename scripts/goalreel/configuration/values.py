"""The types of option values, which accept the spellings of YAML and the command line.

Nested values of the command line (--config 'encode={qp: 31}') are strings, YAML reads 1e3 as a
float, and 0 equals 0.0. Each type converts equal values to one spelling and rejects others.
"""

import contextlib
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)
from typing_extensions import TypedDict

from goalreel.errors import GoalreelError, not_allowed, quoted
from goalreel.rendering.captions import check_template

_MOST_VALUES = 10_000  # in a mapping
MOST = 2**53 - 1  # the largest integer that JSON's readers keep exactly
_NULLS = ("null", "~", "none", "")  # spellings of null
_NO_CAPTION = ("none", "")
_WORDS = {"true": True, "false": False}
_HUGE = 1e300  # larger integers may not fit a float


class Section(BaseModel):
    """A section of the configuration. An option that may be null accepts each spelling of it."""

    model_config = ConfigDict(
        extra="forbid", defer_build=True, validate_default=True, regex_engine="python-re"
    )

    @field_validator("*", mode="before")
    @classmethod
    def _read_null(cls, value: object, info: ValidationInfo) -> object:
        kind = cls.model_fields[info.field_name].annotation
        if value is None and isinstance(kind, type) and issubclass(kind, Section):
            return {}
        word = value.strip().lower() if isinstance(value, str) else None
        if word in _NULLS and type(None) in get_args(kind):
            return "" if info.field_name == "caption" and word in _NO_CAPTION else None
        return value


def integer(least: int, most: int, **more: object) -> object:
    """Return the type of an integer in a range, with other arguments of pydantic's Field."""
    return Annotated[int, Field(strict=True, ge=least, le=most, **more), BeforeValidator(_whole)]


def number(**limits: object) -> object:
    """Return the type of a finite number, with limits (`ge`, `gt`, `le`) as in pydantic's Field."""
    field = Field(strict=True, allow_inf_nan=False, **limits)
    return Annotated[float, field, BeforeValidator(_decimal)]


def text(title: str, pattern: str | None = None) -> object:
    """Return the type of a text. The title is the allowed texts in words."""
    return Annotated[str, Field(strict=True, title=title, pattern=pattern), BeforeValidator(_text)]


def listed(items: object, title: str | None = None, least: int | None = None) -> object:
    """Return the type of a list. The title is the allowed lists in words."""
    return Annotated[list[items], Field(strict=True, title=title, min_length=least)]


def different(items: object, title: str | None = None) -> object:
    """Return the type of a list of one or more different items."""
    unique = Field(json_schema_extra={"uniqueItems": True})
    return Annotated[listed(items, title, 1), unique, AfterValidator(_unique)]


def arguments(title: str, least: int | None = None) -> object:
    """Return the type of any mapping. The title is its form in words."""
    field = Field(strict=True, title=title, min_length=least)
    return Annotated[dict, field, AfterValidator(_builtin)]


def name_sides(sides: list[str] | dict | None) -> dict[str, str] | None:
    """Return folders by name. Those of a list get names from their paths."""
    folders = list(map(str, sides.values() if isinstance(sides, dict) else sides or ()))
    paths = [Path(folder).absolute() for folder in folders]
    if again := [folder for i, folder in enumerate(folders) if paths[i] in paths[:i]]:
        raise ValueError(f"{quoted(again[0])} is listed twice. Name different folders.")
    if not isinstance(sides, list):
        return sides and dict(zip(map(str, sides), folders, strict=True))
    whole = [path.name for path in paths]
    short = [re.sub(r"^.*?-v\d+-", "", name) for name in whole]  # without the environment
    names = next(names for names in (short, whole, folders) if len({*names}) == len(names))
    return dict(zip(names, folders, strict=True))


def _one_of(kind: type) -> object:
    """Return the type of a mapping with exactly one of the keys of a type, besides `by`."""
    title = ", ".join(f"`{{{key}: k}}`" for key in kind.__annotations__ if key != "by")
    return Annotated[kind, Field(title=title), AfterValidator(_one_choice)]


def _one_choice(trigger: dict) -> dict:
    if len(trigger.keys() - {"by"}) != 1:
        raise ValueError(not_allowed(trigger, ["exactly one key besides by"]))
    return trigger


def _whole(value: object) -> object:
    value = _number(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _decimal(value: object) -> object:
    value = _number(value)
    is_number = type(value) in (int, float) and abs(value) < _HUGE
    return float(value) + 0.0 if is_number else value  # and -0.0 becomes 0.0


def _number(value: object) -> object:
    """Return the number in a text of plain digits, or the value itself."""
    if isinstance(value, str) and value.isascii() and "_" not in value:
        for convert in (int, float):
            with contextlib.suppress(ValueError):
                return convert(value)
    return value


def _text(value: object) -> object:
    return str(value) if type(value) in (int, float) else value


def _boolean(value: object) -> object:
    return _WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value


def _unique(values: list) -> list:
    if len(set(values)) < len(values):
        raise ValueError(not_allowed(values, ["a list of different values"]))
    return values


def _few(numbers: list) -> list:
    if len(numbers) > 10_000:  # Snakemake passes a job's options in one argument, of up to 128 kB
        raise ValueError(f"Has {len(numbers):,} numbers. Use up to 10,000, or {{every: k}}.")
    return numbers


def _template(value: str) -> str:
    try:
        check_template(value)
    except GoalreelError as error:
        raise ValueError(error.args[-1]) from error  # its message, without a key
    return value


def _builtin(value: object) -> object:
    """Return a value whose strings are read as YAML does: numbers, true, null."""
    try:
        return _to_builtin(value, itertools.count())
    except RecursionError:  # also an alias of itself
        raise ValueError(f"Has more than {_MOST_VALUES:,} values. Remove some.") from None


def _to_builtin(value: object, numbers: Iterator[int]) -> object:
    if next(numbers) == _MOST_VALUES:  # YAML aliases can make a short file large
        raise RecursionError
    if isinstance(value, Mapping):
        return {key: _to_builtin(inner, numbers) for key, inner in value.items()}
    if isinstance(value, list | tuple):  # a tuple from Python
        return [_to_builtin(inner, numbers) for inner in value]
    words = {**_WORDS, "null": None}
    is_word = isinstance(value, str) and value.lower() in words
    return words[value.lower()] if is_word else _number(value)


class _EpisodeTrigger(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")
    every: integer(1, MOST)
    best: integer(1, 1_000_000)
    worst: integer(1, 1_000_000)
    median: integer(1, 1_000_000)
    by: Literal["return", "steps"]


class _Selection(_EpisodeTrigger, total=False):
    failed: integer(1, 1_000_000)
    rarest: integer(1, 1_000_000)
    clusters: integer(1, 1000)


class _StepTrigger(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")
    every: integer(1, MOST)


Boolean = Annotated[bool, Field(strict=True), BeforeValidator(_boolean)]
No = Annotated[Literal[False], Field(title="`false`"), BeforeValidator(_boolean)]
Count = integer(1, 10**9)
Template = Annotated[
    text("a template of ASCII characters and `·`, `°`, `…`"), AfterValidator(_template)
]
Seed = integer(0, MOST)
EpisodeTrigger = (
    Literal["capped_cubic", "all", "failed"]
    | listed(Seed, "a list of episode numbers")
    | _one_of(_EpisodeTrigger)
    | None
)
_Numbers = different(Seed, "a list of up to 10,000 different episode numbers")
Selection = Annotated[_Numbers, AfterValidator(_few)] | _one_of(_Selection) | None
StepTrigger = listed(Seed, "a list of step numbers") | _one_of(_StepTrigger) | None
