"""Episodes of goalreel, replayed by the peers in Gymnasium's environments, each step compared."""

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness import MismatchError

WARM_UP = 5  # steps of a first episode that is not timed


@dataclass(frozen=True)
class Film:
    """An environment, and the number of episodes to film."""

    id: str  # as in `gymnasium.make`, with the module that registers it if that is not Gymnasium's
    episodes: int
    peer_episodes: int  # of them, played by the peers
    max_episode_steps: int | None = None  # of an episode; None for the environment's own limit
    rule: str | None = None  # of balance.py, an expression of `obs`, or None for random actions
    fresh: bool = False  # each episode needs a new instance: a used one plays differently

    @property
    def name(self) -> str:
        """The id without its module."""
        return self.id.rpartition(":")[2]

    def policy(self, folder: Path) -> dict:
        """Return the configuration's `policy`, and write its file into the folder."""
        if not self.rule:
            return {"name": "random"}
        path = folder / "balance.py"
        text = "import numpy as np\n\n\ndef act(obs):\n"
        path.write_text(f"{text}    return ({self.rule}).astype(np.int64)\n", encoding="utf-8")
        return {"name": "python", "file": str(path), "function": "act"}


BALANCE = "obs[..., 2] + 0.5 * obs[..., 3] > 0"
FILMS = (
    Film("CartPole-v1", 100, 5, rule=BALANCE),
    Film("Acrobot-v1", 300, 5),
    Film("Pendulum-v1", 300, 10),
    Film("LunarLander-v3", 300, 20),
    Film("BipedalWalker-v3", 100, 10, max_episode_steps=100, fresh=True),
    Film("ALE/Breakout-v5", 300, 20),
    Film("ALE/Pong-v5", 100, 10),
    Film("minigrid:MiniGrid-DoorKey-8x8-v0", 1000, 20, max_episode_steps=100),
    Film("FrozenLake-v1", 1000, 100),
    Film("CarRacing-v3", 20, 5, max_episode_steps=100),
    Film("HalfCheetah-v5", 20, 5, max_episode_steps=30),
)


@dataclass(frozen=True)
class Episode:
    """An episode that goalreel played."""

    seed: int
    states: np.ndarray  # (steps + 1, ...) float64
    actions: np.ndarray  # (steps, ...)
    rewards: np.ndarray  # (steps,) float64


@dataclass(frozen=True)
class Taken:
    """A contender's frames, wall-clock and CPU seconds, and frames that it did not write."""

    frames: int
    seconds: float
    cpu: float = 0.0
    lost: int = 0


def recorded_episodes(results: Path, count: int) -> list[Episode]:
    """Return `count` of a run's episodes, evenly spread over the film."""
    import goalreel

    episodes = []
    for path in sorted((results / "trajectories").glob("*.npz")):
        shard = goalreel.read_trajectories(path)
        for index, seed in enumerate(shard.episodes.seed.tolist()):
            episodes.append(Episode(seed, *shard.episode(index)))
    chosen = np.linspace(0, len(episodes) - 1, min(count, len(episodes))).astype(int)
    return [episodes[index] for index in chosen]


def make(film: Film, **kwargs):
    """Return Gymnasium's environment."""
    import gymnasium

    with contextlib.suppress(ImportError):
        import ale_py

        gymnasium.register_envs(ale_py)
    steps = film.max_episode_steps
    return gymnasium.make(film.id, render_mode="rgb_array", max_episode_steps=steps, **kwargs)


def replayed(film: Film, episodes: Sequence[Episode]):
    """Return Gymnasium's environment, which replays the episodes and ignores the given actions.

    A reset after the end of an episode starts the next one, any other reset the same one. A step
    raises MismatchError if its reward, its end or a recorded state of Mountain Car differs.
    """
    import gymnasium

    class Replay(gymnasium.Wrapper):
        def __init__(self, env):
            super().__init__(env)
            self.number = self.step_index = 0

        def reset(self, **_):
            if film.fresh:
                self.env.close()  # PyBullet has one simulation for all instances
                self.env = make(film)
            self.step_index = 0
            return self.env.reset(seed=episodes[self.number].seed)

        def step(self, _):
            episode, index = episodes[self.number], self.step_index
            obs, reward, terminated, truncated, info = self.env.step(episode.actions[index])
            ended, state = terminated or truncated, getattr(self.env.unwrapped, "state", None)
            same = ended == (index == len(episode.rewards) - 1) and reward == episode.rewards[index]
            if film.id.startswith("MountainCar"):
                same = same and np.array_equal(state, episode.states[index + 1])
            if not same:
                raise MismatchError(f"{film.id}: seed {episode.seed}, step {index}")
            self.step_index += 1
            self.number = (self.number + ended) % len(episodes)
            return obs, float(reward), terminated, truncated, info

    return Replay(make(film))


def play(env, episodes: int, show: Callable = lambda: None, steps: int = sys.maxsize) -> int:
    """Play some episodes, or only their first steps, and return the number of frames."""
    frames = 0
    for _ in range(episodes):
        env.reset()
        show()
        ended, step = False, 0
        while not ended and step < steps:
            _, _, terminated, truncated, _ = env.step(0)
            show()
            ended, step = terminated or truncated, step + 1
        frames += step + 1
    return frames


def step_and_render(film: Film, episodes: Sequence[Episode], _: Path) -> Taken:
    """Step and render only."""
    env = replayed(film, episodes)
    play(env, 1, env.render, WARM_UP)
    start, cpu = time.perf_counter(), time.process_time()
    frames = play(env, len(episodes), env.render)
    return Taken(frames, time.perf_counter() - start, time.process_time() - cpu)


def record_video(film: Film, episodes: Sequence[Episode], folder: Path) -> Taken:
    """Film by Gymnasium's RecordVideo at its defaults, an MP4 for each episode."""
    import gymnasium

    env = replayed(film, episodes)
    env = gymnasium.wrappers.RecordVideo(env, str(folder), episode_trigger=lambda _: True)
    with contextlib.redirect_stdout(None):
        play(env, 1, steps=WARM_UP)  # imports, and starts pygame
        env.stop_recording()
        start = time.perf_counter()
        frames = play(env, len(episodes))  # a reset saves the previous episode
        env.stop_recording()
        seconds = time.perf_counter() - start
    env.close()
    films = [folder / f"rl-video-episode-{number + 1}.mp4" for number in range(len(episodes))]
    return Taken(frames, seconds, lost=lost_frames(films, frames))


def lost_frames(films: Sequence[Path], frames: int) -> int:
    """Return the number of lost frames. Raises MismatchError if there are more than expected.

    moviepy rounds the sum of the frames' durations down, which may cost a film its last frame.
    """
    import imageio_ffmpeg

    lost = frames - sum(imageio_ffmpeg.count_frames_and_secs(str(film))[0] for film in films)
    if not 0 <= lost <= len(films):
        raise MismatchError(f"{films[0].parent}: {lost} of {frames} frames are missing")
    return lost
