"""Figures show an episode's frames, stay below the size, and lose nothing in PDF and SVG."""

import base64
import io
import re
import zlib

import numpy as np
import pytest
from PIL import Image, ImageSequence
from test_grid import CARTPOLE, run_of
from test_stills import cache_of, played

from goalreel.errors import GoalreelError
from goalreel.provenance.spec import canonical, parse_spec
from goalreel.views.figures import write_figures
from goalreel.views.filmed_episodes import read_filmed
from goalreel.views.preview import preview


def gif(path):
    """Return the frames and the durations in ms of a GIF."""
    with Image.open(path) as image:
        frames = [
            (np.asarray(f.convert("RGB")), f.info["duration"])
            for f in ImageSequence.Iterator(image)
        ]
    return [list(column) for column in zip(*frames, strict=True)]


@pytest.fixture(scope="module")
def files(tmp_path_factory, atlases):
    """Return the files of three reaches in two shards."""
    return run_of(tmp_path_factory.mktemp("run"), atlases, [range(2), range(2, 3)], CARTPOLE)


@pytest.fixture(scope="module")
def made(files, tmp_path_factory):
    """Return the folder of the figures of reach 2, Gymnasium's frames of it, and the spec."""
    section = {"episode_trigger": [2], "max_mb": 5.0}
    config = {"env": CARTPOLE, "film.fps": 30, "unit": "reach", "figures": section}
    folder = tmp_path_factory.mktemp("figures")
    spec = parse_spec(canonical({"stage": "figures", "config": config, "shard": {"shards": 2}}))
    write_figures(folder, read_filmed(*files, CARTPOLE, "reach"), spec)
    return folder, played(files, 2, CARTPOLE), spec.text


def test_gif_shows_the_episode_for_its_time(made):
    folder, frames, _ = made
    shown, durations = gif(folder / "episode.gif")
    for picture, frame in ((shown[0], frames[0]), (shown[-1], frames[-1])):
        assert np.abs(picture.astype(int) - frame).max() < 24, "another frame or palette"
    assert abs(sum(durations) - 1000 - (len(frames) - 1) * 1000 / 30) <= 10


def test_gymnasium_gif_has_the_format_of_its_documentation(made, files):
    """It has up to 301 frames of the first episodes, 50 ms each, in the size of `env.render()`."""
    shown, durations = gif(made[0] / "gymnasium.gif")
    frames = [frame for reach in range(3) for frame in played(files, reach, CARTPOLE)][:301]
    assert sum(durations) == len(frames) * 50 and shown[0].shape == (400, 600, 3)
    assert np.array_equal(shown[0], frames[0]) and np.array_equal(shown[-1], frames[-1])


def test_pdf_and_svg_hold_the_pixels_of_the_png(made):
    folder, name = made[0], "filmstrip"
    pixels = np.asarray(Image.open(folder / f"{name}.png").convert("RGB"))
    svg = (folder / f"{name}.svg").read_text()
    encoded = re.search(r'"data:image/png;base64,\s*([^"]+)"', svg)[1]
    inside = np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB"))
    assert np.array_equal(inside, pixels)
    pdf = (folder / f"{name}.pdf").read_bytes()
    assert b"/DCTDecode" not in pdf, "JPEG"
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    sizes = {len(zlib.decompress(s)) for s in streams if s[:1] == b"x"}
    assert any(size >= pixels.shape[0] * pixels.shape[1] for size in sizes)


def test_figures_have_the_seed_and_lines_to_paste(made, files):
    folder, _, text = made
    lines = (folder / "README.md").read_text()
    named = set(re.findall(r'(?:src|srcset)="([^"]+)"|\]\(([^)]+)\)', lines))
    assert {a or b for a, b in named} == {"episode.webp", "episode.gif", "filmstrip.png"}
    seed = next(e.row["seed"] for e in read_filmed(*files, CARTPOLE, "reach").episodes([2]))
    assert lines.count(f"seed {seed}") == 2
    assert Image.open(folder / "filmstrip.png").text["Comment"] == text


def test_animations_of_noise_stay_below_the_size():
    noise = np.random.default_rng(1).integers(0, 256, (4, 150, 200, 3), dtype=np.uint8)
    for kind in ("GIF", "WEBP"):
        data, _ = preview(cache_of(list(noise)), range(4), 30, "", kind, 50_000)
        with Image.open(io.BytesIO(data)) as image:
            assert len(data) < 50_000 and image.format == kind


def test_trigger_without_an_episode_is_named(files, tmp_path):
    section = {"episode_trigger": [99], "max_mb": 5.0}
    config = {"env": CARTPOLE, "film.fps": 30, "unit": "reach", "figures": section}
    spec = parse_spec(canonical({"stage": "figures", "config": config, "shard": {"shards": 2}}))
    with pytest.raises(GoalreelError, match="No episode matches .* the episodes 0 to 2"):
        write_figures(tmp_path, read_filmed(*files, CARTPOLE, "reach"), spec)
