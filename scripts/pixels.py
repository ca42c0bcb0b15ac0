"""Train a policy from pixels: collectors play beside a learner, without locks.

Ctrl-C or SIGTERM stops it and saves its state in --saved, and the monitor's table so far beside it.
The same command resumes from there.
"""

from goalreel.stage_program import stage


@stage
def pixels(spec, policy, table, metrics, plot, saved):
    import torch

    from goalreel.training.pixels.monitor import plot_training
    from goalreel.training.pixels.settings import PipelineSettings

    settings = PipelineSettings(**spec.config["pixels"])
    # Of the job's cores, as Snakemake tells them by OMP_NUM_THREADS, each collector has one.
    torch.set_num_threads(max(1, torch.get_num_threads() - settings.collectors))
    from goalreel.training.pixels.training import table_of, train, write_results

    trained = train(settings, saved, spec.code)
    summary = write_results(policy, table, metrics, trained, spec)
    plot_training(plot, trained.rows, settings.game, spec.text)
    for path in (saved, table_of(saved)):
        path.unlink(missing_ok=True)
    return summary
