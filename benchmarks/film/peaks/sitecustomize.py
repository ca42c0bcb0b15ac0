"""Write the memory and CPU time of each Python process of a run to the folder GOALREEL_PEAKS.

Python imports this module at its start if PYTHONPATH contains its folder. The run itself stays
unchanged. Each process writes a JSON file named after its program, with the peak of its memory in
bytes, and the CPU seconds of the process and of the children that it waited for.
"""

import atexit
import os


def _leave() -> None:
    import json  # late, so that the program starts unchanged
    import re
    import sys
    import time
    from pathlib import Path

    # ru_maxrss would include the memory of the parent when it started this process.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024
    user, system, children_user, children_system, _ = os.times()
    told = {"peak": peak, "own": user + system, "children": children_user + children_system}
    program = Path(sys.argv[0].removesuffix(f"{os.sep}__main__.py")).stem  # python -m snakemake
    path = Path(os.environ["GOALREEL_PEAKS"], f"{program}.{os.getpid()}.{time.monotonic_ns()}.json")
    path.write_text(json.dumps(told), encoding="utf-8")


if "GOALREEL_PEAKS" in os.environ:
    atexit.register(_leave)
