"""Tiny films: every picture is stored once, and the film shows what it should all the same."""

import av
import numpy as np
import pytest
from conftest import DISCRETE, decoded, rendered, simulated

from goalreel.encoding.tiny import code_tiny, read_tiny, write_tiny
from goalreel.encoding.yuv import Yuv420p
from goalreel.errors import GoalreelError
from goalreel.film.concatenate import Chapter, join
from goalreel.film.segment import store_segment
from goalreel.mp4.reader import read_index
from goalreel.pictures.overlay import captions, overlaid
from goalreel.provenance.spec import canonical
from goalreel.simulation.trajectories import Trajectories

CARDS = 5
CAPTION = "Reach {reach}: {steps} steps"


def laid_over(trajectories: Trajectories, atlases, hud: bool = False, cards: int = CARDS):
    texts = captions(CAPTION, trajectories, DISCRETE)
    cache = rendered(trajectories, atlases)
    return overlaid(cache, trajectories, DISCRETE, texts, hud, cards)


@pytest.fixture(scope="module")
def shards(atlases):
    """Return two shards of one reach each, and their frames."""
    made = [simulated(reaches=range(n, n + 1)) for n in (0, 1)]
    return [(trajectories, laid_over(trajectories, atlases)) for trajectories in made]


@pytest.fixture(scope="module")
def dictionary(shards, atlases):
    """Return the dictionary of all pictures that the shards show."""
    atlas, known = atlases[DISCRETE], {}
    for number, digest in enumerate(atlas.patches.digests()):
        known.setdefault(digest, number)
    shown = {d for _, cache in shards for d in cache.layers[0].patches.digests()}
    chosen = np.array(sorted(known[digest] for digest in shown))
    return code_tiny(atlas.background, atlas.patches.take(chosen), "balanced", "{}")


@pytest.fixture(scope="module")
def film(shards, dictionary, tmp_path_factory):
    """Return the film of both shards, and their segments."""
    folder = tmp_path_factory.mktemp("tiny")
    segments = []
    for number, (trajectories, cache) in enumerate(shards):
        path = folder / f"{number:05d}.mp4"
        comment = canonical({"source": cache.source})
        store_segment(cache, dictionary, trajectories, path, 30, "balanced", comment)
        segments.append(path)
    counts = [len(cache) for _, cache in shards]
    chapters = [Chapter(0, counts[0], "one"), Chapter(counts[0], counts[1], "two")]
    join(segments, folder / "film.mp4", 30, "film", "{}", chapters)
    return folder / "film.mp4", segments


def test_every_frame_of_the_film_is_near_the_caches_frame(film, shards):
    frames = decoded(film[0])
    wanted = [frame for _, cache in shards for frame in map(np.copy, Yuv420p(cache).frames())]
    assert len(frames) == len(wanted)
    height = 400
    errors = [
        np.mean((a[:height].astype(int) - b[:height]) ** 2)
        for a, b in zip(frames, wanted, strict=True)
    ]
    ratios = 10 * np.log10(255**2 / np.array(errors))
    assert ratios.mean() >= 50
    assert ratios.min() >= 48


def test_every_picture_is_stored_once(film, shards):
    index, parts = read_index(film[0]), [read_index(path) for path in film[1]]
    stored = {*zip(index.samples.offsets.tolist(), index.samples.sizes.tolist(), strict=True)}
    shown = {d for _, cache in shards for d in cache.layers[0].patches.digests()}
    assert len(stored) == len(shown) + 1 + len(shards), "pictures, the held card, key frames"
    assert index.frames == sum(part.frames for part in parts)
    assert film[0].stat().st_size < sum(path.stat().st_size for path in film[1])


def test_seeks_land_on_the_frame(film):
    frames = decoded(film[0])
    with av.open(str(film[0])) as container:
        (stream,) = container.streams.video
        for number in np.random.default_rng(5).integers(0, len(frames), 20).tolist():
            time = round(number / 30 / stream.time_base)
            container.seek(time, stream=stream)
            frame = next(f for f in container.decode(stream) if f.pts >= time)
            assert np.array_equal(frame.to_ndarray(), frames[number])


def test_dictionary_comes_back_from_its_file(dictionary, tmp_path):
    write_tiny(tmp_path / "d.npz", dictionary)
    assert read_tiny(tmp_path / "d.npz") == dictionary
    (tmp_path / "d.npz").write_bytes((tmp_path / "d.npz").read_bytes()[:-100])
    with pytest.raises(GoalreelError, match="truncated or corrupt"):
        read_tiny(tmp_path / "d.npz")


def test_what_a_tiny_film_cannot_show_is_refused(shards, dictionary, atlases, tmp_path):
    trajectories, _ = shards[0]
    target = tmp_path / "s.mp4", 30, "balanced", "{}"
    for cache in (
        laid_over(trajectories, atlases, hud=True),
        laid_over(trajectories, atlases, cards=0),
    ):
        with pytest.raises(GoalreelError, match="encode.size: normal"):
            store_segment(cache, dictionary, trajectories, *target)
    other = simulated(reaches=range(5, 6))
    with pytest.raises(GoalreelError, match=r"no picture of step \d+ of reach 5 .seed \d+: posi"):
        store_segment(laid_over(other, atlases), dictionary, other, *target)
    assert not list(tmp_path.iterdir())
