"""A stage accepts only files that the workflow planned."""

import dataclasses
import json
import os
import time

import pytest
from conftest import FEW, of_shard, simulated
from project import REPOSITORY

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files.checksum_trailer import append_trailer, check_trailer
from goalreel.provenance.embedded_specs import check_inputs
from goalreel.provenance.spec import NO_SPEC, Spec, parse_spec, shard_paths
from goalreel.simulation.trajectories import write_trajectories
from goalreel.workflow.config import load_config
from goalreel.workflow.plan import Plan


def specs_of(**config) -> Plan:
    given = load_config(FEW | config)
    return Plan(given, REPOSITORY / "scripts")


def forged(spec: dict) -> Spec:
    return dataclasses.replace(NO_SPEC, text=json.dumps(spec))


@pytest.fixture
def shards(tmp_path):
    """Return the trajectory files of both shards."""
    paths = shard_paths(tmp_path / "00000.npz", 2)
    for number, path in enumerate(paths):
        played = simulated(reaches=range(3 * number, 3 * number + 3))
        spec = specs_of().spec("simulate", of_shard(number))
        write_trajectories(path, dataclasses.replace(played, spec=parse_spec(spec)))
    return list(paths)


def test_stage_accepts_planned_files(shards):
    check_inputs(parse_spec(specs_of().spec("concat", {})), {"trajectories": shards})
    for number, path in enumerate(shards):
        spec = parse_spec(specs_of().spec("render", of_shard(number)))
        check_inputs(spec, {"trajectories": path})


@pytest.mark.parametrize("change", [{"seed": 1}, {"policy": {"epsilon": 0.5}}, {"reaches": 5}])
def test_shard_of_other_run_is_rejected_by_name(shards, change):
    spec = parse_spec(specs_of(**change).spec("concat", {}))
    with pytest.raises(UnusableFileError, match="other options|It is of") as error:
        check_inputs(spec, {"trajectories": shards})
    assert error.value.path in shards


def test_shards_in_other_order_are_rejected(shards):
    wrong = ("concat", {}, shards[::-1]), ("render", of_shard(0), shards[1])
    for stage, wildcards, given in wrong:
        spec = parse_spec(specs_of().spec(stage, wildcards))
        with pytest.raises(UnusableFileError, match="It is of {'count': 3, 'first': 3}, not of"):
            check_inputs(spec, {"trajectories": given})


def test_file_of_other_stage_or_without_spec_is_rejected(shards, tmp_path):
    spec = parse_spec(specs_of().spec("encode", of_shard(0)))
    with pytest.raises(UnusableFileError, match="by other options, code or tools"):
        check_inputs(spec, {"frames": shards[0]})
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(UnusableFileError, match="holds no spec"):
        check_inputs(spec, {"trajectories": tmp_path / "empty.npz"})
    with pytest.raises(GoalreelError, match="No such file"):
        check_inputs(spec, {"trajectories": tmp_path / "missing.npz"})


@pytest.mark.parametrize(
    "change",
    [
        *({"shard": shard} for shard in (5, {"first": 0, "count": "9"}, {"first": 0}, {})),
        *({"tools": [1]}, {"config": None}),
    ],
)
def test_malformed_spec_is_rejected(shards, change):
    spec = json.loads(specs_of().spec("simulate", of_shard(0))) | change
    write_trajectories(shards[0], dataclasses.replace(simulated(), spec=forged(spec)))
    with pytest.raises(UnusableFileError):
        check_inputs(parse_spec(specs_of().spec("concat", {})), {"trajectories": shards})


def test_spec_by_hand_accepts_any_inputs(shards):
    spec = json.loads(specs_of(seed=1).spec("concat", {}))
    del spec["input_digests"]
    check_inputs(parse_spec(json.dumps(spec)), {"trajectories": shards})


def test_changed_byte_breaks_checksum_of_video(tmp_path):
    path = tmp_path / "v.mp4"
    path.write_bytes(bytes(range(256)) * 3)
    with pytest.raises(UnusableFileError, match="the checksum at its end is missing"):
        check_trailer(path)
    append_trailer(path)
    check_trailer(path)
    whole = path.read_bytes()
    places = range(len(whole))
    flipped = (whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in places)
    for damaged in (*flipped, *(whole[:n] for n in places)):
        path.write_bytes(damaged)
        with pytest.raises(UnusableFileError, match="truncated or corrupt"):
            check_trailer(path)


def test_file_from_the_future_gets_current_time(shards):
    """Snakemake fails a job whose output is older than its input."""
    past, now = 1_000_000_000, time.time()
    os.utime(shards[0], (past, past))
    os.utime(shards[1], (now + 3600, now + 3600))
    check_inputs(parse_spec(specs_of().spec("concat", {})), {"trajectories": shards})
    assert shards[0].stat().st_mtime == past
    assert now <= shards[1].stat().st_mtime <= time.time()
