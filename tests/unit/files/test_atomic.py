"""Test concurrent writers of one path and the removal of their temporary folders."""

import os
import socket
import subprocess
import sys

from project import REPOSITORY

from goalreel.files.atomic import replacing

WRITER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from goalreel.files.atomic import replacing
for _ in range(20):
    with replacing("a.mp4") as temporary:
        temporary.write_bytes(b"film")
        time.sleep(0.01)
"""


def test_three_processes_can_replace_one_file(tmp_path):
    command = [sys.executable, "-c", WRITER, str(REPOSITORY / "scripts")]
    writers = [subprocess.Popen(command, cwd=tmp_path) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_replacing_removes_folder_of_dead_writer(tmp_path):
    prefix = f".a.mp4.goalreel-{socket.gethostname()}"
    zombie = subprocess.Popen(["true"])  # nobody waits for it yet
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    left = [tmp_path / f"{prefix}-{pid}-abc" for pid in (99999999, zombie.pid)]
    other_host = tmp_path / ".a.mp4.goalreel-other-host-1-abc"
    for folder in (*left, other_host):
        folder.mkdir()
        (folder / "a.mp4").write_bytes(b"half")
    with replacing(tmp_path / "a.mp4") as temporary:
        temporary.write_bytes(b"film")
    assert {path.name for path in tmp_path.iterdir()} == {"a.mp4", other_host.name}
    zombie.wait()
