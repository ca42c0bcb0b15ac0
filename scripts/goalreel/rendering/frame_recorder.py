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
from goalreel.environments.registry import describe
from goalreel.errors import GoalreelError
from goalreel.files import npz
from goalreel.provenance.spec import Spec
from goalreel.rendering.blocks import Group, Recorder, SizedGroup
from goalreel.rendering.classic_control_scene import Artist
from goalreel.rendering.frame_cache import DrawnFrames
from goalreel.simulation.episodes import Episode
from goalreel.simulation.reaches import has_reached

# The share of an episode's time from which on an instance takes long to make. One episode that is
# the same in a used instance is no proof: BipedalWalker's next but three was not.
_LONG = 0.1
_EVERY = 16  # steps, of which Gymnasium draws one where the film's pictures are drawn here
_SURE = 256  # steps that are compared at least, and a share of all in the batch
_SHARE = 0.1
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
            self._play_again(*self._sample)
            self._sample = None
        for index, episode in sorted(self._kept.items(), key=lambda item: item[0]):
            if take := self._takes.pop(index, None):
                self._frames.add(take.groups())
                continue
            drawn = self._drawn(episode) if self._artist else self._film(episode).groups()
            self._frames.add(drawn)
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

    def _film(self, episode: Episode) -> "_Take":
        """Return the pictures of an episode that was played without them."""
        take = self._take(episode.seed)
        instance = self._environment.acquire()
        for step in replayed(self._environment, episode, instance):
            take.add(step.picture)
        self._environment.release(instance)
        return take

    def _drawn(self, episode: Episode) -> Iterator[SizedGroup]:
        """Yield the groups of an episode that is drawn here."""
        recorder = Recorder()
        for frame in self._artist.frames(episode):
            yield from recorder.add(frame)
        yield from recorder.rest()

    def _take(self, seed: int) -> "_Take":
        return _Take(self._frames.folder, self._place(seed))

    def _place(self, seed: int) -> str:
        return f"{self._environment.id}: the episode of seed {seed}"

    def _play_again(self, episode: Episode, take: "_Take | None") -> None:
        """Find out whether an episode repeats itself, and whether instances can be used again."""
        pool, reusable = self._environment.pool, False
        slow = pool.making > _LONG * (self._stepping + self._drawing)
        if not self._environment.check:
            self._environment.set_instance_reuse(slow)
            return
        if self._artist is not None:
            self._compare_some(episode)
            return
        take = take or self._film(episode)
        if slow and len(pool.used) > 1:  # the last of them has played another episode
            with contextlib.suppress(GoalreelError):  # in a new instance it may be the same
                self._compare(episode, take, len(episode.actions), pool.used[-1])
                reusable = True
        if not reusable:
            self._compare(episode, take, max(_SURE, int(_SHARE * self._steps)))
        self._environment.set_instance_reuse(reusable)

    def _compare(self, episode: Episode, take: "_Take", most: int, instance=None) -> None:
        """Play an episode's first steps again, at most so many, and compare them."""
        again, number = self._take(episode.seed), 0
        steps = replayed(self._environment, episode, instance)
        with contextlib.closing(steps):
            for step in itertools.islice(steps, most + 1):
                again.add(step.picture)
        for (count, one, size), (others, other, new) in zip(
            take.groups(), again.groups(), strict=False
        ):
            both = min(count, others)  # one may be of another size from its next picture on
            if (count, size) != (others, new) or not one.equals(other):
                unequal = (
                    f
                    for f in range(both)
                    if not np.array_equal(one.compose(f, size), other.compose(f, new))
                )
                number += next(unequal, both)
                if number <= step.step:
                    raise _another_picture(take.place, number)
            number += both

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

    environment, success: see FrameRecorder. Raises GoalreelError for an environment that Gymnasium
    does not draw.
    """
    if describe(environment.id).has_atlas:
        raise GoalreelError(f"{environment.id} is drawn from an atlas, by scripts/render.py")
    with npz.writing(path) as add:
        yield FrameRecorder(environment, DrawnFrames(add, Path(path).parent), success)


class _Take:
    """The pictures of one episode, as groups in memory or in a temporary file."""

    def __init__(self, folder: Path, place: str):
        """Begin without a picture; place: what messages call the episode."""
        self.place, self._taken, self._recorder = place, 0, Recorder()
        self._file = tempfile.SpooledTemporaryFile(_MEMORY, dir=folder)  # noqa: SIM115
        self._groups: list[tuple[int, tuple[int, int]]] = []  # the frames of each, their H and W

    def add(self, picture: object) -> None:
        """Take the next picture."""
        picture = picture if isinstance(picture, BlockFrame) else self._checked(picture)
        self._write(self._recorder.add(picture))
        self._taken += 1

    def _write(self, groups: Iterable[SizedGroup]) -> None:
        for frames, group, size in groups:
            self._groups.append((frames, size))
            np.save(self._file, group.changes, allow_pickle=False)
            np.save(self._file, group.blocks, allow_pickle=False)

    def groups(self) -> Iterator[SizedGroup]:
        """Yield the groups, as DrawnFrames takes them."""
        self._write(self._recorder.rest())
        self._file.seek(0)
        for frames, size in self._groups:
            arrays = (np.load(self._file, allow_pickle=False) for _ in range(2))
            yield frames, Group(*arrays), size

    def _checked(self, picture: object) -> np.ndarray:
        array, place = np.asarray(picture), f"{self.place}, step {self._taken}"
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
    place = f"{environment.id}: the episode of seed {episode.seed}, step"
    rewards = itertools.chain([0.0], episode.rewards)
    ending, last = (episode.terminated, episode.truncated), len(episode.actions)
    steps = environment.play(episode.seed, episode.actions, every, instance)
    for step, state, reward in zip(steps, episode.states, rewards, strict=True):
        here = f"{place} {step.step}"
        _compare(here, "the observation", step.state, state)
        _compare(here, "the reward", step.reward, reward)
        over = (step.terminated, step.truncated)
        _compare(here, "(terminated, truncated)", over, ending if step.step == last else (0, 0))
        yield step


def _compare(place: str, what: str, again: object, recorded: object) -> None:
    if not np.array_equal(np.asarray(again, float), np.asarray(recorded, float), equal_nan=True):
        raise GoalreelError(
            f"{place}: Gymnasium gives {what} {_shown(again)}, the recording has "
            f"{_shown(recorded)}. {_SEED_ALONE}"
        )


def _shown(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
