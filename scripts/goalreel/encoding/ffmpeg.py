"""Run imageio-ffmpeg's binary, or IMAGEIO_FFMPEG_EXE, with frames on its standard input."""

import contextlib
import hashlib
import os
import re
import shlex
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Iterable
from functools import cache
from typing import IO

from goalreel.cli import say
from goalreel.errors import GoalreelError

_PIPE_BYTES = 1 << 20  # the maximum for unprivileged users on Linux; the default is 64 kB
_STDERR_LINES = 20
_EMPTY = memoryview(b"")
_FIX = "Correct or unset IMAGEIO_FFMPEG_EXE."


@cache
def executable() -> str:
    """Return the path of ffmpeg. Raises GoalreelError if it is not installed."""
    import imageio_ffmpeg

    try:
        return imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        fix = "Install it: pip install imageio-ffmpeg"
        raise GoalreelError(f"ffmpeg: Not found ({error}). {fix}") from None


@cache
def version() -> str:
    """Return the version of ffmpeg, such as n7.1, with a hash of its build description.

    Raises GoalreelError if it cannot be run, or is older than 7.0, the first with options in files.
    """
    try:
        answer = subprocess.run([executable(), "-version"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise GoalreelError(f"ffmpeg: Cannot be run ({error}). {_FIX}") from None
    if not answer.startswith(b"ffmpeg version "):
        found = f"\n  output of -version: {answer[:80]!r}"
        raise GoalreelError(f"{executable()}: Not ffmpeg. {_FIX}{found}")
    found = answer.split()[2].decode()
    if (number := re.match(r"n?(\d\d?)\.", found)) and int(number[1]) < 7:
        raise GoalreelError(f"{executable()}: Has version {found}, but 7.0 is needed. {_FIX}")
    return f"{found} ({hashlib.sha256(answer).hexdigest()[:12]})"


def run(arguments: list[str], frames: Iterable, output: IO[bytes] | None = None) -> int:
    """Run ffmpeg on buffers for its standard input, and return their number.

    Raises GoalreelError if ffmpeg cannot be started, fails, is killed, or stops reading early. The
    message has its standard error and the command.
    """
    with Stream(arguments, output=output) as stream:
        for frame in frames:
            stream.write(frame)
        return stream.finish()


def output(arguments: list[str], frames: Iterable) -> bytes:
    """Run ffmpeg as `run` does and return its standard output."""
    # A file instead of a pipe: writing to one pipe while reading another can deadlock.
    with tempfile.TemporaryFile() as file:
        run(arguments, frames, file)
        file.seek(0)
        return file.read()


def count_frames(path: str | os.PathLike, threads: int) -> tuple[int, str]:
    """Decode a video; return (frames, the decoder's warnings). Raises GoalreelError as `run`."""
    # Without "file:" a name such as "a:b.mp4" would be read as a protocol.
    arguments = ["-threads", str(threads), "-i", f"file:{path}", "-map", "0:v:0"]
    arguments += ["-fps_mode", "passthrough", "-progress", "pipe:1", "-f", "null", "-"]
    with tempfile.TemporaryFile() as file:
        with Stream(arguments, output=file) as stream:
            stderr = stream.end()
        file.seek(0)
        counts = [line for line in file.read().splitlines() if line.startswith(b"frame=")]
    return int(counts[-1].removeprefix(b"frame=")) if counts else 0, stderr


class Stream:
    """A running ffmpeg that accepts buffers until `finish` or `abort`.

    Leaving the context manager aborts an unfinished ffmpeg, so that it does not outlive its caller.
    Forked children close their copies of the pipe, because ffmpeg would wait for them to exit.
    Raises GoalreelError as `run` does.
    """

    def __init__(
        self, arguments: list[str], own_group: bool = False, output: IO[bytes] | None = None
    ) -> None:
        """Start ffmpeg, in a group of its own if Ctrl-C must reach only the caller."""
        # Number of buffers accepted, the last buffer, and the bytes taken by each write of it.
        # They share one attribute so that an interrupt never sees a partial update.
        self._last: tuple[int, memoryview, list[int]] = (0, _EMPTY, [])
        self._command = [executable(), "-hide_banner", "-loglevel", "warning", *arguments]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (_wait closes it)
        self._stderr = ""
        try:
            self._process = subprocess.Popen(
                self._command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=output or subprocess.DEVNULL,
                stderr=self._errors,
                process_group=0 if own_group else None,
            )
        except OSError as error:
            self._errors.close()
            raise GoalreelError(f"ffmpeg cannot be started: {error}") from None
        self._pipe = self._process.stdin
        with contextlib.suppress(ImportError, OSError, AttributeError):  # only on Linux
            import fcntl

            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        _STREAMS.add(self)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_) -> None:
        self.abort()

    @property
    def written(self) -> int:
        """The number of buffers accepted."""
        return self._last[0]

    def write(self, frame) -> None:
        """Write a contiguous buffer. Raises GoalreelError if ffmpeg has ended.

        After an interrupt the next call first writes the remaining bytes, since half a frame would
        shift all later frames.
        """
        buffer = memoryview(frame).cast("B")
        self._write_pending()
        self._last = (self.written + 1, buffer, [])
        self._write_pending()

    def finish(self) -> int:
        """Wait until ffmpeg ends, again after an interrupt, and return the number of buffers."""
        if stderr := self.end():
            say(stderr)  # warnings go to the log of the job
        return self.written

    def end(self) -> str:
        """Wait until ffmpeg ends, as `finish` does, and return its standard error."""
        self._write_pending()
        status, stderr = self._wait()
        if status:
            raise GoalreelError(_failure(self._command, status, stderr))
        return stderr

    def abort(self) -> None:
        """Kill ffmpeg if it is still running."""
        if self._process.poll() is None:
            self._process.kill()
        self._wait()

    def _write_pending(self) -> None:
        """Write the remaining bytes of the last buffer."""
        number, buffer, taken = self._last
        try:
            while (place := sum(taken)) < len(buffer):
                # Write and record in one call, so that no signal handler runs in between.
                taken.extend(map(self._pipe.write, [buffer[place:]]))
            self._last = (number, _EMPTY, [])  # its owner may now change it
        except BrokenPipeError:
            raise GoalreelError(_failure(self._command, *self._wait())) from None

    def _wait(self) -> tuple[int, str]:
        """Wait for ffmpeg and return its exit status and standard error."""
        self._pipe.close()
        status = self._process.wait()
        if not self._errors.closed:
            self._errors.seek(0)
            self._stderr = self._errors.read().decode(errors="replace").strip()
            self._errors.close()
        return status, self._stderr


_STREAMS: weakref.WeakSet[Stream] = weakref.WeakSet()


def _close_pipes() -> None:
    for stream in _STREAMS:
        stream._pipe.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_pipes)


def _failure(command: list[str], status: int, stderr: str) -> str:
    """Return the message about an ffmpeg that failed or stopped reading."""
    killed = status < 0 and f"Killed by {signal.Signals(-status).name}"
    failed = f"Failed with exit code {status}" if status else "Ended before the last frame"
    lines = stderr.splitlines()[-_STDERR_LINES:] or ["(no output)"]
    text = "\n".join(f"  {line}" for line in (*lines, f"command: {shlex.join(command)}"))
    return f"ffmpeg: {killed or failed}.\n{text}"
