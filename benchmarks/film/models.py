"""Films of Stable-Baselines3 models: goalreel's workflow, and the model's own loop.

    goalreel            the whole `snakemake` on all cores, with title cards and captions
    RecordVideo         `model.predict` in Gymnasium's recorder at its defaults, one process
    VecVideoRecorder    `model.predict` in Stable-Baselines3's recorder, one environment

The models are trained for a moment, because the speed does not depend on what they learned. The
loops replay some of goalreel's episodes, and every return is compared. The table is models.csv and
models.md. It needs the group train-test of pyproject.toml and moviepy, and takes ten minutes.

    python -m benchmarks.film.models
"""

import contextlib
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.film.replays import Taken
from benchmarks.harness import (
    FILM_PACKAGES,
    TRAINING_PACKAGES,
    MismatchError,
    available_cores,
    digits,
    medians,
    parser,
    pinned,
    run_workflow,
    take_turns,
    write_table,
)

_ATARI = (
    {
        "stable_baselines3.common.atari_wrappers:AtariWrapper": {
            "terminal_on_life_loss": False,
            "clip_reward": False,
        }
    },
    {"gymnasium.wrappers:ReshapeObservation": {"shape": [84, 84]}},
    {"gymnasium.wrappers:FrameStackObservation": {"stack_size": 4, "padding_type": "zero"}},
)


@dataclass(frozen=True)
class Film:
    """A model, and how many of its episodes to film."""

    env: str
    algorithm: str
    policy: str
    steps: int  # of its training
    episodes: int
    peer_episodes: int  # of them, played by the loops
    max_episode_steps: int | None = None
    env_kwargs: dict = field(default_factory=dict)
    env_wrappers: Sequence = ()
    options: dict = field(default_factory=dict)  # of the algorithm

    def make(self, **kwargs):
        """Return the environment."""
        import ale_py
        import gymnasium

        from goalreel.environments.wrappers import apply_wrappers

        gymnasium.register_envs(ale_py)
        limit = {"max_episode_steps": self.max_episode_steps} if self.max_episode_steps else {}
        env = gymnasium.make(self.env, **self.env_kwargs, **limit, **kwargs)
        return apply_wrappers(env, self.env_wrappers)


_BOX2D = {"algorithm": "PPO", "policy": "MlpPolicy", "steps": 4096}
FILMS = (
    Film("CartPole-v1", "PPO", "MlpPolicy", 20_000, 100, 3),
    Film("LunarLander-v3", **_BOX2D, episodes=100, peer_episodes=10),
    Film("BipedalWalker-v3", **_BOX2D, episodes=100, peer_episodes=5, max_episode_steps=200),
    Film("HalfCheetah-v5", **_BOX2D, episodes=20, peer_episodes=3, max_episode_steps=100),
    Film(
        *("ALE/Breakout-v5", "DQN", "CnnPolicy", 0, 100, 5, 1000),
        *({"frameskip": 1}, _ATARI, {"buffer_size": 100}),
    ),
)


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parser(__doc__)
    names = [film.env for film in FILMS]
    options.add_argument("--envs", nargs="+", choices=names, default=names, metavar="ENV")
    chosen, rows = options.parse_args(argv), []
    os.environ.setdefault("MUJOCO_GL", "egl")  # without a screen, also in the loops
    for film in (film for film in FILMS if film.env in chosen.envs):
        place = tempfile.TemporaryDirectory(prefix="goalreel-models-")
        with place as folder, contextlib.chdir(folder):  # MuJoCo writes its log there
            rows.append(cells(film, measure(film, Path(folder), chosen.runs)))
        header = ["environment", "model", "episodes", "frames"]
        header += ["VecVideoRecorder, frames/s", "RecordVideo, frames/s", "of it the model, %"]
        header += [f"goalreel, {available_cores()} cores, frames/s", "to RecordVideo"]
        packages = tuple(dict.fromkeys((*FILM_PACKAGES[:4], *TRAINING_PACKAGES)))
        write_table(chosen.output / "models", header, rows, notes(chosen.runs), 2, packages)


