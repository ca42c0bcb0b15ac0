"""The grid shows every episode once, in film order, with its exact frames."""

import itertools
from dataclasses import replace
from unittest.mock import patch

import av
import numpy as np
import pytest
from conftest import DISCRETE, LOSSLESS, QP, decoded, rendered, simulated
from frames import film, groups_of
from gymnasium_frames import played
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from goalreel.encoding.yuv import planar
from goalreel.environments.environment import make_environment
from goalreel.errors import GoalreelError
from goalreel.provenance.spec import canonical, parse_spec
from goalreel.rendering.blocks import BlockLayer
from goalreel.rendering.frame_cache import FrameCache, write_cache
from goalreel.rendering.layers import NOTHING, Layer, cut_patches
from goalreel.rendering.overlay import fitting_scale
from goalreel.simulation.trajectories import read_trajectories, write_trajectories
from goalreel.views import scaled_frames
from goalreel.views.filmed_episodes import read_filmed
from goalreel.views.grid import Layout, choose_layout, draw_caption, film_grid, layout
from goalreel.views.scaled_frames import ScaledFrames
from grid import grid as program

GRID = {"rows": 2, "columns": 2, "caption": "Reach {reach} · {steps} steps"}
CARTPOLE = "CartPole-v1"


def run_of(folder, atlases, shards, env=DISCRETE):
    """Write the trajectories and frame caches of shards of reaches, and return their files.

    In environments except MountainCar-v0, Gymnasium plays and renders 20 random steps.
    """
    frames, trajectories = [], []
    for number, reaches in enumerate(shards):
        frames.append(folder / "frames" / f"{number:05d}.npz")
        trajectories.append(folder / "trajectories" / f"{number:05d}.npz")
        if env == DISCRETE:
            shard = simulated(reaches=reaches)
            write_cache(frames[-1], rendered(shard, atlases))
        else:
            environment = make_environment({"env": env, "max_episode_steps": 20})
            shard, _ = film(frames[-1], environment, reaches)
        write_trajectories(trajectories[-1], shard)
    return trajectories, frames


@pytest.fixture(scope="session")
def files(tmp_path_factory, atlases):
    """Return the files of five reaches in two shards."""
    return run_of(tmp_path_factory.mktemp("run"), atlases, [range(3), range(3, 5)])


@pytest.fixture
def filmed(files):
    """Return five reaches in two shards."""
    return read_filmed(*files, DISCRETE, "reach")


def spec_of(encoder=QP, env=DISCRETE, **grid):
    """Return the spec of a grid."""
    config = {"env": env, "film.fps": 30, "view_encoder": encoder, "unit": "reach"}
    spec = {"stage": "grid", "config": config | {"grid": GRID | grid}, "shard": {"shards": 2}}
    return parse_spec(canonical(spec))


@pytest.mark.parametrize(
    ("env", "rows", "columns", "cell", "times"),
    [
        *((env, 2, 1, (600, 400), 1) for env in (DISCRETE, CARTPOLE)),
        (CARTPOLE, 3, 4, (456, 304), 1),
        pytest.param(DISCRETE, 3, 4, (456, 304), 1, marks=pytest.mark.slow),
        ("FrozenLake-v1", None, None, (512, 512), 2),  # small ones are enlarged by whole factors
    ],
)
def test_cell_shows_env_render_and_holds_its_last_frame(
    tmp_path, atlases, env, rows, columns, cell, times
):
    """Frames have full size, or are scaled by Pillow. Each episode has a shard of its own."""
    filmed = read_filmed(*run_of(tmp_path, atlases, [range(1), range(1, 2)], env), env, "reach")
    film_grid(filmed, tmp_path / "g.mp4", spec_of(LOSSLESS, env, rows=rows, columns=columns))
    first = [*played_of(tmp_path, 0, env)][0]
    shape = choose_layout(2, rows, columns, first.shape[1::-1], captions=True)
    assert shape.cell == cell
    found = decoded(tmp_path / "g.mp4")
    assert len(found) == max(filmed.rows.steps) + 1
    for number in range(2):
        wanted, (top, left) = [*played_of(tmp_path, number, env)], shape.corner(number)
        row = filmed.rows.row(number)
        words = draw_caption(f"Reach {row['reach']} · {row['steps']} steps", cell[0], shape.band)
        assert np.count_nonzero(words.min(axis=2) > 200) > 50
        for frame, expected in itertools.zip_longest(found, wanted, fillvalue=wanted[-1]):
            large = np.kron(expected, np.ones((times, times, 1), np.uint8))
            whole = planar(np.concatenate([words, scaled(large, cell)]))
            luma = frame[top - shape.band : top + cell[1], left : left + cell[0]]
            assert np.array_equal(luma, whole[: len(luma)])


