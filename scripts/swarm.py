"""Film the swarm: all reaches of the run as translucent cars on one track."""

from goalreel.stage_program import Shards, stage


@stage
def swarm(spec, atlas, trajectories: Shards, output):
    from goalreel.rendering.atlas import read_atlas
    from goalreel.rendering.gymnasium_style import GymnasiumStyle
    from goalreel.simulation.trajectories import read_trajectories
    from goalreel.views.swarm import count_cars
    from goalreel.views.view_files import write_video

    style = GymnasiumStyle(spec.config["env"])
    cars = count_cars(map(read_trajectories, trajectories), read_atlas(atlas), style)
    frames = write_video(output, cars.frames(), spec)
    return f"{frames} frames of {cars.cars} cars in {len(cars.shapes)} distinct patches"
