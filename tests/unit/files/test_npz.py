"""Test that .npz files are exact, reproducible, and rejected if damaged."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import CONTINUOUS, DISCRETE, rendered, simulated

from goalreel.errors import GoalreelError, UnusableFileError
from goalreel.files import npz
from goalreel.files.checksum_trailer import LENGTH, write_trailer
from goalreel.rendering.atlas import read_atlas, write_atlas
from goalreel.rendering.frame_cache import open_cache, write_cache
from goalreel.simulation.recording_file import read_recording
from goalreel.simulation.trajectories import read_summary, read_trajectories, write_trajectories


@pytest.fixture
def files(tmp_path, atlases):
    """Return a file of each kind with its reader."""
    trajectories = simulated()
    write_trajectories(tmp_path / "t.npz", trajectories)
    write_cache(tmp_path / "f.npz", rendered(trajectories, atlases))
    write_atlas(tmp_path / "a.npz", atlases[DISCRETE])
    readers = {"t.npz": read_trajectories, "f.npz": open_cache, "a.npz": read_atlas}
    return [(tmp_path / name, reader) for name, reader in readers.items()]


def rewrite(path: Path, **changes) -> None:
    """Replace arrays of an .npz file and its checksum."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    np.savez(path, **(arrays | changes))
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = bytes(LENGTH)
    write_trailer(path)


def test_array_that_could_not_be_read_again_is_not_written(tmp_path):
    array = np.broadcast_to(np.uint8(0), 4 << 30)
    with pytest.raises(GoalreelError, match="actions takes 4,295.0 MB, over 4 GiB. Use a smaller"):
        npz.write(tmp_path / "t.npz", {"actions": array})
    assert list(tmp_path.iterdir()) == []


def test_damage_anywhere_is_reported_with_path(files):
    generator = np.random.default_rng(5)
    for path, reader in files:
        whole = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            starts = [member.header_offset for member in archive.infolist()]
        ends = len(whole) - np.arange(1, 180, 6)  # the zip's directory and the checksum
        for place in [*starts, *ends.tolist(), *generator.integers(len(whole), size=30).tolist()]:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
            with pytest.raises(UnusableFileError, match="Delete it") as error:
                reader(path)
            assert f"{path}: It is" in str(error.value) and error.value.path == path
        for length in [0, 1, 21, 22, 100, len(whole) // 2, len(whole) - 1]:
            path.write_bytes(whole[:length])
            with pytest.raises(UnusableFileError, match="Delete it"):
                reader(path)
        path.write_bytes(whole)
        reader(path)
        path.unlink()
        with pytest.raises(GoalreelError, match="No such file"):
            reader(path)


def test_summary_rejects_flipped_byte(tmp_path):
    path = tmp_path / "t.npz"
    write_trajectories(path, simulated())
    whole, summary = path.read_bytes(), read_summary(path)
    for place in range(0, len(whole), 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        try:
            actual = read_summary(path)
        except UnusableFileError:
            continue
        assert str(actual) == str(summary)  # the byte is not part of the summary


def test_reader_rejects_other_version_or_kind(files):
    for path, reader in files:
        rewrite(path, version=np.array(999))
        with pytest.raises(GoalreelError, match="version 999"):
            reader(path)
    with pytest.raises(GoalreelError, match="It is a"):
        rewrite(files[0][0], version=np.array(1))
        open_cache(files[0][0])


def test_reader_rejects_objects_without_loading(files, tmp_path):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "exploded",)

    for path, reader in files:
        rewrite(path, spec=np.array(Bomb(), dtype=object))
        with pytest.raises(GoalreelError, match="Delete it"):
            reader(path)
    assert not (tmp_path / "exploded").exists()


def test_trajectories_round_trip_is_exact(tmp_path):
    shard = simulated(CONTINUOUS, range(5), {"name": "pump", "epsilon": 0.2, "force": 0.5})
    write_trajectories(tmp_path / "t.npz", shard)
    stored = read_trajectories(tmp_path / "t.npz")
    for name in ("offsets", "states", "actions", "rewards"):
        assert getattr(stored, name).dtype == getattr(shard, name).dtype
        assert np.array_equal(getattr(stored, name), getattr(shard, name))
    summary = read_summary(tmp_path / "t.npz")
    assert (summary.probe, summary.digest) == (shard.probe, shard.digest())
    parts = (summary.episodes, summary.attempts), (shard.episodes, shard.attempts)
    for ours, theirs in zip(*parts, strict=True):
        assert all(map(np.array_equal, vars(ours).values(), vars(theirs).values()))


def test_failed_write_leaves_only_old_file(tmp_path):
    path = tmp_path / "t.npz"
    shard = simulated()
    write_trajectories(path, shard)
    before = path.read_bytes()
    broken = shard.__class__(**{**vars(shard), "probe": object()})
    with pytest.raises(ValueError, match="Object"):
        write_trajectories(path, broken)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["t.npz"]


def test_frame_cache_takes_at_most_200_bytes_per_frame(tmp_path, atlases):
    for env in (DISCRETE, CONTINUOUS):
        cache = rendered(simulated(env, range(64)), atlases, env)
        write_cache(tmp_path / "f.npz", cache)
        assert (tmp_path / "f.npz").stat().st_size / len(cache) <= 200


def test_recording_rejects_arrays_beyond_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("goalreel.simulation.recording_file.MAX_BYTES", 1000)
    np.savez_compressed(tmp_path / "r.npz", episode=np.zeros(1000), seed=np.zeros(1000))
    with pytest.raises(GoalreelError, match="unpacks to 16,256 bytes"):
        read_recording(str(tmp_path / "r.npz"))
