"""Encode one shard: turn its frame cache into a segment, an MP4 file of closed GOPs.

By hand:

    python scripts/encode.py --frames frames.npz segment.mp4 --spec '{"stage": "encode",
        "config": {"film.fps": 30, "encode": {"encoder": "x264", "preset": "veryfast", "qp": 23}}}'
"""

from pathlib import Path

from goalreel import program


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = program.stage_parser(__doc__, "encode")
    options.add_argument("--frames", type=Path, required=True, help="the shard's frame cache")
    options.add_argument("output", type=Path, help="the segment to write, .mp4")
    arguments = options.parse_args(argv)

    from goalreel import ffmpeg
    from goalreel.frame_cache import open_cache
    from goalreel.segment import encode_segment

    spec = program.spec_of(arguments)
    spec.check_tool("ffmpeg", ffmpeg.version())
    cache = open_cache(arguments.frames)
    encode_segment(
        cache,
        arguments.output,
        spec.config["film.fps"],
        spec.config["encode"],
        spec.signed(cache.source),
    )
    program.say(f"{len(cache)} frames in {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    program.run(main)
