"""The form of an error's message: `<key>: <Problem>. <Fix>.`, then details on indented lines."""

import re

import pytest

from goalreel.errors import GoalreelError
from goalreel.workflow.config import load_config

_HEAD = re.compile(r"The configuration has \d+ errors:")
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"[^"]*\"""")
_PRIVATE = re.compile(r"\b(lane|seal|probe|specs?|sealed)\b")


def check_form(message: str) -> None:
    """Fail unless each error of a message has the form."""
    head, *lines = message.split("\n")
    errors = [head]
    if _HEAD.fullmatch(head):
        errors = [line[2:] for line in lines if line[2:3] != " "]
        assert all(line.startswith("  ") for line in lines) and errors, message
    for error in errors:
        # A path is not cut short.
        assert len(_QUOTED.sub(lambda value: value[0][:40], error)) <= 160, error
        _, colon, text = error.partition(": ")
        text = _QUOTED.sub("'x'", text)
        assert colon and re.match(r"[A-Z']", text), error
        assert ";" not in text and not _PRIVATE.search(text), error
        sentences = re.split(r"(?<=[.?]) ", text)
        assert len(sentences) <= 2 + ("Did you mean" in text), error
        assert text[-1] in ".?:" or ": " in sentences[-1], f"neither fix nor command: {error}"
        assert all(sentence.count(", ") <= 3 for sentence in sentences), error


def rejection(options: dict) -> str:
    """Return the message that rejects a configuration, after a check of its form."""
    with pytest.raises(GoalreelError) as error:
        load_config(options)
    check_form(str(error.value))
    return str(error.value)
