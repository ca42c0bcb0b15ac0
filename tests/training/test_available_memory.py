"""Free memory: the machine's, or less where a container or a cluster's job is allowed less."""

import pytest

from goalreel.training.pixels.available_memory import available_memory

MIB = 1 << 20


def tree(folder, cgroup: str, files: dict[str, object]):
    """Write a fake /proc, of 800 MiB free, and /sys/fs/cgroup; return their root."""
    (folder / "proc/self").mkdir(parents=True)
    told = f"MemTotal: 2048000 kB\nMemFree: 9 kB\nMemAvailable: {800 * 1024} kB\n"
    (folder / "proc/meminfo").write_text(told)
    (folder / "proc/self/cgroup").write_text(cgroup)
    for name, value in files.items():
        path = folder / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return folder


def group(path: str, limit, used: int, cache: int = 0) -> dict[str, object]:
    """Return the files of a group of version 2."""
    told = f"anon 1\ninactive_file {cache * MIB}\nfile 3"
    limit = limit if limit == "max" else limit * MIB
    return {f"{path}memory.{n}": v for n, v in
            (("max", limit), ("current", used * MIB), ("stat", told))}  # fmt: skip


V1 = {
    "memory/memory.limit_in_bytes": 2**63 - 4096,
    "memory/memory.usage_in_bytes": 600 * MIB,
    "memory/memory.stat": "cache 5",
    "memory/job/memory.limit_in_bytes": 256 * MIB,
    "memory/job/memory.usage_in_bytes": 100 * MIB,
    "memory/job/memory.stat": f"inactive_file 0\ntotal_inactive_file {4 * MIB}",
}


@pytest.mark.parametrize(
    ("cgroup", "files", "free"),
    [
        ("", {}, 800),
        ("0::/\n", group("", "max", 900), 800),
        ("0::/\n", group("", 500, 200), 300),
        ("0::/\n", group("", 500, 490, cache=90), 100),
        ("0::/\n", group("", 500, 501), 0),
        ("0::/a/b\n", group("a/b/", "max", 10) | group("a/", 300, 50) | group("", 900, 50), 250),
        ("0::/a/b\n", group("a/b/", 90, 10) | group("a/", 300, 50), 80),
        ("0::/not/seen\n", group("", 500, 200), 300),
        ("5:cpu,cpuacct:/job\n4:memory:/job/step\n1:name=systemd:/\n", V1, 160),
    ],
)
def test_the_least_of_what_machine_and_groups_have_left(tmp_path, cgroup, files, free):
    assert available_memory(tree(tmp_path, cgroup, files)) == free * MIB


def test_where_nothing_is_told(tmp_path):
    assert available_memory(tmp_path) is None
