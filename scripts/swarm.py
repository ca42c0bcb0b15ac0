"""Film the swarm: all reaches of the run on one track at the same time, each a translucent car."""

from goalreel.stage_program import Shards, stage


@stage
def swarm(spec, atlas, trajectories: Shards, output):
    from goalreel.pictures.atlas import read_atlas
    from goalreel.pictures.styles import make_style
    from goalreel.views.run_shards import read_shards, write_video
    from goalreel.views.swarm import count_cars

    style = make_style(spec.config["env"], spec.config["render"])
    cars = count_cars(read_shards(trajectories), read_atlas(atlas), style)
    frames = write_video(output, cars.frames(), spec)
    return f"{frames} frames of {cars.cars} cars in {len(cars.shapes)} distinct pictures"
