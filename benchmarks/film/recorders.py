"""Time, memory and lost frames of the recorders that a user may choose from.

The table films ten episodes of CartPole-v1 with a rule that balances the pole to the limit of 500
steps, 5,010 frames, each recorder at its own defaults. Each row is a process of its own, frames are
counted in its files, and its memory is that beyond the memory before the first episode.

    python -m benchmarks.film.recorders
    python -m benchmarks.film.recorders --rows goalreel.RecordVideo --runs 1

Name further interpreters for packages that cannot be installed side by side. A row runs in the
first interpreter that can import its packages, and is left out if there is none:

    python3 -m venv peers && peers/bin/pip install gymnasium moviepy stable-baselines3 rl_zoo3 \
        torchrl envpool pygame-ce av
    python -m benchmarks.film.recorders --pythons peers/bin/python .venv-lerobot/bin/python
"""

import contextlib
import importlib
import importlib.metadata
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.harness import (
    medians,
    parser,
    peak_bytes,
    row_process,
    run_workflow,
    take_turns,
    write_table,
)

CART, EPISODES, STEPS, NUM_ENVS = "CartPole-v1", 10, 500, 2
FRAMES = EPISODES * (STEPS + 1)
HEADER = ("recorder", "version", "seconds", "frames/s", "frames of 5,010", "memory, MiB")
_start: dict[str, float] = {}  # the clock and the memory when a row's time began


def act(observation) -> int:
    """Return the action that keeps the pole up, and the cart in the middle."""
    position, velocity, angle, turn = observation
    return int(3 * angle + turn + 0.1 * position + 0.3 * velocity > 0)


def record_video(folder: Path, module: str) -> None:
    """Film a single environment by a wrapper."""
    import gymnasium

    env = gymnasium.make(CART, render_mode="rgb_array")
    wrapper = importlib.import_module(module).RecordVideo
    env = wrapper(env, str(folder), episode_trigger=lambda _: True)
    for seed in range(EPISODES):
        observation, _ = env.reset(seed=seed)
        is_over = False
        while not is_over:
            observation, _, terminated, truncated, _ = env.step(act(observation))
            is_over = terminated or truncated
    env.close()


