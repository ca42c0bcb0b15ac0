"""Test that the film joins its segments exactly and rejects segments that do not match."""

from dataclasses import replace

import av
import numpy as np
import pytest
from conftest import CONTINUOUS, HARSH, QP, decoded, rendered, shard, simulated

from goalreel.errors import GoalreelError
from goalreel.films.concatenate import concatenate
from goalreel.films.segment import encode_segment
from goalreel.simulation.trajectories import write_trajectories


def join(shards, film, title="t", comment="{}"):
    """Make a film of (trajectories, segment) pairs and return its number of frames."""
    trajectories, segments = zip(*shards, strict=True)
    return concatenate(segments, trajectories, film, 30, 0, "reach", title, comment)


def test_film_joins_segments_with_a_chapter_per_episode(atlases, tmp_path):
    folder = tmp_path / HARSH
    folder.mkdir()
    shards = [shard(folder, atlases, i, range(2 * i, 2 * i + 2)) for i in range(3)]
    title = comment = HARSH + "\nsecond line"
    join(shards, folder / "film.mp4", title, comment)
    parts = [frame for _, segment in shards for frame in decoded(segment)]
    film = decoded(folder / "film.mp4")
    assert len(film) == len(parts)
    assert all(np.array_equal(a, b) for a, b in zip(film, parts, strict=True))

    trajectories = simulated(reaches=range(6))
    with av.open(str(folder / "film.mp4")) as container:
        assert container.metadata["title"] == title and container.metadata["comment"] == comment
        chapters = container.chapters()
    rows = trajectories.episodes
    assert [chapter["metadata"]["title"] for chapter in chapters] == [
        f"Reach {i} · seed {rows.seed[i]} · {rows.steps[i]} steps" for i in range(6)
    ]
    starts = [chapter["start"] * chapter["time_base"] * 30 for chapter in chapters]
    assert starts == trajectories.offsets[:-1].tolist()
    assert len({p.name for p in folder.iterdir()}) == 7, "no temporary file is left"


def test_failed_attempts_have_chapters(atlases, tmp_path):
    policy = {"name": "pump", "epsilon": 0.5}
    trajectories = simulated(reaches=range(2), policy=policy, show_failures=True)
    assert not trajectories.episodes.terminated.all()
    write_trajectories(tmp_path / "00000.npz", trajectories)
    encode_segment(rendered(trajectories, atlases), tmp_path / "00000.mp4", 30, QP, "{}")
    join([(tmp_path / "00000.npz", tmp_path / "00000.mp4")], tmp_path / "f.mp4")
    with av.open(str(tmp_path / "f.mp4")) as container:
        titles = [chapter["metadata"]["title"] for chapter in container.chapters()]
    assert len(titles) == len(trajectories)
    failed = [title.endswith(" · failed") for title in titles]
    assert failed == (~trajectories.episodes.terminated).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encode": QP | {"preset": "medium"}}, "size or coding differs from"),
        ({"fps": 25}, "constant 30 fps"),
    ],
)
def test_film_rejects_segments_that_differ(atlases, tmp_path, change, message):
    shards = [shard(tmp_path, atlases, i, range(i, i + 1)) for i in range(2)]
    trajectories = simulated(reaches=range(1, 2))
    settings = {"fps": 30, "encode": QP, "comment": "{}"} | change
    encode_segment(rendered(trajectories, atlases), shards[1][1], **settings)
    with pytest.raises(GoalreelError, match=message) as error:
        join(shards, tmp_path / "f.mp4")
    assert str(shards[1][1]) in str(error.value)


def test_film_rejects_trajectories_of_other_segments(atlases, tmp_path):
    shards = [shard(tmp_path, atlases, i, range(i, i + 1)) for i in range(2)]
    second = range(1, 2)
    for other, message in (
        (simulated(CONTINUOUS, second), "has .* frames, but its episodes"),
        (replace(simulated(reaches=second), probe="f" * 64), "libm that rounds differently"),
    ):
        write_trajectories(shards[1][0], other)
        with pytest.raises(GoalreelError, match=message):
            join(shards, tmp_path / "f.mp4")
        assert not (tmp_path / "f.mp4").exists()
