"""Results have the same bytes for any cores, folder, processor features and shard size."""

import hashlib

import av
import pandas as pd
import pytest
from conftest import SMALL, hashes
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from project import Project


def test_bytes_do_not_depend_on_cores_folder_or_cpu_dispatch(expected, user_cache, tmp_path):
    assert len(expected) == 13
    # Processor features with special code in NumPy, to turn off.
    dispatched = " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name])
    folder = tmp_path / "one core and a plain CPU"
    folder.mkdir()
    other = Project(folder, user_cache)
    other.cache = tmp_path / "cache"  # so that it draws and codes the atlas
    other.run("-j", "1", config=SMALL, NPY_DISABLE_CPU_FEATURES=dispatched)
    assert hashes(folder / "results") == expected


@pytest.mark.slow
def test_film_does_not_depend_on_the_shard_size(filmed, project):
    def pictures(folder):
        with av.open(str(folder / "results" / "film.mp4")) as container:
            for frame in container.decode(video=0):
                yield hashlib.sha256(frame.to_ndarray().tobytes()).hexdigest()

    project.run(config={"reaches": 8, "shard_size": 3})
    assert list(pictures(project.folder)) == list(pictures(filmed.folder))
    tables = [pd.read_csv(p.folder / "results" / "episodes.csv") for p in (filmed, project)]
    assert tables[0].drop(columns="shard").equals(tables[1].drop(columns="shard"))
