"""Weights between processes: each set is seen whole, and the latest one."""

import os
import subprocess
import sys

import numpy as np
from conftest import REPOSITORY

from goalreel.pixels.weights import SharedWeights, fields_of

SHAPES = {"a": (64, 64), "b": (200_000,)}

WRITER = """
import sys
import numpy as np
from goalreel.pixels.weights import SharedWeights

fields, hasty = eval(sys.argv[2]), sys.argv[3] == "hasty"
weights = SharedWeights(fields, int(sys.argv[1]))
for number in range(1, 3001):
    values = {name: np.full(shape, number, dtype) for name, (dtype, shape) in fields.items()}
    if hasty:  # the control: it tells of no change
        for name, place in weights._fields.items():
            place[...] = values[name]
    else:
        weights.write(values)
"""


def seen(kind: str) -> tuple[int, int, int]:
    """Return how many sets were seen, how many were mixed of two, and the last version."""
    weights = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    place = SharedWeights(fields_of(weights))
    told = [str(place.fd), repr(fields_of(weights)), kind]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "scripts")}
    looks = mixed = 0
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, *told], pass_fds=[place.fd], env=environment
    ) as writer:
        while writer.poll() is None:
            version, copy = place.read()
            values = np.unique(np.concatenate([array.reshape(-1) for array in copy.values()]))
            looks, mixed = looks + 1, mixed + (len(values) > 1)
            assert kind == "hasty" or mixed or values[0] == version
    os.close(place.fd)
    return looks, mixed, place.version


def test_no_set_is_seen_half_written():
    looks, mixed, version = seen("patient")
    assert mixed == 0 and version == 3000 and looks > 20


def test_the_check_would_see_it():
    _, mixed, _ = seen("hasty")
    assert mixed > 0


def test_what_is_written_is_read():
    weights = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.array(2.5)}
    place = SharedWeights(fields_of(weights))
    assert place.version == 0
    place.write(weights)
    version, copy = place.read()
    assert version == 1 and all(np.array_equal(copy[name], weights[name]) for name in weights)
    place.write({name: array + 1 for name, array in weights.items()})
    assert np.array_equal(copy["x"], weights["x"]), "a copy stays as it is"
