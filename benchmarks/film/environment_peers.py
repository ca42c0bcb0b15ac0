"""Who films an environment that Gymnasium draws, each on one core, replaying goalreel's episodes.

Each peer is a function that is called in a process of its own and returns what it took. All but
EnvPool, which seeds and plays its own episodes, play by `Replay`, which checks every reward.
"""

import contextlib
import ctypes
import ctypes.util
import itertools
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.sample import ROOT, MismatchError

_WARM_UP = 5  # steps of a first episode that is not timed
_LANES = 8  # of EnvPool's, side by side, so that what a call costs does not count
_COMPARED = 60  # frames of EnvPool's that are compared with Gymnasium's


@dataclass(frozen=True)
class Film:
    """An environment, and how much of it is filmed."""

    id: str  # as in `gymnasium.make`, of the module that registers it if that is not Gymnasium's
    episodes: int
    peer_episodes: int  # of them, played by the peers
    max_steps: int | None = None  # of an episode; None for the environment's own limit
    rule: str | None = None  # of balance.py: an expression of `obs`; None for random actions
    fresh: bool = False  # an instance keeps something of its episodes: a new one for each

    @property
    def name(self) -> str:
        """The environment's id without its module."""
        return self.id.rpartition(":")[2]


@dataclass(frozen=True)
class Episode:
    """An episode of goalreel's."""

    seed: int
    actions: np.ndarray  # (steps, ...)
    rewards: np.ndarray  # (steps,) float64


@dataclass(frozen=True)
class Taken:
    """What a peer took for its frames."""

    frames: int
    seconds: float  # wall-clock time
    cpu: float = 0.0  # CPU seconds of the process itself


def make(film: Film, **kwargs):
    """Return Gymnasium's environment."""
    import gymnasium

    with contextlib.suppress(ImportError):
        import ale_py

        gymnasium.register_envs(ale_py)
    steps = film.max_steps
    return gymnasium.make(film.id, render_mode="rgb_array", max_episode_steps=steps, **kwargs)


def replayed(film: Film, episodes: Sequence[Episode]):
    """Return Gymnasium's environment, which plays the episodes whatever it is told to play.

    Each reset after an episode's end starts the next one; any other, the same one again. A step
    raises MismatchError where it differs from goalreel's.
    """
    import gymnasium

    class Replay(gymnasium.Wrapper):
        observation_space = gymnasium.spaces.Box(0, 1, (1,))  # nobody acts, so nobody looks
        action_space = gymnasium.spaces.Discrete(2)

        def __init__(self, env):
            super().__init__(env)
            self.number = self.step_number = 0

        def reset(self, **_):
            if film.fresh:
                self.env = make(film)
            self.step_number = 0
            self.env.reset(seed=episodes[self.number].seed)
            return np.zeros(1, np.float32), {}

        def step(self, _):
            episode = episodes[self.number]
            _, reward, terminated, truncated, _ = self.env.step(episode.actions[self.step_number])
            over, last = terminated or truncated, self.step_number == len(episode.rewards) - 1
            if over != last or float(reward) != episode.rewards[self.step_number]:
                raise MismatchError(f"{film.id}: seed {episode.seed}, step {self.step_number}")
            self.step_number += 1
            self.number = (self.number + over) % len(episodes)
            return np.zeros(1, np.float32), float(reward), terminated, truncated, {}

    return Replay(make(film))


def step_and_render(film: Film, episodes: Sequence[Episode], _: Path) -> Taken:
    """Step and draw alone."""
    env = replayed(film, episodes)
    _play(env, 1, env.render, _WARM_UP)
    start, cpu = time.perf_counter(), time.process_time()
    frames = _play(env, len(episodes), env.render)
    return Taken(frames, time.perf_counter() - start, time.process_time() - cpu)


