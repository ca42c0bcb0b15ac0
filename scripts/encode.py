"""Encode one shard: lay the overlay over its frames and make a segment, an MP4 of closed GOPs.

By hand:

    python scripts/encode.py --frames f.npz --trajectories t.npz segment.mp4 --spec '{
        "stage": "encode", "config": {"env": "MountainCar-v0", "film.fps": 30,
        "overlay": {"title_card": 0.5, "caption": "Reach {reach}", "hud": false},
        "encode": {"encoder": "x264", "preset": "veryfast", "qp": 23}}}'
"""

from pathlib import Path

from goalreel import program


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = program.stage_parser(__doc__, "encode")
    options.add_argument("--frames", type=Path, required=True, help="the shard's frame cache")
    options.add_argument("--trajectories", type=Path, required=True)
    options.add_argument("output", type=Path, help="the segment to write, .mp4")
    arguments = options.parse_args(argv)

    from goalreel import ffmpeg
    from goalreel.cards import card_frames
    from goalreel.frame_cache import open_cache
    from goalreel.overlay import captions, overlaid
    from goalreel.segment import encode_segment
    from goalreel.trajectories import read_trajectories

    spec = program.spec_of(arguments)
    spec.check_tool("ffmpeg", ffmpeg.version())
    fps, overlay = spec.config["film.fps"], spec.config["overlay"]
    trajectories, env = read_trajectories(arguments.trajectories), spec.config["env"]
    cache = overlaid(
        open_cache(arguments.frames),
        trajectories,
        env,
        captions(overlay["caption"], trajectories, env),
        overlay["hud"],
        card_frames(overlay["title_card"], fps),
    )
    encode_segment(
        cache,
        arguments.output,
        fps,
        spec.config["encode"],
        spec.signed(cache.source),
    )
    program.say(f"{len(cache)} frames in {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    program.run(main)
