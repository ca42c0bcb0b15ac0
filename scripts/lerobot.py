"""Write a run as a LeRobot dataset: videos of many episodes, and their steps in Parquet."""

from goalreel.stage_program import Shards, stage


@stage
def lerobot(spec, frames: Shards, trajectories: Shards, output, threads: int = 1):
    from goalreel.errors import pluralize
    from goalreel.files.atomic import replacing_folder
    from goalreel.provenance.checksums import write_folder_sums
    from goalreel.report.lerobot import write_dataset
    from goalreel.views.filmed_episodes import read_filmed

    filmed = read_filmed(trajectories, frames, spec.config["env"], spec.config["unit"])
    with replacing_folder(output) as folder:
        written = write_dataset(folder, filmed, trajectories, spec, threads)
        write_folder_sums(folder)
    return f"{pluralize(written, 'frame')} of {pluralize(len(filmed), 'episode')}"
