"""Compare two runs: the episodes of the same seeds side by side, and a table of differences.

By hand:

    python scripts/compare.py compare/compare.mp4 compare/compare.csv compare/SHA256SUMS --spec '{
        "stage": "compare", "shard": {}, "config": {"compare": ["results-a", "results-b"],
            "view_encoder": {"encoder": "x264", "preset": "veryfast", "qp": 23}}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "compare")
    options.add_argument("video", type=Path, help="the video to write, .mp4")
    options.add_argument("table", type=Path, help="the table of differences to write, .csv")
    options.add_argument("sums", type=Path, help="the checksums of both to write")
    arguments = options.parse_args(argv)

    from goalreel.policies.watched_files import check_files
    from goalreel.provenance.checksums import results_files, write_sums
    from goalreel.report.compare import film_pairs, pairs_of, read_run, write_differences

    spec = spec_of(arguments)
    folders = spec.config["compare"]
    check_files(spec, results_files(folders))
    runs = read_run(folders[0]), read_run(folders[1])
    pairs = pairs_of(runs)
    frames = film_pairs(arguments.video, runs, pairs, spec)
    write_differences(arguments.table, runs, pairs)
    write_sums(arguments.sums, [arguments.video, arguments.table])
    cli.say(f"{len(pairs)} seeds in {frames} frames")


if __name__ == "__main__":
    cli.run(main)
