"""A reader rejects any file by name, or returns usable content."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import DISCRETE
from fuzzing import examples, junk, mutated_bytes, mutated_json, mutated_npz, works_or_names
from hypothesis import given
from hypothesis import strategies as st

from goalreel.environments.environment import make_environment
from goalreel.files.checksum_trailer import check_trailer
from goalreel.files.svg_plot import read_caption
from goalreel.mp4.reader import read_index
from goalreel.policies.network_file import Checkpoints, read_checkpoints, write_checkpoints
from goalreel.policies.policy_dependencies import policy_files
from goalreel.provenance.embedded_specs import read_spec
from goalreel.provenance.spec import NO_SPEC, parse_spec
from goalreel.report.episode_table import read_table
from goalreel.report.page import read_timings
from goalreel.report.page_rows import columns
from goalreel.simulation.recorded_episodes import play_recording
from goalreel.simulation.recording_file import read_blocks, read_recording, write_blocks
from goalreel.simulation.trajectories import read_summary, read_trajectories


@pytest.fixture(scope="module")
def run(viewed, tmp_path_factory) -> Path:
    """Return a folder with the results of a film and all views, and with files of the user's."""
    folder = tmp_path_factory.mktemp("run") / "results"
    shutil.copytree(viewed.folder / "results", folder)
    (folder / "recording.csv").write_text("episode,seed,action\n" + "0,1,2\n" * 5 + "1,2,0\n" * 9)
    rows = np.repeat([0, 1], [5, 9])
    np.savez(folder / "recording.npz", episode=rows, seed=rows + 1, action=np.zeros((14, 1), int))
    (folder / "states.csv").write_text("episode,position,velocity\n" + "0,-0.5,0\n" * 3)
    (folder / "policy.py").write_text("def act(obs):\n    return obs[:, 0].astype(int) * 0\n")
    spec = parse_spec('{"stage": "train", "config": {"env": "CartPole-v1"}, "shard": {}}')
    weights = ({"0.weight": np.ones((3, 2)), "0.bias": np.zeros(3)},)
    write_checkpoints(folder / "policy.npz", Checkpoints((500,), (-150.0,), weights, {}, spec))
    return folder


def _recording(path):
    blocks = path.with_suffix(".blocks")
    write_blocks(blocks, read_recording(str(path)), NO_SPEC)
    recorded = read_blocks(blocks, range(1), str(path))
    play_recording(recorded, make_environment({"env": DISCRETE}), NO_SPEC, "terminated")


_READERS = {
    "trajectories/00000.npz": lambda path: (read_summary(path), read_trajectories(path)),
    "film.mp4": lambda path: (check_trailer(path), read_index(path)),
    "policy.npz": read_checkpoints,
    "recording.npz": _recording,
    "recording.csv": _recording,
    "states.csv": _recording,
    "policy.py": lambda path: policy_files({"name": "python", "file": str(path)}),
    "episodes.csv": lambda path: read_table(path, columns("reach")),
    "attempts.csv": lambda path: read_table(path, ("reached",)),
    "tables.json": read_spec,
    "plots/steps.svg": lambda path: (read_caption(path), read_spec(path)),
    "benchmarks/concat.tsv": lambda path: read_timings(path.parent, ["concat"], 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _READERS)
def test_file_is_read_or_rejected_by_name(run, tmp_path, name):
    sound = (run / name).read_bytes()
    strategy = mutated_bytes(sound)
    if name == "recording.npz":  # checksums reject all others
        strategy |= mutated_npz(run / name)
    if name.endswith(".json"):
        strategy |= mutated_json(json.loads(sound)).map(lambda v: json.dumps(v).encode())
    if name.endswith(".csv"):
        strategy |= _fields(sound.decode()).map(lambda text: text.encode("utf-8", "surrogatepass"))

    @examples(sample=40, full=3000)
    @given(strategy)
    def check(content):
        path = tmp_path / name.rpartition("/")[2]
        path.write_bytes(content)
        works_or_names(lambda: _READERS[name](path), str(path))

    check()


@st.composite
def _fields(draw, table: str):
    """Return a table with some of its fields replaced."""
    rows = [line.split(",") for line in table.splitlines()]
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.sampled_from(rows))
        some = st.sampled_from(["", "nan", "1e400", "-1", "9" * 30, '"', "True", "a", "\0", "1.5"])
        row[draw(st.integers(0, len(row) - 1))] = draw(some | junk.map(str))
    return "\n".join(",".join(row) for row in rows)


@examples(sample=300, full=15_000)
@given(st.data())
def test_spec_is_accepted_or_rejected(run, data):
    names = ("trajectories/00000.npz", "segments/00000.mp4", "film.mp4", "tables.json")
    spec = json.loads(read_spec(run / data.draw(st.sampled_from(names))).text)
    text = json.dumps(data.draw(mutated_json(spec)))
    if data.draw(st.integers(0, 3)) == 0:
        text = data.draw(mutated_bytes(text.encode())).decode("utf-8", "surrogateescape")
    works_or_names(lambda: parse_spec(text), "--spec", "is not installed", "planned")
