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
    from goalreel.verification.run import verify
    from goalreel.verification.single_files import Plan
    from goalreel.verification.verdict import fault_report, remove, write_verdicts
    from goalreel.workflow.stages import STAGES

    outputs = {name: stage.outputs for name, stage in STAGES.items()}
    film = (spec.config[name] for name in ("env", "film.fps", "card_frames"))
    shards, *counts = (spec.shard[name] for name in ("shards", "reaches", "size"))
    counts += [spec.reproducible]
    plan = Plan(outputs, spec.made_of, *film, shards, spec.config["unit"], *counts)
    verdicts = verify(output.parent, plan, threads)
    write_verdicts(output, verdicts)
    planned = cli.results() == output.parent.resolve()
    again = remove(verdicts) if planned else []
    if fault := fault_report(verdicts, again):
        raise GoalreelError(fault)
    return "\n".join(map(str, verdicts))
