"""What the fuzz tests share: how many examples there are, junk, mutated files, and the verdict.

The environment variable GOALREEL_FUZZ=full runs a hundred thousand examples in all; without it a
sample of some seconds runs.
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
from goalreel.files.seal import LENGTH, write_seal

FULL = os.environ.get("GOALREEL_FUZZ") == "full"
_LONGEST = 60  # seconds after which an example counts as hanging
_MEMORY = 2 << 30  # bytes that an example may take beyond what the process has
_MESSAGE = 6000  # characters of the longest message; those that list many faults are long


def examples(sample: int, full: int):
    """Return the settings of a test: so many examples in a sample, so many in the full run."""
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


deep = st.builds(_deep, st.sampled_from([5, 60, 900, 3000]), st.booleans())
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
    """Return bytes that differ from `content` in a few places, or are cut, doubled or others."""
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


_DTYPES = ["<i8", "<f8", "|u1", "<U5", "|b1", "<i2", "|S3", "<c16", "<M8[s]", "<f2", ">i8"]
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@st.composite
def other_array(draw, array: np.ndarray):
    """Return an array that is like another, or not."""
    how = draw(st.sampled_from(["values", "shape", "dtype", "new", "text", "cut", "axis"]))
    if how == "text":
        value = draw(mutated_json({"stage": "x", "config": {"env": "y"}}))
        return np.array(draw(st.sampled_from([json.dumps(value), "{", "[]", "1", ""])))
    if how == "new" or not array.size:
        return np.zeros(draw(shapes), draw(st.sampled_from(_DTYPES)))
    if how == "shape":
        return array.reshape(-1)[: draw(st.integers(0, array.size))]
    if how == "cut" and array.ndim:
        return array[: draw(st.integers(0, len(array)))]
    if how == "axis":
        return array[None] if draw(st.booleans()) else array.T
    if how == "dtype":
        with np.errstate(all="ignore"), contextlib.suppress(ValueError, TypeError):
            return array.astype(draw(st.sampled_from(_DTYPES)))
        return array
    changed = array.copy()
    place = draw(st.integers(0, array.size - 1))
    value = draw(st.sampled_from([-1, 0, 1, 2, 255, 32767, -(2**31), 2**31 - 1, np.nan, np.inf]))
    with np.errstate(all="ignore"), contextlib.suppress(ValueError, OverflowError, TypeError):
        changed.reshape(-1)[place] = value
    return changed


def npz_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a sound .npz file."""
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def packed(members: dict[str, bytes]) -> bytes:
    """Return a zip file of these members, with room for a seal."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = bytes(LENGTH)
    return content.getvalue()


def put(path: Path, content: bytes, sealed: bool = False) -> Path:
    """Write a file; `sealed` gives it a seal that fits, so that what is in it is looked at."""
    path.write_bytes(content)
    if sealed and len(content) > LENGTH:
        write_seal(path)
    return path


def npy(array: np.ndarray) -> bytes:
    """Return an array as .npy."""
    content = io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=False)
    return content.getvalue()


_SHAPES = ["(100000000000,)", "(-1,)", "(True,)", f"({10**30},)", "(1,", "()", "(2**40,)", "(0, 9)"]
_SHAPES += ["(" * 90 + ")" * 90, "(" * 5000, "None", "'x'", "(1.5,)", "(3, 10**9)", "(4294967296,)"]
_DESCRIPTIONS = ["'<f8'", "'|O'", "'<U0'", "'|V0'", "'<U999999999'", "[('a', '<f8')]", "'<m8[9Y]'"]
_DESCRIPTIONS += [
    "'x'",
    "None",
    "3",
    "'<f8', 'descr': '<i8'",
    "'|S99999999999999'",
    "'<M8[9999999999s]'",
]


@st.composite
def forged_npy(draw):
    """Return an .npy whose header claims anything."""
    descr, shape = draw(st.sampled_from(_DESCRIPTIONS)), draw(st.sampled_from(_SHAPES))
    order = draw(st.sampled_from(["False", "True", "2", "None"]))
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}\n".encode()
    header = draw(st.sampled_from([header, b"", b"{", header[:-9], header * 40]))
    version = draw(st.sampled_from([(1, 0), (2, 0), (3, 0), (9, 9)]))
    width = 2 if version[0] == 1 else 4
    length = draw(st.sampled_from([len(header), 0, (1 << 8 * width) - 1])) & ((1 << 8 * width) - 1)
    magic = draw(st.sampled_from([b"\x93NUMPY", b"NUMPY!"]))
    rest = draw(st.binary(max_size=32))
    return magic + bytes(version) + length.to_bytes(width, "little") + header + rest


@st.composite
def mutated_npz(draw, path: Path):
    """Return the bytes of an .npz file that is like a sound one, or claims to be."""
    content = path.read_bytes()
    if draw(st.booleans()):
        return draw(mutated_bytes(content))
    arrays = npz_arrays(path)
    names = sorted(arrays)
    members = {f"{name}.npy": npy(array) for name, array in arrays.items()}
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2)):
        how = draw(st.sampled_from(["array", "array", "array", "forge", "remove", "rename"]))
        if how == "array":
            members[f"{name}.npy"] = npy(draw(other_array(arrays[name])))
        elif how == "forge":
            members[f"{name}.npy"] = draw(forged_npy())
        elif how == "remove":
            members.pop(f"{name}.npy", None)
        else:
            members[draw(st.sampled_from(["x", "x.npy", "spec.npy.npy", "../x.npy"]))] = b"x"
    return draw(mutated_bytes(packed(members))) if draw(st.integers(0, 5)) == 0 else packed(members)


@contextlib.contextmanager
def bounded():
    """Make a hang and a claim of gigabytes fail in place of the machine."""

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


def works_or_tells(call, *names: str) -> object:
    """Call; it returns, or raises a GoalreelError that holds one of `names`. Return what it did."""
    with bounded():
        try:
            return call()
        except GoalreelError as error:
            told = str(error)
            assert len(told) < _MESSAGE, told
            assert not names or any(name in told for name in names), told
            return None