def record_video(film: Film, episodes: Sequence[Episode], folder: Path) -> Taken:
    """Film by Gymnasium's RecordVideo at its defaults, an MP4 for each episode."""
    import gymnasium

    env = replayed(film, episodes)
    env = gymnasium.wrappers.RecordVideo(env, str(folder), episode_trigger=lambda _: True)
    with contextlib.redirect_stdout(None):
        _play(env, 1, lambda: None, _WARM_UP)
        env.stop_recording()
        start = time.perf_counter()
        frames = _play(env, len(episodes), lambda: None)  # a reset saves the one before it
        env.stop_recording()
        seconds = time.perf_counter() - start
    env.close()
    return Taken(frames, seconds)


def _play(env, episodes: int, show: Callable, steps: int = sys.maxsize) -> int:
    """Play so many episodes, or the first steps of them; return the frames shown."""
    frames = 0
    for _ in range(episodes):
        env.reset()
        show()
        over, step = False, 0
        while not over and step < steps:
            _, _, terminated, truncated, _ = env.step(0)
            show()
            over, step = terminated or truncated, step + 1
        frames += step + 1
    return frames


def env_pool(film: Film, episodes: Sequence[Episode], folder: Path) -> Taken:
    """Film by EnvPool and x264's preset ultrafast, an MP4 for each of its lanes.

    It plays goalreel's actions, or the film's rule, in episodes of its own. Raises whatever EnvPool
    raises where it does not have or does not draw the environment.
    """
    import imageio_ffmpeg

    envs, observations = _env_pool(film, _LANES)
    lanes = np.arange(_LANES, dtype=np.int32)
    height, width = envs.render(env_ids=lanes).shape[1:3]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-f", "rawvideo"]
    command += ["-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", "30", "-i", "-"]
    command += ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-threads", "1"]
    folder.mkdir()
    encoders = [
        subprocess.Popen([*command, str(folder / f"{lane}.mp4")], stdin=subprocess.PIPE)
        for lane in lanes
    ]
    actions, frames = _actions(film, episodes), 0
    start = time.perf_counter()
    while len(batch := list(itertools.islice(actions, _LANES))) == _LANES:
        observations = envs.step(_batch(film, envs, batch, observations))[0]
        for encoder, picture in zip(encoders, envs.render(env_ids=lanes), strict=True):
            encoder.stdin.write(picture.data)
        frames += _LANES
    for encoder in encoders:
        encoder.stdin.close()
        if encoder.wait():
            raise RuntimeError("ffmpeg failed")
    return Taken(frames, time.perf_counter() - start)


def _env_pool(film: Film, lanes: int):
    """Return EnvPool's environments on one thread, and their first observations."""
    import envpool

    if "HalfCheetah" in film.id:  # EnvPool's MuJoCo takes OpenGL from what is loaded already
        ctypes.CDLL(ctypes.util.find_library("OSMesa"), mode=ctypes.RTLD_GLOBAL)
    name = film.name.removeprefix("ALE/")
    options = {"max_episode_steps": film.max_steps} if film.max_steps else {}
    if film.name != name:  # as few frames as can be before the first observation
        options |= {"noop_max": 1, "use_fire_reset": False}
    options |= {"num_envs": lanes, "num_threads": 1, "seed": 7, "render_mode": "rgb_array"}
    envs = envpool.make(name, "gymnasium", **options)
    return envs, envs.reset()[0]


def _actions(film: Film, episodes: Sequence[Episode]) -> Iterator[object]:
    return (action for episode in episodes for action in episode.actions)


def _batch(film: Film, envs, actions: list, observations: object) -> np.ndarray:
    """Return the next actions for EnvPool, (lanes, ...): those of the rule, or the given ones."""
    if film.rule:
        actions = eval(film.rule, {"obs": observations})  # noqa: S307 - our own rule
    return np.asarray(actions, envs.action_space.dtype)


# How Gymnasium is brought to the state of an EnvPool's step, from its observation and its info.
_STATES = {
    "CartPole-v1": lambda obs, info: obs,
    "Acrobot-v1": lambda obs, info: info["state"][0].astype(float),
    "HalfCheetah-v5": lambda obs, info: np.concatenate([info["x_position"], obs]),
}


