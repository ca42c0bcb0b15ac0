"""How much memory a process can take: what the machine has free, and what its container allows.

A container, or a job of a cluster, that takes more than its cgroup allows is killed silently.
"""

from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/")
# Of version 1 and 2 (Linux, admin-guide/cgroup-v1/memory.rst and admin-guide/cgroup-v2.rst): the
# folder of all groups, the limit, what is used, and which part of that is cache that can be freed.
_FILES = {
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    "": ("", "memory.max", "memory.current", "inactive_file"),
}


def available_memory(root: Path = _ROOT) -> int | None:
    """Return the bytes that can be taken without swapping, None where that is unknown (macOS)."""
    try:
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    free = int(dict(line.split(":") for line in lines)["MemAvailable"].split()[0]) * 1024
    return max(min([free, *_allowed(root)]), 0)


def _allowed(root: Path) -> Iterator[int]:
    """Yield what the process's control groups, and those that they are in, have left."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in groups:
        _, controllers, name = line.split(":", 2)
        if controllers in _FILES:
            folder, *files = _FILES[controllers]
            top = root / "sys/fs/cgroup" / folder
            own = Path(name.lstrip("/"))
            for group in (own, *own.parents):  # which end with "."
                left = _left(top / group, *files)
                if left is not None:
                    yield left


def _left(group: Path, limit: str, used: str, cache: str) -> int | None:
    """Return the bytes that a group has left, None if it has no limit or is not visible here."""
    try:
        most = (group / limit).read_text().strip()
        if most == "max":
            return None
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return int(most) - int((group / used).read_text()) + int(stat.get(cache, 0))
    except OSError:
        return None
