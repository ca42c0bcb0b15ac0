"""Single stages: pictures, simulation and seeding, goalreel's and the peers'.

Each contender is a function that returns a Sample. What it made is compared with goalreel's,
outside the time that is taken.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.sample import ENV, MismatchError, Sample

LANES = 4096  # episodes that goalreel simulates side by side
PEER_LANES = 512  # environments at which SyncVectorEnv and EnvPool run at their full speed
_PASSES = 9  # repetitions of what takes milliseconds; a sample is their median


# Pictures alone: RGB frames of the film's first shard, in memory.


def render_with_goalreel(results: Path) -> Sample:
    """Compose every RGB frame of the first shard from its frame cache, its opening included."""
    import goalreel

    start = time.perf_counter()
    cache = goalreel.open_cache(results / "frames" / "00000.npz")
    for _ in cache:
        pass
    seconds = time.perf_counter() - start
    return Sample(len(cache), seconds, f"{len(cache):,} frames")


def render_shard_with_goalreel(results: Path, scratch: Path) -> Sample:
    """Do what a render job does once it has started: look up all pictures, write the cache."""
    from goalreel.films.render import render_states
    from goalreel.pictures.atlas import read_atlas
    from goalreel.pictures.frame_cache import write_cache
    from goalreel.pictures.styles import make_style
    from goalreel.provenance.spec import NO_SPEC
    from goalreel.simulation.trajectories import read_trajectories

    trajectories = read_trajectories(results / "trajectories" / "00000.npz")
    atlas = read_atlas(results / "atlas.npz")
    scratch.mkdir()

    def render():
        cache = render_states(trajectories, atlas, make_style(ENV, {"style": "gymnasium"}), NO_SPEC)
        write_cache(scratch / "frames.npz", cache)
        return cache

    cache, seconds = _median_pass(render)
    return Sample(len(cache), seconds, f"{len(cache):,} frames")


def render_with_gymnasium(results: Path, count: int) -> Sample:
    """Draw the states of the first `count` episodes of the first shard with env.render().

    The first episode's frames are compared with those of the frame cache, pixel for pixel.
    """
    import gymnasium

    import goalreel

    cache = goalreel.open_cache(results / "frames" / "00000.npz")
    trajectories = goalreel.read_trajectories(results / "trajectories" / "00000.npz")
    states = trajectories.states[: trajectories.offsets[min(count, len(trajectories))]].tolist()
    env = gymnasium.make(ENV, render_mode="rgb_array")
    env.reset(seed=0)
    for frame in range(int(trajectories.offsets[1])):
        env.unwrapped.state = states[frame]
        if not np.array_equal(env.render(), cache[frame]):
            raise MismatchError(f"frame {frame}: the frame cache differs from env.render()")
    start = time.perf_counter()
    for state in states:
        env.unwrapped.state = state
        env.render()
    seconds = time.perf_counter() - start
    env.close()
    return Sample(len(states), seconds, f"{len(states):,} frames")


# Simulation alone: the pump policy, one core, no pictures.


def benchmark_seeds() -> np.ndarray:
    """Return the seeds of the episodes that are simulated, (LANES,) int64."""
    return np.random.default_rng(2025).integers(2**53, size=LANES)


def simulate_with_goalreel(seeds: np.ndarray) -> Sample:
    """Simulate an episode per seed, recorded and seeded as for a film."""
    episodes, seconds = _median_pass(lambda: _goalreel_episodes(seeds))
    steps = int(episodes.steps.sum())
    return Sample(steps, seconds, f"{steps:,} steps")


def simulate_with_sync_vector_env(seeds: np.ndarray, steps: int) -> Sample:
    """Take about `steps` steps with Gymnasium's SyncVectorEnv; seeding is not timed.

    Its first episodes start from the first of `seeds` and must be as long as goalreel's.
    """
    import gymnasium

    env = gymnasium.make_vec(ENV, num_envs=PEER_LANES, vectorization_mode="sync")
    observations, _ = env.reset(seed=seeds[:PEER_LANES].tolist())
    sample, ended = _take_steps(env, observations, steps)
    lengths = _goalreel_episodes(seeds[:PEER_LANES]).steps
    if not np.array_equal(ended.argmax(axis=0) + 1, lengths):
        raise MismatchError("SyncVectorEnv's episodes are not as long as goalreel's")
    return sample


def simulate_with_envpool(steps: int) -> Sample:
    """Take about `steps` steps with EnvPool, one worker thread; its seeds are its own."""
    import envpool

    env = envpool.make(ENV, env_type="gymnasium", num_envs=PEER_LANES, num_threads=1)
    observations, _ = env.reset()
    return _take_steps(env, observations, steps)[0]


def _goalreel_episodes(seeds: np.ndarray):
    import goalreel
    from goalreel.environments.physics import ENVIRONMENTS
    from goalreel.policies.policy import make_policy

    policy = make_policy({"name": "pump", "epsilon": 0})
    return goalreel.simulate_episodes(seeds, ENVIRONMENTS[ENV], policy)


def _take_steps(env, observations: np.ndarray, steps: int) -> tuple[Sample, np.ndarray]:
    """Step a vector environment; return the sample and which episodes ended, (calls, lanes).

    Both peers reset a lane in the call after its episode's end: that call is no step of it.
    """
    ended = []
    start = time.perf_counter()
    for _ in range(steps // PEER_LANES):
        actions = np.where(observations[:, 1] >= 0, 2, 0)
        observations, _, terminated, truncated, _ = env.step(actions)
        ended.append(terminated | truncated)
    seconds = time.perf_counter() - start
    env.close()
    ended = np.array(ended)
    taken = ended.size - int(ended[:-1].sum())
    return Sample(taken, seconds, f"{taken:,} steps"), ended


# Seeding alone: an episode's first position, bit for bit as env.reset(seed=...) gives it.


def seed_with_goalreel(seeds: np.ndarray) -> Sample:
    """Seed all episodes side by side."""
    from goalreel.environments.physics import reset

    _, seconds = _median_pass(lambda: reset(seeds))
    return Sample(len(seeds), seconds, f"{len(seeds):,} episodes")


def seed_with_default_rng(seeds: np.ndarray) -> Sample:
    """Seed one episode after the other, as Gymnasium does, and compare the first positions."""
    from goalreel.environments.physics import reset

    seeds_as_integers = seeds.tolist()
    start = time.perf_counter()
    drawn = [np.random.default_rng(seed).uniform(-0.6, -0.4) for seed in seeds_as_integers]
    seconds = time.perf_counter() - start
    if not np.array_equal(drawn, reset(seeds).positions):
        raise MismatchError("goalreel's first positions differ from NumPy's")
    return Sample(len(seeds), seconds, f"{len(seeds):,} episodes")


def _median_pass(work: Callable[[], object]) -> tuple[object, float]:
    """Do `work` once to warm up and some times more; return its result and the median time."""
    result = work()
    seconds = []
    for _ in range(_PASSES):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return result, statistics.median(seconds)
