"""Mountain Car as a network sees it: goalreel's atlas against Gymnasium's frames in wrappers.

Both give stacks of four gray 84x84 frames to a random policy. Gymnasium uses `render`
(AddRenderObservation), Stable-Baselines3's WarpFrame and FrameStackObservation. goalreel looks
frames up, as target `train` does with `train={pixels: true}`. tests/training compares them with
Gymnasium's pixel for pixel. The table is pixels.csv and pixels.md.

    python -m benchmarks.training.pixels            two minutes
    python -m benchmarks.training.pixels --runs 1   a first try
"""

from collections.abc import Callable

import gymnasium
import numpy as np
from gymnasium.wrappers import AddRenderObservation, FrameStackObservation

from benchmarks.harness import ENV, cpu_of, medians, parser, rate_rows, write_table

PACKAGES = ("numpy", "gymnasium", "stable-baselines3", "opencv-python-headless", "pillow")
HEADER = ("step", "FPS", "ratio", "range")
_SECONDS = 0.7  # of CPU time, for a sample
FRAMES, NUM_ENVS = 4, (1, 16, 64)


def main(argv: list[str] | None = None) -> None:
    """Measure, print and write the table."""
    import cv2

    options = parser(__doc__, runs=21).parse_args(argv)
    cv2.setNumThreads(1)
    prepared = cpu_of(prepare)[1]
    contenders = {"Gymnasium's render in wrappers": gymnasium_play()}
    for count in NUM_ENVS:
        contenders[f"goalreel's atlas, {count} environment{'s' * (count > 1)}"] = atlas_play(count)
    rows = rate_rows({"an action each frame": contenders}, options.runs, _SECONDS)
    notes = [
        f"{medians(options.runs)}. FPS counts frames of the environment per second of CPU time, "
        "one thread each, random actions and the stacking included. range: the quartiles of the "
        "ratios of all runs.",
        f"All frames were rendered and resized before, in {prepared:.2g} s of CPU time. A training "
        "does so when it first sees a frame.",
    ]
    write_table(options.output / "pixels", HEADER, rows, notes, packages=PACKAGES)


def prepare() -> None:
    """Render and resize all frames of the atlas."""
    from goalreel.rendering.warped import warped_frames

    frames = warped_frames(ENV, "pillow")
    for positions in np.array_split(np.linspace(-1.2, 0.6, 200_000), 200):
        frames.observe(positions)


def gymnasium_play() -> Callable[[], int]:
    """Return a function that takes ten random actions, and resets when an episode ends."""
    from stable_baselines3.common.atari_wrappers import WarpFrame

    env = AddRenderObservation(gymnasium.make(ENV, render_mode="rgb_array"))
    env = FrameStackObservation(WarpFrame(env), FRAMES)
    rng = np.random.default_rng(0)
    env.reset(seed=0)

    def run() -> int:
        for action in rng.integers(3, size=10).tolist():
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return 10

    return run


def atlas_play(count: int) -> Callable[[], int]:
    """Return a function that takes ten random actions in each of goalreel's environments."""
    from goalreel.training.envs import StackedFrames, episode_seeds
    from goalreel.training.mountain_car_envs import CarPixelEnvs

    seeds = [episode_seeds(0, index) for index in range(count)]
    envs, rng = StackedFrames(CarPixelEnvs(1, seeds), FRAMES), np.random.default_rng(0)

    def run() -> int:
        for actions in rng.integers(3, size=(10, count)):
            envs.step(actions)
        return 10 * count

    return run


if __name__ == "__main__":
    main()
