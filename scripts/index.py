"""Write the page of all runs of a suite, with its tables."""

from goalreel.stage_program import stage


@stage
def index(spec, output, table, summary):
    from goalreel.report.suite_page import SuiteRun, write_suite

    runs = [SuiteRun(*run) for run in spec.config["runs"]]
    return write_suite(output.parent, runs, spec.config["is_checkpoints"], spec)
