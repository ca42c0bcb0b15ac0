"""Render one shard of Mountain Car: find the picture of every state, write the frame cache.

By hand:

    python scripts/render.py --atlas atlas.npz --trajectories trajectories.npz frames.npz --spec '{
        "stage": "render",
        "config": {"env": "MountainCar-v0", "render": {
            "style": "vector", "width": 1920, "height": 1080, "palette": "dark"}}}'
"""

from pathlib import Path

from goalreel import cli
from goalreel.provenance.arguments import spec_of, stage_parser


def main(argv: list[str] | None = None) -> None:
    """Run the stage with the arguments of a command line."""
    options = stage_parser(__doc__, "render")
    options.add_argument("--atlas", type=Path, required=True, help="atlas of all pictures")
    options.add_argument("--trajectories", type=Path, required=True)
    options.add_argument("output", type=Path, help="the frame cache to write, .npz")
    arguments = options.parse_args(argv)

    from goalreel.films.render import render_states
    from goalreel.pictures.atlas import read_atlas
    from goalreel.pictures.frame_cache import write_cache
    from goalreel.pictures.styles import make_style
    from goalreel.provenance.input_checks import check_inputs
    from goalreel.simulation.trajectories import read_trajectories

    spec = spec_of(arguments)
    check_inputs(spec, simulate=arguments.trajectories, atlas=arguments.atlas)
    trajectories = read_trajectories(arguments.trajectories)
    style = make_style(spec.config["env"], spec.config["render"])
    cache = render_states(trajectories, read_atlas(arguments.atlas), style, spec)
    write_cache(arguments.output, cache)
    cli.say(f"{len(cache)} frames from {len(cache.layers[0].patches)} distinct pictures")


if __name__ == "__main__":
    cli.run(main)
