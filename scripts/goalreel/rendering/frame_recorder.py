"""The camera: episodes of what has no atlas, drawn while they are played, or afterwards.

To draw an attempt that fails is in vain; to play one again that was kept and not drawn costs its
steps. So a batch is drawn while it is played as long as all that drawing has taken, times the share
of attempts that failed, is no more than what stepping has taken, times the share that was kept.
Else those that are kept are played again. Either way the frames are the same. What is stepped here,
and not by Gymnasium, is drawn from its states, when it is known which episodes are kept.
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
from goalreel.environments.gymnasium_env import GymnasiumEnvironment, Step
from goalreel.errors import GoalreelError
from goalreel.files import npz
from goalreel.provenance.spec import Spec
from goalreel.rendering.blocks import Recorder, SizedGroup
from goalreel.rendering.classic_control_scene import Artist
from goalreel.rendering.frame_cache import DrawnFrames
from goalreel.simulation.episodes import Episode
from goalreel.simulation.reaches import has_reached

# The share of an episode's time from which on an instance takes long to make. One episode that is
# the same in a used instance is no proof: BipedalWalker's next but three was not.
_SLOW_SHARE = 0.1
_EVERY = 16  # steps, of which Gymnasium draws one where the film's pictures are drawn here
_CHECKED_STEPS = 256  # that are compared at least, and a share of all in the batch
_CHECKED_SHARE = 0.1
_MEMORY = 4 << 20  # bytes of an episode's pictures, beyond which they go to a temporary file


class FrameRecorder:
    """Films the episodes of a shard; see simulation.episodes.FrameRecorder.

    The shard's first episode is played once more by Gymnasium, in a new instance, and everything is
    compared; what is drawn here, with every sixteenth picture of Gymnasium's. Only the beginning of
    a long episode is compared, so that a shard of few long episodes takes little longer.
    If instances take long to make, the first episode is tried in one that has played another: if
    all is the same there, instances play one episode after another.

    An environment with `check` false is drawn while it is played, and never played again.

    Raises GoalreelError if an episode does not depend on its seed alone, and if a picture is not
    uint8 (H, W, 3).
    """

    def __init__(
        self,
        environment: GymnasiumEnvironment,
        frames: DrawnFrames,
        success: str | float | None = None,
    ):
        """Begin without a frame.

        Args:
            environment: what the episodes are played in.
            frames: where their pictures go.
            success: what counts as reaching the goal; other episodes are dropped. None keeps all.
        """
        self._environment, self._frames, self._success = environment, frames, success
        self._artist = Artist(environment) if isinstance(environment, ClassicControl) else None
        self._takes: dict[int, _Take] = {}  # the batch's pictures, by index
        self._kept: dict[int, Episode] = {}  # the batch's episodes that are kept, by index
        self._sample: tuple[Episode, _Take | None] | None = None  # the shard's first episode
        self._count = self._attempts = 0
        self._drawing = self._stepping = 0.0  # seconds
        self._order: np.ndarray | None = None
        self._log, self._steps, self._shot = ProgressLog(), 0, 0  # played, drawn

    def begin(self, indices: np.ndarray, seeds: np.ndarray) -> bool:
        """Return whether a batch is drawn while it is played."""
        self._takes, self._kept = {}, {}
        failed = self._attempts - self._count
        # One more, so that the first few to fail do not decide.
        drawn = self._drawing * failed <= self._stepping * (self._count + 1)
        drawn = (drawn or not self._environment.check) and not self._artist
        self._first = int(indices[0]) if self._attempts == 0 else None
        if drawn:
            takes = map(self._take, seeds)
            self._takes = dict(zip(indices.tolist(), takes, strict=True))
        self._since = time.perf_counter()
        return drawn

    def shoot(self, indices: np.ndarray, batch: SubEnvs) -> None:
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

    def end(self, index: int, episode: Episode, returned: float) -> None:
        """Keep an episode, or drop its pictures at once."""
        if index == self._first:
            self._sample = episode, self._takes.get(index)
        self._attempts += 1
        self._steps += len(episode.actions)
        ending = episode.terminated, episode.truncated
        if self._success is None or has_reached(self._success, *ending, returned):
            self._count += 1
            self._kept[index] = episode
        else:
            self._takes.pop(index, None)

    def finish(self) -> None:
        """Write the pictures of the batch's episodes that are kept."""
        if self._sample is not None:
            self._check_sample(*self._sample)
            self._sample = None
        for index, episode in sorted(self._kept.items(), key=lambda item: item[0]):
            if take := self._takes.pop(index, None):
                self._frames.add(take.groups())
                continue
            self._frames.add(self._drawn(episode))
            self._shot += len(episode.states)
            self._log.update(self._count, self._shot)

    def arrange(self, order: np.ndarray) -> None:
        """Take the order of the film: its episodes, by their numbers among those kept."""
        self._order = order

    def write(self, source: str, spec: Spec) -> None:
        """End the frame cache; source, spec: see DrawnFrames.finish."""
        order = np.arange(self._count) if self._order is None else self._order
        self._frames.finish(order, source, spec)
        self._environment.close()

    def _drawn(self, episode: Episode) -> Iterator[SizedGroup]:
        """Yield the groups of an episode that was played without pictures."""
        recorder = Recorder()
        for number, picture in enumerate(self._pictures(episode)):
            place = f"{self._place(episode.seed)}, step {number}"
            yield from recorder.add(_checked(picture, place))
        yield from recorder.rest()

    def _pictures(self, episode: Episode) -> Iterator[np.ndarray | BlockFrame]:
        if self._artist:
            yield from self._artist.frames(episode)
            return
        instance = self._environment.acquire()
        yield from (step.picture for step in replayed(self._environment, episode, instance))
        self._environment.release(instance)

    def _take(self, seed: int) -> "_Take":
        return _Take(self._frames.folder, self._place(seed))

    def _place(self, seed: int) -> str:
        return f"{self._environment.id}: the episode of seed {seed}"

    def _check_sample(self, episode: Episode, take: "_Take | None") -> None:
        """Find out whether an episode repeats itself, and whether instances can be used again.

        take: its pictures, which what is not drawn here has
        """
        pool, reusable = self._environment.pool, False
        slow = pool.making > _SLOW_SHARE * (self._stepping + self._drawing)
        if not self._environment.check:
            self._environment.set_instance_reuse(slow)
            return
        if self._artist is not None:
            self._compare_some(episode)
            return
        if slow and len(pool.used) > 1:  # the last of them has played another episode
            with contextlib.suppress(GoalreelError):  # in a new instance it may be the same
                self._compare(episode, take, len(episode.actions), pool.used[-1])
                reusable = True
        if not reusable:
            self._compare(episode, take, max(_CHECKED_STEPS, int(_CHECKED_SHARE * self._steps)))
        self._environment.set_instance_reuse(reusable)

    def _compare(self, episode: Episode, take: "_Take", steps: int, instance=None) -> None:
        """Play an episode's first steps again, at most so many, and compare them."""
        again = Recorder()
        with contextlib.closing(replayed(self._environment, episode, instance)) as played:
            for step in itertools.islice(played, steps + 1):
                again.add(step.picture)
                if again.change != take.changes[step.step]:
                    raise _another_picture(take.place, step.step)

    def _compare_some(self, episode: Episode) -> None:
        """Compare every step, and some pictures with those that Gymnasium itself draws."""
        steps = replayed(self._environment, episode, every=_EVERY)
        for step, frame in zip(steps, self._artist.frames(episode), strict=True):
            if step.picture is not None and not np.array_equal(frame.image(), step.picture):
                raise _another_picture(self._place(episode.seed), step.step)


