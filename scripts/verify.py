"""Check every file of the results: its checksum, its spec, and what all of them must count.

A line for each stage tells what was found. What is damaged is removed, and the last line names
what is to be made again. By hand, with the spec of the workflow as the job's own command has it:

    python scripts/verify.py results/verify.csv --spec '{"stage": "verify", "config": {
        "env": "MountainCar-v0", "film.fps": 30, "card_frames": 15}, "made_of": {...},
        "shard": {"shards": 2, "reaches": 250, "size": 125}}'
"""

import shlex
from pathlib import Path

from goalreel import program


def main(argv: list[str] | None = None) -> None:
    """Run the program with the arguments of a command line."""
    options = program.stage_parser(__doc__, "verify")
    options.add_argument("--threads", type=int, default=1, help="shards checked side by side")
    options.add_argument("output", type=Path, help="the table to write, in the folder of results")
    arguments = options.parse_args(argv)

    from goalreel import ffmpeg
    from goalreel.errors import GoalreelError
    from goalreel.verdicts import remove, write_verdicts
    from goalreel.verify import verify
    from goalreel.verify_files import Plan

    spec = program.spec_of(arguments)
    spec.check_tool("ffmpeg", ffmpeg.version())
    numbers = (spec.shard[name] for name in ("shards", "reaches", "size"))
    config, per_file = spec.config, spec.shard.get("per_file")
    plan = Plan(spec.made_of, config["film.fps"], config["card_frames"], *numbers, per_file)
    verdicts = verify(arguments.output.parent, plan, arguments.threads)
    write_verdicts(arguments.output, verdicts)
    faults = {path: fault for verdict in verdicts for path, fault in verdict.faults.items()}
    again = remove(verdicts)
    lines = [str(verdict) for verdict in verdicts]
    if again:
        lines += [f"{path}: {faults.get(path, 'missing')}" for path in again]
        removed = "; what is damaged is removed" if faults else ""
        lines = [f"the results are not whole{removed}", *lines]
        raise GoalreelError("\n".join([*lines, f"make again: {shlex.join(map(str, again))}"]))
    program.say("\n".join(lines))


if __name__ == "__main__":
    program.run(main)
