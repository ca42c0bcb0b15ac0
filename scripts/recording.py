"""Read the recording that a policy plays, once, into blocks of rows of which a shard reads its own.

By hand:

    python scripts/recording.py recording.npz --spec '{"stage": "recording",
        "config": {"policy": {"name": "recorded", "file": "runs.csv"}}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "recording")
    options.add_argument("output", type=Path, help="the file to write, .npz")
    arguments = options.parse_args(argv)

    from goalreel.errors import counted
    from goalreel.policies.watched_files import check_files, policy_files
    from goalreel.simulation.recording_blocks import write_blocks
    from goalreel.simulation.recording_file import read_recording

    spec = spec_of(arguments)
    policy = spec.config["policy"]
    recording = read_recording(policy["file"])
    check_files(spec, policy_files(policy))
    write_blocks(arguments.output, recording, spec)
    cli.say(f"{counted(len(recording), 'episode')} of {counted(int(recording.offsets[-1]), 'row')}")


if __name__ == "__main__":
    cli.run(main)