def played_of(folder, number: int, env: str):
    """Return Gymnasium's frames of the only episode of a shard."""
    shard = read_trajectories(folder / "trajectories" / f"{number:05d}.npz")
    return played(env, int(shard.episodes.seed[0]), shard.episode(0)[1])


def test_grid_films_pages_in_order_with_a_keyframe_each(files, filmed, tmp_path):
    """The test builds the pages from whole frames."""
    spec = spec_of(LOSSLESS)
    arguments = ["--trajectories", str(files[0][0]), "--frames", str(files[1][0])]
    program.main(["--spec", spec.text, *arguments, "--output", str(tmp_path / "g.mp4")])
    episodes, found = list(filmed.episodes()), decoded(tmp_path / "g.mp4")
    lengths = [len(episode.frames) for episode in episodes]
    starts = [0, max(lengths[:3])]  # three and two episodes, not four and one
    assert len(found) == starts[1] + max(lengths[3:])
    for number, episode in enumerate(episodes):
        page, cell = divmod(number, 3)
        top, left = cell // 2 * 438 + 36, cell % 2 * 602
        for step in (0, 40, len(episode.frames) - 1):
            frame = planar(episode.cache[episode.frames[step]])[:400]
            shown = found[starts[page] + step][top : top + 400, left : left + 600]
            assert np.array_equal(shown, frame), (number, step)
    assert [episode.row["reach"] for episode in episodes] == [0, 1, 2, 3, 4]
    with av.open(str(tmp_path / "g.mp4")) as container:
        assert container.metadata["comment"] == spec.text
        packets = [p for p in container.demux(video=0) if p.size]
    assert [i for i, p in enumerate(packets) if p.is_keyframe] == starts


