"""An edit reruns exactly the jobs that it changes: the table, from dry runs."""

import os
import stat

import pytest
from project import SOURCES, Project

from goalreel.encoding import ffmpeg

BASE = {"reaches": 8, "shard_size": 4}
NOTHING = {}
END = {"concat": 1, "episodes": 1}
ENCODE = {"encode": 2, "concat": 1}
CODED = ENCODE | {"coded_atlas": 1}
RENDER = ENCODE | {"render": 2}
ALL = RENDER | {"simulate": 2, "episodes": 1}
DRAWN = {"atlas": 1, "coded_atlas": 1}
ONE_SHARD = {"simulate": 1, "render": 1, "encode": 1} | END


@pytest.fixture
def done(filmed, tmp_path) -> Project:
    """Return a copy of a project with its finished film of 8 reaches in 2 shards."""
    return filmed.copied(tmp_path / "project")


CONFIG_EDITS = [
    ({}, NOTHING),
    ({"encode": "{encoder: assemble}"}, NOTHING),
    ({"encode": "{encoder: x264}"}, ENCODE),
    ({"encode": "{qp: 31}"}, ENCODE),  # an option of x264, which `auto` takes then
    ({"encode": "{quality: small}"}, CODED),
    ({"film": "{reaches_per_file: 4}"}, {"part": 2, "films": 1, "episodes": 1}),
    ({"film": "{fps: 60}"}, ENCODE | {"episodes": 1}),
    ({"overlay": "{caption: 'Seed {seed}'}"}, ENCODE),
    ({"overlay": "{hud: true}"}, CODED),
    ({"overlay": "{title_card: 0}"}, ENCODE | {"episodes": 1}),
    ({"overlay": "{title_card: 0.51}"}, NOTHING),  # as many frames
    ({"film": "{show: attempts}"}, ALL),
    ({"seed": 7}, ALL),
    ({"policy": "{epsilon: 0.1}"}, ALL),
    ({"policy": "{name: near_optimal}"}, ALL),
    ({"env": "MountainCarContinuous-v0"}, ALL | DRAWN),
    ({"render": "{style: vector}"}, RENDER | DRAWN),
    ({"render": "{style: gymnasium, width: 600}"}, NOTHING),
    ({"max_attempts": 200}, NOTHING),
    ({"dqn": "{frames: 5000, double: true}"}, NOTHING),  # which this policy has no part in
    ({"policy": "{epsilon: 0}"}, NOTHING),  # another spelling of 0.0
    ({"film": "{}"}, NOTHING),
    ({"reaches": 12}, ONE_SHARD),
    ({"reaches": 10}, ONE_SHARD),
    ({"reaches": 7}, ONE_SHARD),
    ({"reaches": 4}, END),
    ({"shard_size": 2}, {"simulate": 4, "render": 4, "encode": 4} | END),
]


@pytest.mark.parametrize(("edit", "jobs"), CONFIG_EDITS, ids=lambda x: str(x))
def test_config_edit(done, edit, jobs):
    assert done.jobs(config=BASE | edit) == jobs


X264_EDITS = [
    ("{}", NOTHING),
    ("{encoder: x264, qp: 31}", ENCODE),
    ("{encoder: x264, preset: fast}", ENCODE),
    ("{encoder: x264, crf: 20}", ENCODE),
    ("{encoder: x264, quality: best}", ENCODE),
    ("{encoder: x264, qp: 23, preset: veryfast}", NOTHING),
    ("{encoder: x264, quality: small, qp: 23}", NOTHING),  # which wins
    ("{encoder: auto, qp: 23}", NOTHING),
    ("{encoder: auto}", CODED),
]


@pytest.fixture(scope="module")
def encoded(once) -> Project:
    """Return a project with a finished film by x264; tests only read it."""
    config = BASE | {"encode": "{encoder: x264}"}
    return once("encoded", lambda fresh: fresh.run("-j", "2", config=config))


@pytest.mark.parametrize(("encode", "jobs"), X264_EDITS)
def test_config_edit_of_a_film_by_x264(encoded, encode, jobs):
    encode = "{encoder: x264}" if encode == "{}" else encode
    assert encoded.jobs(config=BASE | {"encode": encode}) == jobs


def test_two_values_that_change_places_are_noticed(encoded):
    """Snakemake's own comparison of parameters, a set of them, would not notice."""
    config = BASE | {"encode": "{encoder: x264, qp: 30}", "film": "{fps: 23}"}
    assert encoded.jobs(config=config) == ENCODE | {"episodes": 1}


