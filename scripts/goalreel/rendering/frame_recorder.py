"""The frame recorder: episodes of what has no atlas, drawn while they are played, or afterwards.

To draw an attempt that fails is in vain; to play one again that was kept and not drawn costs its
steps. So a batch is drawn while it is played as long as that has been the cheaper, else those that
are kept are played again. What goalreel steps itself is drawn from the states of those kept.
"""

import contextlib
import itertools
import os
import pickle
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from goalreel.cli import ProgressLog
from goalreel.environments.classic_control import ClassicControl
from goalreel.environments.drawing.block_store import BlockFrame
from goalreel.environments.environment import Environment, SubEnvs
from goalreel.environments.gymnasium_env import GymnasiumEnvironment, Instance
from goalreel.errors import GoalreelError
from goalreel.files import npz
from goalreel.provenance.spec import Spec
from goalreel.rendering.blocks import BlockRecorder, Group
from goalreel.rendering.classic_control_scene import ClassicControlScene
from goalreel.rendering.frame_cache import FrameCacheWriter
from goalreel.simulation.episodes import Episode
from goalreel.simulation.reaches import has_reached

# The share of an episode's time from which on an instance takes long to make. One episode that is
# the same in a used instance is no proof: BipedalWalker's next but three was not.
_SLOW_SHARE = 0.1
_EVERY = 16  # steps, of which Gymnasium draws one where the film's pictures are drawn here
_CHECKED_STEPS = 256  # that are compared at least, and a share of all in the batch
_CHECKED_SHARE = 0.1
_SEED_ALONE = (
    "Episodes must depend on their seed alone. Film each once, as it comes: --config check=false"
)
_ANOTHER_PICTURE = f"Gymnasium draws another picture when it plays it again. {_SEED_ALONE}"
_MEMORY = 4 << 20  # bytes of an episode's pictures, beyond which they go to a temporary file


