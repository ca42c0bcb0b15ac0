"""Clips equal the videos that Gymnasium's save_video would make of the run's episodes."""

import hashlib
import json
from dataclasses import replace
from types import SimpleNamespace

import gymnasium_frames
import numpy as np
import pandas as pd
import pytest
from conftest import DISCRETE, LOSSLESS, decoded, rendered, simulated
from frames import film
from recordings import kept, stand_in_for_moviepy

from goalreel.encoding.yuv import planar
from goalreel.environments.environment import make_environment
from goalreel.environments.mountain_car import ENVIRONMENTS
from goalreel.policies.policy import make_policy
from goalreel.provenance.spec import NO_SPEC, parse_spec
from goalreel.rendering.atlas import write_atlas
from goalreel.rendering.frame_cache import write_cache
from goalreel.simulation.reaches import simulate_attempts
from goalreel.simulation.trajectories import write_trajectories
from goalreel.views.attempt_frames import RunAttempts
from goalreel.views.clips import choose_clips, write_clips
from goalreel.views.triggers import select_episodes, select_steps

SHAKY = {"name": "pump", "epsilon": 0.45}
CONFIG = {
    "env": DISCRETE,
    "overlay.caption": "",
    "overlay.hud": False,
    "overlay.signals": False,
    "render.scale": 1,
}
CONFIG |= {"film.fps": 30, "view_encoder": LOSSLESS, "unit": "reach"}
SPEC = parse_spec(json.dumps({"stage": "clips", "config": CONFIG}))
OPTIONS = {"episode_trigger": "capped_cubic", "step_trigger": None}
OPTIONS |= {"video_length": None, "name_prefix": "rl-video"}


@pytest.fixture(scope="module")
def attempts(tmp_path_factory, atlases) -> RunAttempts:
    """Return two shards of a policy that often fails, with only the reaches filmed."""
    folder = tmp_path_factory.mktemp("run")
    paths = [[folder / kind / f"{i:05d}.npz" for i in range(2)] for kind in ("t", "f")]
    for i, (trajectories_path, frames_path) in enumerate(zip(*paths, strict=True)):
        trajectories = simulated(reaches=range(2 * i, 2 * i + 2), policy=SHAKY)
        spec = parse_spec(json.dumps({"config": {"env": DISCRETE, "policy": SHAKY}}))
        write_trajectories(trajectories_path, replace(trajectories, spec=spec))
        write_cache(frames_path, rendered(trajectories, atlases))
    write_atlas(folder / "atlas.npz", atlases[DISCRETE])
    return RunAttempts(*paths, folder / "atlas.npz", None, CONFIG)


@pytest.fixture(scope="module")
def played(attempts) -> list[list[str]]:
    """Return a checksum of each frame of all attempts in Gymnasium."""
    again = simulate_attempts(attempts.rows, ENVIRONMENTS[DISCRETE], make_policy(SHAKY), NO_SPEC)
    return checksums_of(DISCRETE, attempts.rows, again)


def checksums_of(env: str, rows, again) -> list[list[str]]:
    """Return checksums of Gymnasium's frames of attempts, in the encoder's yuv420p."""
    return [
        [checksum(planar(f)) for f in gymnasium_frames.played(env, seed, again.episode(i)[1])]
        for i, seed in enumerate(rows.seed.tolist())
    ]


def checksum(frame: np.ndarray) -> str:
    return hashlib.sha256(frame.tobytes()).hexdigest()


@pytest.mark.parametrize(
    ("options", "triggers"),
    [
        ({}, {}),
        (
            {"episode_trigger": [1, 4, 99], "video_length": 30, "name_prefix": "x"},
            {"episode_trigger": lambda i: i in (1, 4), "video_length": 30, "name_prefix": "x"},
        ),
        (
            {"episode_trigger": None, "step_trigger": [0, 150, 190, 199], "video_length": 40},
            {"step_trigger": lambda n: n in (0, 150, 190, 199), "video_length": 40},
        ),
    ],
)
def test_clips_equal_those_of_gymnasium_save_video(
    attempts, played, monkeypatch, tmp_path, options, triggers
):
    stand_in_for_moviepy(monkeypatch)
    from gymnasium.utils.save_video import save_video

    assert not attempts.rows.reached.all(), "attempts that were not filmed are among them"
    total = 0
    for index, frames in enumerate(played):
        where = {"episode_index": index, "step_starting_index": total}
        save_video(frames, str(tmp_path / "gymnasium"), fps=30, **where, **triggers)
        total += len(frames) - 1
    written = kept(tmp_path / "gymnasium")

    chosen = choose_clips(OPTIONS | options, attempts.rows)
    assert sorted(f"{clip.name}.mp4" for clip in chosen) == sorted(written)
    folder = tmp_path / "ours"
    folder.mkdir()
    write_clips(folder, chosen, attempts, SPEC, 2)
    assert {path.name for path in folder.glob("*.mp4")} == set(written)
    for name, frames in written.items():
        # Lossless: the frames equal Gymnasium's in yuv420p.
        assert [checksum(frame) for frame in decoded(folder / name)] == list(map(str, frames))


