"""Record the frames of episodes in environments without an atlas.

`filming` yields a `FrameRecorder`, which follows the episodes of a shard while they are played.
Rendering an attempt that fails is wasted time. Rendering a kept episode later costs its steps
again. The recorder measures both, and renders a batch while it is played, or afterwards, whichever
was cheaper so far. It renders CartPole, Acrobot and Pendulum from the states of kept episodes.
"""

import contextlib
import os
import pickle
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from goalreel.cli import ProgressLog
from goalreel.environments.classic_control import ClassicControl
from goalreel.environments.drawing.block_store import BlockFrame
from goalreel.environments.drawing.frame_memo import skip_frame
from goalreel.environments.environment import Environment, SubEnvs
from goalreel.environments.gymnasium_env import GymnasiumEnvironment
from goalreel.environments.gymnasium_instance import Instance, close_instance
from goalreel.errors import GoalreelError, InexactFrameError
from goalreel.files import npz
from goalreel.provenance.spec import Spec
from goalreel.rendering.blocks import BlockRecorder, Group
from goalreel.rendering.classic_control_scene import ClassicControlScene
from goalreel.rendering.frame_cache import FrameCacheWriter
from goalreel.simulation.episodes import Episode
from goalreel.simulation.reaches import has_reached

# An instance is slow to make if that takes more than this share of playing and rendering. Only then
# are instances reused: one equal episode is no proof, as a later one of BipedalWalker differed.
_SLOW_SHARE = 0.1
_RENDER_EVERY = 16  # steps between the frames that a replay compares at first
_MIN_COMPARED = 16  # frames of a replay, if it has so many
_FIX = "Make episodes depend only on their seed, or add --config check_determinism=false"
_DIFFERENT_FRAME = f"Gymnasium renders a different frame in a replay. {_FIX}"
_MAX_SIDE = 1 << 14  # pixels of a frame, as x264 takes them
_MAX_MEMORY = 4 << 20  # bytes of an episode's frames in memory, before they go to a file


