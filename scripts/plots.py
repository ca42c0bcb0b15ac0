"""Draw the plots of a run's episodes: returns, steps, states and actions."""

from goalreel.stage_program import Shards, stage


@stage
def plots(spec, episodes, trajectories: Shards, output):
    from goalreel.files.atomic import replacing_folder
    from goalreel.provenance.checksums import SUMS, write_sums
    from goalreel.report.plots import PlottedRun, draw_plots, read_episodes, read_sample

    unit, sample = spec.config["unit"], read_sample(trajectories, spec.config["unit"])
    env = "" if spec.config["env_wrappers"] else spec.config["env"]
    run = PlottedRun(unit, read_episodes(episodes, unit), sample, env)
    with replacing_folder(output) as folder:
        made = draw_plots(folder, run, spec.text)
        write_sums(folder / SUMS, made, spec)
    return f"{len(made)} plots of {len(run.episodes)} episodes"