CODE_EDITS = [
    (
        "scripts/goalreel/environments/physics.py",
        "force, gravity = 0.001",
        "force, gravity = 0.002",
        ALL,
    ),
    ("scripts/goalreel/policies/policy.py", "LEFT, RIGHT = 0, 2", "LEFT, RIGHT = 2, 0", ALL),
    ("scripts/goalreel/environments/seeding.py", "_ACTION_STREAM = 1", "_ACTION_STREAM = 2", ALL),
    ("scripts/simulate.py", "+ count", "+ count + 0", ALL),
    (
        "scripts/goalreel/pictures/gymnasium_drawing.py",
        "(204, 204, 0)",
        "(9, 9, 9)",
        RENDER | DRAWN,
    ),
    (
        "scripts/goalreel/pictures/mountain_car_scene.py",
        "WHEEL_RADIUS = 8",
        "WHEEL_RADIUS = 9",
        RENDER | DRAWN,
    ),
    ("scripts/goalreel/pictures/vector_style.py", "STEPS = 4", "STEPS = 8", RENDER | DRAWN),
    ("scripts/goalreel/pictures/render.py", '"car"', '"cart"', RENDER),
    ("scripts/goalreel/encoding/yuv.py", "_BITS = 22", "_BITS = 21", CODED),
    ("scripts/goalreel/encoding/x264.py", '"-bf", "0"', '"-bf", "1"', CODED),
    (
        "scripts/goalreel/encoding/ffmpeg.py",
        "_PIPE_BYTES = 1 << 20",
        "_PIPE_BYTES = 1 << 19",
        CODED,
    ),
    (
        "scripts/goalreel/provenance/spec.py",
        '("shard", "source", "',
        '("source", "shard", "',
        NOTHING,
    ),
    ("scripts/encode.py", "frames in", "pictures in", ENCODE),
    (
        "scripts/goalreel/pictures/overlay.py",
        "_TOP, _SIZE = 7, 18",
        "_TOP, _SIZE = 8, 18",
        CODED,
    ),
    ("scripts/goalreel/pictures/hud.py", 'f"step {n}"', 'f"Step {n}"', CODED),
    ("scripts/goalreel/pictures/captions.py", "format_map(row)", "format(**row)", CODED),
    ("scripts/goalreel/encoding/choice.py", "round(", "int(", NOTHING),  # as many frames
    (
        "scripts/goalreel/encoding/choice.py",
        "max(round(",
        "1 + max(round(",
        ENCODE | {"episodes": 1},
    ),
    ("scripts/goalreel/h264/cavlc.py", "_ESCAPE_BITS = 12", "_ESCAPE_BITS = 11", CODED),
    (
        "scripts/goalreel/encoding/assembling/code_atlas.py",
        "_COLOURS = 2",
        "_COLOURS = 1",
        CODED,
    ),
    ("scripts/goalreel/encoding/assembling/segment_samples.py", "(1, 2)", "(2, 1)", ENCODE),
    (
        "scripts/goalreel/encoding/assembling/hud_slices.py",
        "if not layers",
        "if layers == []",
        ENCODE,
    ),
    (
        "scripts/goalreel/encoding/choice.py",
        '"balanced": (34, 20)',
        '"balanced": (33, 20)',
        CODED,
    ),
    ("scripts/goalreel/mp4/box_writer.py", 'b"Arial"', 'b"Serif"', ENCODE),
    ("scripts/goalreel/film/concatenate.py", '" · failed"', '" · missed"', {"concat": 1}),
    ("scripts/goalreel/film/tables.py", "index=False", "index=True", {"episodes": 1}),
    (
        "scripts/goalreel/simulation/trajectories.py",
        "VERSION = 2",
        "VERSION = 3",
        ALL | {"coded_atlas": 1},
    ),
    ("scripts/goalreel/files/npz.py", "_LEVEL = 1", "_LEVEL = 2", NOTHING),
    ("scripts/goalreel/training/dqn/settings.py", "batch: int = 128", "batch: int = 64", NOTHING),
    ("scripts/goalreel/workflow/run_summary.py", '"film"', '"movie"', NOTHING),
    ("scripts/goalreel/workflow/stale_locks.py", "was killed", "had been killed", NOTHING),
    ("scripts/goalreel/workflow/config_errors.py", "cutoff=0.5", "cutoff=0.6", NOTHING),
    ("scripts/goalreel/provenance/input_checks.py", "reaches up to", "reaches until", NOTHING),
    ("scripts/goalreel/verification/replay.py", "100 / fps", "99 / fps", NOTHING),
    ("config.yaml", "# frames per second", "# pictures per second", NOTHING),
    ("config.yaml", "quality: balanced", "quality: best", CODED),
    ("config.schema.yaml", "Frames per second", "Pictures per second", NOTHING),
    ("Snakefile", "Play a shard's episodes", "Play episodes", NOTHING),
]


