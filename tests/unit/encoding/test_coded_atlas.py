"""A coded atlas of another film is refused; who makes a film is said, and why."""

from dataclasses import replace

import numpy as np
import pytest
from assembling import CAPTION, atlas_of, quantisers
from conftest import CONTINUOUS, DISCRETE, GYMNASIUM, STYLES, simulated

from encode import encode as program
from goalreel.encoding import encoder_selection
from goalreel.encoding.assembling.coded_atlas import CodedAtlas, read_coded_atlas, write_coded_atlas
from goalreel.encoding.assembling.encode_atlas import code_atlas
from goalreel.encoding.encoder_selection import choose, encoder_errors
from goalreel.errors import GoalreelError
from goalreel.films.render import render_states
from goalreel.provenance.spec import NO_SPEC, canonical, parse_spec
from goalreel.rendering.atlas import Atlas, state_keys
from goalreel.rendering.frame_cache import write_cache
from goalreel.rendering.overlay import clear_rows, empty_card
from goalreel.rendering.vector_style import VectorStyle
from goalreel.simulation.trajectories import write_trajectories
from goalreel.workflow.config import load_config

QP, CARD_QP = quantisers()
ENCODE = {"encoder": "assemble", "qp": QP, "card_qp": CARD_QP}
CONFIG = {"env": DISCRETE, "render": GYMNASIUM, "overlay.hud": False, "film_encoder": ENCODE}


@pytest.fixture(scope="module")
def trajectories():
    return simulated(reaches=range(2))


@pytest.fixture(scope="module")
def atlas(trajectories) -> Atlas:
    return atlas_of(
        STYLES[DISCRETE], state_keys(trajectories.states, trajectories.offsets, STYLES[DISCRETE])
    )


def card_of(atlas: Atlas, hud: bool = False) -> tuple:
    """Return what code_atlas needs of an atlas's title card: the card, its rows, quantisers."""
    seen = atlas.background, DISCRETE, hud
    return empty_card(*seen), clear_rows(*seen), (QP, CARD_QP)


@pytest.fixture(scope="module")
def coded_atlas(atlas) -> CodedAtlas:
    spec = parse_spec(canonical({"stage": "coded_atlas", "config": CONFIG}))
    return code_atlas(atlas, *card_of(atlas), spec)


@pytest.fixture
def files(tmp_path, trajectories, atlas, coded_atlas) -> dict:
    """Return the paths of all that encode takes, and of what it makes."""
    names = ("coded_atlas.npz", "frames.npz", "trajectories.npz", "segment.mp4")
    paths = {name.split(".")[0]: tmp_path / name for name in names}
    spec = parse_spec(canonical({"config": {"env": DISCRETE, "render": GYMNASIUM}}))
    write_cache(paths["frames"], render_states(trajectories, atlas, STYLES[DISCRETE], spec))
    write_trajectories(paths["trajectories"], trajectories)
    write_coded_atlas(paths["coded_atlas"], coded_atlas)
    return paths


def encode(files: dict, **config) -> None:
    """Run the stage encode with a film's configuration."""
    config = (
        CONFIG
        | {"film.fps": 30, "card_frames": 1, "unit": "reach", "overlay.caption": CAPTION}
        | config
    )
    config["render.scale"] = config.pop("render")["scale"]
    spec = canonical({"stage": "encode", "config": config})
    named = [w for n in list(files)[:3] for w in (f"--{n.replace('_', '-')}", str(files[n]))]
    program.main([*named, "--spec", spec, "--output", str(files["segment"])])


def refused(files: dict, match: str, **config) -> None:
    """Run the stage, which must fail with a GoalreelError and leave no segment."""
    with pytest.raises(GoalreelError, match=match):
        encode(files, **config)
    assert not files["segment"].exists()


