"""Check every file of the results: its checksum, its spec and its content.

Gymnasium replays its episodes, and the program compares every step and frame. It prints a line for
each rule. In a workflow it also removes damaged files, and its last line names the files to make
again.
"""

from goalreel.stage_program import stage


@stage
def verify(spec, film, tables, output, threads: int = 1):
    from goalreel import cli
    from goalreel.errors import GoalreelError
    from goalreel.provenance.spec import parse_spec
    from goalreel.verification.run import error_report, remove, verify_results, write_verdicts
    from goalreel.workflow.plan import Plan
    from goalreel.workflow.stages import STAGES

    def plan(config):
        return parse_spec(Plan(config, cli.WORKFLOW / "scripts").spec("verify", {}))

    outputs = {name: stage.paths for name, stage in STAGES.items()}
    verdicts = verify_results(output.parent, outputs, spec, plan, threads)
    write_verdicts(output, verdicts)
    is_own = any(map(output.parent.resolve().is_relative_to, cli.results_folders()))
    again = remove(verdicts) if is_own else []
    if errors := error_report(verdicts, again, output.parent):
        raise GoalreelError(errors)
    return "\n".join(map(str, verdicts))
