"""Snakemake's locks that a killed run left behind: known as such, and removed.

Snakemake locks its folder by files, which a kill or a power cut leaves there. Beside them each run
holds a lock of the kernel's, which ends with its process, however that ends. Who gets it alone
knows that no run is at work in this folder, on this machine; a lock file that was left on another
machine stays. Whether two living runs may work side by side is Snakemake's to say, not this
module's.
"""

import contextlib
import socket
import sys
from pathlib import Path
from typing import IO

_HELD: list[IO] = []  # open as long as this process lives


def release_stale_locks(folder: Path = Path(".snakemake")) -> None:
    """Remove Snakemake's locks from its folder if the run that wrote them is gone; say so.

    From then on this process counts as a run at work. Where files cannot be locked by the kernel,
    or the folder cannot be written, nothing is done, and Snakemake tells of `--unlock` itself.
    """
    with contextlib.suppress(ImportError, OSError):  # fcntl: not on Windows
        import fcntl

        folder.mkdir(exist_ok=True)
        stream = (folder / "goalreel.lock").open("a+", encoding="utf-8")
        _HELD.append(stream)
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            alone = False
        else:
            alone = True
        _release(stream, folder, alone)
        fcntl.flock(stream, fcntl.LOCK_SH)


def work_alone() -> bool:
    """Tell whether no other run is at work in this folder, on this machine; none can begin then.

    It waits until this process has ended.
    """
    if not _HELD:  # the folder cannot be written, or not be locked
        return True
    import fcntl

    try:
        fcntl.flock(_HELD[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(_HELD[-1], fcntl.LOCK_SH)  # the attempt may have given it up
        return False
    return True


def _release(stream: IO, folder: Path, alone: bool) -> None:
    """Remove the locks if all runs since there were none began on this machine, and are gone."""
    here = socket.gethostname()
    stream.seek(0)
    machines = set(stream.read().splitlines())
    locks = list((folder / "locks").glob("*.lock"))  # persistence/file.py (Snakemake 9.27)
    if alone and not locks:
        stream.truncate(0)
        machines = set()
    elif alone and machines == {here}:
        for lock in locks:
            lock.unlink(missing_ok=True)
        print("goalreel: released the lock of a run that was killed", file=sys.stderr)
    elif locks and not machines:
        stream.write("unknown\n")  # whose they are; so they stay, whoever comes next
    if here not in machines:
        stream.write(f"{here}\n")
        stream.flush()
