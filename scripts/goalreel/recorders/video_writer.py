"""Write RGB frames to an MP4 file while they are made, without keeping them in memory.

A `VideoWriter` takes frames and pipes them to ffmpeg. `VideoOptions` says how videos are encoded,
named and reported.
"""

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
from goalreel.errors import GoalreelError, unknown
from goalreel.files.atomic import replacing, write_text
from goalreel.mp4.reader import read_index

_LOWEST_FPS, _HIGHEST_FPS = 0.001, 1000
_LARGEST_DENOMINATOR = 1001  # as in the frame rate 30000/1001
# Called with a complete video's path, its episode's number and info.
OnVideo = Callable[[str, int, dict], object]
_SAMPLE = {"name_prefix": "", "env": 0, "episode": 0, "step": 0, "seed": 0, "return": 0.0}
_SAMPLE |= {"length": 0, "terminated": False, "truncated": False}


@dataclass(frozen=True)
class VideoOptions:
    """Options of videos. Raises GoalreelError if one is not allowed.

    Attributes:
        fps: frames per second, 0.001 to 1000, rounded to a fraction with a denominator of at most
            1001.
        qp: x264's quantizer, 0 to 51. 0 is lossless.
        preset: the x264 preset.
        name_pattern: the pattern of file names, instead of Gymnasium's names, such as
            "episode-{episode}-return-{return:.0f}". Other fields are {step} (at the start),
            {seed}, {length}, {name_prefix}, {env} (the index of a sub-environment), {terminated}
            and {truncated}.
        statistics: whether to write the info next to each video, as JSON.
        on_video: called with the path, the episode's number and its info when a file is complete.
            The info is a dict of the fields above and `frames`, of the episode in which the
            recording started. The seed is known if `reset` was given one.
        name_prefix: the prefix of file names.
    """

    fps: float | None
    qp: int = 23
    preset: str = "veryfast"
    name_pattern: str | None = None
    statistics: bool = False
    on_video: OnVideo | None = None
    name_prefix: str = "rl-video"

    def __post_init__(self) -> None:
        if not (isinstance(self.fps, Real) and _LOWEST_FPS <= self.fps <= _HIGHEST_FPS):
            fix = f"Use {_LOWEST_FPS} to {_HIGHEST_FPS}."
            raise GoalreelError(f"fps: {self.fps!r} is not allowed. {fix}")
        if self.qp not in range(52):
            fix = "Use a whole number from 0 (lossless) to 51."
            raise GoalreelError(f"qp: {self.qp!r} is not allowed. {fix}")
        if self.preset not in PRESETS:
            raise GoalreelError(f"preset: {unknown('value', self.preset, PRESETS)}")
        if self.name_pattern is None:
            return
        try:
            others = _SAMPLE | {"episode": 1, "step": 1}
            names = {self.name_pattern.format(**fields) for fields in (_SAMPLE, others)}
        except (LookupError, ValueError, AttributeError, TypeError) as error:
            problem = f"has an unknown field or format ({type(error).__name__}: {error})"
            fix = f"Use these fields:\n  {', '.join(f'{{{name}}}' for name in _SAMPLE)}"
            raise GoalreelError(f"name_pattern: {self.name_pattern!r} {problem}. {fix}") from None
        if len(names) < 2 or "/" in self.name_pattern:
            fix = "Use a file name without suffix, with {episode} or {step}."
            raise GoalreelError(f"name_pattern: {self.name_pattern!r} is not allowed. {fix}")

    @property
    def rate(self) -> Fraction:
        """The frames per second."""
        return Fraction(float(self.fps)).limit_denominator(_LARGEST_DENOMINATOR)


