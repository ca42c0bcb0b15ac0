"""Compare trainings by deep Q-learning: a table of medians, and learning curves.

--metrics is the metrics.json of the first training.
"""

from goalreel.stage_program import stage


@stage
def training_table(spec, metrics, runs, rows, table, curves, sums):
    from goalreel.files.atomic import write_text
    from goalreel.provenance.checksums import write_sums
    from goalreel.provenance.embedded_specs import check_inputs
    from goalreel.training.dqn.comparison import as_markdown, table_of_runs, table_of_variants
    from goalreel.training.dqn.metrics import read_metrics
    from goalreel.training.dqn.plots import plot_curves

    paths = {
        f"{variant} {seed}": metrics.parents[2] / variant / str(seed) / metrics.name
        for variant in spec.config["dqn.variants"]
        for seed in spec.config["dqn.seeds"]
    }
    check_inputs(spec, paths)
    trainings = [read_metrics(path) for path in paths.values()]
    every = table_of_runs(trainings)
    variants = table_of_variants(every)
    write_text(runs, every.to_csv(index=False, lineterminator="\n"))
    write_text(rows, variants.to_csv(index=False, lineterminator="\n"))
    write_text(table, text := as_markdown(variants))
    plot_curves(curves, trainings, spec.text)
    write_sums(sums, [runs, rows, table, curves])
    return f"{len(variants)} variants in {len(trainings)} trainings\n{text.strip()}"