def env_pool_pictures(film: Film, episodes: Sequence[Episode], folder: Path) -> Taken:
    """Leave EnvPool's pictures of some steps, and what Gymnasium needs to draw the same."""
    envs, observation = _env_pool(film, 1)
    pictures, states, actions = [], [], []
    for action in itertools.islice(_actions(film, episodes), _COMPARED):
        batch = _batch(film, envs, [action], observation)
        observation, _, terminated, truncated, info = envs.step(batch)
        if terminated[0] or truncated[0]:
            break
        actions.append(batch[0])
        pictures.append(envs.render()[0])
        states.append(_STATES[film.name](observation[0], info) if film.name in _STATES else 0)
    folder.mkdir(exist_ok=True)
    np.savez(folder / "pictures.npz", pictures=pictures, states=states, actions=actions)
    return Taken(len(pictures), 0)


def differing_pixels(film: Film, folder: Path) -> float | None:
    """Return the share of EnvPool's pixels that differ from Gymnasium's; None if unknown.

    It is known where Gymnasium can be brought to EnvPool's states, or plays the same episode: an
    Atari game without sticky actions, after one frame of waiting.
    """
    atari = film.name.startswith("ALE/")
    if not atari and film.name not in _STATES:
        return None
    with np.load(folder / "pictures.npz") as file:
        pictures, states, actions = file["pictures"], file["states"], file["actions"]
    env = make(film, **({"repeat_action_probability": 0.0} if atari else {}))
    env.reset(seed=0)
    if atari:
        env.unwrapped.ale.act(0)
    shares = []
    for picture, state, action in zip(pictures, states, actions, strict=False):
        if atari:
            env.step(action)
        elif "HalfCheetah" in film.id:
            env.unwrapped.set_state(state[:9], state[9:])
        else:
            env.unwrapped.state = state
        shares.append((picture != env.render()).any(axis=-1).mean())
    return float(np.mean(shares))


def rlrender(film: Film, episodes: Sequence[Episode], folder: Path, program: Path) -> Taken:
    """Film by torchrl's rlrender, an MP4 of all episodes; its start is not timed."""
    folder.mkdir()
    (folder / "episodes.pickle").write_bytes(pickle.dumps((film, episodes)))
    weights = folder / "weights.pt"  # it takes no policy without
    torch = "import sys, torch; torch.save({'model_state_dict': {}}, sys.argv[1])"
    subprocess.run([program.with_name("python"), "-c", torch, weights], check=True)
    command = [program, "--env", f"{__name__}:rlrender_env", "--policy", f"{__name__}:any_action"]
    command += ["--env-kwargs", json.dumps({"folder": str(folder)}), "--render-backend", "env"]
    command += ["--ckpt", weights, "--no-auto-load-policy", "--num-trajs", str(len(episodes))]
    longest = max(len(episode.rewards) for episode in episodes)
    command += ["--max-steps", str(longest), "--out", folder / "film.mp4"]
    answer = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    end = time.monotonic()
    if answer.returncode:
        raise RuntimeError(answer.stdout.strip().splitlines()[-1])
    told = json.loads((folder / "film.mp4.metadata.json").read_text(encoding="utf-8"))
    frames = sum(len(episode.rewards) + 1 for episode in episodes)
    if sum(played["num_frames"] for played in told["trajectories"]) != frames:
        raise MismatchError(f"rlrender: not the {frames} frames that were expected")
    return Taken(frames, end - float((folder / "started").read_text(encoding="utf-8")))


def rlrender_env(folder: str):
    """Return the environment that rlrender films, and leave the time."""
    film, episodes = pickle.loads(Path(folder, "episodes.pickle").read_bytes())  # noqa: S301
    env = replayed(film, episodes)
    Path(folder, "started").write_text(str(time.monotonic()), encoding="utf-8")
    return env


def any_action(env):
    """Return rlrender's policy: what it chooses is replaced."""
    return lambda batch: batch.set("action", env.action_spec.rand())
