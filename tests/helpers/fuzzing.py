"""Shared parts of the fuzz tests: numbers of examples, junk, mutated files and the verdict.

The environment variable GOALREEL_FUZZ=full runs a hundred thousand examples in all. Without it a
sample of a few seconds runs.
"""

import contextlib
import io
import json
import os
import resource
import signal
import zipfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from goalreel.errors import GoalreelError

FULL = os.environ.get("GOALREEL_FUZZ") == "full"
_LONGEST = 60  # seconds after which an example counts as hanging
_MEMORY = 2 << 30  # bytes that an example may take beyond what the process has
_MESSAGE = 6000  # characters of the longest message, which may list many errors


def examples(sample: int, full: int):
    """Return the settings of a test, with its numbers of examples in a sample and in the full run."""
    return settings(
        max_examples=full if FULL else sample,
        deadline=None,
        database=None,
        derandomize=not FULL,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )


_NUMBERS = [-1, 0, 1, 2, 3, 52, 2**31, 2**53, 2**63, 10**30, -(10**400)]
_TEXTS = ["", "null", "nan", "1e3", "{", "{reach", "{reach!x}", "{0}", "a" * 400, "é雪", "\ud800"]
_TEXTS += ["\n", "$(x)", "../..", "/", "-x", "true", "{reach.__class__}", "{seed:9999999999}"]
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(_NUMBERS),
    st.integers(-100, 300),
    st.floats(),
    st.sampled_from(_TEXTS),
    st.text(max_size=8),
)
keys = st.sampled_from(["every", "best", "name", "a.b", "", "env", "{x}"]) | st.text(max_size=5)


def _deep(depth: int, mapping: bool) -> object:
    value: object = 1
    for _ in range(depth):
        value = {"every": value} if mapping else [value]
    return value


deep = st.builds(_deep, st.sampled_from([5, 60]), st.booleans())
junk = leaves | st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
)


@st.composite
def mutated_json(draw, value):
    """Return a JSON value with a piece of it replaced, removed or added."""
    value = json.loads(json.dumps(value))
    place = value
    while True:
        if isinstance(place, dict) and place:
            key = draw(st.sampled_from(sorted(place)))
        elif isinstance(place, list) and place:
            key = draw(st.integers(0, len(place) - 1))
        else:
            return draw(junk)
        inside = isinstance(place[key], dict | list) and place[key]
        how = draw(st.sampled_from(["in", "in", "in", "put", "remove", "add"] if inside else
                                   ["put", "put", "put", "remove", "add"]))  # fmt: skip
        if how == "in":
            place = place[key]
            continue
        if how == "put":
            place[key] = draw(junk)
        elif how == "remove":
            del place[key]
        elif isinstance(place, dict):
            place[draw(keys)] = draw(junk)
        else:
            place.append(draw(junk))
        return value


@st.composite
def mutated_bytes(draw, content: bytes):
    """Return `content` with a few changed bytes, cut, doubled, or replaced by other bytes."""
    how = draw(st.sampled_from(["flip", "flip", "flip", "cut", "fill", "insert", "any", "double"]))
    if how == "any":
        return draw(st.binary(max_size=300))
    if how == "double":
        return content + content
    place = draw(st.integers(0, max(len(content) - 1, 0)))
    if how == "cut":
        return content[:place]
    if how == "insert":
        return content[:place] + draw(st.binary(min_size=1, max_size=20)) + content[place:]
    changed = bytearray(content)
    if how == "fill":
        size = draw(st.sampled_from([1, 2, 4, 8]))
        changed[place : place + size] = draw(st.sampled_from([b"\0", b"\xff", b"\x7f"])) * size
        return bytes(changed)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        changed[at : at + 1] = bytes([draw(st.integers(0, 255))])
    return bytes(changed)


_DTYPES = ["<i8", "<f8", "|u1", "<U5", "|b1", "<i2", "|S3", "<c16", "<M8[s]", "|O"]
_SHAPES = [(), (3,), (2, 2), (0, 9), (10**12,), (-1,)]


@st.composite
def mutated_npz(draw, path: Path):
    """Return the bytes of an .npz file without a checksum, with one array changed.

    The array is missing, or its header has another type or shape than its bytes.
    """
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    changed = draw(st.sampled_from(sorted(arrays)))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            header = np.lib.format.header_data_from_array_1_0(array)
            if name == changed:
                header["descr"] = draw(st.sampled_from([header["descr"], *_DTYPES]))
                header["shape"] = draw(st.sampled_from(_SHAPES))
            if name != changed or draw(st.integers(0, 5)):
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array_header_1_0(member, header)
                    member.write(array.tobytes())
    return content.getvalue()


@contextlib.contextmanager
def bounded():
    """Raise an error in the test for a hang or an allocation of gigabytes."""

    def hangs(*_):
        raise AssertionError(f"no end after {_LONGEST} s")

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    taken = pages * resource.getpagesize() + _MEMORY
    before = signal.signal(signal.SIGALRM, hangs)
    resource.setrlimit(resource.RLIMIT_AS, (taken, limits[1]))
    signal.alarm(_LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGALRM, before)


def works_or_names(call, *names: str) -> object:
    """Return the result of a call, or None if it raises a GoalreelError with one of `names`."""
    with bounded():
        try:
            return call()
        except GoalreelError as error:
            message = str(error)
            assert len(message) < _MESSAGE, message
            assert not names or any(name in message for name in names), message
            return None