class FrameRecorder:
    """Films the episodes of a shard; see simulation.episodes.EpisodeRecorder.

    The first steps of the shard's first episode are played once more by Gymnasium, in a new
    instance, and everything is compared; what is drawn here, with every sixteenth picture. If
    instances take long to make, it is played in one that has played another: if all is the same
    there, instances play one episode after another. An environment with `check` false is drawn
    while it is played, and never played again.

    Raises GoalreelError if an episode does not depend on its seed alone, and if a picture is not
    uint8 (H, W, 3).
    """

    def __init__(
        self,
        environment: GymnasiumEnvironment,
        frames: FrameCacheWriter,
        success: str | float | None = None,
    ):
        """Begin without a frame; see `filming`."""
        self._environment, self._frames, self._success = environment, frames, success
        self._scene = (
            ClassicControlScene(environment) if isinstance(environment, ClassicControl) else None
        )
        self._takes: dict[int, _Take] = {}  # the batch's pictures, by index
        self._kept: dict[int, Iterator[Group]] = {}  # the batch's groups that are kept, by index
        self._sample: tuple[Episode, _Take | None] | None = None  # the shard's first episode
        self._count = self._attempts = 0
        self._drawing = self._stepping = 0.0  # seconds
        self._log, self._steps, self._shot = ProgressLog(), 0, 0  # played, drawn

    def on_batch_start(self, indices: np.ndarray, seeds: np.ndarray) -> bool:
        """Return whether a batch is drawn while it is played."""
        self._takes, self._kept = {}, {}
        failed = self._attempts - self._count
        # One more, so that the first few to fail do not decide.
        drawn = self._drawing * failed <= self._stepping * (self._count + 1)
        drawn = (drawn or not self._environment.check) and not self._scene
        self._first = int(indices[0]) if self._attempts == 0 else None
        if drawn:
            folder, environment = self._frames.folder, self._environment
            takes = (_Take(folder, environment, seed) for seed in seeds.tolist())
            self._takes = dict(zip(indices.tolist(), takes, strict=True))
        self._since = time.perf_counter()
        return drawn

    def on_step(self, indices: np.ndarray, batch: SubEnvs) -> None:
        """Take the next picture of each episode that goes on."""
        began = time.perf_counter()
        takes = [self._takes[index] for index in indices.tolist()]
        for take, picture in zip(takes, batch.pictures(), strict=True):
            take.add(picture)
        now = time.perf_counter()
        self._stepping += began - self._since
        self._drawing += now - began
        self._since = now
        self._shot += len(takes)
        self._log.update(self._count, self._shot)

    def on_episode_end(self, index: int, episode: Episode) -> None:
        """Keep an episode, or drop its pictures at once."""
        take = self._takes.pop(index, None)
        if index == self._first:
            self._sample = episode, take
        self._attempts += 1
        self._steps += len(episode.actions)
        ending = episode.terminated, episode.truncated
        if self._success is None or has_reached(self._success, *ending, episode.return_):
            self._count += 1
            self._kept[index] = take.groups() if take else self._drawn(episode)

    def finish(self) -> None:
        """Write the pictures of the batch's episodes that are kept."""
        if self._sample is not None:
            self._check_sample(*self._sample)
            self._sample = None
        for index in sorted(self._kept):
            self._frames.add(self._kept.pop(index))

    def arrange(self, order: np.ndarray) -> None:
        """Take the order of the film: its episodes, by their numbers among those kept."""
        self._order = order

    def write(self, source: str, spec: Spec) -> None:
        """End the frame cache; source, spec: see FrameCacheWriter.finish."""
        self._frames.finish(self._order, source, spec)
        self._environment.close()

    def _drawn(self, episode: Episode) -> Iterator[Group]:
        """Yield the groups of an episode that was played without pictures."""
        recorder, env = BlockRecorder(), None
        if self._scene:
            pictures = self._scene.frames(episode)
        else:
            env = self._environment.acquire()
            pictures = replay_frames(self._environment, episode, env)
        for step, picture in enumerate(pictures):
            yield from recorder.add(_checked(picture, self._environment, episode.seed, step))
        yield from recorder.flush()
        if env is not None:
            self._environment.release(env)
        self._shot += len(episode.states)
        self._log.update(self._count, self._shot)

    def _check_sample(self, episode: Episode, take: "_Take | None") -> None:
        """Find out whether an episode repeats itself, and whether instances can be used again.

        take: its pictures, which what is not drawn here has
        """
        environment, reusable = self._environment, False
        slow = environment.making > _SLOW_SHARE * (self._stepping + self._drawing)
        if not environment.check:
            environment.set_instance_reuse(slow)
            return
        if self._scene is not None:
            self._compare_some(episode)
            return
        if slow and len(environment.used) > 1:  # the last of them has played another episode
            with contextlib.suppress(GoalreelError):  # in a new instance it may be the same
                self._compare(episode, take, len(episode.actions), environment.used[-1])
                reusable = True
        if not reusable:
            self._compare(episode, take, max(_CHECKED_STEPS, int(_CHECKED_SHARE * self._steps)))
        environment.set_instance_reuse(reusable)

    def _compare(self, episode: Episode, take: "_Take", steps: int, env=None) -> None:
        """Play an episode's first steps again, at most so many, and compare them."""
        again = BlockRecorder()
        with contextlib.closing(replay_frames(self._environment, episode, env)) as pictures:
            for step, picture in enumerate(itertools.islice(pictures, steps + 1)):
                again.add(picture)
                if again.change != take.changes[step]:
                    raise _error(self._environment, episode.seed, step, _ANOTHER_PICTURE)

    def _compare_some(self, episode: Episode) -> None:
        """Compare every step, and some pictures with those that Gymnasium itself draws."""
        pictures = replay_frames(self._environment, episode, every=_EVERY)
        pairs = zip(pictures, self._scene.frames(episode), strict=True)
        for step, (picture, frame) in enumerate(pairs):
            if picture is not None and not np.array_equal(frame.image(), picture):
                raise _error(self._environment, episode.seed, step, _ANOTHER_PICTURE)


