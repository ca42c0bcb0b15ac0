"""Files of trained networks round-trip, and the reader rejects damaged ones."""

import numpy as np
import pytest
from pixel_policies import random_perceptron, random_policy

from goalreel.errors import UnusableFileError
from goalreel.files import npz
from goalreel.policies.network_file import (
    Checkpoints,
    PixelCheckpoints,
    read_checkpoints,
    write_checkpoints,
)
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import parse_spec

SPEC = '{"config":{},"shard":{},"stage":"dqn"}'


@pytest.fixture
def kept() -> Checkpoints:
    every = tuple(map(random_perceptron, range(3)))
    return Checkpoints((5000, 10000, 15000), (-150.0, -101.0, -120.0), every, parse_spec(SPEC))


def test_policy_file_round_trips_checkpoints(kept, tmp_path):
    for name in ("a.npz", "b.npz"):
        write_checkpoints(tmp_path / name, kept)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    read = read_checkpoints(tmp_path / "a.npz")
    assert (read.means, read.spec) == (kept.means, kept.spec)
    for ours, theirs in zip(read.weights, kept.weights, strict=True):
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    assert [read.choose(name) for name in ("best", "last", 5000)] == [1, 2, 0]
    assert read_spec(tmp_path / "a.npz").stage == "dqn"


def test_policy_file_rejects_other_kinds_and_objects(tmp_path, kept):
    path = random_policy(tmp_path / "p.npz", "MountainCar-v0", 3)
    with pytest.raises(UnusableFileError, match="goalreel pixel policy file .*, not goalreel dqn"):
        read_checkpoints(path)
    write_checkpoints(path, kept)
    with pytest.raises(UnusableFileError, match="goalreel dqn file .*, not goalreel pixel policy"):
        read_checkpoints(path, PixelCheckpoints)
    np.savez(path, **npz.header(*Checkpoints.KIND), ages=np.array([print], object))
    with pytest.raises(UnusableFileError):
        read_checkpoints(path)
