"""Dry runs without Snakemake's start: a process that has imported it forks for each.

Snakemake's imports take longer than what a dry run does, and the tables of reruns have hundreds of
them. Real runs are started as a user starts them: see project.Project.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_PLANNER = """
import json, os, sys
import snakemake.cli
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        said = os.open(asked["said"], os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(said, stream)
        sys.path[0] = asked["folder"]
        sys.argv = ["snakemake", *asked["options"]]
        snakemake.cli.main()
        raise SystemExit
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
_running: list[subprocess.Popen] = []


def planned(folder: Path, options: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Return the exit status and the words of a Snakemake that runs nothing."""
    if not _running:
        command = [sys.executable, "-c", _PLANNER]
        pipe = subprocess.PIPE
        _running.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        atexit.register(_running[0].stdin.close)
    planner = _running[0]
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as said:
        asked = {"folder": str(folder), "options": options, "environment": environment}
        planner.stdin.write(json.dumps(asked | {"said": said.name}) + os.linesep)
        planner.stdin.flush()
        return int(planner.stdout.readline()), said.read()