@contextlib.contextmanager
def filming(
    path: str | os.PathLike,
    environment: Environment,
    success: str | float | None = None,
) -> Iterator[FrameRecorder]:
    """Yield a camera that writes a frame cache to `path`, which `FrameRecorder.write` completes.

    environment, success: see FrameRecorder. It is one that is drawn without an atlas.
    """
    with npz.writing(path) as add:
        yield FrameRecorder(environment, DrawnFrames(add, Path(path).parent), success)


class _Take:
    """The pictures of one episode, as groups in memory or in a temporary file."""

    def __init__(self, folder: Path, place: str):
        """Begin without a picture; place: what messages call the episode."""
        self.place, self._recorder, self._groups = place, Recorder(), 0
        self._file = tempfile.SpooledTemporaryFile(_MEMORY, dir=folder)  # noqa: SIM115
        self.changes: list[int] = []  # of each picture, `Recorder.change`

    def add(self, picture: object) -> None:
        """Take the next picture."""
        place = f"{self.place}, step {len(self.changes)}"
        self._write(self._recorder.add(_checked(picture, place)))
        self.changes.append(self._recorder.change)

    def _write(self, groups: Iterable[SizedGroup]) -> None:
        for group in groups:
            pickle.dump(group, self._file)
            self._groups += 1

    def groups(self) -> Iterator[SizedGroup]:
        """Yield the groups, as DrawnFrames takes them."""
        self._write(self._recorder.rest())
        self._file.seek(0)
        for _ in range(self._groups):
            yield pickle.load(self._file)  # noqa: S301 - what was written above


def _checked(picture: object, place: str) -> np.ndarray | BlockFrame:
    """Return a picture of the kind that can be filmed; raise GoalreelError for another."""
    if isinstance(picture, BlockFrame):
        return picture
    array = np.asarray(picture)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
        kind = type(picture).__name__ if array.dtype == object else array.dtype
        raise GoalreelError(
            f"{place}: env.render() returned {kind} of shape {array.shape}; "
            f"allowed: uint8 of shape (height, width), or with 1, 3 or 4 channels"
        )
    return array


def _another_picture(place: str, step: int) -> GoalreelError:
    return GoalreelError(
        f"{place}, step {step}: Gymnasium draws another picture when it plays it again. "
        f"{_SEED_ALONE}"
    )


_SEED_ALONE = (
    "Episodes must depend on their seed alone. Film each once, as it comes: --config check=false"
)


def replayed(
    environment: GymnasiumEnvironment, episode: Episode, instance=None, every: int = 1
) -> Iterator[Step]:
    """Yield every step of a recorded episode as Gymnasium plays it again, with its picture.

    instance: of `environment`, None for a new one; every: of so many steps, one is drawn. Raises
    GoalreelError at the first step that is not bit for bit the recorded one.
    """
    last = len(episode.actions)
    steps = environment.play(episode.seed, episode.actions, every, instance)
    rewards = itertools.chain([0.0], episode.rewards)
    for step, state, reward in zip(steps, episode.states, rewards, strict=True):
        over = step.step == last
        ending = over and episode.terminated, over and episode.truncated
        for what, again, recorded in (
            ("the observation", step.state, state),
            ("the reward", step.reward, reward),
            ("(terminated, truncated)", (step.terminated, step.truncated), ending),
        ):
            again, recorded = np.asarray(again, float), np.asarray(recorded, float)
            if not np.array_equal(again, recorded, equal_nan=True):
                raise GoalreelError(
                    f"{environment.id}: the episode of seed {episode.seed}, step {step.step}: "
                    f"Gymnasium gives {what} {again.tolist()}, the recording has "
                    f"{recorded.tolist()}. {_SEED_ALONE}"
                )
        yield step
