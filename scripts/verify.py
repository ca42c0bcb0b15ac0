"""Check every file of the results: its checksum, its spec and its content.

Gymnasium replays its episodes, and the program compares every step and frame. It prints a line for
each rule. In a workflow it also removes damaged files, and its last line names the files to make
again. The files of a suite's runs have their own checks.
"""

from goalreel.stage_program import stage


@stage
def verify(spec, output, film=None, tables=None, threads: int = 1):
    from goalreel import cli
    from goalreel.errors import GoalreelError
    from goalreel.provenance.spec import parse_spec
    from goalreel.verification import run as results
    from goalreel.workflow.plan import Plan
    from goalreel.workflow.stages import STAGES

    def plan(config):
        return parse_spec(Plan(config, cli.WORKFLOW / "scripts").spec("verify", {}))

    outputs = {name: stage.paths for name, stage in STAGES.items()}
    if "lists" in spec.config:
        verdicts = [results.verify_suite(output.parent, spec.config["lists"])]
    else:
        verdicts = results.verify_results(output.parent, outputs, spec, plan, threads)
    results.write_verdicts(output, verdicts)
    is_own = any(map(output.parent.resolve().is_relative_to, cli.plans()))
    again = results.remove(verdicts) if is_own else []
    if errors := results.error_report(verdicts, again, output.parent):
        raise GoalreelError(errors)
    return "\n".join(map(str, verdicts))
