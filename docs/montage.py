"""Make docs/images/films.webp, the moving image of README.md: seven films side by side.

    python docs/montage.py      in an environment with envs/locks/test.txt

This file is also the policy of five of the films: goalreel calls make_policy for each episode.
"""

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium
import imageio_ffmpeg
import numpy as np
from gymnasium.envs.box2d import bipedal_walker, lunar_lander
from minigrid.utils.baby_ai_bot import BabyAIBot

ROOT, GRID = Path(__file__).parents[1], "minigrid:BabyAI-KeyCorridorS4R3-v0"
HERE = f"policy={__file__}"
PONG = "policy={name: trained, file: examples/pong_policy.npz}"
TRACK = "env_kwargs={camera_name: track}"
# Place and size in the image, seconds to skip, and options of each film. The first is a swarm.
FILMS = (
    ("0_0", "278:184", 0, "policy={epsilon: 0.3}", "reaches=1000"),
    ("281_0", "278:184", 0, "env=LunarLander-v3", HERE, "seeds=1-2"),
    ("562_0", "278:184", 1, "env=CarRacing-v3", HERE, "seeds=[3]", "max_episode_steps=460"),
    (
        "0_187",
        "148:194",
        5,
        "env=ALE/Pong-v5",
        PONG,
        "seeds=0-1",
        "max_episode_steps=900",
    ),
    ("151_187", "194:194", 0, f"env={GRID}", HERE, "seeds=0-1"),
    (
        "348_187",
        "194:194",
        1,
        "env=HalfCheetah-v5",
        HERE,
        "seeds=1-2",
        "max_episode_steps=190",
        TRACK,
    ),
    ("545_187", "295:194", 1, "env=BipedalWalker-v3", HERE, "seeds=[0]", "max_episode_steps=500"),
)
PLAIN = "overlay={title_card: 0, caption: ''}", "encode={encoder: x264, quality: best}"
GAIT = np.array([[0.8, 1.4, 0.8, 0.7, 0.8, 1.2], [2.2, -2.7, 0.6, -1.7, -1.5, -2.3]])


def make_policy(env_id, seed):
    """Return a hand-made policy for one episode."""
    env, steps, actions = gymnasium.make(env_id), itertools.count(), [None]
    env.reset(seed=seed)
    walker = bipedal_walker.BipedalWalkerHeuristics()
    planner = BabyAIBot(env.unwrapped) if env_id == GRID else None

    def plan(_):  # plans in a separate environment
        actions.append(int(planner.replan(actions[-1])))
        env.step(actions[-1])
        return actions[-1]

    def drive(seen):  # steers toward the middle of the road, whose pixels are not green
        road = seen[58:70, :, 1].astype(int) - seen[58:70, :, 0] < 40
        turn = (road * np.arange(-48, 48)).sum() / max(road.sum(), 1) / 20
        is_fast = (seen[84:94, 13, 0] > 100).sum() >= 3  # by the bar at the bottom
        return np.float32([np.clip(turn, -1, 1), 0 if is_fast else 0.25, 0.15 * is_fast])

    return {
        GRID: plan,
        "LunarLander-v3": lambda seen: lunar_lander.heuristic(env, seen),
        "CarRacing-v3": drive,
        "HalfCheetah-v5": lambda _: (np.sin(1.14 * next(steps) + GAIT[1]) * GAIT[0]).clip(-1, 1),
        "BipedalWalker-v3": walker.step_heuristic,
    }[env_id]


if __name__ == "__main__":
    inputs, parts = [], []
    with tempfile.TemporaryDirectory() as folder:
        for i, (_, size, skipped, *options) in enumerate(FILMS):
            film = f"{folder}/{i}/{'film' if i else 'swarm'}.mp4"
            options += [f"results={folder}/{i}", *PLAIN]
            snakemake = sys.executable, "-m", "snakemake", film, "--config", *options
            subprocess.run(snakemake, cwd=ROOT, check=True)
            inputs += ["-ss", str(skipped), "-i", film]
            parts.append(f"[{i}]fps=15,scale={size},format=bgra,tpad=0:-1:add:clone[f{i}];")
        places = "|".join(place for place, *_ in FILMS)
        joined = "".join(f"[f{i}]" for i in range(len(FILMS)))
        joined += f"xstack=inputs={len(FILMS)}:layout={places}:fill=gray,trim=end_frame=120"
        webp = "-c:v", "libwebp_anim", "-quality", "50", "-loop", "0", "docs/images/films.webp"
        ffmpeg = imageio_ffmpeg.get_ffmpeg_exe(), "-y", *inputs, "-filter_complex"
        subprocess.run([*ffmpeg, "".join(parts) + joined, *webp], cwd=ROOT, check=True)
