"""Weights between processes: each set is seen whole, and the latest one."""

import os
import subprocess
import sys

import numpy as np
import pytest
from project import REPOSITORY

from goalreel.training.shared_memory.weights import AbandonedError, SharedWeights, fields_of

SHAPES = {"a": (64, 64), "b": (200_000,)}

WRITER = """
import sys
import numpy as np
from goalreel.training.shared_memory.weights import SharedWeights

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
            version, copy = place.read(lambda: writer.poll() is None)
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
    version, copy = place.read(lambda: True)
    assert version == 1 and all(np.array_equal(copy[name], weights[name]) for name in weights)
    place.write({name: array + 1 for name, array in weights.items()})
    assert np.array_equal(copy["x"], weights["x"]), "a copy stays as it is"


def test_a_set_that_its_writer_left_unfinished_is_waited_for_while_it_lives():
    weights = {"x": np.zeros(3, np.float32)}
    place = SharedWeights(fields_of(weights))
    place._version[0] += 1  # as in the midst of a set
    with pytest.raises(AbandonedError):
        place.read(lambda: False)
    looks = []

    def alive() -> bool:
        looks.append(1)
        if len(looks) == 3:  # it finishes
            place._fields["x"][:] = 7
            place._version[0] += 1
        return True

    version, copy = place.read(alive)
    assert (version, copy["x"].tolist(), len(looks)) == (1, [7, 7, 7], 3)
    assert place.read(lambda: False)[0] == 1, "a whole set outlives its writer"
