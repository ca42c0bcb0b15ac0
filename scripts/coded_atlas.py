"""Code every picture of an atlas, once, or take the coded atlas from the user's cache.

By hand:

    python scripts/coded_atlas.py --atlas atlas.npz coded_atlas.npz --spec '{"stage": "coded_atlas",
        "config": {"env": "MountainCar-v0", "overlay.hud": false,
        "render": {"style": "gymnasium", "width": 600, "height": 400, "palette": "light"},
        "film_encoder": {"encoder": "assemble", "qp": 34, "card_qp": 20}}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "coded_atlas")
    options.add_argument("--atlas", type=Path, required=True, help="atlas of all pictures")
    options.add_argument("output", type=Path, help="the coded atlas to write, .npz")
    arguments = options.parse_args(argv)

    from goalreel.encoding import ffmpeg
    from goalreel.encoding.assembling.code_atlas import code_atlas
    from goalreel.encoding.assembling.coded_atlas import read_coded_atlas, write_coded_atlas
    from goalreel.pictures.atlas import read_atlas
    from goalreel.pictures.overlay import clear_rows, empty_card
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.provenance.spec import check_alike
    from goalreel.provenance.user_cache import from_cache

    spec = spec_of(arguments)
    spec.check_tool("ffmpeg", ffmpeg.version())
    config, encode = spec.config, spec.config["film_encoder"]
    check_inputs(spec, atlas=arguments.atlas)

    def make() -> None:
        atlas = read_atlas(arguments.atlas)
        check_alike(config, "atlas is", atlas.spec)
        seen = atlas.background, config["env"], config["overlay.hud"]
        quantisers = encode["qp"], encode["card_qp"]
        coded = code_atlas(atlas, empty_card(*seen), clear_rows(*seen), quantisers, spec)
        write_coded_atlas(arguments.output, coded)

    cli.say(from_cache(spec, arguments.output, read_coded_atlas, make))


if __name__ == "__main__":
    cli.run(main)
