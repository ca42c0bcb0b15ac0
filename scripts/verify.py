"""Check every file of the results: its checksum, its spec, and the counts of frames and rows.

What Gymnasium has played and drawn is played again, and every step and picture compared. A line for
each stage reports the result. Damaged files are removed if a workflow started this program, and the
last line names what has to be made again.
"""

from goalreel.stage_program import stage


@stage
def verify(spec, output, threads: int = 1):
    from goalreel import cli
    from goalreel.errors import GoalreelError
    from goalreel.verification.run import Plan, verify
    from goalreel.verification.verdict import error_report, remove, write_verdicts
    from goalreel.workflow.stages import STAGES

    plan = Plan({name: stage.outputs for name, stage in STAGES.items()}, spec)
    verdicts = verify(output.parent, plan, threads)
    write_verdicts(output, verdicts)
    planned = cli.results() == output.parent.resolve()
    again = remove(verdicts) if planned else []
    if errors := error_report(verdicts, again):
        raise GoalreelError(errors)
    return "\n".join(map(str, verdicts))