def test_clips_hold_gymnasium_frames_of_any_episode(tmp_path):
    config = {"env": "CartPole-v1", "max_episode_steps": 20, "policy": {"name": "random"}}
    environment, spec = make_environment(config), parse_spec(json.dumps({"config": config}))
    made, _ = film(tmp_path / "f.npz", environment, range(3), 16, attempts=99, spec=spec)
    write_trajectories(tmp_path / "t.npz", made)
    paths = [tmp_path / "t.npz"], [tmp_path / "f.npz"]
    attempts = RunAttempts(*paths, None, None, CONFIG | {"env": "CartPole-v1"})
    assert not attempts.rows.reached.all(), "attempts that were not filmed are among them"
    chosen = choose_clips(OPTIONS | {"episode_trigger": "all"}, attempts.rows)
    write_clips(tmp_path, chosen, attempts, SPEC, 2)
    again = simulate_attempts(attempts.rows, environment, make_policy(config["policy"]), NO_SPEC)
    for i, wanted in enumerate(checksums_of("CartPole-v1", attempts.rows, again)):
        assert [*map(checksum, decoded(tmp_path / f"rl-video-episode-{i}.mp4"))] == wanted


def test_clips_table_names_the_source_of_each_clip(attempts, tmp_path):
    options = OPTIONS | {"step_trigger": [201], "video_length": 5}
    chosen = choose_clips(options, attempts.rows)
    write_clips(tmp_path, chosen, attempts, SPEC, 1)
    table = pd.read_csv(tmp_path / "clips.csv", index_col="file")
    assert set(table.index) == {path.name for path in tmp_path.glob("*.mp4")}
    row, rows = table.loc["rl-video-step-201.mp4"], attempts.rows
    assert row["reach"] == rows.reach[row["episode"]] and row["seed"] == rows.seed[row["episode"]]
    before = int(rows.steps[: row["episode"]].sum())
    assert (row["start"], row["frames"]) == (201 - before + 1, 5)


STEPS = np.array([110, 200, 90, 200, 150, 90])
RETURNS = np.array([-5.0, -2, -6, -9, -3, -8])
ROWS = SimpleNamespace(steps=STEPS, return_=RETURNS, reached=STEPS < 200)


@pytest.mark.parametrize(
    ("trigger", "episodes"),
    [
        ("all", [0, 1, 2, 3, 4, 5]),
        ("failed", [1, 3]),
        ("capped_cubic", [0, 1]),
        (None, []),
        ([5, 2, 2, 77], [2, 5]),
        ({"worst": 99}, [0, 1, 2, 3, 4, 5]),
        ({"median": 2}, [0, 2]),
    ],
)
def test_episode_trigger_selects_episodes(trigger, episodes):
    assert select_episodes(trigger, ROWS).tolist() == episodes


def test_step_trigger_beyond_the_run_selects_nothing():
    assert select_steps([3, 10**9], 100).tolist() == [3]
    assert select_steps({"every": 40}, 100).tolist() == [0, 40, 80]


def test_clips_warn_if_trigger_selects_nothing(project):
    config = {"reaches": 2, "shard_size": 2, "clips": "{episode_trigger: [999]}"}
    results = project.folder / "results"
    assert "0 clips of 2 episodes" in project.run("clips", config=config)
    assert "selects none of 2 episodes" in (results / "logs" / "clips.log").read_text()
    files = {path.name for path in (results / "clips").glob("[!.]*")}
    assert files == {"clips.csv", "SHA256SUMS"}
    assert not (results / "film.mp4").exists()
