"""Test coded atlases and the choice of the encoder."""

from dataclasses import replace

import numpy as np
import pytest
from assembling import atlas_of, quantizers
from conftest import CONTINUOUS, DISCRETE, simulated
from message_form import rejection

from goalreel.encoding.assembling.coded_atlas import CodedAtlas, read_coded_atlas, write_coded_atlas
from goalreel.encoding.assembling.encode_atlas import code_atlas
from goalreel.encoding.encoder_selection import choose, encoder_errors, x264
from goalreel.errors import GoalreelError
from goalreel.films.render import render_states
from goalreel.films.segment import assemble_segment
from goalreel.provenance.spec import NO_SPEC, canonical, parse_spec
from goalreel.rendering.atlas import Atlas, state_keys
from goalreel.rendering.overlay import add_overlay, empty_track
from goalreel.workflow.config import load_config


@pytest.fixture(scope="module")
def trajectories():
    return simulated(reaches=range(2))


@pytest.fixture(scope="module")
def atlas(trajectories) -> Atlas:
    style = DISCRETE
    return atlas_of(style, state_keys(trajectories, style))


@pytest.fixture(scope="module")
def coded_atlas(atlas) -> CodedAtlas:
    """Return the atlas coded without a HUD."""
    seen = atlas.background, DISCRETE, False
    spec = parse_spec(canonical({"stage": "coded_atlas", "config": {}}))
    return code_atlas(atlas, *empty_track(*seen), quantizers(), spec)


def test_coded_atlas_round_trip_gives_same_bytes(coded_atlas, tmp_path):
    write_coded_atlas(tmp_path / "c.npz", coded_atlas)
    stored = read_coded_atlas(tmp_path / "c.npz")
    assert list(stored.slices.items()) == list(coded_atlas.slices.items())
    for name in ("quantizers", "rows", "colors", "spec", "region", "header"):
        assert getattr(stored, name) == getattr(coded_atlas, name), name
    for ours, read in ((coded_atlas.planes, stored.planes), (coded_atlas.card, stored.card)):
        assert all(
            np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(ours, read, strict=True)
        )
    write_coded_atlas(tmp_path / "again.npz", stored)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "c.npz").read_bytes()


def test_missing_picture_is_reported(coded_atlas, trajectories, atlas, tmp_path):
    frames = render_states(trajectories, atlas, DISCRETE, NO_SPEC)
    (car,) = frames.layers
    missing = car.patches.digests()[-1]
    slices = {digest: s for digest, s in coded_atlas.slices.items() if digest != missing}
    part, path = replace(coded_atlas, slices=slices), tmp_path / "f.mp4"
    cache = add_overlay(frames, trajectories, DISCRETE, ["", ""], False, True)
    with pytest.raises(GoalreelError, match="coded atlas: A picture of the frames is missing"):
        assemble_segment(cache, part, path, 30, "{}")
    assert not path.exists()


def config(**given) -> dict:
    return load_config(given)


HUD, PREBUILT = {"hud": True}, {"encoder": "prebuilt"}
RANDOM = {"name": "random"}
# Options, the option that prevents assembling, the reason in the summary.
CASES = [
    ({}, None, ""),
    ({"env": CONTINUOUS}, None, ""),
    ({"overlay": HUD}, None, ""),
    ({"encode": {"preset": "fast"}}, "encode.preset", "preset is an option of x264"),
    ({"encode": {"qp": 30}}, "encode.qp", "qp is an option of x264"),
    ({"encode": {"crf": 23.0}}, "encode.crf", "crf is an option of x264"),
    ({"max_episode_steps": 16_382}, None, ""),
    ({"max_episode_steps": 16_383}, "max_episode_steps", "an assembled episode has at most 16"),
]


@pytest.mark.parametrize(("given", "key", "reason"), CASES)
def test_choice_of_encoder_has_reason(given, key, reason):
    chosen = choose(config(**given))
    assert chosen.assembled == (key is None) and chosen.reason.startswith(reason)
    if key is None:
        assert chosen.label == "assembled from H.264 pictures, qp 34"
        return
    assert chosen.label == f"{chosen.label.split(' (')[0]} (not assembled: {chosen.reason})"
    assert dict(encoder_errors(config(**given))) == {key: chosen.reason}
    said = rejection(given | {"encode": given.get("encode", {}) | PREBUILT})
    assert f"{key}: Does not fit the encoder 'prebuilt' ({chosen.reason})" in said


@pytest.mark.parametrize("env", ["CartPole-v1", "FrozenLake-v1", "ALE/Pong-v5", "LunarLander-v3"])
def test_environment_with_few_blocks_is_assembled(env):
    chosen = choose(config(env=env, policy=RANDOM, overlay=HUD))
    assert (chosen.assembled, chosen.label) == (False, "assembled from H.264 blocks, qp 25")
    assert dict(chosen.settings) == {"encoder": "blocks", "qp": 25, "card_qp": 12}
    small = choose(config(env=env, policy=RANDOM, encode={"quality": "small"}))
    assert small.settings["qp"] > 24 and small.settings["card_qp"] > 12


def test_environment_with_many_blocks_is_assembled_if_asked():
    given = {"env": "BipedalWalker-v3", "policy": RANDOM}
    chosen = choose(config(**given))
    assert chosen.settings["encoder"] == "x264"
    assert "(not assembled: not one of the environments whose frames" in chosen.label
    asked = choose(config(**given, encode=PREBUILT))
    assert asked.settings["encoder"] == "blocks" and not asked.reason


def test_x264_settings_come_from_options_or_quality():
    chosen = choose(config(encode={"encoder": "x264", "crf": 20.0, "preset": "slow"}))
    assert chosen.label == "x264, preset slow, crf 20.0" and chosen.reason == ""
    for quality in ("small", "balanced", "best"):
        settings = x264(config(encode={"quality": quality}))
        assert settings["preset"] == "veryfast" and 0 < settings["qp"] < 30