@contextlib.contextmanager
def filming(
    path: str | os.PathLike,
    environment: Environment,
    success: str | float | None = None,
) -> Iterator[FrameRecorder]:
    """Yield what films episodes into a frame cache, which `FrameRecorder.write` completes.

    Args:
        path: the frame cache.
        environment: what the episodes are played in, and is drawn without an atlas.
        success: what counts as reaching the goal; other episodes are dropped. None keeps all.
    """
    with npz.writing(path) as add:
        yield FrameRecorder(environment, FrameCacheWriter(add, Path(path).parent), success)


class _Take:
    """The pictures of one episode, as groups in memory or in a temporary file."""

    def __init__(self, folder: Path, environment: GymnasiumEnvironment, seed: int):
        """Begin without a picture of the episode of a seed; folder: for the file."""
        self._episode, self._recorder, self._groups = (environment, seed), BlockRecorder(), 0
        self._file = tempfile.SpooledTemporaryFile(_MEMORY, dir=folder)  # noqa: SIM115
        self.changes: list[int] = []  # of each picture, `Recorder.change`

    def add(self, picture: object) -> None:
        """Take the next picture."""
        checked = _checked(picture, *self._episode, len(self.changes))
        self._write(self._recorder.add(checked))
        self.changes.append(self._recorder.change)

    def _write(self, groups: Iterable[Group]) -> None:
        for group in groups:
            pickle.dump(group, self._file)
            self._groups += 1

    def groups(self) -> Iterator[Group]:
        """Yield the groups, as FrameCacheWriter takes them."""
        self._write(self._recorder.flush())
        self._file.seek(0)
        for _ in range(self._groups):
            yield pickle.load(self._file)  # noqa: S301 - what was written above


def _checked(
    picture: object, environment: GymnasiumEnvironment, seed: int, step: int
) -> np.ndarray | BlockFrame:
    """Return a picture of the kind that can be filmed; raise GoalreelError for another."""
    if isinstance(picture, BlockFrame):
        return picture
    array = np.asarray(picture)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
        kind = type(picture).__name__ if array.dtype == object else array.dtype
        problem = f"env.render() returned {kind} of shape {array.shape}; allowed: uint8 of shape "
        problem += "(height, width), or with 1, 3 or 4 channels"
        raise _error(environment, seed, step, problem)
    return array


def replay_frames(
    environment: GymnasiumEnvironment, episode: Episode, env=None, every: int = 1
) -> Iterator[np.ndarray | None]:
    """Yield what Gymnasium draws at the reset and after each step of a recorded episode.

    Args:
        environment: what it was recorded in.
        episode: the recorded one.
        env: an instance of `environment`; None for a new one, which is closed at the end.
        every: of so many steps, one is drawn, the reset's first; of others comes None.

    Raises:
        GoalreelError: a step is not bit for bit the recorded one.
    """
    own, last = environment.make() if env is None else None, len(episode.actions)
    with contextlib.closing(own) if own else contextlib.nullcontext():
        instance, given = Instance(environment, episode.seed, own or env), (0.0, False, False)
        for step, state in enumerate(episode.states):
            if step:
                given = instance.step(episode.actions[step - 1])
            ending = step == last and episode.terminated, step == last and episode.truncated
            for what, again, recorded in (
                ("the observation", instance.state, state),
                ("the reward", given[0], episode.rewards[step - 1] if step else 0.0),
                ("(terminated, truncated)", given[1:], ending),
            ):
                again, recorded = np.asarray(again, float), np.asarray(recorded, float)
                if not np.array_equal(again, recorded, equal_nan=True):
                    problem = f"Gymnasium gives {what} {again.tolist()}, the recording has "
                    problem += f"{recorded.tolist()}. {_SEED_ALONE}"
                    raise _error(environment, episode.seed, step, problem)
            yield instance.render() if step % every == 0 else None


def _error(environment: GymnasiumEnvironment, seed: int, step: int, problem: str) -> GoalreelError:
    return GoalreelError(f"{environment.id}: the episode of seed {seed}, step {step}: {problem}")
