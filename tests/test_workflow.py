"""A run as a user sees it: what it makes, what it says, and that its bytes are always the same."""

import hashlib
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import av
import numpy as np
import pandas as pd
import pytest
from conftest import CONTINUOUS, REPOSITORY, Project
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from PIL import Image

import goalreel
from goalreel.tables import ATTEMPT_COLUMNS

COLUMNS = (
    "reach, attempt, seed, env, initial_position, steps, return, terminated, truncated, shard, "
    "first_frame, frames, start_s"
)
FEW = {"reaches": 6, "shard_size": 3}


def hashes(results: Path) -> dict[str, str]:
    """Return the sha256 of everything made, without the logs and benchmarks, which hold times."""
    files = [path for path in results.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.relative_to(results).parts[0] not in ("logs", "benchmarks")
    }


def replay(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, REPOSITORY / "scripts" / "replay.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_tables_tell_of_every_episode_its_seed_and_place(filmed):
    results = filmed.folder / "results"
    table = pd.read_csv(results / "episodes.csv")
    assert ", ".join(table.columns[:13]) == COLUMNS
    shards = [
        goalreel.read_trajectories(results / "trajectories" / f"{i:05d}.npz") for i in range(2)
    ]
    for name, column in (("seed", "seed"), ("return", "return_"), ("steps", "steps")):
        recorded = np.concatenate([getattr(shard.episodes, column) for shard in shards])
        assert table[name].tolist() == recorded.tolist()
    starts = np.concatenate([shard.states[shard.offsets[:-1], 0] for shard in shards])
    assert table["initial_position"].tolist() == starts.tolist(), "exact to the last bit"
    assert table["shard"].tolist() == [0] * 4 + [1] * 4
    assert table["frames"].tolist() == (table["steps"] + 1).tolist()
    assert table["first_frame"].tolist() == [0, *table["frames"].cumsum()[:-1]]
    assert table["start_s"].tolist() == (table["first_frame"] / 30).tolist()
    with av.open(str(results / "film.mp4")) as container:
        assert container.streams.video[0].frames == table["frames"].sum()
        starts = [chapter["start"] * chapter["time_base"] for chapter in container.chapters()]
    assert np.allclose([float(start) for start in starts], table["start_s"], atol=1e-9)


def test_the_films_first_frame_of_an_episode_shows_its_reset_state(filmed):
    """The table alone leads to the picture: Gymnasium is reset with the row's seed."""
    import gymnasium

    results = filmed.folder / "results"
    row = pd.read_csv(results / "episodes.csv").iloc[5]
    env = gymnasium.make(row["env"], render_mode="rgb_array")
    env.reset(seed=int(row["seed"]))
    with av.open(str(results / "film.mp4")) as container:
        (frame,) = itertools.islice(container.decode(video=0), row.first_frame, row.first_frame + 1)
    shown = frame.to_ndarray(format="rgb24").astype(int)
    assert np.abs(shown - env.render()).mean() < 1


def test_attempts_table_has_the_failed_ones_and_any_row_can_be_replayed(project):
    policy = "{name: pump, epsilon: 0.45}"
    project.run(config={"reaches": 5, "shard_size": 5, "policy": policy})
    attempts = pd.read_csv(project.folder / "results" / "attempts.csv")
    assert list(attempts.columns) == ATTEMPT_COLUMNS
    assert len(attempts) > 5 and attempts["terminated"].sum() == 5
    failed = attempts[~attempts["terminated"]].iloc[0]
    said = replay(project.folder, str(failed.reach), "--attempt", str(failed.attempt))
    assert f"seed {failed.seed}: 200 steps" in said.stderr
    assert len(list((project.folder / "results" / "replay").rglob("*.png"))) == 201


def test_replay_compares_with_gymnasium_and_writes_its_frames(filmed, tmp_path):
    said = replay(filmed.folder, "3", "--png", str(tmp_path / "png"), "--results", "results")
    assert "equal Gymnasium's" in said.stderr
    cache = goalreel.open_cache(filmed.folder / "results" / "frames" / "00000.npz")
    pngs = sorted((tmp_path / "png").iterdir())
    frames = cache.episode(3)
    assert len(pngs) == len(frames)
    for png, frame in zip(pngs, frames, strict=True):
        assert np.array_equal(np.asarray(Image.open(png)), cache[frame])
    replay(filmed.folder, "3", "--gif", str(tmp_path / "r.gif"))
    with Image.open(tmp_path / "r.gif") as gif:
        assert gif.n_frames >= len(frames) - 5, "Pillow joins equal neighbours"
    for arguments, message in ((["99"], "no reach 99"), (["1", "--attempt", "7"], "no attempt 7")):
        said = replay(filmed.folder, *arguments)
        assert said.returncode == 1 and message in said.stderr and "Traceback" not in said.stderr


def test_replay_tells_where_gymnasium_differs(project, tmp_path):
    project.run(config={"reaches": 2, "shard_size": 2})
    path = project.folder / "results" / "trajectories" / "00000.npz"
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["states"][40, 0] += 1e-16
    arrays["states"][40, 0] = np.nextafter(arrays["states"][40, 0], 1)
    np.savez(path, **arrays)
    said = replay(project.folder, "0")
    assert said.returncode == 1 and "step 40: Gymnasium gives" in said.stderr


def test_summary_stands_at_the_end(filmed):
    last = filmed.said.rstrip().splitlines()[-4:]
    assert [line.split()[0] for line in last] == ["film", "shows", "tables", "seconds"]
    frames = pd.read_csv(filmed.folder / "results" / "episodes.csv")["frames"].sum()
    assert f"8 goal reaches in 8 episodes, {frames} frames" in last[1]
    for stage in ("simulate", "atlas", "render", "encode", "concat", "episodes"):
        assert stage in last[3]


def test_progress_is_short(filmed):
    assert len(filmed.said.splitlines()) < 40, filmed.said


def test_every_job_has_its_log_and_benchmark_and_nothing_is_written_elsewhere(filmed):
    results = filmed.folder / "results"
    rules, shards = ("simulate", "render", "encode"), ("00000", "00001")
    names = {f"{rule}/{shard}" for rule in rules for shard in shards}
    for kind in ("logs", "benchmarks"):
        found = {str(path.relative_to(results / kind)) for path in (results / kind).rglob("*.*")}
        assert {name[:-4] for name in found} == names | {"atlas", "concat", "episodes"}
    made = {path.name for path in filmed.folder.iterdir()}
    sources = {"Snakefile", "config.yaml", "config.schema.yaml", "scripts", "envs", "profiles"}
    assert made == sources | {"results", ".snakemake"}
    assert not list(results.rglob(".*")), "no temporary files stay"


def test_bytes_do_not_depend_on_cores_folder_or_cpu_dispatch(filmed, tmp_path, user_cache):
    config = {"reaches": 8, "shard_size": 4}
    wanted = hashes(filmed.folder / "results")
    assert len(wanted) == 11
    # The processors that NumPy knows special code for; without it, it takes the plain code.
    dispatched = " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name])
    for name, cores, environment in (
        ("one core", "1", {}),
        ("plain CPU", "2", {"NPY_DISABLE_CPU_FEATURES": dispatched}),
    ):
        folder = tmp_path / name
        folder.mkdir()
        cache = tmp_path / f"cache of {name}"  # so that the atlas is drawn anew too
        other = Project(folder, cache)
        other.run("-j", cores, config=config, **environment)
        assert hashes(folder / "results") == wanted, name


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


@pytest.mark.parametrize("name", ['it\'s "here" – $HOME; é 雪 &', "deep/er/folder"])
def test_any_results_folder_works(project, name):
    config = {"results": name, "reaches": 2, "shard_size": 1}
    project.run(config=config)
    assert (project.folder / name / "film.mp4").is_file()
    assert project.jobs(config=config) == {}


def test_a_wrong_config_stops_before_any_job_with_one_message(project):
    said = project.fail(config={"reachs": 5, "encode": "{qp: 99}", "results": "a{b"})
    assert "the configuration has 3 faults" in said
    for part in ("did you mean 'reaches'?", "encode.qp: 99 is out of range", "wildcards"):
        assert part in said
    assert "Traceback" not in said
    assert not (project.folder / "results").exists()
    assert "Exception" not in said and len(said.splitlines()) < 10, said


def test_nested_values_on_the_command_line_get_their_types(filmed, project):
    assert project.jobs(config={"encode": "{qp: 31}", "policy": "{epsilon: 0.1}"})


def test_a_failing_job_ends_with_its_cause(project):
    said = project.fail(config=FEW | {"policy": "{name: random}", "max_attempts": 2})
    last = said.rstrip().splitlines()[-1]
    assert "still open after max_attempts: 2; raise max_attempts" in last
    assert not list((project.folder / "results").rglob("*.mp4"))


def test_raising_max_attempts_keeps_what_was_made(project):
    config = FEW | {"policy": "{epsilon: 0.45}", "shard_size": 1}
    project.fail("--keep-going", config=config | {"max_attempts": 1})
    made = set((project.folder / "results" / "trajectories").glob("*.npz"))
    assert 0 < len(made) < 6, "some reaches must need more attempts for this test to tell"
    jobs = project.jobs(config=config | {"max_attempts": 100})
    assert jobs["simulate"] == 6 - len(made)


BROKEN = ["trajectories/00000.npz", "frames/00000.npz", "segments/00000.mp4"]


@pytest.mark.parametrize("artefact", BROKEN)
def test_no_film_is_made_from_a_broken_artefact(project, artefact):
    project.run(config=FEW)
    path = project.folder / "results" / artefact
    whole, film = path.read_bytes(), project.folder / "results" / "film.mp4"
    wanted = film.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    said = project.fail(config=FEW)
    last = said.rstrip().splitlines()[-1]
    assert artefact in last and "delete it and run snakemake again" in last
    assert not film.exists() or film.read_bytes() == wanted
    path.unlink()
    film.unlink(missing_ok=True)
    project.run(config=FEW)
    assert path.read_bytes() == whole and film.read_bytes() == wanted


def test_a_job_refuses_tools_that_it_was_not_planned_with(tmp_path):
    spec = '{"stage":"episodes","config":{},"shard":{},"tools":{"pandas":"0.0.1"}}'
    command = [sys.executable, REPOSITORY / "scripts" / "episodes.py", "--spec", spec]
    command += ["--trajectories", "t", "a", "b", "c"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert said.returncode == 1 and "planned with pandas 0.0.1" in said.stderr


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on_where_it_stopped(project, ending):
    config = {"reaches": 80, "shard_size": 10}
    process = project.start("-j", "2", config=config)
    segments = project.folder / "results" / "segments"
    deadline = time.monotonic() + 120
    while len(list(segments.glob("[0-9]*.mp4"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, ending)  # as Ctrl-C does: Snakemake and all its jobs get it
    process.communicate(timeout=120)
    assert process.returncode != 0
    if ending == signal.SIGKILL:
        assert "--unlock" in project.fail(config=config), "Snakemake itself says what to do"
        project.run("--unlock", config=config)
    assert not (project.folder / "results" / "film.mp4").exists()
    times = {path: path.stat().st_mtime_ns for path in segments.glob("[0-9]*.mp4")}
    jobs = project.jobs(config=config)
    # Two jobs were running, and one may just have ended: at least one is known to be done.
    assert jobs["encode"] <= 8 - 1 and "atlas" not in jobs
    project.run(config=config)
    kept = [path for path, mtime in times.items() if path.stat().st_mtime_ns == mtime]
    assert len(kept) == 8 - jobs["encode"]
    folder = project.folder.parent / "undisturbed"
    folder.mkdir()
    Project(folder, project.cache).run(config=config)
    assert hashes(folder / "results") == hashes(project.folder / "results")


def test_parsing_the_workflow_imports_nothing_heavy():
    code = (
        "import sys; sys.path.insert(0, 'scripts')\n"
        "import goalreel.workflow, goalreel.stages\n"
        "from goalreel.config import load_config; from pathlib import Path\n"
        "config = load_config({}, Path('config.schema.yaml'))\n"
        "goalreel.stages.Specs(config, 'scripts').atlas(None)\n"
        "print(*{'numpy', 'pandas', 'pygame', 'gymnasium', 'PIL'} & set(sys.modules))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == ""


def test_a_corrupt_atlas_in_the_users_cache_is_drawn_again(project, tmp_path):
    project.cache = tmp_path / "own cache"
    project.run(config=FEW)
    (kept,) = project.cache.rglob("atlas-*.npz")
    wanted = hashes(project.folder / "results")
    for damage in (b"", b"rubbish"):
        kept.write_bytes(damage)
        (project.folder / "results" / "atlas.npz").unlink()
        (project.folder / "results" / "film.mp4").unlink()
        project.run("--forcerun", "atlas", config=FEW)
        assert hashes(project.folder / "results") == wanted


def test_a_users_cache_that_cannot_be_written_costs_only_time(project, tmp_path):
    project.cache = tmp_path / "own cache"
    project.cache.mkdir()
    (project.cache / "goalreel").write_text("a file where a folder is wanted")
    project.run(config=FEW)
    assert "not kept" in (project.folder / "results" / "logs" / "atlas.log").read_text()


@pytest.mark.skipif(os.name != "posix", reason="needs make")
def test_make_hands_its_options_to_snakemake():
    command = ["make", "--dry-run", "ARGS=--config reaches=20"]
    said = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert ".venv/bin/snakemake --config reaches=20" in said.stdout
