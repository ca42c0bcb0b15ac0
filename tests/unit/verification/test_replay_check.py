"""`verify` replays Gymnasium's episodes, and names the first step that differs."""

import re
from dataclasses import replace

import numpy as np
import pytest
from frames import film, groups_of

from goalreel.environments.environment import make_environment
from goalreel.files import npz
from goalreel.provenance.spec import canonical, parse_spec
from goalreel.rendering.frame_cache import FrameCacheWriter, open_cache
from goalreel.simulation.trajectories import write_trajectories
from goalreel.verification.replay import difference


def with_another_pixel(path, frame: int) -> None:
    """Rewrite a frame cache with one channel of one pixel changed."""
    cache = open_cache(path)
    pictures = [cache[n] for n in range(len(cache))]
    pictures[frame][-1, -1, 2] ^= 1
    with npz.writing(path) as add:
        frames = FrameCacheWriter(add, path.parent)
        for e in range(len(cache.offsets) - 1):
            numbers = cache.episode(e)
            frames.add(groups_of(pictures[numbers.start : numbers.stop]))
        frames.finish(np.arange(len(cache.offsets) - 1), cache.source, cache.spec)


@pytest.fixture
def filmed(tmp_path):
    """Return a function that films an environment and returns trajectories and paths of both files."""

    def run(**config):
        paths = tmp_path / "t.npz", tmp_path / "f.npz"
        spec = parse_spec(canonical({"config": config}))
        made, _ = film(paths[1], make_environment(config), spec=spec)
        write_trajectories(paths[0], made)
        assert difference(*paths) is None and difference(paths[0], None) is None
        return made, *paths

    return run


def test_replay_check_reports_the_step_of_a_difference(filmed):
    made, trajectories, frames = filmed(env="Acrobot-v1", max_episode_steps=6)
    with_another_pixel(frames, int(made.offsets[1]) + 4)
    assert difference(trajectories, frames) == (
        frames,
        f"the episode of seed {made.episodes.seed[1]}, step 4: Gymnasium renders a different frame",
    )
    assert difference(trajectories, None) is None, "without a cache steps are compared alone"
    for name, row, what in (("rewards", 7, "reward"), ("states", 2, "observation")):
        changed = getattr(made, name).copy()
        changed[row] = np.nextafter(changed[row], 9)
        write_trajectories(trajectories, replace(made, **{name: changed}))
        path, fault = difference(trajectories, frames)
        place = f"seed {made.episodes.seed[row // 6]}, step {row % 6 + (what == 'reward')}: "
        assert path == trajectories and f"{place}Gymnasium gives a different {what}" in fault


@pytest.mark.slow
def test_verify_replays_every_shard_and_removes_differing_ones(project):
    config = {"env": "CartPole-v1", "policy": "{name: random}", "success": 0}
    config |= {"max_episode_steps": 12, "reaches": 3, "shard_size": 2}
    said = project.run("-j", "2", "verify", config=config)
    assert re.search(r"simulate +2 files .* ok, every episode played again", said), said
    frames = project.folder / "results" / "frames"
    with_another_pixel(frames / "00001.npz", 5)
    said = project.fail("-j", "2", "verify", config=config)
    named = re.search(r"frames/00001\.npz: the episode of seed \d+, step 5: Gymnasium", said)
    assert named and "snakemake results/frames/00001.npz" in said, said
    assert [path.name for path in frames.iterdir()] == ["00000.npz"]
