"""Render one shard after its simulation, and write the frame cache.

A Mountain Car's frame is looked up in the atlas. MuJoCo draws the poses of the trajectories, by the
camera and in the size of the options `render`.
"""

from goalreel.stage_program import stage


@stage
def render(spec, trajectories, output, atlas=None):
    from goalreel.films.render import render_poses, render_states
    from goalreel.rendering.atlas import read_atlas
    from goalreel.rendering.frame_cache import write_cache
    from goalreel.simulation.trajectories import read_trajectories

    states = read_trajectories(trajectories)
    if atlas is None:
        return f"{render_poses(output, states, states.spec.config | spec.config, spec)} frames"
    cache = render_states(states, read_atlas(atlas), spec.config["env"], spec)
    write_cache(output, cache)
    return f"{len(cache)} frames from {len(cache.layers[0].patches)} patches"