def measure(film: Film, folder: Path, runs: int) -> dict[str, list]:
    """Let all contenders film a model in turns. Raises MismatchError."""
    import stable_baselines3
    import torch

    torch.set_num_threads(1)
    kind, path = getattr(stable_baselines3, film.algorithm), folder / "model.zip"
    model = kind(film.policy, film.make(), seed=0, device="cpu", **film.options)
    (model.learn(film.steps) if film.steps else model).save(path)
    numbers, table = itertools.count(), []

    def ours() -> tuple[float, int]:
        place = folder / str(next(numbers))
        words = [f"env={film.env}", f"policy={path}", f"episodes={film.episodes}"]
        words += ["render={scale: 1}", f"env_kwargs={json.dumps(film.env_kwargs)}"]
        words.append(f"env_wrappers={json.dumps(list(film.env_wrappers))}")
        if film.max_episode_steps:
            words.append(f"max_episode_steps={film.max_episode_steps}")
        seconds, _ = run_workflow(place, available_cores(), words, folder / "cache")
        episodes = pd.read_csv(place / "results" / "episodes.csv")
        table[:] = [episodes.rename(columns={"return": "return_"})]
        return seconds, int((table[0]["steps"] + 1).sum())

    def loop(play) -> Taken:
        with pinned(1):
            return play(film, model, table[0].head(film.peer_episodes), folder / str(next(numbers)))

    contenders = {"goalreel": ours, "RecordVideo": partial(loop, record_video)}
    contenders["VecVideoRecorder"] = partial(loop, vec_video_recorder)
    return take_turns(contenders, runs, rotate=False)


def record_video(film: Film, model, episodes: pd.DataFrame, folder: Path) -> Taken:
    """Film by Gymnasium's RecordVideo. Its CPU time is that of `predict`."""
    from gymnasium.wrappers import RecordVideo

    env, frames, predicting = film.make(render_mode="rgb_array"), 0, 0.0
    env = RecordVideo(env, str(folder), episode_trigger=lambda number: True)
    start = time.perf_counter()
    for row in episodes.itertuples():
        obs, total, over = env.reset(seed=row.seed)[0], 0.0, False
        frames += 1
        while not over:
            began = time.perf_counter()
            action = model.predict(obs, deterministic=True)[0]
            predicting += time.perf_counter() - began
            obs, reward, *ends, _ = env.step(action)
            total, over, frames = total + float(reward), any(ends), frames + 1
        # A used instance of BipedalWalker plays other episodes.
        if total != row.return_ and (row.Index == 0 or "Bipedal" not in film.env):
            raise MismatchError(f"{film.env}: the return of seed {row.seed} is {total}")
    env.close()
    return Taken(frames, time.perf_counter() - start, predicting)


def vec_video_recorder(film: Film, model, episodes: pd.DataFrame, folder: Path) -> Taken:
    """Film by Stable-Baselines3's VecVideoRecorder, in one video."""
    from stable_baselines3.common.vec_env import DummyVecEnv, VecVideoRecorder

    envs = DummyVecEnv([lambda: film.make(render_mode="rgb_array")])
    most, steps = 1 << 30, 0
    envs = VecVideoRecorder(envs, str(folder), lambda step: step == 0, video_length=most)
    start = time.perf_counter()
    for row in episodes.itertuples():
        envs.seed(row.seed)
        obs, over = envs.reset(), False
        while not over:
            obs, _, dones, _ = envs.step(model.predict(obs, deterministic=True)[0])
            over, steps = bool(dones[0]), steps + 1
    envs.close()
    return Taken(steps, time.perf_counter() - start)


def cells(film: Film, found: dict[str, list]) -> list[str]:
    """Return a model's cells."""
    seconds, frames = zip(*found["goalreel"], strict=True)
    ours = frames[0] / statistics.median(seconds)
    loops = {
        name: statistics.median(taken.frames / taken.seconds for taken in found[name])
        for name in ("VecVideoRecorder", "RecordVideo")
    }
    share = statistics.median(taken.cpu / taken.seconds for taken in found["RecordVideo"])
    return [
        *(film.env, f"{film.algorithm}, {film.policy}", str(film.episodes), str(frames[0])),
        *(*map(digits, loops.values()), f"{100 * share:.0f}", digits(ours)),
        f"{ours / loops['RecordVideo']:.2f}",
    ]


def notes(runs: int) -> list[str]:
    """Return the notes below the table."""
    limits = ", ".join(f"{f.env} {f.max_episode_steps}" for f in FILMS if f.max_episode_steps)
    played = ", ".join(f"{film.env} {film.peer_episodes}" for film in FILMS)
    return [
        f"{medians(runs)}, wall-clock time. Most steps of an episode: {limits}. The models trained "
        "for a moment: the speed does not depend on what they learned.",
        f"RecordVideo and VecVideoRecorder play the first episodes ({played}) on one core, at "
        "their defaults and without their start, with `model.predict`. The returns of RecordVideo "
        "were compared, but for BipedalWalker's used instances, which play other episodes. "
        "VecVideoRecorder writes one video of all episodes.",
        "goalreel: the whole workflow, title cards and captions included, frames not enlarged.",
    ]


if __name__ == "__main__":
    main()
