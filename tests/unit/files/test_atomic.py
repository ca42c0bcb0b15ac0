"""Several writers of one path: each ends, and what a killed one left goes."""

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


def test_replacing_by_three_processes_at_once_ends_well(tmp_path):
    command = [sys.executable, "-c", WRITER, str(REPOSITORY / "scripts")]
    writers = [subprocess.Popen(command, cwd=tmp_path) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_replacing_removes_what_a_dead_writer_left(tmp_path):
    left = tmp_path / f".a.mp4.goalreel-{socket.gethostname()}-99999999-abc"
    elsewhere = tmp_path / ".a.mp4.goalreel-other-host-1-abc"
    for folder in (left, elsewhere):
        folder.mkdir()
        (folder / "a.mp4").write_bytes(b"half")
    with replacing(tmp_path / "a.mp4") as temporary:
        temporary.write_bytes(b"film")
    assert {path.name for path in tmp_path.iterdir()} == {"a.mp4", elsewhere.name}
