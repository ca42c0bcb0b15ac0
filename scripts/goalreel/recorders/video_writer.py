"""RGB frames to an MP4 file while they are made: one `write` after another, none kept in memory."""

import json
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from pathlib import Path

import numpy as np

from goalreel.arrays import to_rgb
from goalreel.encoding import ffmpeg
from goalreel.encoding.x264 import PRESETS, check_frames, recording
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.mp4.reader import read_index

_LOWEST_FPS, _HIGHEST_FPS = 0.001, 1000
_LARGEST_DENOMINATOR = 1001  # of a frame rate: 30000/1001 is one
# Called with a finished video's path, its episode's number and what is known of that.
OnVideo = Callable[[str, int, dict], object]
_SAMPLE = {"name_prefix": "", "env": 0, "episode": 0, "step": 0, "seed": 0, "return": 0.0}
_SAMPLE |= {"length": 0, "terminated": False, "truncated": False}


@dataclass(frozen=True)
class VideoOptions:
    """How videos are written. Raises GoalreelError if an option is not allowed.

    Attributes:
        fps: frames per second, 0.001 to 1000, taken as the nearest fraction with a denominator up
            to 1001.
        qp: x264's quantiser, 0 to 51; 0 stores exactly the pixels.
        preset: x264's.
        name_pattern: of the files' names in place of Gymnasium's, such as
            "episode-{episode}-return-{return:.0f}"; also {step}, at which the recording began,
            {seed}, {length}, {name_prefix}, {env}, the index of a sub-environment, {terminated}
            and {truncated}.
        statistics: whether each video gets a JSON file beside it, of `info` below.
        on_video: called with the path, the episode's number and its `info`, a dict of those fields
            and `frames`, when a video's file is whole. All are of the episode in which the
            recording began; a seed is known where `reset` was given one.
        name_prefix: of the files' names.
    """

    fps: float | None
    qp: int = 23
    preset: str = "veryfast"
    name_pattern: str | None = None
    statistics: bool = False
    on_video: OnVideo | None = None
    name_prefix: str = "rl-video"

    def __post_init__(self) -> None:
        """Check the options."""
        if not (isinstance(self.fps, Real) and _LOWEST_FPS <= self.fps <= _HIGHEST_FPS):
            raise GoalreelError(f"fps: {self.fps!r}; allowed: {_LOWEST_FPS} to {_HIGHEST_FPS}")
        if self.qp not in range(52):
            raise GoalreelError(f"qp: {self.qp!r}; allowed: a whole number from 0 (lossless) to 51")
        if self.preset not in PRESETS:
            raise GoalreelError(f"preset: {self.preset!r}; allowed: {', '.join(PRESETS)}")
        if self.name_pattern is None:
            return
        try:
            others = _SAMPLE | {"episode": 1, "step": 1}
            names = {self.name_pattern.format(**fields) for fields in (_SAMPLE, others)}
        except (LookupError, ValueError, AttributeError, TypeError) as error:
            raise GoalreelError(
                f"name_pattern: {self.name_pattern!r} ({type(error).__name__}: {error}); allowed "
                f"fields: {', '.join(f'{{{name}}}' for name in _SAMPLE)}"
            ) from None
        if len(names) < 2 or "/" in self.name_pattern:
            raise GoalreelError(
                f"name_pattern: {self.name_pattern!r}; allowed: a file's name without its suffix, "
                f"with {{episode}} or {{step}} in it, which tell videos apart"
            )

    @property
    def rate(self) -> Fraction:
        """The frames per second."""
        return Fraction(float(self.fps)).limit_denominator(_LARGEST_DENOMINATOR)

    @property
    def encoding(self) -> dict:
        """The preset and the quantiser."""
        return {"preset": self.preset, "qp": int(self.qp)}