def random_cache(seed: int, width: int, height: int) -> FrameCache:
    """Return boxes of noise over a background of noise."""
    rng = np.random.default_rng(seed)
    background = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    boxes = [(0, 0, background[:2, :2])]  # changes nothing
    for _ in range(4):
        tall, wide = rng.integers(1, height // 2 + 1), rng.integers(1, width // 2 + 1)
        top, left = rng.integers(0, height - tall + 1), rng.integers(0, width - wide + 1)
        pixels = rng.integers(0, 256, (tall, wide, 3), dtype=np.uint8)
        boxes.append((int(top), int(left), pixels))
    index = np.arange(NOTHING, len(boxes), dtype=np.int32)
    layer = Layer("noise", cut_patches(background, boxes), index)
    return FrameCache(background, (layer,), np.array([0, len(index)]))


def as_block_layer(cache: FrameCache) -> FrameCache:
    """Return a cache's frames as rendered frames."""
    groups = list(groups_of(iter(cache)))
    starts = np.cumsum([0, *(group.count for group in groups)])
    size, index = cache.background.shape[:2], np.arange(len(cache))
    layer = BlockLayer("picture", size, starts, groups.__getitem__, index)
    return replace(cache, background=cache[0], layers=(layer,))


def scaled(frame: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return a whole frame scaled by Pillow, first along its rows, then along its columns."""
    narrow = Image.fromarray(frame).resize((size[0], frame.shape[0]), Image.Resampling.LANCZOS)
    return np.asarray(narrow.resize(size, Image.Resampling.LANCZOS))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    width=st.integers(20, 130),
    height=st.integers(20, 130),
    share=st.floats(0.15, 1),
    room=st.sampled_from([1 << 15, 1 << 20]),
    drawn=st.booleans(),
)
def test_scaled_frames_equal_the_scaled_whole_frame(seed, width, height, share, room, drawn):
    cache = random_cache(seed, width, height)
    cache = as_block_layer(cache) if drawn else cache
    size = max(int(width * share) & ~1, 2), max(int(height * share) & ~1, 2)
    with patch.object(scaled_frames, "_KEPT_BYTES", room):
        shown = ScaledFrames(cache, size, {}).frames(range(len(cache)))
    for frame, found in zip(cache, shown, strict=True):
        assert np.array_equal(found, planar(scaled(frame, size)))


@settings(max_examples=300, deadline=None)
@given(
    rows=st.integers(1, 20),
    columns=st.integers(1, 20),
    width=st.integers(1, 3000),
    height=st.integers(1, 3000),
    captions=st.booleans(),
)
@example(rows=18, columns=1, width=1632, height=18, captions=True)
def test_cells_are_even_and_as_large_as_possible(rows, columns, width, height, captions):
    def room(shape):
        across, down = 1922 // columns - 2, 1082 // rows - 2 - shape.band
        return min(across / width, down / height)

    try:
        shape = layout(rows, columns, (width, height), captions)
    except GoalreelError as error:
        scale = room(Layout(1, 1, (0, 0), 26 * captions))
        assert min(scale, 1) * width < 66 or min(scale, 1) * height < 18, error
        assert "Choose fewer rows or columns" in str(error)
        return
    assert not any(side % 2 for side in (*shape.cell, *shape.size, shape.band))
    assert shape.size[0] <= 1920 and shape.size[1] <= 1080 and (shape.band >= 18) == captions
    scale = room(shape)
    scale = min(int(scale), fitting_scale((height, width))) if scale >= 1 else scale
    for side, frame in zip(shape.cell, (width, height), strict=True):
        assert captions or scale * frame - 2.001 < side < scale * frame + 0.001
    corners = [shape.corner(cell) for cell in range(rows * columns)]
    assert corners == sorted(set(corners)) and not any(side % 2 for c in corners for side in c)
    top, left = corners[-1]
    assert (left + shape.cell[0], top + shape.cell[1]) == shape.size


@pytest.mark.parametrize(
    ("frame", "episodes", "given_", "expected"),
    [
        ((600, 400), 1000, (None, None), (3, 4, 456, 304)),
        ((600, 400), 4, (None, None), (2, 2, 600, 400)),
        ((600, 400), 5, (None, None), (2, 3, 600, 400)),
        ((600, 400), 13, (None, None), (2, 4, 478, 318)),  # 7 and 6, not 12 and 1
        ((600, 400), 100, (5, None), (5, 7, 272, 180)),
        ((600, 400), 2, (3, 4), (3, 4, 456, 304)),  # as requested
        ((160, 210), 4, (None, None), (1, 4, 320, 420)),  # Atari frames, doubled
        ((160, 210), 50, (None, None), (2, 4, 320, 420)),
        ((256, 256), 4, (None, None), (2, 2, 512, 512)),
    ],
)
def test_layout_fits_the_number_of_episodes(frame, episodes, given_, expected):
    shape = choose_layout(episodes, *given_, frame, captions=True)
    assert (shape.rows, shape.columns, *shape.cell) == expected


@given(episodes=st.integers(1, 100), width=st.integers(64, 900), height=st.integers(64, 900))
def test_no_page_has_an_empty_row_or_illegible_captions(episodes, width, height):
    shape = choose_layout(episodes, None, None, (width, height), captions=True)
    cells = shape.rows * shape.columns
    assert cells >= min(episodes, 8) and cells <= 12
    assert cells - episodes // -(-episodes // cells) < shape.columns
    shown = shape.band / 1.4 * 560 / shape.size[0]  # letters in the report
    assert shown > 8 or height > 2 * width or width > 2 * height


def test_grid_rejects_frames_of_other_trajectories(files, tmp_path, atlases):
    _, other = run_of(tmp_path, atlases, [range(3), range(8, 10)])
    with pytest.raises(GoalreelError, match=r"00001\.npz: It does not show the trajectories"):
        film_grid(read_filmed(files[0], other, DISCRETE, "reach"), tmp_path / "g.mp4", spec_of())
    assert not list(tmp_path.glob("*.mp4"))
