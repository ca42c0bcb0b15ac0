"""Pixel environments: frames, rewards and counts of sub-environments, and errors of settings."""

import dataclasses
import importlib.util
import sys

import gymnasium
import numpy as np
import pytest
from test_collectors import started, taken, until

from goalreel.errors import GoalreelError
from goalreel.policies.preprocessing import WARPS
from goalreel.training.games.car_envs import Cars, WrappedCars
from goalreel.training.games.make_envs import make_envs
from goalreel.training.games.settings import ale_games, game_settings
from goalreel.training.pixels.collector import END
from goalreel.training.pixels.collectors import actions_of

CAR, BREAKOUT = "MountainCar-v0", "ALE/Breakout-v5"
NEEDS_MARIO = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("stable_retro", "gym_super_mario_bros"))),
    reason="takes stable-retro and the ROM of gym-super-mario-bros",
)
NEEDS_ALE = pytest.mark.skipif(importlib.util.find_spec("ale_py") is None, reason="takes ale-py")


@pytest.mark.parametrize("warp", ["area", "pillow"])
def test_car_envs_observe_gymnasium_frames(warp):
    """Another test compares the cars' states with Gymnasium's."""
    envs, cars = make_envs(game_settings(CAR, warp=warp), 7, 3), Cars(7, 3, 4)
    env = gymnasium.make(CAR, render_mode="rgb_array")
    env.reset()

    def drawn(positions):
        pictures = []
        for position in positions.tolist():
            env.unwrapped.state = (position, 0.0)
            pictures.append(WARPS[warp](env.render()))
        return np.stack(pictures)

    rng = np.random.default_rng(0)
    assert np.array_equal(envs.obs, drawn(cars.positions))
    ended, rewards = [], np.zeros(3)
    velocities = cars.obs[:, 1]
    for number in range(60):
        actions = np.where(velocities >= 0, 2, 0)
        actions = np.where(rng.random(3) < 0.2, 1, actions)
        step, wanted = envs.step(actions), cars.step(actions)
        velocities = cars.obs[:, 1]
        over = wanted.terminated | wanted.truncated
        assert np.array_equal(wanted.next_obs[:, 0], cars.reached.astype(np.float32))
        assert step.rewards.dtype == np.float32
        assert np.array_equal(step.rewards, np.sign(wanted.rewards))
        assert np.array_equal(step.terminated, wanted.terminated)
        assert np.array_equal(step.truncated, wanted.truncated)
        if number % 10 == 0 or over.any():
            assert np.array_equal(step.next_obs, drawn(cars.reached))
            assert np.array_equal(envs.obs, drawn(cars.positions))
        assert [episode.index for episode in step.ended] == np.flatnonzero(over).tolist()
        ended += step.ended
        rewards += wanted.rewards
        for episode in step.ended:
            assert episode.return_ == rewards[episode.index]
            assert episode.distance >= 0.5 or episode.return_ == -200
        rewards[over] = 0
    env.close()
    envs.close()
    assert len(ended) > 2


@NEEDS_ALE
def test_return_equals_unclipped_rewards():
    """The learner sees lives, clipped rewards and no-ops."""
    envs = make_envs(game_settings(BREAKOUT), 3, 2)
    assert envs.actions == 4 and envs.obs.shape == (2, 84, 84)
    rng, lost, ended, seen = np.random.default_rng(1), np.zeros(2), [], set()
    while len(ended) < 2:
        step = envs.step(rng.integers(4, size=2))
        assert not step.truncated.any() and set(step.rewards) <= {0.0, 1.0}
        lost += step.terminated
        ended += step.ended
        seen.add(step.next_obs.tobytes())
        begun = [episode.index for episode in step.ended]
        assert all(lost[index] >= 3 for index in begun), "a game has five lives"
        lost[begun] = 0
    envs.close()
    assert len(seen) > 50 and all(e.return_ >= 0 and np.isnan(e.distance) for e in ended)


@pytest.mark.slow
@NEEDS_ALE
def test_endless_game_is_truncated_after_five_minutes():
    """Without FIRE, no ball follows the first one."""
    envs = make_envs(game_settings(BREAKOUT), 3, 1)
    ended = []
    for number in range(1, 4_600):
        step = envs.step(np.array([0]))
        ended += [(number, bool(step.truncated[0])) for _ in step.ended]
    envs.close()
    ((number, truncated),) = ended
    assert truncated and (18_000 - 60) / 4 - 30 <= number <= 18_000 / 4


