"""Write one shard's segment, an MP4 file of closed GOPs: its frames with their overlay.

It is assembled from a coded atlas's pictures or from its own blocks, or encoded by x264. By hand:

    python scripts/encode.py --coded-atlas d.npz --frames f.npz --trajectories t.npz segment.mp4
        --spec '{"stage": "encode", "config": {"env": "MountainCar-v0", "film.fps": 30,
        "card_frames": 15, "unit": "reach", "overlay.caption": "Reach {reach}",
        "overlay.hud": false, "render.scale": 1,
        "film_encoder": {"encoder": "assemble", "qp": 34, "card_qp": 20}}}'

or, without --coded-atlas, with "film_encoder": {"encoder": "x264", "preset": "veryfast", "qp": 23},
or, of what Gymnasium draws, {"encoder": "blocks", "qp": 25, "card_qp": 12}.
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "encode")
    options.add_argument(
        "--coded-atlas", type=Path, nargs="?", help="coded atlas, to assemble from"
    )
    options.add_argument("--frames", type=Path, required=True, help="the shard's frame cache")
    options.add_argument("--trajectories", type=Path, required=True)
    options.add_argument("--size", type=int, nargs=2, default=(0, 0), help="least rows, columns")
    options.add_argument("output", type=Path, help="the segment to write, .mp4")
    arguments = options.parse_args(argv)

    from goalreel.encoding import ffmpeg
    from goalreel.encoding.assembling.coded_atlas import read_coded_atlas
    from goalreel.errors import GoalreelError
    from goalreel.films.segment import assemble_blocks, assemble_segment, encode_segment
    from goalreel.pictures.frame_cache import open_cache
    from goalreel.pictures.overlay import captions, overlaid
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.provenance.spec import check_alike
    from goalreel.simulation.trajectories import read_trajectories

    spec = spec_of(arguments)
    spec.check_tool("ffmpeg", ffmpeg.version())
    made = {"simulate": arguments.trajectories, "render": arguments.frames}
    check_inputs(spec, **made, coded_atlas=arguments.coded_atlas)
    config, frames = spec.config, open_cache(arguments.frames, arguments.size)
    trajectories, env = read_trajectories(arguments.trajectories), config["env"]
    texts = captions(config["overlay.caption"], trajectories, env, config["unit"])
    seen = texts, config["overlay.hud"], config["card_frames"], config["render.scale"]
    cache = overlaid(frames, trajectories, env, *seen)
    told = {"source": cache.source} | ({"sizes": frames.sizes} if frames.sizes else {})
    fps, comment = config["film.fps"], spec.extended(**told).text
    encode = config["film_encoder"]
    if encode["encoder"] != "assemble":
        make = encode_segment if encode["encoder"] == "x264" else assemble_blocks
        make(cache, arguments.output, fps, encode, comment)
    elif arguments.coded_atlas is None:
        raise GoalreelError("assembling needs the coded atlas; name it with --coded-atlas")
    else:
        coded_atlas = read_coded_atlas(arguments.coded_atlas)
        check_alike(config, "coded atlas is", coded_atlas.spec)
        check_alike(frames.spec.config, "coded atlas is", coded_atlas.spec)
        assemble_segment(cache, coded_atlas, trajectories, arguments.output, fps, comment)
    cli.say(f"{len(cache)} frames in {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    cli.run(main)
