"""Films from nothing to MP4: goalreel and its peers, each a function that returns a Sample.

What each of them played is checked against goalreel's recording, outside the time that is taken.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.sample import ENV, MismatchError, Sample
from benchmarks.timed_run import timed_run

FPS = 30


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


def film_with_goalreel(
    folder: Path, cache: Path, reaches: int, cores: int, config: tuple[str, ...] = ()
) -> Sample:
    """Film with the whole workflow, from Snakemake's start to its end, in the empty `folder`.

    cache: the user's cache folder. If it is empty, atlas and coded atlas are made anew, else taken
    from it. config: further options. The sample's frames are the episodes', without title cards.
    MismatchError is raised if the run did otherwise, RuntimeError, with what Snakemake said, if it
    fails.
    """
    folder.mkdir(parents=True)
    cache.mkdir(parents=True, exist_ok=True)
    before = _kept(cache)
    words = [f"reaches={reaches}", *config]
    seconds = timed_run(folder, cores, words, {"XDG_CACHE_HOME": str(cache)})
    after = _kept(cache)
    if not after or (before and after != before):
        raise MismatchError(f"{cache}: the run did not keep or did not take atlas and coded atlas")
    episodes = recorded_episodes(folder / "results", reaches)
    frames = sum(len(episode.states) for episode in episodes)
    written = _frames_in(folder / "results" / "film.mp4")
    cards, rest = divmod(written - frames, reaches)
    if len(episodes) != reaches or rest or cards < 0:
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


def _kept(cache: Path) -> set[tuple[str, int]]:
    """Return the names and times of what goalreel keeps in the user's cache folder."""
    return {(path.name, path.stat().st_mtime_ns) for path in (cache / "goalreel").glob("*.npz")}