@NEEDS_ALE
def test_ale_game_names_match_gymnasium_registry():
    import ale_py

    gymnasium.register_envs(ale_py)
    registered = {name for name in gymnasium.registry if name.startswith("ALE/")}
    assert set(ale_games()) >= registered


@pytest.mark.parametrize(
    ("python", "values"),
    [
        pytest.param(sys.executable, {"game": BREAKOUT}, marks=NEEDS_ALE),
        pytest.param(
            sys.executable, {"game": "SuperMarioBros-1-1-v0", "noop": 0}, marks=NEEDS_MARIO
        ),
    ],
    ids=["ale", "mario"],
)
def test_collector_process_plays_the_game(python, values):
    """Half of the actions come from the network, which this interpreter computes with NumPy."""
    game = dataclasses.asdict(game_settings(**values))
    actions, num_envs = actions_of(python, game), 2
    with started(python, game, actions, 0.5, n_envs=num_envs) as collectors:
        (ring,) = collectors.rings
        pieces = []
        for _ in range(4):
            until(lambda: len(ring) == ring.capacity, collectors)
            pieces.append(taken(ring))
        rows = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        process = collectors.children[0].process
    assert process.returncode == 0
    assert rows["frame"].shape[1:] == (84, 84) and rows["frame"].std(axis=(1, 2)).min() > 1
    for index in range(num_envs):
        own = {name: column[rows["env"] == index] for name, column in rows.items()}
        assert len(np.unique(own["frame"], axis=0)) > 20
        played = own["action"][own["action"] != END]
        assert set(played.tolist()) <= set(range(actions)) and len(set(played.tolist())) > 1
        episode_steps, begun = own["episode_step"], own["episode_step"][1:] == 0
        assert episode_steps[0] == 0 and np.array_equal(
            episode_steps[1:], np.where(begun, 0, episode_steps[:-1] + 1)
        )
        assert episode_steps.max() >= 10
        ends = (own["terminated"][:-1] > 0) | (own["action"][:-1] == END)
        assert np.array_equal(begun, ends)


@pytest.mark.parametrize(
    ("game", "message"),
    [
        ("MountainCar-v1", "game: Unknown value.*Did you mean 'MountainCar-v0'"),
        ("SuperMarioBros-1-5-v0", "Did you mean 'SuperMarioBros-1-.-v0'"),
        (3, "game: Unknown value '3'. Use MountainCar-v0, or an id such as"),
        pytest.param("ALE/Breakot-v5", "Did you mean 'ALE/Breakout-v5'", marks=NEEDS_ALE),
    ],
)
def test_unknown_games_are_named(game, message):
    with pytest.raises(GoalreelError, match=message):
        game_settings(game)


@NEEDS_ALE
def test_game_without_lives_or_fire_has_neither_wrapper():
    envs = make_envs(game_settings("ALE/Freeway-v5"), 0, 1)
    ends = [envs.step(np.array([1])).terminated[0] for _ in range(50)]
    envs.close()
    assert not any(ends)


@pytest.mark.parametrize("skip", [1, 12])
@pytest.mark.parametrize("num_envs", [1, 5])
def test_sub_environments_are_gymnasiums_environments(num_envs, skip):
    ours, theirs = Cars(7, num_envs, skip), WrappedCars(7, num_envs, skip)
    rng = np.random.default_rng(1)
    assert np.array_equal(ours.obs, theirs.obs)
    seen, ended = ours.obs, 0
    for _ in range(900 // skip):
        # Along the velocity, so that some episodes terminate and others are truncated.
        along = np.where(seen[:, 1] >= 0, 2, 0)
        actions = np.where(rng.random(num_envs) < 0.6, along, rng.integers(3, size=num_envs))
        one, other = ours.step(actions.astype(np.int8)), theirs.step(actions.astype(np.int8))
        for name, value in vars(one).items():
            assert np.array_equal(value, getattr(other, name)), name
        seen, ended = one.obs, ended + int((one.terminated | one.truncated).sum())
    assert ended > 2


@pytest.mark.parametrize("shape", [(210, 160), (240, 256), (400, 600)])
def test_area_interpolation_equals_opencv(shape):
    cv2 = pytest.importorskip("cv2", reason="takes OpenCV, which is no requirement")
    rng = np.random.default_rng(0)
    for colors in (4, 16, 256):  # few colors give many sums halfway between two integers
        picture = (rng.integers(0, colors, (*shape, 3)) * (255 // (colors - 1))).astype(np.uint8)
        gray = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
        small = cv2.resize(gray, (84, 84), interpolation=cv2.INTER_AREA)
        assert np.array_equal(WARPS["area"](picture), small)
