"""The contenders: goalreel and its peers, each a function that does the work and returns a Sample.

What each of them played is checked against goalreel's recording, outside the time that is taken.
Who is measured when, and what becomes of the samples, stands in peers.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # Gymnasium's renderer needs no screen

ENV = "MountainCar-v0"
FPS = 30
LANES = 4096  # episodes that goalreel simulates side by side
PEER_LANES = 512  # environments at which SyncVectorEnv and EnvPool run at their full speed
_PASSES = 9  # repetitions of what takes milliseconds; a sample is their median


class MismatchError(Exception):
    """A contender did not play or show what goalreel recorded."""


@dataclass(frozen=True)
class Sample:
    """One measurement.

    units: frames, steps or episodes; seconds: wall-clock time for all of them; played: what was
    measured, in words; lost: frames that the contender was given but did not write
    """

    units: int
    seconds: float
    played: str
    lost: int = 0


@dataclass(frozen=True)
class Recorded:
    """A filmed episode as goalreel has it: actions, and states (steps + 1, 2) float64."""

    seed: int
    actions: list[int]
    states: np.ndarray


def recorded_episodes(results: Path, count: int) -> list[Recorded]:
    """Return `count` of a run's filmed episodes, evenly spread over the film."""
    import goalreel

    episodes = []
    for path in sorted((results / "trajectories").glob("*.npz")):
        shard = goalreel.read_trajectories(path)
        for index in range(len(shard)):
            states, actions, _ = shard.episode(index)
            seed = int(shard.episodes.seed[index])
            episodes.append(Recorded(seed, actions.tolist(), states))
    chosen = np.linspace(0, len(episodes) - 1, min(count, len(episodes))).astype(int)
    return [episodes[index] for index in chosen]


# The film, from nothing to MP4.


def film_with_goalreel(folder: Path, cache: Path, reaches: int, cores: int) -> Sample:
    """Film with the whole workflow, Snakemake's start included, in the empty `folder`.

    cache: the user's cache folder. If it is empty the atlas is drawn anew, else taken from it;
    MismatchError is raised if the run did otherwise, RuntimeError, with what Snakemake said, if it
    fails.
    """
    folder.mkdir(parents=True)
    cache.mkdir(parents=True, exist_ok=True)
    before = _atlases(cache)
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
    command += ["--directory", str(folder), "-j", str(cores)]
    command += ["--config", f"reaches={reaches}", f"env={ENV}", "results=results"]
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    start = time.perf_counter()
    answer = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    seconds = time.perf_counter() - start
    if answer.returncode:
        raise RuntimeError(f"snakemake ended with status {answer.returncode}:\n{answer.stdout}")

    after = _atlases(cache)
    if not after or (before and after != before):
        raise MismatchError(f"{cache}: the run did not keep or did not take the atlas")
    episodes = recorded_episodes(folder / "results", reaches)
    frames = sum(len(episode.states) for episode in episodes)
    written = _frames_in(folder / "results" / "film.mp4")
    if len(episodes) != reaches or written != frames:
        raise MismatchError(f"the film shows {written} frames of {len(episodes)} episodes")
    return Sample(frames, seconds, f"{reaches:,} episodes")


def film_with_record_video(episodes: list[Recorded], folder: Path) -> Sample:
    """Film with Gymnasium's RecordVideo at its defaults, an MP4 for each episode.

    An episode that is not timed goes first, so that imports and pygame's start are paid for.
    """
    import gymnasium

    env = gymnasium.wrappers.RecordVideo(
        gymnasium.make(ENV, render_mode="rgb_array"),
        str(folder),
        episode_trigger=lambda _: True,
    )
    _play(env, episodes[0])
    env.stop_recording()
    start = time.perf_counter()
    played = [_play(env, episode) for episode in episodes]  # a reset saves the one before it
    env.stop_recording()
    seconds = time.perf_counter() - start
    env.close()
    films = [folder / f"rl-video-episode-{number + 1}.mp4" for number in range(len(episodes))]
    return _film_sample(episodes, played, films, seconds)


def film_with_image_clips(episodes: list[Recorded], folder: Path) -> Sample:
    """Film with moviepy: one ImageClip per frame, concatenated, an MP4 for each episode.

    An MP4 for all of them would hold every frame in memory at once. The first episode is filmed
    twice, and timed the second time, as for RecordVideo.
    """
    import gymnasium
    from moviepy import ImageClip, concatenate_videoclips

    env = gymnasium.make(ENV, render_mode="rgb_array")

    def film(episode: Recorded, path: Path) -> list:
        frames = []
        states = _play(env, episode, lambda: frames.append(env.render()))
        clips = [ImageClip(frame, duration=1 / FPS) for frame in frames]
        concatenate_videoclips(clips).write_videofile(str(path), fps=FPS, audio=False, logger=None)
        return states

    folder.mkdir(parents=True)
    films = [folder / f"{number}.mp4" for number in range(len(episodes))]
    film(episodes[0], films[0])
    start = time.perf_counter()
    played = [film(episode, path) for episode, path in zip(episodes, films, strict=True)]
    seconds = time.perf_counter() - start
    env.close()
    return _film_sample(episodes, played, films, seconds)


def _play(env, episode: Recorded, show: Callable[[], None] = lambda: None) -> list:
    """Play a recorded episode, calling `show` at each state; return the states, (p, v) each."""
    env.reset(seed=episode.seed)
    show()
    states = [env.unwrapped.state]
    for action in episode.actions:
        env.step(action)
        show()
        states.append(env.unwrapped.state)
    return states


def _film_sample(
    episodes: list[Recorded], played: list[list], films: list[Path], seconds: float
) -> Sample:
    """Check the states bit for bit and the films' lengths, and return the sample.

    moviepy sums the frames' durations and cuts the sum down to whole frames, so that rounding
    may cost a film its last frame. It is counted as lost; anything else is a MismatchError.
    """
    lost = 0
    for episode, states, film in zip(episodes, played, films, strict=True):
        if not np.array_equal(np.array(states, np.float64), episode.states):
            raise MismatchError(f"seed {episode.seed}: played otherwise than recorded")
        missing = len(states) - _frames_in(film)
        if missing not in (0, 1):
            raise MismatchError(f"{film}: {missing} of {len(states)} frames are missing")
        lost += missing
    frames = sum(map(len, played))
    return Sample(frames, seconds, f"{len(episodes):,} episodes", lost)


def _frames_in(film: Path) -> int:
    import imageio_ffmpeg

    return imageio_ffmpeg.count_frames_and_secs(str(film))[0]


def _atlases(cache: Path) -> set[tuple[str, int]]:
    """Return the names and times of what goalreel keeps in the user's cache folder."""
    return {(path.name, path.stat().st_mtime_ns) for path in (cache / "goalreel").glob("atlas*")}


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
    from goalreel.physics import ENVIRONMENTS
    from goalreel.policies import make_policy

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
    from goalreel.physics import reset

    _, seconds = _median_pass(lambda: reset(seeds))
    return Sample(len(seeds), seconds, f"{len(seeds):,} episodes")


def seed_with_default_rng(seeds: np.ndarray) -> Sample:
    """Seed one episode after the other, as Gymnasium does, and compare the first positions."""
    from goalreel.physics import reset

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
