"""Film the swarm: all reaches of the run as translucent cars on one track."""

from goalreel.stage_program import Shards, stage


@stage
def swarm(spec, atlas, trajectories: Shards, output):
    from goalreel.rendering.atlas import read_atlas
    from goalreel.simulation.trajectories import read_trajectories
    from goalreel.views.swarm import count_cars
    from goalreel.views.view_files import write_video

    cars = count_cars(map(read_trajectories, trajectories), read_atlas(atlas), spec.config["env"])
    frames = write_video(output, map(cars.frame, range(len(cars.counts))), spec)
    return f"{frames} frames of {cars.cars} cars in {len(cars.shapes)} distinct patches"
