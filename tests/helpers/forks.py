"""A server that has imported Snakemake, and what a run imports later, and forks for each run.

The imports take longer than a dry run, and the tests have hundreds of runs. Runs that a test stops,
or that use another Python, start as a user starts them: see project.Project.start.
"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_SERVER = """
import json, os, sys
import imageio_ffmpeg, numpy, PIL.Image, requests, smart_open
import snakemake.cli, snakemake.profiles, snakemake.report.html_reporter, snakemake.storage
program = os.path.join(os.path.dirname(snakemake.__file__), "__main__.py")
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(asked["output"], os.O_WRONLY)
        for stream, opened in enumerate((nothing, output, output)):
            os.dup2(opened, stream)
        sys.path[0] = asked["folder"]
        sys.argv = [program, *asked["options"]]  # as python -m snakemake has it
        snakemake.cli.main()
        raise SystemExit
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
_running: list[subprocess.Popen] = []


def run_snakemake(folder: Path, options: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Return the exit status and the output of a run."""
    if not _running:
        command = [sys.executable, "-c", _SERVER]
        pipe = subprocess.PIPE
        _running.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        atexit.register(_running[0].stdin.close)
    server = _running[0]
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output:
        asked = {"folder": str(folder), "options": options, "environment": environment}
        server.stdin.write(json.dumps(asked | {"output": output.name}) + os.linesep)
        server.stdin.flush()
        return int(server.stdout.readline()), output.read()
