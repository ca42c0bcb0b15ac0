"""Write the page of all runs of a suite, with its tables."""

from goalreel.stage_program import stage


@stage
def index(spec, output, table, summary, sums):
    from goalreel.provenance.checksums import write_sums
    from goalreel.report.suite_page import write_suite

    keys = "run", "row", "column", "training_seed", "digest"
    runs = [dict(zip(keys, run, strict=True)) for run in spec.config["runs"]]
    message = write_suite(output.parent, runs, spec.config["is_checkpoints"], spec)
    write_sums(sums, [output, table, summary], spec)
    return message
