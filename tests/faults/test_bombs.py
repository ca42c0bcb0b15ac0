"""Small files and numbers that ask for much memory are rejected with little of it."""

import tracemalloc
import zipfile

import pytest

from goalreel.errors import GoalreelError
from goalreel.files import npz
from goalreel.policies.sb3_files import model_data
from goalreel.workflow.config import load_config

ZEROS = bytes(1 << 24)


def bomb(path, name, size):
    """Write an archive with a member of zeros."""
    archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with archive, archive.open(name, "w") as member:
        for _ in range(size // len(ZEROS)):
            member.write(ZEROS)
    return path


@pytest.fixture
def frugal():
    """Allow 4 MB of memory at most."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_aliases_of_aliases_are_too_many_values(frugal):
    nested = ["x"] * 9
    for _ in range(9):
        nested = [nested] * 9
    nested_in_itself = {}
    nested_in_itself["again"] = nested_in_itself
    for value in ({"key": nested}, nested_in_itself):
        with pytest.raises(GoalreelError, match="^env_kwargs: Has more than 10,000 values"):
            load_config({"env_kwargs": value})


def test_archive_of_zeros_is_not_unpacked(tmp_path, request):
    network = bomb(tmp_path / "network.npz", "kind.npy", 1 << 28)
    model = bomb(tmp_path / "model.zip", "data", 300 << 20)
    request.getfixturevalue("frugal")
    with pytest.raises(GoalreelError, match="kind.npy unpacks to 268,435,456 bytes, and the limit"):
        npz.read(network, "network", 1)
    assert model_data(model) == {}


def test_csv_file_without_line_breaks_is_read_in_pieces(tmp_path, request):
    path = tmp_path / "recording.csv"
    path.write_bytes(b"seed,action\n3," + bytes(ZEROS).replace(b"\0", b"1") * 2)
    load_config({"env": "CartPole-v1"})
    request.getfixturevalue("frugal")
    policy = {"name": "recording", "file": str(path)}
    with pytest.raises(GoalreelError, match="field larger than field limit"):
        load_config({"env": "CartPole-v1", "policy": policy})
