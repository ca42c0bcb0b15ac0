"""RGB frames to an MP4 file while they are made: one `write` after another, none kept in memory."""

import contextlib
import math
import os
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

# read_index imports sample_table_reader when it needs it, which may be while Python ends after
# Ctrl-C; an import then would replace the exception that Python ends with.
from goalreel.arrays import to_rgb
from goalreel.encoding import ffmpeg
from goalreel.encoding.x264 import PRESETS, check_frames, recording
from goalreel.errors import GoalreelError
from goalreel.files.atomic import replacing
from goalreel.mp4 import sample_table_reader  # noqa: F401
from goalreel.mp4.reader import read_index

_LOWEST_FPS, _HIGHEST_FPS = 0.001, 1000
_LARGEST_DENOMINATOR = 1001  # of a frame rate: 30000/1001 is one


class Encoder:
    """An MP4 file in the making; it takes its name when `finish` has found all frames in it.

    A forked child's copy does nothing: the file is its parent's.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        fps: float,
        qp: int = 23,
        preset: str = "veryfast",
        first: int = 0,
    ) -> None:
        """Check the settings; ffmpeg starts with the first frame.

        Args:
            path: the file.
            fps: 0.001 to 1000, taken as the nearest fraction with a denominator up to 1001.
            qp: constant quantiser, 0 to 51; 0 is lossless.
            preset: x264's, one of PRESETS.
            first: the number that errors give to the first frame.

        Raises:
            GoalreelError: a setting is not allowed.
        """
        self.path = Path(path).absolute()  # the program may change its folder meanwhile
        self._rate = _rate(fps)
        if preset not in PRESETS:
            raise GoalreelError(f"preset: {preset!r}; allowed: {', '.join(PRESETS)}")
        self._encode = {"preset": preset, "qp": _quantiser(qp)}
        self._first = first
        self._shape: tuple[int, ...] = ()
        self._odd = (0, 0)  # rows and columns that yuv420p, which wants even sides, adds
        self._draft: Path | None = None
        self._stream: ffmpeg.Stream | None = None
        self._owner = os.getpid()

    @property
    def written(self) -> int:
        """Return the number of frames written."""
        return self._stream.written if self._stream else 0

    def write(self, frame: np.ndarray) -> None:
        """Write a frame, (H, W, 3) uint8, of the first one's size.

        Where the size is odd and qp is not 0, the last row or column is repeated. Raises
        GoalreelError, and drops the file, if the frame is something else or ffmpeg fails.
        """
        if self._owner != os.getpid():
            return
        try:
            pixels = _rgb_frame(frame, self._first + self.written, self._shape)
            if self._stream is None:
                self._start(pixels.shape)
            if any(self._odd):
                down, across = self._odd
                pixels = np.pad(pixels, ((0, down), (0, across), (0, 0)), "edge")
            self._stream.write(pixels)
        except GoalreelError:  # not an interrupt, after which the frames so far are still good
            self.abort()
            raise

    def finish(self, name: str | None = None) -> int:
        """Give the file its name; return its number of frames. Without frames there is no file.

        name: of the file in its folder, which `path` changes to; None for that of `path`. An
        interrupt leaves it to be finished by another call. Raises GoalreelError, and drops the
        file, if ffmpeg fails or the file does not hold exactly the frames written.
        """
        if self._stream is None or self._owner != os.getpid():
            self.abort()
            return 0
        if name is not None:
            self.path = self.path.with_name(name)
        try:
            written = self._stream.finish()
            if not self._draft.exists():
                raise GoalreelError(f"{self._draft}: removed while {self.path} was recorded")
            check_frames(read_index(self._draft), written, self._rate)
            self._name()
        except GoalreelError:
            self.abort()
            raise
        self._stream = None
        return written

    def abort(self) -> None:
        """Stop, and leave no file. After `finish` nothing happens."""
        if self._owner != os.getpid():
            return
        if self._stream is not None:
            self._stream.abort()
            self._stream = None
        if self._draft is not None:
            self._draft.unlink(missing_ok=True)

    def _start(self, shape: tuple[int, ...]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Not open in `replacing` all along: two recorders of one name must not remove each
        # other's drafts. Whoever finishes last has the name, as with Gymnasium.
        handle, name = tempfile.mkstemp(".part", f".{self.path.name}.", self.path.parent)
        os.close(handle)
        self._draft, self._shape = Path(name), shape
        height, width = shape[:2]
        if self._encode["qp"]:
            self._odd = height % 2, width % 2
        size = width + self._odd[1], height + self._odd[0]
        arguments = recording(self._draft, size, self._rate, self._encode)
        self._stream = ffmpeg.Stream(arguments, apart=True)

    def _name(self) -> None:
        try:
            with replacing(self.path) as place:
                os.replace(self._draft, place)
        except OSError as error:
            raise GoalreelError(f"{self.path}: cannot be written: {error}") from None


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


def _rate(fps: float) -> Fraction:
    try:
        if _LOWEST_FPS <= fps <= _HIGHEST_FPS:
            return Fraction(float(fps)).limit_denominator(_LARGEST_DENOMINATOR)
    except TypeError:
        pass
    raise GoalreelError(f"fps: {fps!r}; allowed: {_LOWEST_FPS} to {_HIGHEST_FPS}")


def _quantiser(qp: int) -> int:
    with contextlib.suppress(TypeError):
        if 0 <= qp <= 51 and qp == math.floor(qp):
            return int(qp)
    raise GoalreelError(f"qp: {qp!r}; allowed: a whole number from 0 (lossless) to 51")
