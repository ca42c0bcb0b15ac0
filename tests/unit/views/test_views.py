"""The swarm shows the states of the trajectories."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from conftest import CONTINUOUS, DISCRETE, LOSSLESS, decoded, simulated
from gymnasium_frames import drawn

from goalreel.encoding.yuv import planar
from goalreel.errors import GoalreelError
from goalreel.mp4.reader import read_index
from goalreel.provenance.spec import canonical, parse_spec
from goalreel.rendering.gymnasium_style import keys
from goalreel.rendering.text import draw_text
from goalreel.simulation.trajectories import Trajectories, read_trajectories, write_trajectories
from goalreel.views.swarm import count_cars, opacity
from goalreel.views.view_files import write_video

ENVS = [DISCRETE, CONTINUOUS]
STRIP = 34  # rows of the counter at the top
NOISY = {"name": "pump", "epsilon": 0.5}


def swarm_of(*shards, atlases, env=DISCRETE, atlas=None):
    """Return the swarm of trajectories in memory."""
    return count_cars(shards, atlas or atlases[env], env)


def frames_of(swarm):
    """Return all frames of a swarm, as its program films them."""
    return map(swarm.frame, range(len(swarm.counts)))


def written(folder, *shards):
    """Write trajectories to files named as in the workflow, and return their paths."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number:05d}.npz" for number in range(len(shards))]
    for path, trajectories in zip(paths, shards, strict=True):
        write_trajectories(path, trajectories)
    return paths


def states_at(trajectories: Trajectories, step: int):
    """Yield each episode's state at a step, or its last one."""
    for index in range(len(trajectories)):
        states, _, _ = trajectories.episode(index)
        yield states[min(step, len(states) - 1)]


def gymnasium_frames(env: str, trajectories: Trajectories, step: int) -> list[np.ndarray]:
    """Return Gymnasium's frame of each episode at a step."""
    # The type of Gymnasium's states except the reset's.
    precision = np.float32 if env == CONTINUOUS and step > 0 else float
    return [*drawn(env, (state.astype(precision) for state in states_at(trajectories, step)))]