class VideoWriter:
    """An MP4 file that is being written. It gets its name when it has all frames.

    A recorder uses it like a list of frames. The copy in a forked child does nothing, because the
    file belongs to the parent.
    """

    def __init__(
        self, path: Path, options: VideoOptions, episode: Mapping, step: int, owner: object
    ) -> None:
        """Start without frames. ffmpeg starts with the first one.

        `path` is the file, unless the options have a name_pattern. `episode` is the info of the
        current episode, which the owner updates. The video is finished at the latest when the owner
        is garbage collected or Python ends.
        """
        self._path = path.absolute()  # the program may change its working folder
        self._options, self._episode, self._step = options, episode, step
        self._shape: tuple[int, ...] = ()
        self._draft: Path | None = None
        self._stream: ffmpeg.Stream | None = None
        self._is_finished, self._pid = False, os.getpid()
        self._written: set[Path] = vars(owner).setdefault("_written", set())  # names of patterns
        # When Python ends, `__del__` may be too late to wait for ffmpeg.
        self._at_exit = weakref.finalize(owner, self.finish)

    def __len__(self) -> int:
        return self._stream.written if self._stream else 0

    def append(self, frame: np.ndarray) -> None:
        """Write a frame, (H, W, 3) uint8, of the same size as the first one.

        If a side is odd and qp is not 0, the last row or column is repeated. Raises GoalreelError
        for a wrong frame, or if ffmpeg fails. The file is then deleted, and later frames ignored.
        """
        if self._is_finished or self._pid != os.getpid():
            return
        try:
            pixels = _rgb_frame(frame, len(self), self._shape)
            if self._stream is None:
                self._start(pixels.shape)
            rows, columns = self._odd  # added to odd sides for yuv420p
            if rows or columns:
                pixels = np.pad(pixels, ((0, rows), (0, columns), (0, 0)), "edge")
            self._stream.write(pixels)
        except GoalreelError:  # after an interrupt, the frames so far are intact
            self.abort()
            raise

    def __iadd__(self, frames: Iterable[np.ndarray]) -> "VideoWriter":
        for frame in frames:
            self.append(frame)
        return self

    def abort(self) -> None:
        """Stop and delete the file, unless it is finished."""
        if self._is_finished or self._pid != os.getpid():
            return
        self._set_finished()
        if self._stream is not None:
            self._stream.abort()
        if self._draft is not None:
            self._draft.unlink(missing_ok=True)

    def _set_finished(self) -> None:
        self._is_finished = True
        self._at_exit.detach()

    def _start(self, shape: tuple[int, ...]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # `replacing` would delete the draft of another recorder of this name. As in Gymnasium, the
        # last one to finish gets the name.
        descriptor, name = tempfile.mkstemp(".part", f".{self._path.name}.", self._path.parent)
        os.close(descriptor)
        self._draft, self._shape = Path(name), shape
        options, (height, width) = self._options, shape[:2]
        self._odd = (height % 2, width % 2) if options.qp else (0, 0)
        size = width + self._odd[1], height + self._odd[0]
        encoding = {"preset": options.preset, "qp": int(options.qp)}
        arguments = recording(self._draft, size, options.rate, encoding)
        self._stream = ffmpeg.Stream(arguments, own_group=True)

    def finish(self) -> Path | None:
        """Name the file, call `on_video` and return the path, or None if there are no frames.

        After an interrupt it can be called again. Raises GoalreelError, and deletes the file, if
        ffmpeg fails or the file does not hold exactly the written frames.
        """
        if self._stream is None or self._is_finished or self._pid != os.getpid():
            self.abort()
            return None
        options, info = self._options, dict(self._episode) | {"step": self._step}
        path = self._path
        if options.name_pattern is not None:
            fields = info | {"name_prefix": options.name_prefix}
            path = named = path.with_name(f"{options.name_pattern.format(**fields)}.mp4")
            while path in self._written:  # two videos with the same fields
                path = named.with_stem(f"{named.stem}-{len(self._written) + 1}")
            self._written.add(path)
        try:
            info["frames"] = self._stream.finish()
            if not self._draft.exists():
                problem = f"It was deleted before {path.name} was complete. Record again."
                raise GoalreelError(f"{self._draft}: {problem}")
            check_frames(read_index(self._draft), info["frames"], options.rate)
            try:
                with replacing(path) as temporary:
                    os.replace(self._draft, temporary)
            except OSError as error:
                fix = "Use another video_folder."
                raise GoalreelError(f"{path}: It cannot be written ({error}). {fix}") from None
        except GoalreelError:
            self.abort()
            raise
        self._set_finished()
        if options.statistics:
            write_text(path.with_suffix(".json"), json.dumps(info, indent=2) + "\n")
        if options.on_video is not None:
            options.on_video(os.fspath(path), info["episode"], info)
        return path


def _rgb_frame(frame: np.ndarray, number: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return a frame as contiguous (H, W, 3) uint8, of `shape` if not (). Raises GoalreelError."""
    try:
        pixels = to_rgb(np.asarray(frame))
    except ValueError:  # from a ragged list
        pixels = np.asarray(None)
    fits = pixels.dtype == np.uint8 and pixels.size and pixels.shape[2:] == (3,)
    if fits and shape in ((), pixels.shape):
        return np.ascontiguousarray(pixels)
    allowed = f"{shape}, like the frames before" if fits else "(height, width, 3)"
    found = f"{type(frame).__name__} of {pixels.dtype} and shape {pixels.shape}"
    raise GoalreelError(f"frame {number}: {found} is not allowed. Use uint8 of shape {allowed}.")
