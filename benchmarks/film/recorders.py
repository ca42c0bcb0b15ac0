"""Who records episodes, and what each takes and loses: the recorders that a user may choose from.

Each films ten episodes of CartPole-v1 by the same rule, which balances the pole to the limit of 500
steps, so that there are 5,010 frames to film; in a process of its own, at its own defaults. Frames
are counted in the files that it leaves. Memory is what the process holds at most beyond what it
held before the first episode. Rows take turns; a row runs in the first interpreter that can import
what it takes, and is left out where none can. Printed, and written to recorders.csv and
recorders.md.

    python -m pip install -r envs/locks/bench.txt
    python -m benchmarks.film.recorders

Other interpreters may be named, for what does not install side by side:

    python3 -m venv peers && peers/bin/pip install gymnasium moviepy stable-baselines3 rl_zoo3 \
        torchrl envpool pygame-ce av
    python -m benchmarks.film.recorders --pythons peers/bin/python .venv-lerobot/bin/python
"""

import argparse
import contextlib
import importlib.metadata
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.sample import RESULTS, ROOT

ENV, EPISODES, STEPS, LANES = "CartPole-v1", 10, 500, 2
FRAMES = EPISODES * (STEPS + 1)
HEADER = ("recorder", "version", "seconds", "frames/s", "frames of 5,010", "memory, MiB")


def act(observation) -> int:
    """Return the action that keeps the pole up, and the cart in the middle."""
    position, velocity, angle, turn = observation
    return int(3 * angle + turn + 0.1 * position + 0.3 * velocity > 0)


def play(env, show: Callable = lambda: None) -> None:
    """Play all episodes."""
    for seed in range(EPISODES):
        observation, _ = env.reset(seed=seed)
        show()
        over = False
        while not over:
            observation, _, *ends, _ = env.step(act(observation))
            show()
            over = any(ends)
    env.close()


def gymnasium_record_video(folder: Path) -> None:
    """Gymnasium's wrapper of a single environment."""
    import gymnasium

    env = gymnasium.make(ENV, render_mode="rgb_array")
    play(gymnasium.wrappers.RecordVideo(env, str(folder), episode_trigger=lambda _: True))


