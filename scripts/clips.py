"""Film clips: chosen episodes, and excerpts that start at chosen steps, each as its own video."""

from goalreel.stage_program import Shards, stage


@stage
def clips(
    spec, frames: Shards, trajectories: Shards, output, atlas=None, policy=None, threads: int = 1
):
    from goalreel import cli
    from goalreel.files.atomic import replacing_folder
    from goalreel.provenance.checksums import write_folder_sums
    from goalreel.views.attempt_frames import RunAttempts
    from goalreel.views.clips import choose_clips, write_clips

    attempts = RunAttempts(trajectories, frames, atlas, policy, spec.config)
    chosen = choose_clips(spec.config["clips"], attempts.rows)
    with replacing_folder(output) as folder:
        write_clips(folder, chosen, attempts, spec, threads)
        write_folder_sums(folder, spec)
    episodes = len(attempts.rows.reach)
    if not chosen:
        cli.say(f"warning: clips: {spec.config['clips']} selects none of {episodes} episodes.")
    return f"{len(chosen)} clips of {episodes} episodes"
