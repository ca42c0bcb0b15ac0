"""Title cards name the episode at every size, and every encoder shows them before it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from assembling import assembled, byte_stream, decode_strictly, every_nth_state
from conftest import DISCRETE, simulated
from decoders import decode
from frames import film

from goalreel.encoding.yuv import Yuv420p
from goalreel.environments.environment import make_environment
from goalreel.films.segment import assemble_blocks, assemble_segment, encode_segment
from goalreel.mp4.reader import read_index
from goalreel.rendering.overlay import add_overlay
from goalreel.rendering.title_cards import card_texts, title_cards

QP = {"encoder": "x264", "preset": "ultrafast", "qp": 4}
LONG = "sb3 logs/ppo/MiniGrid-DoorKey-8x8-v0_1/best_model.zip, algorithm PPO"
FRAMES = 20  # more than frame_num counts


def lines(count, env=DISCRETE, policy="pump, epsilon 0", unit="reach"):
    rows = ({"reach": n, "seed": 2**50 + n, "attempt": n % 2} for n in range(count))
    return [card_texts(row, env, policy, unit, 1000) for row in rows]


def test_lines_name_environment_policy_number_and_seed():
    first, second = lines(2)
    assert first == (DISCRETE, "pump, epsilon 0", "Reach 0 of 1,000", f"seed {2**50}")
    assert second[2:] == ("Reach 1 of 1,000", f"seed {2**50 + 1} · attempt 1")


@pytest.mark.parametrize("size", [(120, 160), (210, 160), (400, 600), (432, 600), (720, 1280)])
@pytest.mark.parametrize("policy", ["random", LONG])
def test_card_shows_four_lines_clear_of_the_border(size, policy):
    cards = title_cards(size, lines(3, "MiniGrid-DoorKey-8x8-v0", policy, "episode"), 2)
    assert len(cards) == 6 and np.array_equal(cards[2], cards[3])
    assert len({cards[frame].tobytes() for frame in (0, 2, 4)}) == 3
    ink = np.ptp(cards[0], axis=(1, 2)) > 40
    runs = [len(list(run)) for has_ink, run in itertools.groupby(ink) if has_ink]
    assert len(runs) == 5, "four lines and a rule"
    assert runs[0] == max(runs) or policy == LONG
    assert not ink[: size[0] // 10].any() and not ink[-size[0] // 10 :].any()
    assert not np.ptp(cards[0][:, [0, 1, -2, -1]], axis=(0, 1)).any()


@pytest.mark.parametrize("size", [(2, 2), (16, 16), (8, 600), (400, 4), (34, 50)])
def test_card_of_any_size_is_cut(size):
    assert title_cards(size, lines(2), 1)[0].shape == (*size, 3)


def segment_of(kind, path):
    """Write a segment with title cards; return its cards and its frames."""
    if kind == "atlas":
        bare = assembled(path, DISCRETE, every_nth_state(simulated(), 15))
        cache = bare.cache
    else:
        environment = make_environment({"env": "CartPole-v1", "max_episode_steps": 30})
        made, cache = film(path.with_suffix(".npz"), environment, range(3))
        cache = add_overlay(cache, made, "CartPole-v1", ["first", "second", "third"], True)
    cards = title_cards(cache.background.shape[:2], lines(3), FRAMES)
    cache = replace(cache, titles=cards)
    if kind == "atlas":
        assemble_segment(cache, bare.coded_atlas, path, 30, "{}")
    elif kind == "blocks":
        assemble_blocks(cache, path, 30, {"qp": 20, "card_qp": 12}, "{}")
    else:
        encode_segment(cache, path, 30, QP, "{}")
    return cards, cache


@pytest.mark.parametrize("kind", ["atlas", "blocks", "x264"])
def test_film_shows_cards_then_frames(kind, tmp_path):
    path = tmp_path / "f.mp4"
    parts = segment_of(kind, path)
    stream, size = byte_stream(path), parts[1].background.shape[1::-1]
    shown = decode_strictly(stream)
    assert kind == "x264" or np.array_equal(shown, decode("OpenH264", stream, size))
    expected, starts = [], []
    for episode, part in itertools.product(range(3), parts):
        starts.append(len(expected))
        expected += [frame.copy() for frame in Yuv420p(part).frames(part.episode(episode))]
    assert list(read_index(path).keyframes) == starts
    assert len(shown) == len(expected)
    errors = np.square(shown.astype(np.int32) - expected).mean(axis=(1, 2))
    for start, end in itertools.pairwise(starts[1:]):
        of_card = (start in starts[::2]) and kind != "x264"
        assert errors[start:end].max() < (6 if of_card else 1), "40 dB, and 48 dB for frames"
        assert not of_card or (shown[start:end] == shown[start]).all()
    before = path.read_bytes()
    segment_of(kind, path)
    assert path.read_bytes() == before
