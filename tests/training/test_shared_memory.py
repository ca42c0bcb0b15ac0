"""Items cross a ring between two processes once, whole and in order."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from project import REPOSITORY

from goalreel.training.shared_memory import ring as rings
from goalreel.training.shared_memory.ring import Ring
from goalreel.training.shared_memory.weights import AbandonedError, SharedWeights, fields_of

ITEMS = 1_500_000
CAPACITY = 1000  # wraps 1,500 times
_PAUSES = 0.01  # how often the reader pauses
FIELDS = {"number": ("<i8", ()), "noise": ("<u8", (6,)), "sum": ("<u8", ())}

# Writes all items in batches of random sizes, with pauses, also in the middle of a batch.
WRITER = """
import random, sys, time
import numpy as np
from goalreel.training.shared_memory import ring

ring._ORDERED = ring._ORDERED and sys.argv[5] == "plain"
hasty = sys.argv[3] == "hasty"  # tells of items before it writes them: the control
fields, capacity, items = eval(sys.argv[4])
target = ring.Ring(fields, capacity, int(sys.argv[1]))
rng, noise = random.Random(int(sys.argv[2])), np.random.default_rng(int(sys.argv[2]))
plain_fence, done = ring.fence, 0
ring.fence = lambda: plain_fence() or rng.random() < 0.01 and time.sleep(0.001)
while done < items:
    count = min(rng.choice([1, 2, 7, 50, 300, 2000]), items - done)
    if hasty:
        count = min(count, capacity - len(target))
        places = (int(target._head[0]) + np.arange(count)) % capacity
        target._head[0] += count
    numbers = np.arange(done, done + count)
    values = noise.integers(0, 2**63, (count, 6), np.uint64)
    rows = {"number": numbers, "noise": values}
    rows["sum"] = values.sum(axis=1) ^ numbers.astype(np.uint64)
    if hasty:
        ring.fence()  # sleeps now and then
        for name, field in target._fields.items():
            field[places] = rows[name]
    done += count if hasty else target.push(rows)
"""


def is_whole(items, first: int) -> bool:
    """Return whether items are those from `first` on, unchanged."""
    numbers = np.arange(first, first + len(items["number"]))
    sums = items["noise"].sum(axis=1) ^ numbers.astype(np.uint64)
    return np.array_equal(items["number"], numbers) and np.array_equal(items["sum"], sums)


def process(code: str, fd: int, *arguments: str) -> subprocess.Popen:
    """Start code that writes into the memory of a descriptor."""
    command = [sys.executable, "-c", code, str(fd), *arguments]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "scripts")}
    return subprocess.Popen(command, pass_fds=[fd], env=environment)


def received(kind: str, items: int, fences: str = "plain") -> tuple[int, int]:
    """Move items from another process, and return the numbers of items and of reads with a bad one.

    The reader pauses now and then between reading and releasing, as the writer does.
    """
    ring = Ring(FIELDS, CAPACITY)
    options = ("7", kind, repr((FIELDS, CAPACITY, items)), fences)
    with process(WRITER, ring.fd, *options) as writer:
        rng, done, bad = np.random.default_rng(1), 0, 0
        while done < items and (writer.poll() is None or len(ring)):
            seen = ring.items(int(rng.choice([1, 3, 100, 5000])))
            count = len(seen["number"])
            if rng.random() < _PAUSES:
                time.sleep(0.001)
            bad += not is_whole(seen, done)
            ring.release(count)
            done += count
        writer.kill()
    os.close(ring.fd)
    return done, bad


@pytest.mark.parametrize(
    ("items", "ordered"),
    [
        pytest.param(ITEMS, rings._ORDERED, marks=pytest.mark.slow),
        (ITEMS // 10, rings._ORDERED),
        (ITEMS // 10, False),  # with memory fences, which these processors may not need
    ],
)
def test_ring_loses_reorders_and_tears_no_item(monkeypatch, items, ordered):
    monkeypatch.setattr(rings, "_ORDERED", ordered)
    assert received("patient", items, "plain" if ordered else "fenced") == (items, 0)


def test_ring_check_detects_early_publication():
    """The same reader detects a writer that publishes its items too early."""
    _, bad = received("hasty", ITEMS // 10)
    assert bad > 0


SHAPES = {"a": (64, 64), "b": (200_000,)}

WEIGHTS_WRITER = """
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
    """Return the number of sets read, the number of mixed ones, and the last version."""
    weights = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    place = SharedWeights(fields_of(weights))
    looks = mixed = 0
    with process(WEIGHTS_WRITER, place.fd, repr(fields_of(weights)), kind) as writer:
        while writer.poll() is None:
            version, copy = place.read(lambda: writer.poll() is None)
            values = np.unique(np.concatenate([array.reshape(-1) for array in copy.values()]))
            looks, mixed = looks + 1, mixed + (len(values) > 1)
            assert kind == "hasty" or mixed or values[0] == version
    os.close(place.fd)
    return looks, mixed, place.version


def test_weights_are_never_read_half_written():
    looks, mixed, version = seen("patient")
    assert mixed == 0 and version == 3000 and looks > 20
    assert seen("hasty")[1] > 0, "the check would see it"


def test_reader_waits_for_unfinished_set_of_live_writer():
    weights = {"x": np.zeros(3, np.float32)}
    place = SharedWeights(fields_of(weights))
    place._version[0] += 1  # as in the middle of a set
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