def has_text(frame: np.ndarray, words: str, size: int, ink, paper=(255, 255, 255)) -> bool:
    """Return whether words are in the top rows."""
    wanted = draw_text(words, size, ink, paper).astype(int)
    height = len(wanted)
    windows = np.lib.stride_tricks.sliding_window_view(frame[:60].astype(int), wanted.shape)[
        :, :, 0
    ]
    middle = np.abs(windows[:, :, height // 2] - wanted[height // 2]).max(axis=(2, 3)) <= 2
    return any(np.abs(window - wanted).max() <= 2 for window in windows[middle])


@pytest.mark.parametrize("env", ENVS)
def test_swarm_of_one_car_equals_gymnasium(env, atlases):
    trajectories = simulated(env, range(1))
    swarm = swarm_of(trajectories, atlases=atlases, env=env)
    assert len(swarm.counts) == len(trajectories.states) and swarm.cars == 1 and opacity(1) == 1
    for step, frame in enumerate(frames_of(swarm)):
        (picture,) = gymnasium_frames(env, trajectories, step)
        assert np.array_equal(frame[STRIP:], picture[STRIP:]), step


@pytest.mark.parametrize("env", [ENVS[0], pytest.param(ENVS[1], marks=pytest.mark.slow)])
def test_swarm_shows_the_mean_of_all_painting_orders(env, atlases):
    trajectories = simulated(env, range(4))
    swarm = swarm_of(trajectories, atlases=atlases, env=env)
    background = atlases[env].background.astype(float)
    overlaps = []
    for step in (20, 50, len(swarm.counts) - 1):
        pictures = gymnasium_frames(env, trajectories, step)
        painted = []
        for order in itertools.permutations(pictures):
            canvas = background.copy()
            for picture in order:
                inside = (picture != background).any(axis=2)
                canvas[inside] += opacity(4) * (picture - canvas)[inside]
            painted.append(canvas)
        overlaps.append(np.ptp(painted, axis=0).max())
        wanted = np.mean(painted, axis=0)
        assert np.abs(swarm.frame(step) - wanted)[STRIP:].max() <= 0.5 + 1e-6
    assert max(overlaps) > 20, "cars lie over one another"
    assert 255 * opacity(10**9) > 8, "one car is visible among any number"


def test_counter_shows_the_number_of_arrived_cars(atlases):
    trajectories = simulated(reaches=range(40))
    swarm = swarm_of(trajectories, atlases=atlases)
    steps = trajectories.episodes.steps
    assert len(swarm.counts) == steps.max() + 1
    assert swarm.arrived.tolist() == [(steps <= t).sum() for t in range(len(swarm.counts))]
    for step in (0, 118, len(swarm.counts) - 1):
        words = f" of 40 arrived · step {step}", str(swarm.arrived[step])
        assert all(has_text(swarm.frame(step), part, 16, (24, 24, 24)) for part in words)
    assert not has_text(swarm.frame(118), " of 40 arrived · step 119", 16, (24, 24, 24))
    changed = swarm.frame(0)[:STRIP] != atlases[DISCRETE].background[:STRIP]
    rows, columns = np.nonzero(changed.any(axis=2))
    assert rows.min() > 0 and columns.max() < 300, "away from the flag"


def test_swarm_does_not_depend_on_the_shards(atlases, tmp_path):
    whole = swarm_of(simulated(reaches=range(6)), atlases=atlases)
    parts = written(tmp_path, *(simulated(reaches=range(i, i + 2)) for i in (0, 2, 4)))
    sharded = swarm_of(*map(read_trajectories, parts), atlases=atlases)
    assert len(whole.counts) == len(sharded.counts)
    assert all(np.array_equal(a, b) for a, b in zip(*map(frames_of, (whole, sharded)), strict=True))


def test_swarm_renders_images_missing_from_the_atlas(atlases):
    atlas, shard = atlases[DISCRETE], simulated(reaches=range(3))
    half = np.arange(0, len(atlas.keys), 2)
    poor = replace(atlas, keys=atlas.keys[half], patches=atlas.patches.take(half))
    assert (poor.find(keys(shard.states[:, 0])) < 0).any()
    swarms = [swarm_of(shard, atlases=atlases, atlas=one) for one in (atlas, poor)]
    pairs = zip(*map(frames_of, swarms), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


def test_swarm_skips_failed_attempts(atlases):
    both, reached = (
        simulated(reaches=range(5), policy=NOISY, show_failures=kept) for kept in (True, False)
    )
    assert len(both) > len(reached) == 5
    swarms = [swarm_of(shard, atlases=atlases) for shard in (both, reached)]
    assert np.array_equal(swarms[0].frame(90), swarms[1].frame(90)) and swarms[0].cars == 5
    nobody = replace(both.episodes, reached=np.zeros(len(both), bool))
    with pytest.raises(GoalreelError, match="No episode reached"):
        swarm_of(replace(both, episodes=nobody), atlases=atlases)


def test_video_holds_its_last_frame_for_a_second(atlases, tmp_path):
    shard = simulated(reaches=range(3))
    frames = list(frames_of(swarm_of(shard, atlases=atlases)))
    text = canonical({"stage": "swarm", "config": {"film.fps": 12, "view_encoder": LOSSLESS}})
    spec, path = parse_spec(text), tmp_path / "swarm.mp4"
    count = write_video(path, iter(frames), spec)
    shown = decoded(path)
    assert count == len(shown) == len(frames) + 12 == int(shard.episodes.steps.max()) + 1 + 12
    for expected, frame in zip(frames + [frames[-1]] * 12, shown, strict=True):
        assert np.array_equal(planar(expected), frame)
    assert read_index(path).comment == text
    with pytest.raises(GoalreelError, match="600x401: Width and height must be even"):
        write_video(path, iter([np.zeros((401, 600, 3), np.uint8)]), spec)
