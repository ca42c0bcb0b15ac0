"""How much memory a process can take: what the machine has free, and what its container allows.

A container, or a job of a cluster, that takes more than its cgroup allows is killed silently.
"""

from collections.abc import Iterator
from pathlib import Path

import psutil

_CGROUPS = Path("/sys/fs/cgroup")


def available_memory(own: Path = Path("/proc/self/cgroup"), groups: Path = _CGROUPS) -> int:
    """Return the bytes that can be taken without swapping.

    Args:
        own: the file that names the process's control group.
        groups: the folder of all groups, of version 2 (Linux, admin-guide/cgroup-v2.rst).
    """
    return max(min([psutil.virtual_memory().available, *_left_by_groups(own, groups)]), 0)


def _left_by_groups(own: Path, groups: Path) -> Iterator[int]:
    """Yield what the process's control group, and those that it is in, have left."""
    name = own.read_text().rpartition("::/")[2].strip() if own.exists() else ""
    for group in (groups / name, *(groups / name).parents):
        try:
            limit, used = ((group / f"memory.{n}").read_text().strip() for n in ("max", "current"))
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        except OSError:  # no group, or one that is not visible here
            continue
        if limit != "max":
            yield int(limit) - int(used) + int(stat["inactive_file"])  # cache that can be freed