@pytest.mark.parametrize(("name", "old", "new", "jobs"), CODE_EDITS)
def test_code_edit(done, name, old, new, jobs):
    done.edit(name, old, new)
    assert done.jobs(config=BASE) == jobs


def test_comments_docstrings_and_layout_in_every_file_rerun_nothing(done):
    for path in (done.folder / "scripts").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        place = text.index('"""') + 3
        text = text[:place] + "Edited. " + text[place:] + "\n\n# A comment at the end.\n"
        path.write_text(text, encoding="utf-8")
    assert done.jobs(config=BASE) == NOTHING


def test_a_touch_of_every_source_reruns_nothing(done):
    for name in SOURCES:
        path = done.folder / name
        for file in [path, *path.rglob("*")]:
            os.utime(file)
    assert done.jobs(config=BASE) == NOTHING


def test_a_fresh_checkout_reruns_nothing(done):
    for name in SOURCES:
        done.restore(name)
    assert done.jobs(config=BASE) == NOTHING


def test_growing_by_half_a_shard_twice_makes_the_last_shard_twice(done):
    assert done.jobs(config=BASE | {"reaches": 10}) == ONE_SHARD
    done.run(config=BASE | {"reaches": 10})
    assert done.jobs(config=BASE | {"reaches": 10}) == NOTHING
    assert done.jobs(config=BASE | {"reaches": 12}) == ONE_SHARD
    done.run(config=BASE | {"reaches": 12})
    assert done.jobs(config=BASE | {"reaches": 12}) == NOTHING
    # Back to 8: the third shard stays for later, and is not made again when it is wanted.
    done.run(config=BASE)
    assert done.jobs(config=BASE | {"reaches": 12}) == END


def test_a_deleted_segment_is_made_again_only_when_a_film_needs_it(done):
    (done.folder / "results" / "segments" / "00001.mp4").unlink()
    assert done.jobs(config=BASE) == NOTHING
    assert done.jobs(config=BASE | {"reaches": 4}) == END
    (done.folder / "results" / "film.mp4").unlink()
    assert done.jobs(config=BASE) == {"encode": 1, "concat": 1}


def test_a_deleted_frame_cache_reruns_nothing_nor_does_making_it_again(done):
    cache = done.folder / "results" / "frames" / "00000.npz"
    before = cache.read_bytes()
    cache.unlink()
    assert done.jobs(config=BASE) == NOTHING
    done.run("results/frames/00000.npz", config=BASE)
    assert cache.read_bytes() == before
    assert done.jobs(config=BASE) == NOTHING


def test_a_large_file_made_again_with_the_same_content_reruns_nothing(done):
    """Snakemake compares contents up to 1 MB unless profiles/default says otherwise."""
    config = {"reaches": 160, "shard_size": 160}
    done.run(config=config)
    cache = done.folder / "results" / "frames" / "00000.npz"
    assert cache.stat().st_size > 1_000_000
    cache.unlink()
    done.run("results/frames/00000.npz", config=config)
    assert done.jobs(config=config) == NOTHING


def test_other_versions_of_the_tools_rerun_what_they_shape(done, tmp_path):
    def with_version(package, version):
        folder = tmp_path / package / f"{package.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True)
        metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        (folder / "METADATA").write_text(metadata)
        return {"PYTHONPATH": str(folder.parent)}

    other = tmp_path / "ffmpeg"
    other.write_text("#!/bin/sh\necho ffmpeg version n99.9 Copyright\n")
    other.chmod(other.stat().st_mode | stat.S_IXUSR)
    assert "n99.9" not in ffmpeg.version()
    assert done.jobs(config=BASE, **with_version("numpy", "99.9")) == ALL | DRAWN
    assert done.jobs(config=BASE, **with_version("pygame-ce", "99.9")) == RENDER | DRAWN
    assert done.jobs(config=BASE, **with_version("pandas", "99.9")) == {"episodes": 1}
    assert done.jobs(config=BASE, **with_version("pillow", "99.9")) == CODED
    assert done.jobs(config=BASE, IMAGEIO_FFMPEG_EXE=str(other)) == CODED
