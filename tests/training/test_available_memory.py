"""Free memory: the machine's, or less where a container or a cluster's job is allowed less."""

from types import SimpleNamespace

import psutil
import pytest

from goalreel.training.pixels.available_memory import available_memory

MIB = 1 << 20


def group(path: str, limit, used: int, cache: int = 0) -> dict[str, object]:
    """Return the files of a group."""
    stat = f"anon 1\ninactive_file {cache * MIB}\nfile 3"
    limit = limit if limit == "max" else limit * MIB
    return {f"{path}memory.{n}": v for n, v in
            (("max", limit), ("current", used * MIB), ("stat", stat))}  # fmt: skip


@pytest.mark.parametrize(
    ("cgroup", "files", "free"),
    [
        (None, {}, 800),
        ("0::/\n", group("", "max", 900), 800),
        ("0::/\n", group("", 500, 200), 300),
        ("0::/\n", group("", 500, 490, cache=90), 100),
        ("0::/\n", group("", 500, 501), 0),
        ("0::/a/b\n", group("a/b/", "max", 10) | group("a/", 300, 50) | group("", 900, 50), 250),
        ("1:name=systemd:/\n0::/a/b\n", group("a/b/", 90, 10) | group("a/", 300, 50), 80),
        ("0::/not/seen\n", group("", 500, 200), 300),
    ],
)
def test_the_least_of_what_machine_and_groups_have_left(tmp_path, monkeypatch, cgroup, files, free):
    machine = SimpleNamespace(available=800 * MIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    own = tmp_path / "own"
    if cgroup:
        own.write_text(cgroup)
    for name, value in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    assert available_memory(own, tmp_path / "groups") == free * MIB
