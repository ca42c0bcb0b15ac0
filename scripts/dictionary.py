"""Code every picture of an atlas, once, or take the dictionary from the user's cache.

By hand:

    python scripts/dictionary.py --atlas atlas.npz dictionary.npz --spec '{"stage": "dictionary",
        "config": {"env": "MountainCar-v0", "overlay.hud": false,
        "render": {"style": "gymnasium", "width": 600, "height": 400, "palette": "light"},
        "encode": {"encoder": "assemble", "size": "normal", "qp": 34, "card_qp": 20}}}'
"""

from pathlib import Path

from goalreel import program


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = program.stage_parser(__doc__, "dictionary")
    options.add_argument("--atlas", type=Path, required=True, help="every picture there is")
    options.add_argument("output", type=Path, help="the dictionary to write, .npz")
    arguments = options.parse_args(argv)

    from goalreel import ffmpeg
    from goalreel.atlas import read_atlas
    from goalreel.coding import code_atlas
    from goalreel.dictionary import read_dictionary, write_dictionary
    from goalreel.errors import GoalreelError
    from goalreel.overlay import clear_rows, empty_card
    from goalreel.spec import check_alike
    from goalreel.user_cache import cached_path

    spec = program.spec_of(arguments)
    spec.check_tool("ffmpeg", ffmpeg.version())
    cached = cached_path(spec)
    try:
        dictionary = read_dictionary(cached)
        if dictionary.spec != spec.text:
            raise GoalreelError(f"{cached}: made by another spec")
        program.say(f"{len(dictionary.slices)} pictures from {cached}")
    except GoalreelError as reason:
        atlas, config = read_atlas(arguments.atlas), spec.config
        check_alike(config, "atlas is", atlas.spec)
        seen = atlas.background, config["env"], config["overlay.hud"]
        quantisers = config["encode"]["qp"], config["encode"]["card_qp"]
        dictionary = code_atlas(atlas, empty_card(*seen), clear_rows(*seen), quantisers, spec.text)
        program.say(f"{len(dictionary.slices)} pictures coded ({reason})")
        try:
            write_dictionary(cached, dictionary)
        except OSError as error:  # a home that cannot be written costs time, not the film
            program.say(f"not kept in the user's cache: {error}")
    write_dictionary(arguments.output, dictionary)


if __name__ == "__main__":
    program.run(main)
