"""Check every file of the results: its checksum, its spec, and what it shows.

Gymnasium plays what it played and drew again, and every step and frame is compared. A line for
each stage reports the result. If a workflow started this program, damaged files are removed, and
the last line names the files to make again.
"""

from goalreel.stage_program import stage


@stage
def verify(spec, film, tables, output, threads: int = 1):
    from goalreel import cli
    from goalreel.errors import GoalreelError
    from goalreel.verification.run import error_report, remove, verify_results, write_verdicts
    from goalreel.workflow.stages import STAGES

    outputs = {name: stage.paths for name, stage in STAGES.items()}
    verdicts = verify_results(output.parent, outputs, spec, threads)
    write_verdicts(output, verdicts)
    is_own = output.parent.resolve() in cli.results_folders()
    again = remove(verdicts) if is_own else []
    if errors := error_report(verdicts, again):
        raise GoalreelError(errors)
    return "\n".join(map(str, verdicts))