class VideoWriter:
    """An MP4 file in the making; it takes its name when `finish` has found all frames in it.

    For a recorder it is the list of its frames. A forked child's copy does nothing: the file is its
    parent's.
    """

    def __init__(
        self,
        path: Path,
        options: VideoOptions,
        episode: Mapping,
        step: int,
        owner: object | None = None,
        first: int = 0,
    ) -> None:
        """Begin without a frame; ffmpeg starts with the first one.

        Args:
            path: the file, where the options have no pattern of its name.
            options: how it is written.
            episode: what is known of the episode that it begins in, which the owner updates.
            step: at which it begins.
            owner: what records it, which is not held. The video is finished at the latest when its
                owner is collected or Python ends.
            first: the number that errors give to the first frame.
        """
        self._path = path.absolute()  # the program may change its folder meanwhile
        self._options, self._episode, self._step, self._first = options, episode, step, first
        self._shape: tuple[int, ...] = ()
        self._odd = (0, 0)  # rows and columns that yuv420p, which wants even sides, adds
        self._draft: Path | None = None
        self._stream: ffmpeg.Stream | None = None
        self._is_over, self._process = False, os.getpid()
        # While ffmpeg can still be waited for; `__del__` may be too late when Python ends.
        self._at_exit = weakref.finalize(owner, self.finish) if owner is not None else None

    def __len__(self) -> int:
        """Return the number of frames written."""
        return self._stream.written if self._stream else 0

    def append(self, frame: np.ndarray) -> None:
        """Write a frame, (H, W, 3) uint8, of the first one's size.

        Where the size is odd and qp is not 0, the last row or column is repeated. Raises
        GoalreelError, and drops the file, if the frame is something else or ffmpeg fails; further
        frames are ignored then.
        """
        if self._is_over or self._process != os.getpid():
            return
        try:
            pixels = _rgb_frame(frame, self._first + len(self), self._shape)
            if self._stream is None:
                self._start(pixels.shape)
            if any(self._odd):
                down, across = self._odd
                pixels = np.pad(pixels, ((0, down), (0, across), (0, 0)), "edge")
            self._stream.write(pixels)
        except GoalreelError:  # not an interrupt, after which the frames so far are still good
            self.abort()
            raise

    def __iadd__(self, frames: Iterable[np.ndarray]) -> "VideoWriter":
        """Write several frames."""
        for frame in frames:
            self.append(frame)
        return self

    def abort(self) -> None:
        """Stop, and leave no file. After `finish` nothing happens."""
        if self._is_over or self._process != os.getpid():
            return
        self._end()
        if self._stream is not None:
            self._stream.abort()
        if self._draft is not None:
            self._draft.unlink(missing_ok=True)

    def _end(self) -> None:
        self._is_over = True
        if self._at_exit is not None:
            self._at_exit.detach()

    def _start(self, shape: tuple[int, ...]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Not open in `replacing` all along: two recorders of one name must not remove each
        # other's drafts. Whoever finishes last has the name, as with Gymnasium.
        handle, name = tempfile.mkstemp(".part", f".{self._path.name}.", self._path.parent)
        os.close(handle)
        self._draft, self._shape = Path(name), shape
        height, width = shape[:2]
        encoding = self._options.encoding
        if encoding["qp"]:
            self._odd = height % 2, width % 2
        size = width + self._odd[1], height + self._odd[0]
        arguments = recording(self._draft, size, self._options.rate, encoding)
        self._stream = ffmpeg.Stream(arguments, own_group=True)

    def finish(self) -> Path | None:
        """Give the file its name, and tell of it; return its path, None without a frame.

        An interrupt leaves it to be finished later. Raises GoalreelError, and drops the file, if
        ffmpeg fails or the file does not hold exactly the frames written.
        """
        if self._stream is None or self._is_over or self._process != os.getpid():
            self.abort()
            return None
        options, info = self._options, dict(self._episode) | {"step": self._step}
        path = self._path
        if options.name_pattern is not None:
            fields = info | {"name_prefix": options.name_prefix}
            path = path.with_name(f"{options.name_pattern.format(**fields)}.mp4")
        try:
            info["frames"] = self._stream.finish()
            if not self._draft.exists():
                raise GoalreelError(f"{self._draft}: removed while {path} was recorded")
            check_frames(read_index(self._draft), info["frames"], options.rate)
            try:
                with replacing(path) as place:
                    os.replace(self._draft, place)
            except OSError as error:
                raise GoalreelError(f"{path}: cannot be written: {error}") from None
        except GoalreelError:
            self.abort()
            raise
        self._end()
        if options.statistics:
            with replacing(path.with_suffix(".json")) as place:
                place.write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")
        if options.on_video is not None:
            options.on_video(os.fspath(path), info["episode"], info)
        return path


def _rgb_frame(frame: np.ndarray, number: int, shape: tuple[int, ...] = ()) -> np.ndarray:
    """Return a frame as a contiguous (H, W, 3) uint8 array.

    number: for errors. shape: what it must be, () for any. Raises GoalreelError.
    """
    try:
        pixels = to_rgb(np.asarray(frame))
    except ValueError:  # a ragged list
        pixels = np.asarray(None)
    fits = pixels.dtype == np.uint8 and pixels.size and pixels.shape[2:] == (3,)
    if fits and shape in ((), pixels.shape):
        return np.ascontiguousarray(pixels)
    allowed = f"{shape}, as the frames before it" if fits else "(height, width, 3)"
    raise GoalreelError(
        f"frame {number}: {type(frame).__name__} of {pixels.dtype}, shape {pixels.shape}; "
        f"allowed: uint8, shape {allowed}"
    )