class FrameRecorder:
    """Record the episodes of a shard, as a simulation.episodes.EpisodeRecorder.

    In a new instance, Gymnasium replays the shard's first episode, and the recorder compares every
    step and one frame in 16, or more if the episode is short. If one differs, it compares every
    frame, because some environments change when they render. If making instances is slow, it first
    replays the episode in a used instance. If nothing differs, instances are reused. With
    `check_determinism` false, episodes are rendered while played and not replayed.

    Raises GoalreelError if an episode does not depend only on its seed, or if a frame is not uint8
    (H, W, 3).
    """

    def __init__(
        self, env: GymnasiumEnvironment, frames: FrameCacheWriter, success: str | float | None
    ):
        self._environment, self._cache, self._success = env, frames, success
        self._scene = ClassicControlScene(env) if isinstance(env, ClassicControl) else None
        self._rendered: dict[int, _EpisodeFrames] = {}  # the batch's frames, by index
        self._kept: dict[int, Iterator[Group]] = {}  # of the batch's episodes in the film
        self._first_episode: tuple[Episode, _EpisodeFrames | None] | None = None  # of the shard
        self._num_kept = self._num_ended = 0
        self._render_seconds = self._step_seconds = 0.0
        self._log, self._num_frames = ProgressLog(), 0

    def on_batch_start(self, indices: np.ndarray, seeds: np.ndarray) -> bool:
        """Return whether to render the batch while it is played."""
        failed = self._num_ended - self._num_kept
        # One more, so that a few early failures do not decide.
        should_render = self._render_seconds * failed <= self._step_seconds * (self._num_kept + 1)
        should_render = (should_render or not self._environment.check) and not self._scene
        self._first_index = int(indices[0]) if self._num_ended == 0 else None
        if should_render:
            folder, environment = self._cache.folder, self._environment
            self._rendered = {
                index: _EpisodeFrames(folder, environment, seed, index == self._first_index)
                for index, seed in zip(indices.tolist(), seeds.tolist(), strict=True)
            }
        self._resumed = time.perf_counter()
        return should_render

    def on_step(self, indices: np.ndarray, batch: SubEnvs) -> None:
        """Add the next frame of each running episode."""
        began = time.perf_counter()
        rendered = [self._rendered[index] for index in indices.tolist()]
        for episode_frames, frame in zip(rendered, batch.frames(), strict=True):
            episode_frames.add(frame)
        now = time.perf_counter()
        self._step_seconds += began - self._resumed
        self._render_seconds += now - began
        self._resumed = now
        self._num_frames += len(rendered)
        self._log.update(self._num_kept, self._num_frames)

    def on_episode_end(self, index: int, episode: Episode) -> None:
        """Keep the frames of an episode, or drop them if it failed."""
        rendered = self._rendered.pop(index, None)
        if index == self._first_index:
            self._first_episode = episode, rendered
        self._num_ended += 1
        if has_reached(self._success, episode.terminated, episode.truncated, episode.return_):
            self._num_kept += 1
            self._kept[index] = rendered.groups() if rendered else self._render_episode(episode)

    def finish(self) -> None:
        """Write the frames of the batch's kept episodes."""
        if self._first_episode is not None:
            self._check_first_episode(*self._first_episode)
            self._first_episode = None
        for index in sorted(self._kept):
            self._cache.add(self._kept.pop(index))

    def arrange(self, order: np.ndarray) -> None:
        """Set the order of the film, as indices into the kept episodes."""
        self._order = order

    def write(self, source: str, spec: Spec) -> None:
        """Complete the frame cache."""
        self._cache.finish(self._order, source, spec)
        self._environment.close()

    def _render_episode(self, episode: Episode) -> Iterator[Group]:
        """Yield the groups of an episode that was played without rendering."""
        recorder, env = BlockRecorder(), None
        if self._scene:
            frames = self._scene.frames(episode)
        else:
            env = self._environment.acquire()
            frames = replay_frames(self._environment, episode, env)
        for step, frame in enumerate(frames):
            yield from recorder.add(_check_frame(frame, self._environment, episode.seed, step))
        yield from recorder.flush()
        if env is not None:
            self._environment.release(env)
        self._num_frames += len(episode.states)
        self._log.update(self._num_kept, self._num_frames)

    def _check_first_episode(self, episode: Episode, rendered: "_EpisodeFrames | None") -> None:
        """Check that an episode is reproducible, and whether instances can be reused."""
        environment, seconds = self._environment, self._step_seconds + self._render_seconds
        if not environment.check:
            is_slow = environment.making_seconds > _SLOW_SHARE * seconds
            environment.set_instance_reuse(is_slow and environment.is_renewable)
        elif self._scene is not None:
            checksums = [_checksum(frame) for frame in self._scene.frames(episode)]
            self._compare_frames(episode, checksums, None, _RENDER_EVERY)
        else:
            _check_instances(environment, seconds, partial(self._compare, episode, rendered))

    def _compare(self, episode: Episode, rendered: "_EpisodeFrames", env=None) -> None:
        """Replay an episode in a used instance, or else in a new one, and compare frames."""
        every = max(min(-(-len(episode.actions) // _MIN_COMPARED), _RENDER_EVERY), 1)
        try:
            self._compare_frames(episode, rendered.checksums, env, every)
        except GoalreelError as error:
            if every == 1 or isinstance(error, InexactFrameError):
                raise
            self._compare_frames(episode, rendered.checksums, env, 1)

    def _compare_frames(self, episode: Episode, checksums: list, env, every: int):
        frames = replay_frames(self._environment, episode, env, every)
        with contextlib.closing(frames):
            for step, frame in enumerate(frames):
                if frame is not None and _checksum(frame) != checksums[step]:
                    raise _error(self._environment, episode.seed, step, _DIFFERENT_FRAME)


def check_first_episode(
    environment: GymnasiumEnvironment, episode: Episode, seconds: float
) -> None:
    """Check the first episode of a shard that is played without frames, as FrameRecorder does.

    An instance that can render replays it, because it may step differently. `seconds` is the time
    that the episodes so far took.
    """

    def compare(env=None) -> None:
        for _ in replay_frames(environment, episode, env, every=0):
            pass

    _check_instances(environment, seconds, compare)
    if environment.reusable:  # only a used instance has replayed it so far
        compare()


def _check_instances(
    environment: GymnasiumEnvironment, seconds: float, compare: Callable[..., None]
) -> None:
    """Compare an episode in a replay, and set whether instances may play several episodes."""
    reusable = False
    is_slow = environment.making_seconds > _SLOW_SHARE * seconds
    if is_slow and environment.is_renewable and len(environment.used) > 1:
        try:  # the last one, which has played another episode
            compare(env=environment.renewed(environment.used[-1]))
            reusable = True
        except InexactFrameError:
            raise
        except GoalreelError:  # a new instance may still reproduce it
            pass
    if not reusable:
        compare()
    environment.set_instance_reuse(reusable)


@contextlib.contextmanager
def filming(
    path: str | os.PathLike, environment: Environment, success: str | float | None = None
) -> Iterator[FrameRecorder]:
    """Yield a recorder of episodes that meet the criterion `success`, which `write` completes."""
    with npz.writing(path) as add:
        yield FrameRecorder(environment, FrameCacheWriter(add, Path(path).parent), success)


class _EpisodeFrames:
    """The frames of one episode, as groups in memory or in a temporary file."""

    def __init__(self, folder: Path, env: GymnasiumEnvironment, seed: int, is_compared: bool):
        """Start without frames. folder: for the temporary file."""
        self._episode, self._recorder, self._groups = (env, seed), BlockRecorder(), 0
        self._file = tempfile.SpooledTemporaryFile(_MAX_MEMORY, dir=folder)  # noqa: SIM115
        self._count, self._is_compared = 0, is_compared
        self.checksums: list[int] = []  # of all frames, if a replay compares them

    def add(self, frame: object) -> None:
        """Add the next frame."""
        checked = _check_frame(frame, *self._episode, self._count)
        self._write(self._recorder.add(checked))
        self._count += 1
        if self._is_compared:
            self.checksums.append(_checksum(checked))

    def _write(self, groups: Iterable[Group]) -> None:
        for group in groups:
            pickle.dump(group, self._file)
            self._groups += 1

    def groups(self) -> Iterator[Group]:
        """Yield the groups, as FrameCacheWriter takes them."""
        self._write(self._recorder.flush())
        self._file.seek(0)
        for _ in range(self._groups):
            yield pickle.load(self._file)  # noqa: S301 - written above


def _checksum(frame: np.ndarray | BlockFrame) -> int:
    pixels = frame.image() if isinstance(frame, BlockFrame) else frame
    return zlib.crc32(np.ascontiguousarray(pixels), len(pixels))


def _check_frame(
    frame: object, environment: GymnasiumEnvironment, seed: int, step: int
) -> np.ndarray | BlockFrame:
    """Return a frame as uint8 (H, W, 3). Raises GoalreelError for any other object."""
    if isinstance(frame, BlockFrame):
        return frame
    array = np.asarray(frame)
    is_rgb = array.dtype == np.uint8 and array.shape[2:] == (3,)
    if not (is_rgb and 0 < min(array.shape) <= max(array.shape) <= _MAX_SIDE):
        kind = type(frame).__name__ if array.dtype == object else array.dtype
        problem = f"env.render() returned {kind} of shape {array.shape}. Return uint8 of shape "
        problem += f"(height, width), or with 1, 3 or 4 channels, and at most {_MAX_SIDE:,} a side."
        raise _error(environment, seed, step, problem)
    return array


def replay_frames(
    environment: GymnasiumEnvironment, episode: Episode, env=None, every: int = 1
) -> Iterator[np.ndarray | None]:
    """Yield what Gymnasium renders at the reset and after each step of a recorded episode.

    It plays in the instance `env`; without one in a new instance, which is closed at the end. It
    renders one of `every` steps, starting with the reset, and the last one. It yields None for the
    others. 0 renders none. Raises GoalreelError if a step differs in any bit from the recorded one.
    """
    own, last = environment.make() if env is None else None, len(episode.actions)
    with contextlib.ExitStack() as stack:
        if own:
            stack.callback(close_instance, own)
        instance, given = Instance(environment, episode.seed, own or env), (0.0, False, False)
        for step, state in enumerate(episode.states):
            if step:
                given = instance.step(episode.actions[step - 1])
            ending = step == last and episode.terminated, step == last and episode.truncated
            for what, again, recorded in (
                ("observation", instance.state, state),
                ("reward", given[0], episode.rewards[step - 1] if step else 0.0),
                ("(terminated, truncated)", given[1:], ending),
            ):
                again, recorded = np.asarray(again, float), np.asarray(recorded, float)
                if not np.array_equal(again, recorded, equal_nan=True):
                    problem = f"Gymnasium gives a different {what} in a replay. {_FIX}\n  "
                    problem += f"replay: {again.tolist()}\n  recording: {recorded.tolist()}"
                    raise _error(environment, episode.seed, step, problem)
            shown = every and (step % every == 0 or step == last)  # endings may look different
            if every and not shown:
                skip_frame(instance.env)
            yield instance.render() if shown else None


def _error(environment: GymnasiumEnvironment, seed: int, step: int, problem: str) -> GoalreelError:
    return GoalreelError(f"{environment.id}: seed {seed}, step {step}: {problem}")