def test_a_coded_atlas_is_what_was_written_and_gives_the_same_bytes(files, coded_atlas, tmp_path):
    found = read_coded_atlas(files["coded_atlas"])
    assert list(found.slices.items()) == list(coded_atlas.slices.items())
    for name in ("quantisers", "rows", "colours", "spec", "region", "header"):
        assert getattr(found, name) == getattr(coded_atlas, name), name
    for ours, read in ((coded_atlas.planes, found.planes), (coded_atlas.card, found.card)):
        assert all(
            np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(ours, read, strict=True)
        )
    write_coded_atlas(tmp_path / "again.npz", found)
    assert (tmp_path / "again.npz").read_bytes() == files["coded_atlas"].read_bytes()


def test_the_same_atlas_is_coded_to_the_same_bytes(atlas, coded_atlas):
    """Whatever stands beside a picture in the atlas."""
    again = code_atlas(atlas, *card_of(atlas))
    assert again.slices == coded_atlas.slices
    few = Atlas(atlas.keys[3:5], atlas.background, atlas.patches.take(np.array([3, 4])))
    alone = code_atlas(few, *card_of(few))
    if alone.colours == coded_atlas.colours:
        assert alone.slices.items() <= coded_atlas.slices.items()


def test_a_missing_picture_is_told_by_its_step_and_state(files, coded_atlas, trajectories, atlas):
    cache = render_states(trajectories, atlas, STYLES[DISCRETE], NO_SPEC)
    (car,) = cache.layers
    digests = car.patches.digests()
    # A picture of the second episode that the first does not show.
    first, second = (set(car.index[cache.episode(e)].tolist()) for e in range(2))
    frame = next(f for f in cache.episode(1) if int(car.index[f]) in second - first)
    slices = {d: s for d, s in coded_atlas.slices.items() if d != digests[car.index[frame]]}
    write_coded_atlas(files["coded_atlas"], replace(coded_atlas, slices=slices))
    states, row = trajectories.states[frame].tolist(), trajectories.episodes.row(1)
    for cards in (1, 15):
        refused(
            files,
            f"step {frame - cache.offsets[1]} of reach {row['reach']} "
            rf"\(seed {row['seed']}: position {states[0]!r}, velocity {states[1]!r}\)",
            card_frames=cards,
        )


def config(**given) -> dict:
    return load_config(given)


def vector(width: int, height: int) -> dict:
    return {"style": "vector", "width": width, "height": height}


HUD, ASSEMBLE = {"hud": True}, {"encoder": "assemble"}
RANDOM = {"name": "random"}
# What is asked, the option that stands against assembling, and the reason in the summary.
OBSTACLES = [
    ({}, None, ""),
    ({"env": CONTINUOUS}, None, ""),
    ({"overlay": HUD}, None, ""),
    ({"overlay": HUD, "render": vector(1280, 720)}, None, ""),
    ({"render": vector(240, 160), "overlay": {"caption": ""}}, None, ""),
    ({"encode": {"preset": "fast"}}, "encode.preset", "preset is an option of x264"),
    ({"encode": {"qp": 30}}, "encode.qp", "qp is an option of x264"),
    ({"encode": {"crf": 23.0}}, "encode.crf", "crf is an option of x264"),
    (
        {"overlay": HUD, "render": vector(600, 408)},
        "overlay.hud",
        "the HUD would share macroblocks with the car at this size",
    ),
    (
        {"render": vector(240, 160)},
        "overlay.caption",
        "the caption would share pixels with the car at this size",
    ),
    (
        {"max_steps": 16_368},
        "max_steps",
        "an assembled episode has at most 16,368 steps after its title card",
    ),
]


@pytest.mark.parametrize(("given", "key", "reason"), OBSTACLES)
def test_who_makes_the_film_and_why_is_said(given, key, reason):
    if key == "max_steps":  # the most that is allowed: with 15 frames of a card
        assert choose(config(**given)).assembled
        given = {"max_steps": given["max_steps"] + 1}
    chosen = choose(config(**given))
    assert (chosen.assembled, chosen.reason) == (key is None, reason)
    if key is None:
        assert chosen.label == "assembled from H.264 pictures, qp 34"
        return
    assert chosen.label.startswith("x264, ") and f"(not assembled: {reason})" in chosen.label
    assert dict(encoder_errors(config(**given))) == {key: reason}
    asked = given | {"encode": given.get("encode", {}) | ASSEMBLE}
    with pytest.raises(GoalreelError) as error:
        config(**asked)
    message = f"{key}: {reason}, so encode.encoder cannot be 'assemble'; allowed here: auto, x264"
    assert message in str(error.value)


