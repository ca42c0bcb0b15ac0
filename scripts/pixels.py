"""Train a policy from pixels: collectors play while a learner updates the network, without locks.

Ctrl-C or SIGTERM saves the state in --saved, with the monitor's table next to it, and stops. The
same command resumes.
"""

from goalreel.stage_program import stage


@stage
def pixels(spec, policy, table, metrics, plot, saved):
    import torch

    from goalreel.training.pixels.monitor import plot_training
    from goalreel.training.pixels.settings import PipelineSettings

    settings = PipelineSettings(**spec.config["pixels"])
    # Snakemake passes the job's cores in OMP_NUM_THREADS. Each collector takes one.
    torch.set_num_threads(max(1, torch.get_num_threads() - settings.collectors))
    from goalreel.training.pixels.training import table_of, train, write_results

    trained = train(settings, saved, spec.code)
    summary = write_results(policy, table, metrics, trained, spec)
    plot_training(plot, trained.rows, settings.game, spec.text)
    for path in (saved, table_of(saved)):
        path.unlink(missing_ok=True)
    return summary
