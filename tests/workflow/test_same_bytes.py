"""The same bytes, whatever the cores, the folder, the processor's features and the shard size."""

import ast
import hashlib
import os
import subprocess
import sys

import av
import pandas as pd
import pytest
from conftest import CONTINUOUS, hashes
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from project import Project


def test_bytes_do_not_depend_on_cores_folder_or_cpu_dispatch(filmed, tmp_path):
    config = {"reaches": 8, "shard_size": 4}
    expected = hashes(filmed.folder / "results")
    assert len(expected) == 12
    # The processors that NumPy knows special code for; without it, it takes the plain code.
    dispatched = " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name])
    drawn_anew = tmp_path / "cache"  # and coded
    folder = tmp_path / "one core and a plain CPU"
    folder.mkdir()
    other = Project(folder, drawn_anew)
    other.run("-j", "1", config=config, NPY_DISABLE_CPU_FEATURES=dispatched)
    assert hashes(folder / "results") == expected


def test_the_plain_cpu_of_these_tests_is_really_plain():
    dispatched = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    assert dispatched, "this processor has nothing that NumPy knows special code for"
    code = "from numpy._core._multiarray_umath import __cpu_features__ as features\nprint(features)"
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched)}
    completed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    features = ast.literal_eval(completed.stdout)
    assert not any(features[name] for name in dispatched)


@pytest.mark.slow
def test_continuous_bytes_do_not_depend_on_cpu_dispatch(tmp_path):
    config = {"reaches": 6, "shard_size": 3, "env": CONTINUOUS}
    dispatched = " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name])
    made = []
    for environment in ({}, {"NPY_DISABLE_CPU_FEATURES": dispatched}):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        project = Project(folder, tmp_path / f"cache{len(made)}")
        project.run(config=config, **environment)
        made.append(hashes(folder / "results"))
    assert made[0] == made[1]


def test_film_does_not_depend_on_the_shard_size(filmed, project):
    def pictures(folder):
        with av.open(str(folder / "results" / "film.mp4")) as container:
            for frame in container.decode(video=0):
                yield hashlib.sha256(frame.to_ndarray().tobytes()).hexdigest()

    project.run(config={"reaches": 8, "shard_size": 3})
    assert list(pictures(project.folder)) == list(pictures(filmed.folder))
    tables = [pd.read_csv(p.folder / "results" / "episodes.csv") for p in (filmed, project)]
    assert tables[0].drop(columns="shard").equals(tables[1].drop(columns="shard"))
