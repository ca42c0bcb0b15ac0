"""Test that each row of the tables leads to its seed, frames and replay."""

import itertools
from dataclasses import replace

import av
import numpy as np
import pandas as pd
import pytest
from gymnasium_frames import played
from PIL import Image

import goalreel
from goalreel.films.tables import ATTEMPT_COLUMNS
from goalreel.simulation.trajectories import write_trajectories

COLUMNS = (
    "reach, attempt, seed, env, initial_position, steps, return, terminated, truncated, shard, "
    "first_frame, frames, start_s, card_frames, reached"
)


def test_tables_have_seed_and_position_of_episodes(filmed):
    results = filmed.folder / "results"
    table = pd.read_csv(results / "episodes.csv")
    assert ", ".join(table.columns) == COLUMNS
    paths = sorted((results / "trajectories").glob("*.npz"))
    shards = [goalreel.read_trajectories(path) for path in paths]
    for name, column in (("seed", "seed"), ("return", "return_"), ("steps", "steps")):
        recorded = np.concatenate([getattr(shard.episodes, column) for shard in shards])
        assert table[name].tolist() == recorded.tolist()
    starts = np.concatenate([shard.states[shard.offsets[:-1], 0] for shard in shards])
    assert table["initial_position"].tolist() == starts.tolist(), "exact to the last bit"
    assert table["shard"].tolist() == [0] * 4 + [1] * 4
    assert table["frames"].tolist() == (table["steps"] + 1).tolist()
    assert set(table["card_frames"]) == {15}
    shown = (table["frames"] + 15).cumsum()
    assert table["first_frame"].tolist() == [15, *(shown[:-1] + 15)]
    assert table["start_s"].tolist() == (table["first_frame"] / 30).tolist()
    with av.open(str(results / "film.mp4")) as container:
        assert container.streams.video[0].frames == shown.iloc[-1]
        starts = [chapter["start"] * chapter["time_base"] for chapter in container.chapters()]
    cards = table["card_frames"] / 30
    assert np.allclose([float(start) for start in starts], table["start_s"] - cards, atol=1e-9)


def test_first_frame_of_episode_shows_reset_state(filmed):
    results = filmed.folder / "results"
    row = pd.read_csv(results / "episodes.csv").iloc[5]
    with av.open(str(results / "film.mp4")) as container:
        (frame,) = itertools.islice(container.decode(video=0), row.first_frame, row.first_frame + 1)
    shown = frame.to_ndarray(format="rgb24").astype(int)
    reset = next(played(row["env"], int(row["seed"]), []))
    assert np.abs(shown - reset)[35:].mean() < 1, "below the caption"


@pytest.mark.slow
def test_attempts_table_has_failures_and_every_row_replays(project):
    policy = "{name: pump, epsilon: 0.45}"
    project.run(config={"reaches": 5, "shard_size": 5, "policy": policy})
    attempts = pd.read_csv(project.folder / "results" / "attempts.csv")
    assert list(attempts.columns) == ATTEMPT_COLUMNS
    assert len(attempts) > 5 and attempts["terminated"].sum() == 5
    failed = attempts[~attempts["terminated"]].iloc[0]
    process = project.replay(str(failed.reach), "--attempt", str(failed.attempt))
    assert f"seed {failed.seed}: 200 steps" in process.stderr
    assert len(list((project.folder / "results" / "replay").rglob("*.png"))) == 201

    path = project.folder / "results" / "trajectories" / "00000.npz"
    shard = goalreel.read_trajectories(path)
    states = shard.states.copy()
    states[40, 0] = np.nextafter(states[40, 0], 1)  # the last bit
    write_trajectories(path, replace(shard, states=states))
    process = project.replay("0")
    assert process.returncode == 1 and "step 40: Gymnasium gives" in process.stderr


def test_replay_compares_with_gymnasium_and_writes_its_frames(filmed, tmp_path):
    process = filmed.replay("3", "--png", str(tmp_path / "png"), "--results", "results")
    assert "equal Gymnasium's" in process.stderr
    cache = goalreel.open_cache(filmed.folder / "results" / "frames" / "00000.npz")
    pngs = sorted((tmp_path / "png").iterdir())
    frames = cache.episode(3)
    assert len(pngs) == len(frames)
    for png, frame in zip(pngs, frames, strict=True):
        assert np.array_equal(np.asarray(Image.open(png)), cache[frame])
    process = filmed.replay("99")
    assert process.returncode == 1
    assert "No reach 99" in process.stderr and "Traceback" not in process.stderr