def play_vector(envs) -> None:
    """Play two sub-environments side by side, five episodes each."""
    import numpy as np

    observations, _ = envs.reset(seed=list(range(NUM_ENVS)))
    for _ in range(EPISODES // NUM_ENVS * (STEPS + 1) - 1):  # the next step resets
        observations, *_ = envs.step(np.array([act(o) for o in observations]))
    envs.close()


def vector_record_video(folder: Path, module: str) -> None:
    """Film by a vector wrapper.

    Gymnasium makes one video of both sub-environments, goalreel a video of each episode.
    """
    import gymnasium

    wrapper = importlib.import_module(module).RecordVideo
    envs = gymnasium.make_vec(CART, NUM_ENVS, vectorization_mode="sync", render_mode="rgb_array")
    play_vector(wrapper(envs, str(folder), episode_trigger=lambda _: True))


def vec_video_recorder(folder: Path) -> None:
    """Film by Stable-Baselines3's wrapper, which ends a video after some steps."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecVideoRecorder

    venv, length = make_vec_env(CART, 1, seed=0), EPISODES * STEPS
    venv = VecVideoRecorder(venv, str(folder), lambda step: step == 0, video_length=length)
    observations = venv.reset()
    for _ in range(length):
        observations, *_ = venv.step([act(observations[0])])
    venv.close()


def rl_zoo(folder: Path) -> None:
    """Film by RL Zoo's command a PPO model whose network acts like the rule."""
    import torch
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", CART, policy_kwargs={"net_arch": []}, device="cpu")
    with torch.no_grad():
        for parameter in model.policy.action_net.parameters():
            parameter.zero_()
        model.policy.action_net.weight[1] = torch.tensor([0.1, 0.3, 3.0, 1.0])
    saved = folder / "logs" / "ppo" / f"{CART}_1"
    (saved / CART).mkdir(parents=True)
    model.save(saved / f"{CART}.zip")
    config = "!!python/object/apply:collections.OrderedDict\n- []\n"
    (saved / CART / "config.yml").write_text(config, encoding="utf-8")
    command = [sys.executable, "-m", "rl_zoo3.record_video", "--algo", "ppo", "--env", CART]
    command += ["-f", str(folder / "logs"), "-o", str(folder), "-n", str(EPISODES * STEPS)]
    start_clock()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def rlrender(folder: Path) -> None:
    """Film by TorchRL's renderer, which its command also calls."""
    import torch
    from torchrl.envs import GymEnv
    from torchrl.render import RenderConfig, render_policy

    def policy(data):
        data["action"] = torch.nn.functional.one_hot(torch.tensor(act(data["observation"])), 2)
        return data

    config = RenderConfig(
        ckpt=str(folder / "none.pt"), policy=lambda *_: policy, num_trajs=EPISODES, max_steps=STEPS,
        env=lambda *_: GymEnv(CART, render_mode="rgb_array"),
        out=str(folder / "film.mp4"), seed=0, auto_load_policy=False,
        render_backend="env", camera_layout="separate",
    )  # fmt: skip
    torch.save({}, folder / "none.pt")
    render_policy(config)


def env_pool(folder: Path) -> None:
    """Film by EnvPool's render and a loop around ffmpeg, as EnvPool has no recorder."""
    import envpool
    import imageio_ffmpeg
    import numpy as np

    envs = envpool.make(CART, "gymnasium", num_envs=1, num_threads=1, render_mode="rgb_array")
    observations, first = envs.reset()[0], np.array([0], np.int32)
    frame = envs.render(env_ids=first)[0]
    size = frame.shape[1], frame.shape[0]
    writer = imageio_ffmpeg.write_frames(str(folder / "film.mp4"), size, fps=50)
    writer.send(None)
    for _ in range(FRAMES - 1):
        writer.send(np.ascontiguousarray(frame))
        observations = envs.step(np.array([act(observations[0])], np.int32))[0]
        frame = envs.render(env_ids=first)[0]
    writer.send(np.ascontiguousarray(frame))
    writer.close()


def lerobot(folder: Path) -> None:
    """Add frames to LeRobot's dataset, which writes them to PNG files first."""
    import gymnasium
    import numpy as np
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    env = gymnasium.make(CART, render_mode="rgb_array")
    features = {"observation.image": {"dtype": "video", "shape": (400, 600, 3),
                                      "names": ["height", "width", "channels"]},
                "action": {"dtype": "int64", "shape": (1,), "names": None}}  # fmt: skip
    data = LeRobotDataset.create("me/cart", fps=50, root=folder / "data", features=features)
    for seed in range(EPISODES):
        observation, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            action = act(observation)
            frame = {"observation.image": env.render(), "action": np.array([action])}
            data.add_frame(frame | {"task": CART})
            observation, _, terminated, truncated, _ = env.step(action)
            ended = terminated or truncated
        data.save_episode()
    data.finalize()


def goalreel_film(folder: Path) -> None:
    """Film by goalreel's workflow on two cores, with an empty user's cache."""
    text = "def act(obs):\n    return (obs @ [0.1, 0.3, 3.0, 1.0] > 0).astype(int)\n"
    (folder / "balance.py").write_text(text, encoding="utf-8")
    config = [f"env={CART}", f"episodes={EPISODES}", "policy={name: python, file: balance.py}"]
    run_workflow(folder, 2, [*config, "overlay={title_card: 0}", "shard_size=5"], folder / "cache")
    shutil.rmtree(folder / "results" / "segments")


# The work and packages of each row. The first package has the row's version.
_GYMNASIUM, _OURS = ("gymnasium", "moviepy"), ("gymnasium", "imageio_ffmpeg", "pygame")
ROWS = {
    "gymnasium.wrappers.RecordVideo": (
        partial(record_video, module="gymnasium.wrappers"),
        _GYMNASIUM,
    ),
    "gymnasium.wrappers.vector.RecordVideo": (
        partial(vector_record_video, module="gymnasium.wrappers.vector"),
        _GYMNASIUM,
    ),
    "VecVideoRecorder": (vec_video_recorder, ("stable_baselines3", "moviepy")),
    "rl_zoo3.record_video": (rl_zoo, ("rl_zoo3", "moviepy")),
    "rlrender": (rlrender, ("torchrl", "gymnasium")),
    "EnvPool's render, and ffmpeg": (env_pool, ("envpool", "imageio_ffmpeg")),
    "LeRobotDataset.add_frame": (lerobot, ("lerobot",)),
    "goalreel.RecordVideo": (partial(record_video, module="goalreel"), _OURS),
    "goalreel.vector.RecordVideo": (partial(vector_record_video, module="goalreel.vector"), _OURS),
    "goalreel's workflow": (goalreel_film, ("snakemake", "imageio_ffmpeg")),
}


def start_clock() -> None:
    """Reset the counts of time and memory."""
    _start.update(wall=time.perf_counter(), memory=peak_bytes("VmRSS"))


def measure(name: str) -> dict:
    """Run a row in this process, and return its figures."""
    import resource

    record, packages = ROWS[name]
    for package in packages:
        with contextlib.suppress(ImportError):
            __import__(package)
    with tempfile.TemporaryDirectory(prefix="goalreel-recorders-") as place:
        folder = Path(place)
        start_clock()
        record(folder)
        seconds = time.perf_counter() - _start["wall"]
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        frames = sum(map(frames_of, sorted(folder.rglob("*.mp4"))))
    version = importlib.metadata.version(packages[0].replace("_", "-"))
    if name.startswith("goalreel"):
        import goalreel

        version = goalreel.__version__
    figures = {"seconds": seconds, "frames": frames, "version": version}
    return figures | {"memory": max(peak_bytes(), children) - _start["memory"]}


def frames_of(film: Path) -> int:
    """Return the number of frames in a file."""
    import av

    with av.open(str(film)) as container:
        return sum(1 for _ in container.decode(video=0))


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = parser(__doc__)
    options.add_argument("--pythons", nargs="*", default=[], help="further interpreters")
    options.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    options.add_argument("--row", choices=ROWS, help="measure this row here, and print JSON")
    chosen = options.parse_args(argv)
    if chosen.row:
        print(json.dumps(measure(chosen.row)))
        return
    pythons = {name: _python(name, [sys.executable, *chosen.pythons]) for name in chosen.rows}
    missing = [name for name, python in pythons.items() if not python]
    module = "benchmarks.film.recorders"
    contenders = {
        name: partial(row_process, module, name, python)
        for name, python in pythons.items()
        if python
    }
    write_recorders(chosen, take_turns(contenders, chosen.runs), missing)


def _python(name: str, pythons: list[str]) -> str | None:
    """Return the first interpreter that has the packages of a row."""
    program = "import " + ", ".join((*ROWS[name][1], "av"))
    for python in pythons:
        if not subprocess.run([python, "-c", program], capture_output=True).returncode:
            return str(Path(python).absolute())
    return None


def median(runs: list[dict], key: str) -> float:
    """Return the median of a figure."""
    return statistics.median(run[key] for run in runs)


def write_recorders(options, found: dict[str, list[dict]], missing: list[str]) -> None:
    """Write the table of all recorders."""
    rows = []
    for name, runs in found.items():
        seconds, frames = median(runs, "seconds"), runs[0]["frames"]
        cells = name, runs[0]["version"], f"{seconds:.1f}", f"{frames / seconds:,.0f}"
        rows.append((*cells, f"{frames:,}", f"{median(runs, 'memory') / 2**20:,.0f}"))
    notes = [
        f"{medians(options.runs)}. Ten episodes of {CART}, of {STEPS} steps each. Memory is that "
        "beyond the memory before the first episode, or that of the largest child process if it "
        "is more. Vector recorders film two sub-environments.",
        *([f"Not installed: {', '.join(missing)}."] if missing else []),
    ]
    if rows:
        write_table(options.output / "recorders", HEADER, rows, notes, 2)


if __name__ == "__main__":
    main()
