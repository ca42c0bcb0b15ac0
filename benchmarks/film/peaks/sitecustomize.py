"""What every Python process of a run needed, left in the folder GOALREEL_PEAKS as it ends.

Python imports this module as it starts where PYTHONPATH names its folder: so a run is measured
without a change to it. A file is named after the program and says, in JSON, peak: bytes of memory
held at most; own, children: CPU seconds, user and system, of the process and of those that it
waited for.
"""

import atexit
import os


def _leave() -> None:
    import json  # here, so that the program starts as it does alone
    import re
    import sys
    import time
    from pathlib import Path

    try:
        # Not ru_maxrss, which counts what the parent held as it started this process.
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        peak = int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024
    except OSError:
        peak = 0
    times = os.times()
    told = {
        "peak": peak,
        "own": times.user + times.system,
        "children": times.children_user + times.children_system,
    }
    program = Path(sys.argv[0].removesuffix(f"{os.sep}__main__.py")).stem  # python -m snakemake
    path = Path(os.environ["GOALREEL_PEAKS"], f"{program}.{os.getpid()}.{time.monotonic_ns()}.json")
    path.write_text(json.dumps(told), encoding="utf-8")


if "GOALREEL_PEAKS" in os.environ:
    atexit.register(_leave)
