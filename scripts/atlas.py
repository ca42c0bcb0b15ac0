"""Draw the atlas: every distinct picture of an environment, or take it from the user's cache.

By hand:

    python scripts/atlas.py atlas.npz --spec '{"stage": "atlas",
        "config": {"env": "MountainCar-v0", "render": {
            "style": "vector", "width": 1920, "height": 1080, "palette": "dark"}}}'
"""

import shutil
from pathlib import Path

from goalreel import program


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = program.stage_parser(__doc__, "atlas")
    options.add_argument("output", type=Path, help="the atlas to write, .npz")
    arguments = options.parse_args(argv)

    from goalreel.atlas import draw_atlas, read_atlas, write_atlas
    from goalreel.errors import GoalreelError
    from goalreel.styles import make_style
    from goalreel.user_cache import cached_path

    spec = program.spec_of(arguments)
    cached = cached_path(spec)
    try:
        atlas = read_atlas(cached)
        if atlas.spec != spec.text:
            raise GoalreelError(f"{cached}: made by another spec")
        _copy(cached, arguments.output)
        program.say(f"{len(atlas.keys)} pictures from {cached}")
    except GoalreelError as reason:
        atlas = draw_atlas(make_style(spec.config["env"], spec.config["render"]), spec.text)
        program.say(f"{len(atlas.keys)} pictures drawn ({reason})")
        write_atlas(arguments.output, atlas)
        try:
            _copy(arguments.output, cached)
        except OSError as error:  # a home that cannot be written costs time, not the film
            program.say(f"not kept in the user's cache: {error}")


def _copy(source: Path, target: Path) -> None:
    """Copy an atlas file; to pack the same pictures again would take longer than to read them."""
    from goalreel.atomic import replacing

    with replacing(target) as temporary:
        shutil.copyfile(source, temporary)


if __name__ == "__main__":
    program.run(main)