@pytest.mark.parametrize("env", ["CartPole-v1", "FrozenLake-v1", "ALE/Pong-v5", "LunarLander-v3"])
def test_few_blocks_are_assembled(env):
    chosen = choose(config(env=env, policy=RANDOM, overlay=HUD))
    assert (chosen.assembled, chosen.label) == (False, "assembled from H.264 blocks, qp 25")
    assert dict(chosen.settings) == {"encoder": "blocks", "qp": 25, "card_qp": 12}
    small = choose(config(env=env, policy=RANDOM, encode={"quality": "small"}))
    assert small.settings["qp"] > 24 and small.settings["card_qp"] > 12


def test_many_new_blocks_are_assembled_where_that_is_asked():
    given = {"env": "BipedalWalker-v3", "policy": RANDOM}
    chosen = choose(config(**given))
    assert chosen.settings["encoder"] == "x264"
    assert chosen.label.endswith(
        "(not assembled: much of a picture of this environment may be new)"
    )
    asked = choose(config(**given, encode=ASSEMBLE))
    assert asked.settings["encoder"] == "blocks" and not asked.reason


def test_x264_takes_its_settings_from_the_options_or_else_from_the_quality():
    chosen = choose(config(encode={"encoder": "x264", "crf": 20.0, "preset": "slow"}))
    assert chosen.label == "x264, preset slow, crf 20.0" and chosen.reason == ""
    for quality in ("small", "balanced", "best"):
        settings = encoder_selection.x264(config(encode={"quality": quality}))
        assert settings["preset"] == "veryfast" and 0 < settings["qp"] < 30


# The lowest and the highest places of the car in its whole range, in quarters of a unit.
LOWEST, HIGHEST = (871, 931, 932), (2256, 2338, 2339)
SIDES = [160, 300, 600, 606]
HEIGHTS = [120, 160, 176, 240, 404, 406]


def extremes(size: tuple[int, int]) -> Atlas:
    """Return an atlas of the car's lowest and highest pictures."""
    style = VectorStyle(DISCRETE, size, "light")
    return atlas_of(style, np.array([*LOWEST, *HIGHEST])[:, None])


def test_no_picture_of_the_car_is_lower_or_higher_than_the_extremes():
    style = VectorStyle(DISCRETE, (600, 400), "light")
    points = [style._car((key + 0.5) / 4) for key in range(2400)]
    rows = [np.concatenate([style._placed(shape)[:, 1] for shape, _ in car]) for car in points]
    assert int(np.argmax([r.max() for r in rows])) in LOWEST
    assert int(np.argmin([r.min() for r in rows])) in HIGHEST


@pytest.mark.parametrize("width", SIDES)
def test_a_hud_and_a_caption_fit_only_where_the_car_leaves_them_room(width):
    told = set()
    for height in HEIGHTS:
        render = {"style": "vector", "width": width, "height": height}
        atlas = extremes((width, height))
        clear, boxes = clear_rows(atlas.background, DISCRETE, True), atlas.patches.boxes
        hud_fits, caption_fits = (
            encoder_selection._hud_fits(render),
            encoder_selection._caption_fits(render),
        )
        slices = clear[1] // 16 * 16
        room = (boxes[:, 0] + boxes[:, 2]).max() <= slices and -(-clear[0] // 16) < clear[1] // 16
        assert room or not hud_fits, height
        assert boxes[:, 0].min() >= clear[0] or not caption_fits, height
        told.add((hud_fits, caption_fits))
    assert len(told) > 1, "neither always nor never"
