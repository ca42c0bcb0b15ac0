"""Render one shard of Mountain Car: find the frame of every state, and write the frame cache."""

from goalreel.stage_program import stage


@stage
def render(spec, atlas, trajectories, output):
    from goalreel.films.render import render_states
    from goalreel.rendering.atlas import read_atlas
    from goalreel.rendering.frame_cache import write_cache
    from goalreel.rendering.gymnasium_style import GymnasiumStyle
    from goalreel.simulation.trajectories import read_trajectories

    style = GymnasiumStyle(spec.config["env"])
    cache = render_states(read_trajectories(trajectories), read_atlas(atlas), style, spec)
    write_cache(output, cache)
    return f"{len(cache)} frames from {len(cache.layers[0].patches)} patches"
