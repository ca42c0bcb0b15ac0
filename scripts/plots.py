"""Draw the plots that a run's episodes fill: returns, steps, states, actions, the reach rate."""

from goalreel.stage_program import Shards, stage


@stage
def plots(spec, episodes, trajectories: Shards, output, attempts=None):
    from goalreel.environments.registry import describe
    from goalreel.files.atomic import replacing_folder
    from goalreel.provenance.checksums import SUMS, write_sums
    from goalreel.report.plot_data import read_returns, read_sample, read_steps
    from goalreel.report.plots import Run, draw_plots
    from goalreel.report.reach_rate import reach_rate

    unit, goal = spec.config["unit"], describe(spec.config["env"]).goal_position
    rate = reach_rate(attempts, spec.config["policy"]) if attempts else None
    steps, returns = read_steps(episodes, unit), read_returns(episodes)
    sample = read_sample(trajectories, unit, steps.episodes)
    with replacing_folder(output) as folder:
        made = draw_plots(folder, Run(unit, steps, returns, sample, goal, rate), spec.text)
        write_sums(folder / SUMS, made)
    return f"{len(made)} plots of {returns.episodes} episodes"
