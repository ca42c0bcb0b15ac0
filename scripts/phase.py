"""Film the phase plane: position against velocity, for all trajectories of the run."""

from goalreel.stage_program import Shards, stage


@stage
def phase(spec, trajectories: Shards, output):
    from goalreel.views.phase import phase_frames, read_trails
    from goalreel.views.view_files import write_video

    trails = read_trails(trajectories, spec.config["env"])
    frames = write_video(output, phase_frames(trails), spec)
    return f"{frames} frames of {len(trails.steps)} of {trails.total} trajectories"
