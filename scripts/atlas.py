"""Draw the atlas: every distinct picture of an environment, or take it from the user's cache.

By hand:

    python scripts/atlas.py atlas.npz --spec '{"stage": "atlas",
        "config": {"env": "MountainCar-v0", "render": {
            "style": "vector", "width": 1920, "height": 1080, "palette": "dark"}}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "atlas")
    options.add_argument("output", type=Path, help="the atlas to write, .npz")
    arguments = options.parse_args(argv)

    from goalreel.pictures.atlas import draw_atlas, read_atlas, write_atlas
    from goalreel.pictures.styles import make_style
    from goalreel.provenance.user_cache import from_cache

    spec = spec_of(arguments)

    def make() -> None:
        style = make_style(spec.config["env"], spec.config["render"])
        write_atlas(arguments.output, draw_atlas(style, spec))

    cli.say(from_cache(spec, arguments.output, read_atlas, make))


if __name__ == "__main__":
    cli.run(main)
