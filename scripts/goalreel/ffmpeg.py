"""The one place that starts ffmpeg: its binary, its arguments as a list, its errors in full.

The binary is imageio-ffmpeg's own, or the one that IMAGEIO_FFMPEG_EXE names. What is asked of it
stands in segment and film.
"""

import contextlib
import hashlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import cache

from goalreel.errors import GoalreelError

_PIPE_BYTES = 1 << 20  # the largest that Linux grants without privilege; the default is 64 kB
_STDERR_LINES = 20


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
    """Return what ffmpeg calls itself, such as n7.1, and a hash of what it says of its build."""
    try:
        answer = subprocess.run([executable(), "-version"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise GoalreelError(f"ffmpeg does not run: {error}") from None
    return f"{answer.split()[2].decode()} ({hashlib.sha256(answer).hexdigest()[:12]})"


def run(arguments: list[str], frames: Iterable = (), folder: str | os.PathLike = ".") -> int:
    """Run ffmpeg with `arguments` in `folder`, write `frames` (buffers) to its standard input.

    Returns the number of frames written. Raises GoalreelError, with ffmpeg's own words and the
    command, if it cannot be started, exits with an error, is killed, or does not take all frames.
    """
    command = [executable(), "-hide_banner", "-loglevel", "warning", *arguments]
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, cwd=folder
            )
        except OSError as error:
            raise GoalreelError(f"ffmpeg does not start: {error}") from None
        try:
            written, taken = _feed(process.stdin, frames)
            status = process.wait()
        finally:
            # An interrupt or an error among the frames: ffmpeg must not outlive its caller.
            if process.poll() is None:
                process.kill()
                process.wait()
            with contextlib.suppress(BrokenPipeError):  # what it had not read goes with it
                process.stdin.close()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    if status:
        raise GoalreelError(_failure(command, status, said))
    if not taken:
        raise GoalreelError(f"ffmpeg ended without an error after {written} frames of more: {said}")
    if said:
        print(said, file=sys.stderr)  # warnings belong into the job's log
    return written


def _feed(pipe, frames: Iterable) -> tuple[int, bool]:
    """Write every frame and close; return how many, and whether that was all.

    If ffmpeg has gone it stops quietly, since the exit status tells why.
    """
    with contextlib.suppress(ImportError, OSError, AttributeError):  # only Linux can
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    written = 0
    try:
        for frame in frames:
            pipe.write(frame)
            written += 1
        pipe.close()  # ffmpeg goes on to its end
    except BrokenPipeError:
        return written, False
    return written, True


def _failure(command: list[str], status: int, said: str) -> str:
    lines = said.splitlines()[-_STDERR_LINES:]
    if status < 0:
        ended = f"was killed by {signal.Signals(-status).name}"
    else:
        ended = f"failed with exit code {status}"
    words = "\n".join(f"  {line}" for line in lines) or "  (ffmpeg said nothing)"
    return f"ffmpeg {ended}:\n{words}\n  command: {shlex.join(command)}"
