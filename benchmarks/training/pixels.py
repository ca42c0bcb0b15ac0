"""Mountain Car as a network sees it: goalreel's atlas against Gymnasium's frames in wrappers.

Both give stacks of four gray 84x84 frames, by OpenCV's area interpolation, to a random policy.
Gymnasium uses `render` (AddRenderObservation), Stable-Baselines3's WarpFrame and
FrameStackObservation; if an action lasts several frames, it renders only the last. goalreel looks
frames up. Before the clock starts, stacks of both are compared, pixel for pixel. The table is
pixels.csv and pixels.md.

    python -m benchmarks.training.pixels            two minutes
    python -m benchmarks.training.pixels --runs 1   a first try
"""

from collections.abc import Callable

import gymnasium
import numpy as np
from gymnasium.wrappers import AddRenderObservation, FrameStackObservation

from benchmarks.harness import ENV, MismatchError, cpu_of, medians, parser, rate_rows, write_table

PACKAGES = (
    *("numpy", "gymnasium", "stable-baselines3", "ale-py", "opencv-python-headless", "pillow"),
)
HEADER = ("step", "FPS", "ratio", "range")
_SECONDS = 0.7  # of CPU time, for a sample
SKIP = 4
FRAMES = 4
NUM_ENVS = (1, 16, 64)
COMPARED = (4, 250)  # sub-environments and steps
EACH, SKIPPED = "an action each frame", f"an action for {SKIP} frames"
DRAWN = {1: "in wrappers", SKIP: "of the shown frames only, in wrappers"}


def main(argv: list[str] | None = None) -> None:
    """Compare, measure, print and write the table."""
    import cv2

    options = parser(__doc__, runs=21).parse_args(argv)
    cv2.setNumThreads(1)
    prepared = cpu_of(prepare)[1]
    compared = sum(compare(skip) for skip in (1, SKIP))
    groups = {name: contenders(skip) for name, skip in ((EACH, 1), (SKIPPED, SKIP))}
    rows = rate_rows(groups, options.runs, _SECONDS)
    notes = [
        f"{medians(options.runs)}. FPS counts frames of the environment per second of CPU time, "
        "one thread each, random actions and the stacking included. range: the quartiles of the "
        "ratios of all runs.",
        f"{compared:,} stacks of {FRAMES} frames of both were compared in this run, pixel for "
        "pixel, over the ends of episodes: all are equal.",
        f"All frames were rendered and warped before, in {prepared:.2g} s of CPU time. A collector "
        "does so when it first sees a frame.",
    ]
    write_table(options.output / "pixels", HEADER, rows, notes, packages=PACKAGES)


def prepare() -> None:
    """Render and warp all frames of the atlas."""
    from goalreel.rendering.warped import warped_frames

    pictures = warped_frames(ENV, "area")
    for positions in np.array_split(np.linspace(-1.2, 0.6, 200_000), 200):
        pictures.observe(positions)


def contenders(skip: int) -> dict[str, Callable[[], int]]:
    """Return the contenders: Gymnasium, and goalreel with several numbers of environments."""
    rows = {f"Gymnasium's render {DRAWN[skip]}": random_play(skip)}
    for count in NUM_ENVS:
        name = f"goalreel's atlas, {count} environment{'s' * (count > 1)}"
        rows[name] = random_steps(Stacked(count, skip), count, skip)
    return rows


class Skipping(gymnasium.Wrapper):
    """Repeat an action until the skip or the episode is over, and count all frames."""

    def __init__(self, env: gymnasium.Env, skip: int):
        super().__init__(env)
        self._skip, self.counted = skip, 0

    def step(self, action: int) -> tuple:
        for _ in range(self._skip):
            found = self.env.step(action)
            self.counted += 1
            if found[2] or found[3]:
                break
        return found


def wrapped(env: gymnasium.Env) -> gymnasium.Env:
    """Return an environment whose observations are stacks of its frames."""
    from stable_baselines3.common.atari_wrappers import WarpFrame

    return FrameStackObservation(WarpFrame(AddRenderObservation(env)), FRAMES)


def random_play(skip: int) -> Callable[[], int]:
    """Return a function that takes ten random actions, and resets when an episode ends."""
    record = Skipping(gymnasium.make(ENV, render_mode="rgb_array"), skip)
    env, rng = wrapped(record), np.random.default_rng(0)
    env.reset(seed=0)

    def run() -> int:
        before = record.counted
        for action in rng.integers(3, size=10).tolist():
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return record.counted - before

    return run


class Stacked:
    """goalreel's environments and their stacks, (num_envs, frames, 84, 84) uint8, oldest first."""

    def __init__(self, count: int, skip: int):
        from goalreel.training.games.make_envs import make_envs
        from goalreel.training.games.settings import game_settings

        self._envs = make_envs(game_settings(ENV, skip, warp="area"), 0, count)
        # The first frames are repeated, as FrameStackObservation does.
        self.stacks = np.repeat(self._envs.obs[:, None], FRAMES, axis=1)

    def step(self, actions: np.ndarray):
        from goalreel.training.pixels.collector import next_stacks

        step = self._envs.step(actions)
        ended = step.terminated | step.truncated
        self.stacks = next_stacks(self.stacks, self._envs.obs, ended)
        return step


def random_steps(envs: Stacked, count: int, skip: int) -> Callable[[], int]:
    """Return a function that takes ten random actions in each sub-environment."""
    rng = np.random.default_rng(0)

    def run() -> int:
        for row in rng.integers(3, size=(10, count)):
            envs.step(row)
        return 10 * count * skip

    return run


class Begun(gymnasium.Wrapper):
    """Mountain Car with a given start position."""

    start = 0.0

    def reset(self, **kwargs) -> tuple[np.ndarray, dict]:
        found = self.env.reset(**kwargs)
        self.unwrapped.state = np.array([self.start, 0.0])
        return found


def compare(skip: int) -> int:
    """Compare stacks of both, and return their number. Raises MismatchError if any differ."""
    from goalreel.training.games.car_envs import Cars

    count, steps = COMPARED
    ours, cars = Stacked(count, skip), Cars(0, count, skip)
    bare = [Begun(gymnasium.make(ENV, render_mode="rgb_array")) for _ in range(count)]
    envs = [wrapped(Skipping(env, skip)) for env in bare]
    for env, position in zip(bare, cars.positions, strict=True):
        env.start = position
    theirs = [env.reset()[0] for env in envs]
    dice = np.random.default_rng(1)
    for _ in range(steps // skip):
        if not np.array_equal(ours.stacks, np.reshape(theirs, ours.stacks.shape)):
            raise MismatchError("the atlas shows other pictures than Gymnasium")
        actions = dice.integers(3, size=count)
        ours.step(actions)
        cars.step(actions)
        for index, action in enumerate(actions.tolist()):
            theirs[index], _, terminated, truncated, _ = envs[index].step(action)
            if terminated or truncated:
                bare[index].start = cars.positions[index]
                theirs[index] = envs[index].reset()[0]
    return count * (steps // skip)


if __name__ == "__main__":
    main()
