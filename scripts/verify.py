"""Check every file of the results: its checksum, its spec, and the counts of frames and rows.

What Gymnasium has played and drawn is played again, and every step and picture compared. A line for
each stage reports the result. In the workflow, damaged files are removed, and the last
line names what has to be made again. By hand, nothing is removed; the spec is that of the job's
command:

    python scripts/verify.py results/verify.csv --spec '{"stage": "verify", "config": {
        "env": "MountainCar-v0", "film.fps": 30, "card_frames": 15, "unit": "reach"},
        "made_of": {...}, "shard": {"shards": 2, "reaches": 250, "size": 125}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the program with the arguments of a command line."""
    options = stage_parser(__doc__, "verify")
    options.add_argument("--threads", type=int, default=1, help="shards checked in parallel")
    options.add_argument("output", type=Path, help="the table to write, in the results folder")
    arguments = options.parse_args(argv)

    from goalreel.encoding import ffmpeg
    from goalreel.errors import GoalreelError
    from goalreel.verification.run import verify
    from goalreel.verification.single_files import Plan
    from goalreel.verification.verdict import fault_report, remove, write_verdicts
    from goalreel.workflow.stages import STAGES

    spec = spec_of(arguments)
    spec.check_tool("ffmpeg", ffmpeg.version())
    outputs = {name: stage.outputs for name, stage in STAGES.items()}
    film = (spec.config[name] for name in ("env", "film.fps", "card_frames"))
    shards, *counts = (spec.shard[name] for name in ("shards", "reaches", "size"))
    counts += [spec.reproducible]
    plan = Plan(outputs, spec.made_of, *film, shards, spec.config["unit"], *counts)
    verdicts = verify(arguments.output.parent, plan, arguments.threads)
    write_verdicts(arguments.output, verdicts)
    planned = cli.results() == arguments.output.parent.resolve()
    again = remove(verdicts) if planned else []
    if fault := fault_report(verdicts, again):
        raise GoalreelError(fault)
    cli.say("\n".join(map(str, verdicts)))


if __name__ == "__main__":
    cli.run(main)