def play_lanes(envs) -> None:
    """Play two sub-environments side by side, five episodes each."""
    import numpy as np

    observations, _ = envs.reset(seed=list(range(LANES)))
    for _ in range(EPISODES // LANES * (STEPS + 1) - 1):  # the next step resets
        observations, *_ = envs.step(np.array([act(o) for o in observations]))
    envs.close()


def gymnasium_vector(folder: Path) -> None:
    """Gymnasium's wrapper of vector environments: one video of both sub-environments."""
    import gymnasium

    envs = gymnasium.make_vec(ENV, LANES, vectorization_mode="sync", render_mode="rgb_array")
    play_lanes(
        gymnasium.wrappers.vector.RecordVideo(envs, str(folder), episode_trigger=lambda _: True)
    )


def vec_video_recorder(folder: Path) -> None:
    """Stable-Baselines3's wrapper: a video of so many steps, whatever the episodes."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecVideoRecorder

    venv = make_vec_env(ENV, 1, seed=0)
    length = EPISODES * STEPS
    venv = VecVideoRecorder(venv, str(folder), lambda step: step == 0, video_length=length)
    observations = venv.reset()
    for _ in range(length):
        observations, *_ = venv.step([act(observations[0])])
    venv.close()


def rl_zoo(folder: Path) -> None:
    """RL Zoo's command, for a model that its own folder holds; it films by VecVideoRecorder."""
    saved = folder / "logs" / "ppo" / f"{ENV}_1"
    command = [sys.executable, "-m", "rl_zoo3.record_video", "--algo", "ppo", "--env", ENV]
    command += ["-f", str(folder / "logs"), "-o", str(folder), "-n", str(EPISODES * STEPS)]
    _model(saved / f"{ENV}.zip")
    (saved / ENV).mkdir(exist_ok=True)
    (saved / ENV / "config.yml").write_text("!!python/object/apply:collections.OrderedDict\n- []\n")
    started()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _model(path: Path) -> None:
    """Save a model of PPO whose network acts as the rule does."""
    import torch
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", ENV, policy_kwargs={"net_arch": []}, device="cpu")
    with torch.no_grad():
        for parameter in model.policy.action_net.parameters():
            parameter.zero_()
        model.policy.action_net.weight[1] = torch.tensor([0.1, 0.3, 3.0, 1.0])
    path.parent.mkdir(parents=True)
    model.save(path)


def rlrender(folder: Path) -> None:
    """TorchRL's renderer, which its command calls, too."""
    import torch
    from torchrl.envs import GymEnv
    from torchrl.render import RenderConfig, render_policy

    def policy(data):
        data["action"] = torch.nn.functional.one_hot(torch.tensor(act(data["observation"])), 2)
        return data

    config = RenderConfig(
        ckpt=str(folder / "none.pt"), policy=lambda *_: policy, num_trajs=EPISODES, max_steps=STEPS,
        env=lambda *_: GymEnv(ENV, render_mode="rgb_array"),
        out=str(folder / "film.mp4"), seed=0, auto_load_policy=False,
        render_backend="env", camera_layout="separate",
    )  # fmt: skip
    torch.save({}, folder / "none.pt")
    render_policy(config)


def env_pool(folder: Path) -> None:
    """EnvPool's render, and a loop around ffmpeg at its defaults: it has no recorder."""
    import envpool
    import imageio_ffmpeg
    import numpy as np

    envs = envpool.make(ENV, "gymnasium", num_envs=1, num_threads=1, render_mode="rgb_array")
    observations, _ = envs.reset()
    picture = envs.render(env_ids=np.array([0], np.int32))[0]
    size = picture.shape[1], picture.shape[0]
    writer = imageio_ffmpeg.write_frames(str(folder / "film.mp4"), size, fps=50)
    writer.send(None)
    for _ in range(FRAMES - 1):
        writer.send(np.ascontiguousarray(picture))
        observations = envs.step(np.array([act(observations[0])], np.int32))[0]
        picture = envs.render(env_ids=np.array([0], np.int32))[0]
    writer.send(np.ascontiguousarray(picture))
    writer.close()


def lerobot(folder: Path) -> None:
    """LeRobot's data set, to which a user adds frames; pictures go through PNG files."""
    import gymnasium
    import numpy as np
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    env = gymnasium.make(ENV, render_mode="rgb_array")
    features = {"observation.image": {"dtype": "video", "shape": (400, 600, 3),
                                      "names": ["height", "width", "channels"]},
                "action": {"dtype": "int64", "shape": (1,), "names": None}}  # fmt: skip
    data = LeRobotDataset.create("me/cart", fps=50, root=folder / "data", features=features)
    for seed in range(EPISODES):
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            action = act(observation)
            frame = {"observation.image": env.render(), "action": np.array([action])}
            data.add_frame(frame | {"task": ENV})
            observation, _, *ends, _ = env.step(action)
            over = any(ends)
        data.save_episode()
    data.finalize()


def goalreel_record_video(folder: Path) -> None:
    """Ours of a single environment."""
    import gymnasium

    import goalreel

    env = gymnasium.make(ENV, render_mode="rgb_array")
    play(goalreel.RecordVideo(env, str(folder), episode_trigger=lambda _: True))


def goalreel_vector(folder: Path) -> None:
    """Ours of vector environments: a video of each episode."""
    import gymnasium

    import goalreel

    envs = gymnasium.make_vec(ENV, LANES, vectorization_mode="sync", render_mode="rgb_array")
    play_lanes(goalreel.vector.RecordVideo(envs, str(folder), episode_trigger=lambda _: True))


def goalreel_film(folder: Path) -> None:
    """Our workflow on two cores, its user's cache empty."""
    (folder / "balance.py").write_text(
        "def act(obs):\n    return (obs @ [0.1, 0.3, 3.0, 1.0] > 0).astype(int)\n"
    )
    config = [f"env={ENV}", f"episodes={EPISODES}", "policy={name: file, file: balance.py}"]
    config += ["overlay={title_card: 0}", "shard_size=5"]
    command = [sys.executable, "-m", "snakemake", "-j", "2", "--snakefile", ROOT / "Snakefile"]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    started()
    subprocess.run(
        [*command, "--config", *config], cwd=folder, check=True, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    shutil.rmtree(folder / "results" / "segments")


# label: how it is measured, and the packages that it takes, the first of which has its version
ROWS = {
    "gymnasium.wrappers.RecordVideo": (gymnasium_record_video, ("gymnasium", "moviepy")),
    "gymnasium.wrappers.vector.RecordVideo": (gymnasium_vector, ("gymnasium", "moviepy")),
    "VecVideoRecorder": (vec_video_recorder, ("stable_baselines3", "moviepy")),
    "rl_zoo3.record_video": (rl_zoo, ("rl_zoo3", "moviepy")),
    "rlrender": (rlrender, ("torchrl", "gymnasium")),
    "EnvPool's render, and ffmpeg": (env_pool, ("envpool", "imageio_ffmpeg")),
    "LeRobotDataset.add_frame": (lerobot, ("lerobot",)),
    "goalreel.RecordVideo": (goalreel_record_video, ("gymnasium", "imageio_ffmpeg", "pygame")),
    "goalreel.vector.RecordVideo": (goalreel_vector, ("gymnasium", "imageio_ffmpeg", "pygame")),
    "goalreel's workflow": (goalreel_film, ("snakemake", "imageio_ffmpeg")),
}
_begun: list[tuple[float, int]] = []


def started() -> None:
    """Take the time from now on, in a row that prepares something."""
    _begun[:] = [(time.perf_counter(), _memory("VmRSS"))]


def measure(name: str) -> dict:
    """Run a row in this process; return its figures."""
    record, packages = ROWS[name]
    if name.startswith("LeRobot"):  # a program of ours has its package's name
        sys.path.remove(str(ROOT / "scripts"))
    for package in packages:
        with contextlib.suppress(ImportError):
            __import__(package)
    with tempfile.TemporaryDirectory(prefix="recorders-") as place:
        folder = Path(place)
        started()
        record(folder)
        seconds, before = time.perf_counter() - _begun[0][0], _begun[0][1]
        peak = max(_memory("VmHWM"), _children()) - before
        films = sorted(folder.rglob("*.mp4"))
        frames = sum(map(frames_of, films))
    version = importlib.metadata.version(packages[0].replace("_", "-"))
    if name.startswith("goalreel"):
        import goalreel

        version = goalreel.__version__
    return {"seconds": seconds, "peak": peak, "frames": frames, "version": version}


def frames_of(film: Path) -> int:
    """Return the number of frames in a file."""
    import av

    with av.open(str(film)) as container:
        return sum(1 for _ in container.decode(video=0))


def _memory(key: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{key}:\s*(\d+) kB", status)[1]) * 1024


def _children() -> int:
    """Return the most bytes that a child which has ended had held."""
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--pythons", nargs="*", default=[], help="further interpreters")
    options.add_argument("--runs", type=int, default=3, help="of which medians are told (3)")
    options.add_argument("--output", type=Path, default=RESULTS, help="folder for the tables")
    options.add_argument("--row", choices=ROWS, help="measure this one here, and print JSON")
    chosen = options.parse_args(argv)
    if chosen.row:
        print(json.dumps(measure(chosen.row)))
        return
    pythons = {name: _python(name, [sys.executable, *chosen.pythons]) for name in ROWS}
    found: dict[str, list[dict]] = {name: [] for name, python in pythons.items() if python}
    for run in range(chosen.runs):
        for name in found:
            command = [pythons[name], "-m", "benchmarks.film.recorders", "--row", name]
            answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            if answer.returncode:
                raise RuntimeError(f"{name}:\n{answer.stderr}")
            found[name].append(json.loads(answer.stdout.splitlines()[-1]))
            print(f"run {run + 1} of {chosen.runs}: {name}: {found[name][-1]}", file=sys.stderr)
    write(chosen.output, found, [name for name in ROWS if name not in found])


def _python(name: str, pythons: list[str]) -> str | None:
    """Return the first interpreter that has what a row takes."""
    program = "import " + ", ".join((*ROWS[name][1], "av"))
    for python in pythons:
        if not subprocess.run([python, "-c", program], capture_output=True).returncode:
            return str(Path(python).absolute())
    return None


def write(output: Path, found: dict[str, list[dict]], left_out: list[str]) -> None:
    """Print the table, and write it."""
    from benchmarks.table import available_cores, csv_text, describe_machine, markdown

    rows = []
    for name, runs in found.items():
        seconds, peak = (statistics.median(run[key] for run in runs) for key in ("seconds", "peak"))
        frames = runs[0]["frames"]
        cells = name, runs[0]["version"], f"{seconds:.1f}", f"{frames / seconds:,.0f}"
        rows.append((*cells, f"{frames:,}", f"{peak / 2**20:,.0f}"))
    machine = describe_machine(available_cores())
    runs = len(next(iter(found.values())))
    notes = [
        f"Medians of {runs} runs. Ten episodes of CartPole-v1, of 500 steps each; memory beyond "
        "what was held before the first, and that of the largest child process where it is more; "
        "vector recorders film two sub-environments.",
        *([f"Not installed: {', '.join(left_out)}."] if left_out else []),
        f"Machine: {machine}.",
    ]
    table = markdown(HEADER, rows, notes, 2)
    print(table)
    plain = [[re.sub(r"(?<=\d),(?=\d)", "", cell) for cell in row] for row in rows]
    (output / "recorders.csv").write_text(csv_text(HEADER, plain, machine), encoding="utf-8")
    (output / "recorders.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
