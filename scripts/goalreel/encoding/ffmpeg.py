"""The one place that starts ffmpeg: its binary, its arguments as a list, its errors in full.

The binary is imageio-ffmpeg's own, or the one that IMAGEIO_FFMPEG_EXE names.
"""

import contextlib
import hashlib
import os
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

_PIPE_BYTES = 1 << 20  # the largest that Linux grants without privilege; the default is 64 kB
_STDERR_LINES = 20
_NOTHING = memoryview(b"")


@cache
def executable() -> str:
    """Return the path of ffmpeg. Raises GoalreelError if there is none."""
    import imageio_ffmpeg

    try:
        return imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        raise GoalreelError(f"no ffmpeg: {error}; install the pinned imageio-ffmpeg") from None


@cache
def version() -> str:
    """Return ffmpeg's version, such as n7.1, and a hash of the description of its build."""
    try:
        answer = subprocess.run([executable(), "-version"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise GoalreelError(f"ffmpeg cannot be run: {error}") from None
    if not answer.startswith(b"ffmpeg version "):
        raise GoalreelError(
            f"{executable()} is not ffmpeg: it answers -version with {answer[:80]!r}"
        )
    return f"{answer.split()[2].decode()} ({hashlib.sha256(answer).hexdigest()[:12]})"


def run(arguments: list[str], frames: Iterable, output: IO[bytes] | None = None) -> int:
    """Run ffmpeg, write `frames` (buffers) to its standard input; return the number of frames.

    output: an open file for its standard output.

    Raises:
        GoalreelError: ffmpeg cannot be started, exits with an error, is killed, or does not take
            all frames; with its standard error and the command.
    """
    with Stream(arguments, output=output) as stream:
        for frame in frames:
            stream.write(frame)
        return stream.finish()


def output(arguments: list[str], frames: Iterable) -> bytes:
    """Run ffmpeg as `run` does; return what it wrote to its standard output."""
    # A file, not a pipe: whoever writes to one pipe and reads from another may wait for ever.
    with tempfile.TemporaryFile() as file:
        run(arguments, frames, file)
        file.seek(0)
        return file.read()


def decoded(path: str | os.PathLike, threads: int) -> tuple[int, str]:
    """Decode a file's video; return the number of frames, and the decoder's warnings.

    Raises GoalreelError if ffmpeg fails.
    """
    # file: else a name such as "a:b.mp4" would be taken for a protocol.
    arguments = ["-threads", str(threads), "-i", f"file:{path}", "-map", "0:v:0"]
    arguments += ["-fps_mode", "passthrough", "-progress", "pipe:1", "-f", "null", "-"]
    with tempfile.TemporaryFile() as file:
        with Stream(arguments, output=file) as stream:
            stderr = stream.end()
        file.seek(0)
        counts = [line for line in file.read().splitlines() if line.startswith(b"frame=")]
    return int(counts[-1].removeprefix(b"frame=")) if counts else 0, stderr


class Stream:
    """A running ffmpeg that takes buffers on its standard input until `finish` or `abort`.

    As a context manager it is aborted if the block does not finish it: ffmpeg must not outlive its
    caller. A forked child closes its copies of its parent's pipes, since ffmpeg would wait for the
    child's end too. Raises GoalreelError as `run` does.
    """

    def __init__(
        self,
        arguments: list[str],
        apart: bool = False,
        output: IO[bytes] | None = None,
    ) -> None:
        """Start ffmpeg.

        Args:
            arguments: without the program.
            apart: in a process group of its own, so that Ctrl-C reaches only the caller, who then
                finishes what was written.
            output: an open file for its standard output.
        """
        # The number of buffers taken, the last of them, and how many bytes each write took of it.
        # One attribute, so that an interrupt finds it as it was or as it will be.
        self._last: tuple[int, memoryview, list[int]] = (0, _NOTHING, [])
        self._command = [executable(), "-hide_banner", "-loglevel", "warning", *arguments]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (_end closes it)
        self._stderr = ""
        try:
            self._process = subprocess.Popen(
                self._command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=output or subprocess.DEVNULL,
                stderr=self._errors,
                process_group=0 if apart else None,
            )
        except OSError as error:
            self._errors.close()
            raise GoalreelError(f"ffmpeg cannot be started: {error}") from None
        self._pipe = self._process.stdin
        with contextlib.suppress(ImportError, OSError, AttributeError):  # only Linux can
            import fcntl

            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        _STREAMS.add(self)

    def __enter__(self) -> "Stream":
        """Return the stream."""
        return self

    def __exit__(self, *_) -> None:
        """Abort what is not finished."""
        self.abort()

    @property
    def written(self) -> int:
        """Return the number of buffers taken."""
        return self._last[0]

    def write(self, frame) -> None:
        """Write a contiguous buffer. Raises GoalreelError if ffmpeg has gone.

        If an interrupt breaks it, the rest of the buffer goes before what comes next: half a frame
        would shift all that follow.
        """
        buffer = memoryview(frame).cast("B")
        self._push()
        self._last = (self.written + 1, buffer, [])
        self._push()

    def finish(self) -> int:
        """Wait until ffmpeg ends; return the number of buffers written.

        If an interrupt breaks the wait, finish can be called again.
        """
        if stderr := self.end():
            say(stderr)  # warnings belong into the job's log
        return self.written

    def end(self) -> str:
        """Wait until ffmpeg ends, as `finish` does; return its standard error."""
        self._push()
        status, stderr = self._end()
        if status:
            raise GoalreelError(_failure(self._command, status, stderr))
        return stderr

    def abort(self) -> None:
        """Kill ffmpeg if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._end()

    def _push(self) -> None:
        """Write what the last buffer still holds."""
        number, buffer, taken = self._last
        try:
            while (place := sum(taken)) < len(buffer):
                # Write and note in one call: no signal's handler comes between them.
                taken.extend(map(self._pipe.write, [buffer[place:]]))
            self._last = (number, _NOTHING, [])  # its owner may want to change it
        except BrokenPipeError:
            status, stderr = self._end()
            if status:
                raise GoalreelError(_failure(self._command, status, stderr)) from None
            raise GoalreelError(
                f"ffmpeg ended without an error after {number - 1} frames, before the last one: "
                f"{stderr or 'it printed nothing'}"
            ) from None

    def _end(self) -> tuple[int, str]:
        """Wait for ffmpeg; return its exit status and its standard error."""
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
    lines = stderr.splitlines()[-_STDERR_LINES:]
    if status < 0:
        ended = f"was killed by {signal.Signals(-status).name}"
    else:
        ended = f"failed with exit code {status}"
    text = "\n".join(f"  {line}" for line in lines) or "  (it printed nothing)"
    return f"ffmpeg {ended}:\n{text}\n  command: {shlex.join(command)}"
