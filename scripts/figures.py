"""Write figures of one episode for a README or a paper: animations, a film strip, a composite."""

from goalreel.stage_program import Shards, stage


@stage
def figures(spec, frames: Shards, trajectories: Shards, output):
    from goalreel.files.atomic import replacing_folder
    from goalreel.provenance.checksums import write_folder_sums
    from goalreel.views.figures import write_figures
    from goalreel.views.filmed_episodes import read_filmed

    filmed = read_filmed(trajectories, frames, spec.config["env"], spec.config["unit"])
    with replacing_folder(output) as folder:
        said = write_figures(folder, filmed, spec)
        write_folder_sums(folder, spec)
    return "; ".join(said)
