"""Files of trained networks round-trip."""

import numpy as np
from trained_policies import random_weights

from goalreel.policies.network_file import Checkpoints, read_checkpoints, write_checkpoints
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import parse_spec

SPEC = '{"config":{},"shard":{},"stage":"train"}'


def test_network_file_round_trips_checkpoints(tmp_path):
    every = tuple(random_weights(3, seed, inputs=2) for seed in range(3))
    settings = {"env": "MountainCar-v0", "bounds": None, "obs_shape": [2]}
    means = -150.0, -101.0, -120.0
    kept = Checkpoints((5000, 10000, 15000), means, every, settings, parse_spec(SPEC))
    for name in ("a.npz", "b.npz"):
        write_checkpoints(tmp_path / name, kept)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    read = read_checkpoints(tmp_path / "a.npz")
    assert (read.means, read.spec, read.settings) == (means, kept.spec, settings)
    for ours, theirs in zip(read.weights, every, strict=True):
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    assert [read.choose(name) for name in ("best", "last", 5000)] == [1, 2, 0]
    assert read_spec(tmp_path / "a.npz").stage == "train"
